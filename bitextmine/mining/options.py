"""What mining can be told, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from bitextmine.arguments import a_path, memory_bytes, one_of, real_number, whole_number, yes_or_no
from bitextmine.distributed.options import ExecutorKeywords, take_executor
from bitextmine.errors import UsageError
from bitextmine.executor import LOCAL, Executor
from bitextmine.mining.choices import Dedup, Duplicates, Margin, Retrieval, SearchWay
from bitextmine.mining.threshold import PRECISION, parse_threshold, wanted_precision

__all__ = [
    "Duplicates",
    "MiningOptions",
    "SearchWay",
    "WorkOptions",
    "check_matching",
    "member",
    "split_options",
]

Choice = TypeVar("Choice", bound=StrEnum)


def member(choices: type[Choice], value: str, option: str) -> Choice:
    """The member of that value; UsageError, which names the option, for any other."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise UsageError(f"{option}: unknown value {value!r}; choose one of {', '.join(choices)}")
    return choices(value)


@dataclass(frozen=True)
class MiningOptions:
    """What counts as a pair. Choices may be given as text ("ratio"); they are members of their enums afterwards.

    k: neighbours per line that a margin is taken over. threshold: a number, "none" (or None), or "auto": the best F1
    on `gold` (a TSV file of line numbers from 1) where that is given, else the score that a share `fpr` of the lines
    without a translation reach, estimated from the corpora; or "precision=0.95", the lowest score at and above which
    that share of the pairs is true, estimated likewise. rescore: whether the score of a pair is not its margin but
    the logarithm of the odds that it is a translation, from its margin and from how well the pieces match (`scorer`);
    needs an encoder without layers, and holds about 300 bytes a line; None: where the encoder has a scorer of its
    own, the margin is the ratio, and k is 2 or more. clean: leave out junk, boilerplate, copies and text in another
    language (`cleaning`). dedup: which lines count as the same; one of them is mined. duplicates: what becomes of the
    others.

    Raises UsageError for a value that is none of the choices or out of range, and for options that do not go together.
    """

    k: int = 4
    margin: Margin = Margin.RATIO
    retrieval: Retrieval = Retrieval.MAX
    threshold: float | str | None = "auto"
    fpr: float = 0.01
    gold: str | os.PathLike[str] | None = None
    rescore: bool | None = None
    clean: bool = True
    dedup: Dedup = Dedup.EXACT
    duplicates: Duplicates = Duplicates.FIRST

    def __post_init__(self) -> None:
        for name, choices in (
            ("margin", Margin),
            ("retrieval", Retrieval),
            ("dedup", Dedup),
            ("duplicates", Duplicates),
        ):
            object.__setattr__(self, name, member(choices, getattr(self, name), name))
        object.__setattr__(self, "k", whole_number("k", self.k))
        if self.rescore is not None:
            object.__setattr__(self, "rescore", yes_or_no("rescore", self.rescore))
        object.__setattr__(self, "clean", yes_or_no("clean", self.clean))
        check_matching(self.retrieval, self.k, self.margin)
        if self.rescore and self.k == 1:
            raise UsageError(
                "rescore with k=1 (--rescore -k 1): with one neighbour there is no margin to start from; take a k of 2 "
                "or more"
            )
        object.__setattr__(self, "fpr", real_number("fpr", self.fpr))
        if not 0 < self.fpr < 1:
            raise UsageError(f"fpr: expected a rate between 0 and 1, found {self.fpr:g}")
        rule = parse_threshold(self.threshold, precision=True)
        object.__setattr__(self, "threshold", rule)
        if self.gold is not None:
            a_path("gold", self.gold)
            if rule != "auto":
                raise UsageError(
                    f"gold is given (--gold), but the threshold is {rule}; gold is for --threshold auto"
                )

    @property
    def wants_rescoring(self) -> bool | None:
        """Whether pairs are scored again; None: where the encoder has a scorer of its own."""
        if self.rescore is None and (self.k == 1 or self.margin != Margin.RATIO):
            return False
        return self.rescore

    @property
    def estimates_noise(self) -> bool:
        """Whether the threshold comes from the noise of the corpora, which takes a neighbour more."""
        return self.gold is None and (self.threshold == "auto" or self.precision is not None)

    @property
    def precision(self) -> float | None:
        """The estimated precision that the threshold should give, None where it is not asked for."""
        rule = self.threshold
        return wanted_precision(rule) if isinstance(rule, str) and rule.startswith(PRECISION) else None


@dataclass(frozen=True)
class WorkOptions:
    """How the work is done, whatever counts as a pair.

    search: see `SearchWay`. device: auto, cpu, cuda or cuda:N. memory: bytes that exact search may take (default: half
    of what is free), which may be given as text ("2G"). batch_tokens: subword pieces that are encoded together
    (default: what fits the device). force: embed again what is up to date. cache: the folder for embeddings (default:
    beside the corpora). wait: for an embedding that another process is writing, rather than to stop.
    errors: invalid UTF-8 in corpora and gold, strict or replace. executor: embeds and searches; of a
    cluster, memory is each worker's.

    Raises UsageError for a value of the wrong type or out of range. Whether the device is there shows later.
    """

    search: SearchWay = SearchWay.AUTO
    device: str = "auto"
    memory: int | None = None
    batch_tokens: int | None = None
    force: bool = False
    cache: str | os.PathLike[str] | None = None
    wait: bool = True
    errors: str = "strict"
    executor: Executor = LOCAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", member(SearchWay, self.search, "search"))
        object.__setattr__(self, "memory", memory_bytes(self.memory))
        if self.batch_tokens is not None:
            object.__setattr__(self, "batch_tokens", whole_number("batch_tokens", self.batch_tokens))
        object.__setattr__(self, "force", yes_or_no("force", self.force))
        object.__setattr__(self, "wait", yes_or_no("wait", self.wait))
        if self.cache is not None:
            a_path("cache", self.cache)
        one_of("errors", self.errors, ("strict", "replace"))
        if not isinstance(self.device, str):
            raise UsageError(f"device: expected auto, cpu, cuda or cuda:N, found {self.device!r}")
        self.executor.device(self.device)

    @property
    def device_here(self) -> str:
        """Where this process computes: not on a GPU where workers do the work."""
        return "cpu" if self.executor.distributed else self.device


def split_options(given: Mapping[str, Any]) -> tuple[MiningOptions, WorkOptions]:
    """Both kinds of options out of keywords for either; TypeError for a keyword of neither."""
    mining = {field.name for field in fields(MiningOptions)}
    work = {field.name for field in fields(WorkOptions)}
    options = dict(given)
    if "executor" not in options:
        options["executor"] = take_executor(options)
    if unknown := sorted(set(options) - mining - work):
        known = sorted((mining | work | ExecutorKeywords.__annotations__.keys()) - {"executor"})
        raise TypeError(f"mine() has no option {unknown[0]!r}; there are {', '.join(known)}")
    return (
        MiningOptions(**{name: value for name, value in options.items() if name not in work}),
        WorkOptions(**{name: value for name, value in options.items() if name in work}),
    )


def check_matching(retrieval: Retrieval, k: int, margin: Margin) -> None:
    """Raises UsageError where no pair could score above the margin's neutral value."""
    if retrieval == Retrieval.MATCHING and k == 1 and margin != Margin.ABSOLUTE:
        raise UsageError(
            "retrieval='matching' with k=1 (--retrieval matching -k 1): with one neighbour no pair scores above the "
            f"{margin}'s neutral value, and matching would keep none; use -k 2 or more, or retrieval max"
        )
