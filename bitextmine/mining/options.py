"""The options of mining, checked in one place."""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bitextmine.arguments import a_path, one_of, take_options, whole_number, yes_or_no
from bitextmine.distributed.ray import ExecutorKeywords, take_executor
from bitextmine.errors import UsageError
from bitextmine.mining.choices import Dedup, Duplicates, Margin, Retrieval, SearchWay
from bitextmine.mining.threshold import parse_threshold
from bitextmine.run import Run


@dataclass(frozen=True)
class MiningOptions:
    """The definition of a pair. Choices may be given as text ("ratio"); afterwards they are members of their enums.

    Attributes:
        k: neighbours per line that a margin is taken over.
        margin: how a pair is compared with its neighbourhood.
        retrieval: which candidates become pairs.
        threshold: a number; "none" or None; "auto", the best F1 on `gold`, or without gold the best expected F1, as
            estimated from the corpora; "f0.5", the best expected F0.5 (any weight of recall); "precision=0.95", the
            lowest score at and above which an estimated 95% of the pairs are true; or "fpr=0.01", the score that an
            estimated 1% of the lines without a translation reach.
        gold: a TSV file of known pairs, line numbers from 1.
        rescore: score pairs by the log odds that they are translations, from their margin and the matches of their
            pieces (`scorer`), instead of by their margin. This needs an encoder without layers, and about 300 bytes a
            line. None: if the encoder has a scorer of its own, the margin is the ratio, and k is 2 or more.
        clean: leave out junk, boilerplate, copies and text in another language (`cleaning`).
        dedup: which lines count as the same; one of them is mined.
        duplicates: what happens to the others.

    Raises:
        UsageError: a value is unknown or out of range, or options contradict each other.
    """

    k: int = 4
    margin: Margin = Margin.RATIO
    retrieval: Retrieval = Retrieval.MAX
    threshold: float | str | None = "auto"
    gold: str | os.PathLike[str] | None = None
    rescore: bool | None = None
    clean: bool = True
    dedup: Dedup = Dedup.EXACT
    duplicates: Duplicates = Duplicates.FIRST

    def __post_init__(self) -> None:
        choices = {"margin": Margin, "retrieval": Retrieval, "dedup": Dedup, "duplicates": Duplicates}
        for name, kind in choices.items():
            object.__setattr__(self, name, kind(one_of(name, getattr(self, name), tuple(kind))))
        object.__setattr__(self, "k", whole_number("k", self.k))
        if self.rescore is not None:
            object.__setattr__(self, "rescore", yes_or_no("rescore", self.rescore))
        object.__setattr__(self, "clean", yes_or_no("clean", self.clean))
        check_matching(self.retrieval, self.k, self.margin)
        if self.rescore and self.k == 1:
            raise UsageError(
                "rescore with k=1 (--rescore -k 1): one neighbour gives no margin to start from; use -k 2 or more"
            )
        rule = parse_threshold(self.threshold, estimated=True)
        object.__setattr__(self, "threshold", rule)
        if self.gold is not None:
            a_path("gold", self.gold)
            if rule != "auto":
                raise UsageError(
                    f"gold is given (--gold), but the threshold is {rule}; gold is for --threshold auto"
                )

    @property
    def wants_rescoring(self) -> bool | None:
        """Tell whether to rescore pairs; None: if the encoder has a scorer of its own."""
        return (
            False if self.rescore is None and (self.k == 1 or self.margin != Margin.RATIO) else self.rescore
        )

    @property
    def estimates_noise(self) -> bool:
        """Tell whether the threshold may be estimated from the corpora, which takes one more neighbour."""
        return self.gold is None and isinstance(self.threshold, str) and self.threshold != "none"


@dataclass(frozen=True)
class WorkOptions:
    """How the work is done; nothing here changes which pairs are found.

    Attributes:
        run: the resources. Its memory limits exact search.
        search: see `SearchWay`.
        force: embed again even if an embedding is up to date.
        cache: the folder for embeddings (default: beside the corpora).
        wait: wait for an embedding that another process is writing.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    run: Run = field(default_factory=Run)
    search: SearchWay = SearchWay.AUTO
    force: bool = False
    cache: str | os.PathLike[str] | None = None
    wait: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", SearchWay(one_of("search", self.search, tuple(SearchWay))))
        object.__setattr__(self, "force", yes_or_no("force", self.force))
        object.__setattr__(self, "wait", yes_or_no("wait", self.wait))
        if self.cache is not None:
            a_path("cache", self.cache)


def split_options(given: Mapping[str, Any], run: Run | None = None) -> tuple[MiningOptions, WorkOptions]:
    """Return the options from keywords for any of them, and objects as `options`, `run` and `work`.

    Raises:
        UsageError: an object is of another class, or a value is wrong.
        TypeError: a keyword is unknown.
    """
    options = dict(given)
    if run is None and "executor" not in options and options.keys() & ExecutorKeywords.__annotations__.keys():
        options["executor"] = take_executor(options)
    known = [[field.name for field in fields(kind)] for kind in (MiningOptions, Run, WorkOptions)]
    for names, name in zip(known, ("options", "run", "work"), strict=True):
        names[:] = [name, *(other for other in names if other != "run")]
    mining, resources, work = (
        {name: options.pop(name) for name in names if name in options} for names in known
    )
    if options:
        names = sorted({*itertools.chain(*known), *ExecutorKeywords.__annotations__} - {"executor"})
        raise TypeError(f"mine() has no option {min(options)!r}; there are {', '.join(names)}")
    if run is not None or resources or "work" not in work:
        work["run"] = run or take_options(Run, resources, "run")
    return take_options(MiningOptions, mining), take_options(WorkOptions, work, "work")


def check_matching(retrieval: Retrieval, k: int, margin: Margin) -> None:
    """Raise UsageError if no pair could score above the margin's neutral value."""
    if retrieval == Retrieval.MATCHING and k == 1 and margin != Margin.ABSOLUTE:
        raise UsageError(
            "retrieval='matching' with k=1 (--retrieval matching -k 1): with one neighbour no pair scores above the "
            f"{margin}'s neutral value, and matching would keep none; use -k 2 or more, or retrieval max"
        )
