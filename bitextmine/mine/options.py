"""What mining can be told, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from bitextmine.errors import UsageError
from bitextmine.mine.choices import Dedup, Duplicates, Margin, Retrieval, SearchWay
from bitextmine.mine.threshold import parse_threshold

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
    if value not in tuple(choices):
        raise UsageError(f"{option}: unknown value {value!r}; choose one of {', '.join(choices)}")
    return choices(value)


@dataclass(frozen=True)
class MiningOptions:
    """What counts as a pair. Choices may be given as text ("ratio"); they are members of their enums afterwards.

    k: neighbours per line that a margin is taken over. threshold: a number, "none" (or None), or "auto": the best F1
    on `gold` (a TSV file of line numbers from 1) where that is given, else the score that a share `fpr` of the lines
    without a translation reach, estimated from the corpora. rescore: the score of a pair is not its margin but the
    logarithm of the odds that it is a translation, from its margin and from how well the pieces match (`scorer`);
    needs an encoder without layers, and holds about 300 bytes a line. dedup: which lines count as the same; one of
    them is mined. duplicates: what becomes of the others.

    Raises UsageError for a value that is none of the choices or out of range, and for options that do not go together.
    """

    k: int = 4
    margin: Margin = Margin.RATIO
    retrieval: Retrieval = Retrieval.MAX
    threshold: float | str | None = "auto"
    fpr: float = 0.01
    gold: str | os.PathLike[str] | None = None
    rescore: bool = False
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
        if self.k < 1:
            raise UsageError(f"k must be at least 1, found {self.k}")
        check_matching(self.retrieval, self.k, self.margin)
        if self.rescore and self.k == 1:
            raise UsageError(
                "--rescore -k 1: with one neighbour there is no margin to start from; use -k 2 or more"
            )
        if not 0 < self.fpr < 1:
            raise UsageError(f"fpr: expected a rate between 0 and 1, found {self.fpr}")
        rule = parse_threshold(self.threshold)
        object.__setattr__(self, "threshold", rule)
        if self.gold is not None and rule != "auto":
            raise UsageError(f"--gold is given, but --threshold is {rule}; --gold is for --threshold auto")

    @property
    def estimates_noise(self) -> bool:
        """Whether the threshold comes from the noise of the corpora, which takes a neighbour more."""
        return self.threshold == "auto" and self.gold is None


@dataclass(frozen=True)
class WorkOptions:
    """How the work is done, whatever counts as a pair.

    search: see `SearchWay`. device: auto, cpu, cuda or cuda:N. memory: bytes that exact search may take (default: half
    of what is free). batch_tokens: subword pieces that are encoded together (default: what fits the device). force:
    embed again what is up to date. Raises UsageError for an unknown search.
    """

    search: SearchWay = SearchWay.AUTO
    device: str = "auto"
    memory: int | None = None
    batch_tokens: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", member(SearchWay, self.search, "search"))


def split_options(given: Mapping[str, Any]) -> tuple[MiningOptions, WorkOptions]:
    """Both kinds of options out of keywords for either; TypeError for a keyword of neither."""
    work = {field.name for field in fields(WorkOptions)}
    return (
        MiningOptions(**{name: value for name, value in given.items() if name not in work}),
        WorkOptions(**{name: value for name, value in given.items() if name in work}),
    )


def check_matching(retrieval: Retrieval, k: int, margin: Margin) -> None:
    """Raises UsageError where no pair could score above the margin's neutral value."""
    if retrieval == Retrieval.MATCHING and k == 1 and margin != Margin.ABSOLUTE:
        raise UsageError(
            f"--retrieval matching -k 1: with one neighbour no pair scores above the {margin}'s neutral value, and "
            "matching would keep none; use -k 2 or more, or --retrieval max"
        )
