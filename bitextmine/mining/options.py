"""The options of mining; nothing heavy is imported here, as ``--help`` is made of them."""

import math
import re
from dataclasses import dataclass
from typing import Annotated

from bitextmine.arguments import finite
from bitextmine.declarations import Choice, Kind, Opt, Options, Path
from bitextmine.embeddings.options import Cache, Force
from bitextmine.errors import UsageError
from bitextmine.languages.codes import LanguageCode
from bitextmine.shipped import Second

# The rules that need an estimate, with their number: expected F-measure, false-positive rate, precision.
F_MEASURE, RATE, PRECISION = "f", "fpr=", "precision="
_TIME, _SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh])"), {"s": 1, "m": 60, "h": 3600}
_ESTIMATED = re.compile(rf"({PRECISION}|{RATE}|{F_MEASURE})(.*)")


class Margin(Choice):
    """How a pair is compared with its neighbourhood; the formulas are in `margin.margin`."""

    RATIO = "ratio", "cosine over the mean cosine to the neighbours"
    DISTANCE = "distance", "cosine minus this mean"
    ABSOLUTE = "absolute", "cosine alone"


class Retrieval(Choice):
    """Which candidates become pairs; what each does is in `pairing.retrieve`."""

    MAX = "max", "one to one, best score first"
    MATCHING = "matching", "one to one, highest total score"
    INTERSECT = "intersect", "best of both lines"
    UNION = "union", "best of either line"
    FORWARD = "forward", "best of each source line"
    BACKWARD = "backward", "best of each target line"


class Dedup(Choice):
    """Which lines count as the same; what each level leaves out of account is in `dedup.line_key`."""

    EXACT = "exact", "the same text"
    NEAR = "near", "the same up to case, digits and punctuation"
    NONE = "none", "mine every line"


class Duplicates(Choice):
    """The pairs of lines that repeat a mined one: a pair for the first of them, or one for each."""

    FIRST = "first", "one, for the first line"
    ALL = "all", "one for each line"


class SearchWay(Choice):
    """How neighbours are found; AUTO searches exactly up to `neighbours.exact_up_to` comparisons."""

    AUTO = "auto", "exact up to 10^12 comparisons, 10^14 on a GPU, else index"
    EXACT = "exact", "compare every line with every line"
    INDEX = "index", "use FAISS"


def parse_threshold(value: str | float | None, *, estimated: bool = False) -> float | str:
    """Return ``auto``, ``none``, a finite number or, if `estimated`, ``f1``, ``fpr=0.01`` or ``precision=0.95``.

    None means none.

    Raises:
        UsageError: the input is anything else.
    """
    if value is None:
        return "none"
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("auto", "none"):
            return text
        if estimated and (rule := _ESTIMATED.fullmatch(text)):
            kind, number = rule[1], finite(rule[2])
            if kind == F_MEASURE and not 0.01 <= number <= 100:
                raise UsageError(f"fBETA takes a weight of recall from 0.01 to 100, found {value!r}")
            if kind != F_MEASURE and not 0 < number < 1:
                raise UsageError(f"{kind} takes a share above 0 and below 1, found {value!r}")
            return f"{kind}{number:g}"
    number = finite(value)
    if math.isnan(number):
        also = " (or a rule: 'f1', 'precision=0.95', 'fpr=0.01')" if estimated else ""
        raise UsageError(f"expected a number, 'auto' or 'none', found {value!r}{also}")
    return number


def parse_budget(value: float | str) -> float | str:
    """Return a share of the lines, above 0 and at most 1, or a time as text (90s, 30m, 2h).

    Raises:
        UsageError: the input is anything else.
    """
    text = str(value).strip().lower()
    if seconds_of(text) is not None:
        return text
    share = finite(value)
    if not 0 < share <= 1:
        raise UsageError(
            f"expected a share of the lines, above 0 and at most 1, or a time such as 90s, 30m or 2h, found {value!r}"
        )
    return share


def seconds_of(budget: float | str) -> float | None:
    """Return the seconds of a time, None for a share."""
    time = _TIME.fullmatch(str(budget))
    return float(time[1]) * _SECONDS[time[2]] if time and float(time[1]) > 0 else None


Threshold = Annotated[
    float | str | None,
    Kind(
        "NUMBER|auto|none|fBETA|precision=X|fpr=X",
        lambda value: parse_threshold(value, estimated=True),
        "float | str",
    ),
]
PlainThreshold = Annotated[float | str | None, Kind("NUMBER|auto|none", parse_threshold, "float | str")]
Budget = Annotated[float | str, Kind("SHARE|TIME", parse_budget, "float | str")]
Neighbours = Annotated[int, Opt("-k", "Neighbours for the margin.", ge=1)]
MarginOption = Annotated[Margin, Opt("--margin", "Margin of a pair.")]


@dataclass(frozen=True)
class CorpusOptions(Options):
    """The corpora of a command: two files, or languages of each side."""

    corpora: Annotated[tuple[Path, ...], Opt("[SRC TGT]", remote=True)] = ()
    src: Annotated[
        tuple[LanguageCode, ...], Opt("--src", "Source language; its corpus is looked up in --dir.")
    ] = ()
    tgt: Annotated[tuple[LanguageCode, ...], Opt("--tgt", "Target language, likewise.")] = ()
    directory: Annotated[
        Path, Opt("--dir", "Folder of the corpora.", metavar="FOLDER", remote=True, default="current folder")
    ] = "."
    name: Annotated[
        tuple[str, ...],
        Opt(
            "--name",
            "Name of the corpora if --dir has several: news for news.en and news.fr.",
            metavar="NAME",
        ),
    ] = ()


@dataclass(frozen=True)
class MiningOptions(Options):
    """What a pair is, and how it is found. Choices may be text ("ratio"); afterwards they are members of their enums.

    Attributes:
        threshold: None is "none". The rules are those of `--threshold`, such as "precision=0.95".
        rescore: score pairs by the log odds that they are translations (`scorer`) instead of by their margin. This
            needs an encoder without layers, and about 300 bytes a line. None: if the encoder has a scorer of its own,
            the margin is the ratio, and k is 2 or more.

    Raises:
        UsageError: a value is unknown or out of range, or options contradict each other.
    """

    k: Neighbours = 4
    margin: MarginOption = Margin.RATIO
    retrieval: Annotated[Retrieval, Opt("--retrieval", "Choice of pairs among the candidates.")] = (
        Retrieval.MAX
    )
    threshold: Annotated[
        Threshold,
        Opt(
            "--threshold",
            "Lowest score to keep. auto: best F1 on --gold, else f1. f1, f0.5, ...: best expected F-measure, estimated "
            "from the corpora; f0.5 prefers precision. precision=0.95: lowest score at which an estimated 95% of the "
            "pairs are true. fpr=0.01: score reached by an estimated 1% of the lines without a translation.",
        ),
    ] = "auto"
    gold: Annotated[
        Path | None,
        Opt(
            "--gold",
            "Known pairs, all or a sample, to tune --threshold auto on: source line, tab, target line, counted from 1.",
            metavar="FILE",
            remote=True,
        ),
    ] = None
    rescore: Annotated[
        bool | None,
        Opt(
            "--rescore/--no-rescore",
            "Compare the subwords of each pair, too. Scores and --threshold are then log odds of a translation (0: "
            "even odds), not margins.",
            default="on if the encoder has a scorer, the margin is ratio and k >= 2",
        ),
    ] = None
    clean: Annotated[
        bool,
        Opt(
            "--clean/--no-clean",
            "Drop junk, boilerplate, copies and, with the extra 'languages', text in the wrong language.",
        ),
    ] = True
    second: Second = None
    second_budget: Annotated[
        Budget,
        Opt(
            "--second-budget",
            "Limit of what --second encodes: a share of the lines, or a time (90s, 30m, 2h), which makes the result "
            "depend on the machine.",
        ),
    ] = 0.1
    dedup: Annotated[Dedup, Opt("--dedup", "Mine duplicate lines once.")] = Dedup.EXACT
    duplicates: Annotated[Duplicates, Opt("--duplicates", "Pairs to print for duplicate lines.")] = (
        Duplicates.FIRST
    )
    search: Annotated[SearchWay, Opt("--search", "Search for neighbours.")] = SearchWay.AUTO
    cache: Cache = None
    force: Force = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retrieval == Retrieval.MATCHING and self.k == 1 and self.margin != Margin.ABSOLUTE:
            raise UsageError(
                "retrieval='matching' with k=1 (--retrieval matching -k 1): with one neighbour no pair scores above "
                f"the {self.margin}'s neutral value, and matching would keep none; use -k 2 or more, or retrieval max"
            )
        if self.rescore and self.k == 1:
            raise UsageError(
                "rescore with k=1 (--rescore -k 1): one neighbour gives no margin to start from; use -k 2 or more"
            )
        if self.second is None and self.second_budget != type(self).second_budget:
            raise UsageError("second_budget is given (--second-budget), but no second encoder (--second)")
        if self.second is not None and self.wants_rescoring is False:
            raise UsageError(
                "second (--second) judges log odds: it goes with rescoring, the ratio margin and k >= 2 (--rescore, "
                "--margin ratio, -k 4)"
            )
        if self.gold is not None and self.threshold != "auto":
            raise UsageError(
                f"gold is given (--gold), but the threshold (--threshold) is {self.threshold}; gold is for --threshold "
                "auto"
            )

    @property
    def rule(self) -> tuple[str, float]:
        """Return the kind of the threshold and its number (0 for none); "auto" is the expected F1."""
        threshold = self.threshold
        if isinstance(threshold, float):
            return "given", threshold
        if threshold == "auto":
            return F_MEASURE, 1.0
        rule = _ESTIMATED.fullmatch(str(threshold))
        return (rule[1], float(rule[2])) if rule else ("none", 0.0)

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
