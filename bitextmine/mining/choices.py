"""The choices of mining, with a few words on each.

`bitextmine --help` reads them, so nothing heavy is imported here.
"""

from __future__ import annotations

from enum import StrEnum


class Choice(StrEnum):
    """A choice that equals its name as text, with its meaning for `--help`."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Choice:
        """Make a member; with the name alone Python looks it up instead."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member


class Margin(Choice):
    """How a pair is compared with its neighbourhood; the formulas are in `margin.margin`."""

    RATIO = "ratio", "cosine over the mean cosine to the neighbours"
    DISTANCE = "distance", "cosine minus this mean"
    ABSOLUTE = "absolute", "cosine alone"


class Retrieval(Choice):
    """Which candidates become pairs; what each does is in `retrieval.retrieve`."""

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
