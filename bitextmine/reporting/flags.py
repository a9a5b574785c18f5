"""Reasons to doubt a pair whatever its score, each a condition on the columns of `scoring`."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.scoring.columns.catalogue import SMOOTH, PairTexts, Tools
from bitextmine.scoring.columns.numbers import number_agreement

LENGTH_FACTOR = 2.0
MANY = 3  # a text that occurs this often is suspected of being boilerplate
_SHORT, _BOTH_SHORT = 8, 20
_UNLIKELY = 0.05
_ASCII_MARKS = {code: None for code in range(128) if not chr(code).isalpha()}
_DIGIT = re.compile(r"\d")
_TELLING = 20  # characters that a language can be told by


@dataclass(frozen=True)
class Flag:
    """A reason for doubt: its key, its title and explanation for people, and, for a flag on single pairs, its test.

    The test takes the columns of n pairs and the usual ratio of target to source length; it returns bool (n,).
    """

    key: str
    title: str
    why: str
    test: Callable[[PairTexts, float], NDArray[np.bool_]] | None = None


def _column(name: str, test: Callable[[NDArray[np.float64]], NDArray[np.bool_]]) -> Callable[..., NDArray]:
    return lambda pairs, usual: test(pairs.column(name)) & (pairs.column("shorter") > 0)


def _far_apart(pairs: PairTexts, usual: float) -> NDArray[np.bool_]:
    src, tgt = pairs.lengths
    deviation = np.abs(np.log((tgt + SMOOTH) / (src * usual + SMOOTH)))
    return (deviation > math.log(LENGTH_FACTOR)) & (pairs.column("shorter") > 0)


def _contradict(pairs: PairTexts, usual: float) -> NDArray[np.bool_]:
    # Numbers on one side alone agree by half or more, so most pairs are settled by the search for digits.
    return pairs.each(
        lambda s, t: bool(_DIGIT.search(s) and _DIGIT.search(t)) and number_agreement(s, t) < 0.5
    ).astype(bool)


FLAGS = (
    Flag(
        "empty",
        "One side empty",
        "There is nothing to translate on one side or the other.",
        lambda pairs, usual: pairs.column("shorter") == 0,
    ),
    Flag(
        "no_letters",
        "No letters",
        "A side is only numbers, punctuation or symbols: equal ones get high scores without being sentences.",
        _column("letters", lambda share: share == 0),
    ),
    Flag(
        "copy",
        "Copy",
        "Source and target are the same text, but for case, digits and punctuation: nothing is translated.",
    ),
    Flag(
        "short",
        "Very short",
        f"One side has fewer than {_SHORT} characters and the other fewer than {_BOTH_SHORT}: too little to tell "
        "pairs apart.",
        lambda pairs, usual: (
            (pairs.column("shorter") < _SHORT)
            & (pairs.column("longer") < _BOTH_SHORT)
            & (pairs.column("letters") > 0)
        ),
    ),
    Flag(
        "length",
        "Lengths far apart",
        f"One side is over {LENGTH_FACTOR:g} times longer or shorter than usual in this file (10 characters added to "
        "both): part of it may be missing.",
        _far_apart,
    ),
    Flag(
        "digits",
        "Different numbers",
        "Most numbers of one side contradict those of the other (order, separators, numbers in words and the 12-hour "
        "clock do not matter).",
        _contradict,
    ),
    Flag(
        "language",
        "Wrong language",
        "A side is in another language than most of its column, by a guess (with the extra languages, for texts of "
        f"{_TELLING} characters or more).",
    ),
    Flag(
        "pair_repeated",
        "Boilerplate",
        f"The same pair occurs {MANY} times or more, but for case, digits and punctuation.",
    ),
    Flag(
        "target_repeated",
        "One target, many sources",
        f"{MANY} or more different sources have this target: most of them cannot be right.",
    ),
    Flag(
        "source_repeated",
        "One source, many targets",
        f"{MANY} or more different targets have this source: most of them cannot be right.",
    ),
)


def flag_pairs(src: Sequence[str], tgt: Sequence[str], usual: float) -> dict[str, NDArray[np.bool_]]:
    """Return, for each flag on single pairs, the pairs (n,) that have it; `usual` is that of `Flag.test`."""
    pairs = PairTexts(src, tgt, Tools())
    return {flag.key: flag.test(pairs, usual) for flag in FLAGS if flag.test is not None}


def flag_wrong_language(
    src: Sequence[str], tgt: Sequence[str], languages: tuple[str, str]
) -> NDArray[np.bool_]:
    """Return the pairs (n,) with a side that is hardly in its column's language, as py3langid calls it."""
    pairs = PairTexts(src, tgt, Tools(src_lang=languages[0], tgt_lang=languages[1]))
    return (pairs.column("lang") < _UNLIKELY) & (pairs.column("shorter") >= _TELLING)


def text_hashes(texts: Iterable[str]) -> NDArray[np.int64]:
    """Return 64-bit hashes (n,), the same in every run, of texts without case, digits, punctuation and spaces."""
    digests = [
        hashlib.blake2b(_letters(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def _letters(text: str) -> str:
    """Return the letters of a text in lower case, or the text itself if it has none.

    The key of `mining.dedup` says nearly the same and takes five times as long.
    """
    if text.isascii():
        letters = text.lower().translate(_ASCII_MARKS)
    else:
        letters = "".join(filter(str.isalpha, text.casefold()))
    return letters or text.strip()
