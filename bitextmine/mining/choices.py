"""The choices of mining, with a few words on each.

`bitextmine --help` reads them, so nothing heavy is imported here.
"""

import math
import re

from bitextmine.arguments import finite
from bitextmine.declarations import Choice
from bitextmine.errors import UsageError

# The rules that need an estimate, with their number: expected F-measure, false-positive rate, precision.
F_MEASURE, RATE, PRECISION = "f", "fpr=", "precision="
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
                raise UsageError(
                    f"fBETA takes a weight of recall from 0.01 to 100, as f1 or f0.5, found {value!r}"
                )
            if kind != F_MEASURE and not 0 < number < 1:
                example = 0.95 if kind == PRECISION else 0.01
                raise UsageError(
                    f"{kind} takes a share above 0 and below 1, as {kind}{example}, found {value!r}"
                )
            return f"{kind}{number:g}"
    number = finite(value)
    if math.isnan(number):
        also = " (or a rule: 'f1', 'precision=0.95', 'fpr=0.01')" if estimated else ""
        raise UsageError(f"expected a number, 'auto' or 'none', found {value!r}{also}")
    return number


def rule_of(threshold: float | str) -> tuple[str, float]:
    """Return the kind of a parsed threshold and its number (0 for none); "auto" is the expected F1."""
    if isinstance(threshold, float):
        return "given", threshold
    if threshold == "auto":
        return F_MEASURE, 1.0
    rule = _ESTIMATED.fullmatch(threshold)
    return (rule[1], float(rule[2])) if rule else (threshold, 0.0)
