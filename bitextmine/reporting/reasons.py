"""Why a pair with a high score may be wrong all the same: rules that need no language and no model."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.scoring.columns.numbers import number_agreement

__all__ = [
    "LENGTH_FACTOR",
    "LETTERS",
    "MANY",
    "REASONS",
    "SHORT",
    "Reason",
    "judge",
    "log_length_ratio",
    "text_key",
    "text_keys",
]

LETTERS = 20  # a text of fewer has no language that could be told
SHORT = 8  # characters; East Asian wide ones count twice
LENGTH_FACTOR = 2.0
MANY = 3  # as often as this, a text is suspected to be boilerplate

_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_ASCII_MARKS = {code: None for code in range(128) if not chr(code).isalpha()}
_SMOOTH = (
    10  # characters added to both lengths before their ratio is taken, so that short texts may differ more
)


@dataclass(frozen=True)
class Reason:
    """key: for programs; title, why: for people."""

    key: str
    title: str
    why: str


REASONS = (
    Reason("empty", "One side empty", "There is nothing to translate on one side or the other."),
    Reason(
        "no_letters",
        "No letters",
        "A side is only numbers, punctuation or symbols: equal ones get high scores without being sentences.",
    ),
    Reason(
        "copy",
        "Copy",
        "Source and target are the same text, but for case, digits and punctuation: nothing is translated.",
    ),
    Reason(
        "short",
        "Very short",
        f"A side has fewer than {SHORT} characters (East Asian ones count twice): too little to tell pairs apart.",
    ),
    Reason(
        "length",
        "Lengths far apart",
        f"One side is over {LENGTH_FACTOR:g} times longer or shorter than is usual in this file "
        f"({_SMOOTH} characters added to both): part of it may be missing.",
    ),
    Reason(
        "digits",
        "Different numbers",
        "Both sides have numbers in digits, and not the same ones (order, separators, numbers in words and the other "
        "clock do not matter).",
    ),
    Reason(
        "language",
        "Wrong language",
        "A side is in another language than most of its column, as a guess (with the extra languages, of texts with "
        f"{LETTERS} letters or more).",
    ),
    Reason(
        "pair_repeated",
        "Boilerplate",
        f"The same pair occurs {MANY} times or more, but for case, digits and punctuation.",
    ),
    Reason(
        "target_repeated",
        "One target, many sources",
        f"{MANY} or more different sources have this target: most of them cannot be right.",
    ),
    Reason(
        "source_repeated",
        "One source, many targets",
        f"{MANY} or more different targets have this source: most of them cannot be right.",
    ),
)


def text_key(text: str) -> str:
    """What texts share when they differ in case, digits, punctuation and spaces alone; a text without letters
    is its own key.
    """
    # Removing is much faster than replacing by a space, and as good.
    if text.isascii():
        letters = text.lower().translate(_ASCII_MARKS)
    else:
        letters = "".join(filter(str.isalpha, text.casefold()))
    return letters or text.strip()


def text_keys(keys: Sequence[str]) -> NDArray[np.int64]:
    """64-bit hashes (n,) of keys, the same in every run."""
    digests = [hashlib.blake2b(k.encode("utf-8", "surrogatepass"), digest_size=8).digest() for k in keys]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def log_length_ratio(src: NDArray[np.int64], tgt: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logarithm (n,) of target over source length, in characters, smoothed."""
    return np.log((tgt + _SMOOTH) / (src + _SMOOTH))


def judge(
    src: Sequence[str],
    tgt: Sequence[str],
    src_key: Sequence[str],
    tgt_key: Sequence[str],
    ratio: NDArray[np.float64],
    usual_ratio: float,
) -> dict[str, NDArray[np.bool_]]:
    """For each reason that one pair alone can give: which of the pairs (n,) have it.

    src_key, tgt_key: `text_key` of the texts; ratio: `log_length_ratio` of the pairs, usual_ratio: of most pairs.
    A pair without text on one side has no other reason, one without letters is neither short nor a copy.
    """
    pairs = list(zip(src, tgt, strict=True))
    empty = np.array([not s or s.isspace() or not t or t.isspace() for s, t in pairs], dtype=bool)
    letters = np.array(
        [_LETTER.search(s) is not None and _LETTER.search(t) is not None for s, t in pairs], dtype=bool
    )
    equal = np.array([s == t for s, t in zip(src_key, tgt_key, strict=True)], dtype=bool)
    short = np.array([_is_short(s) or _is_short(t) for s, t in pairs], dtype=bool)
    digits = np.array(
        [
            _DIGIT.search(s) is not None and _DIGIT.search(t) is not None and number_agreement(s, t) < 1
            for s, t in pairs
        ],
        dtype=bool,
    )
    return {
        "empty": empty,
        "no_letters": ~letters & ~empty,
        "copy": equal & letters,
        "short": short & letters,
        "length": (np.abs(ratio - usual_ratio) > np.log(LENGTH_FACTOR)) & ~empty,
        "digits": digits,
    }


def _is_short(text: str) -> bool:
    if len(text) >= SHORT:
        # blanks at the ends do not make a text longer; most texts are too long for them to matter
        if len(text) >= 4 * SHORT:
            return False
        text = text.strip()
        if len(text) >= SHORT:
            return False
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text.strip()) < SHORT
