"""Reasons to doubt a pair whatever its score, each a condition on the columns of `scoring`; report.html.j2 explains."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.scoring.columns.catalogue import SMOOTH, PairTexts, Tools
from bitextmine.scoring.columns.numbers import number_agreement

LENGTH_FACTOR = 2.0
MANY = 3  # a text that occurs this often is suspected of being boilerplate
SHORT, BOTH_SHORT = 8, 20
_UNLIKELY = 0.05
_ASCII_MARKS = {code: None for code in range(128) if not chr(code).isalpha()}
_DIGIT = re.compile(r"\d")
_LETTER = re.compile("[A-Za-z]|[^\x00-\x7f]")
TELLING = 20  # characters that a language can be told by


# Takes the columns of n pairs and the usual ratio of target to source length; returns bool (n,).
Test = Callable[[PairTexts, float], NDArray[np.bool_]]


def _lettered(pairs: PairTexts) -> NDArray[np.bool_]:
    """Return the pairs (n,) whose column letters is above 0, without counting."""
    return pairs.each(lambda s, t: bool(_LETTER.search(s) and _LETTER.search(t))) > 0


TESTS: dict[str, Test] = {
    "empty": lambda pairs, usual: pairs.column("shorter") == 0,
    "no_letters": lambda pairs, usual: ~_lettered(pairs) & (pairs.column("shorter") > 0),
    "short": lambda pairs, usual: (
        (pairs.column("shorter") < SHORT) & (pairs.column("longer") < BOTH_SHORT) & _lettered(pairs)
    ),
    "length": lambda pairs, usual: (
        (
            np.abs(np.log((pairs.lengths[1] + SMOOTH) / (pairs.lengths[0] * usual + SMOOTH)))
            > math.log(LENGTH_FACTOR)
        )
        & (pairs.column("shorter") > 0)
    ),
    # Numbers on one side alone agree by half or more, so most pairs are settled by the search for digits.
    "digits": lambda pairs, usual: pairs.each(
        lambda s, t: bool(_DIGIT.search(s) and _DIGIT.search(t)) and number_agreement(s, t) < 0.5
    ).astype(bool),
}


def flag_pairs(pairs: PairTexts, usual: float) -> dict[str, NDArray[np.bool_]]:
    """Return, for each of TESTS, the pairs (n,) that have it."""
    return {key: test(pairs, usual) for key, test in TESTS.items()}


def flag_wrong_language(
    src: Sequence[str], tgt: Sequence[str], languages: tuple[str, str]
) -> NDArray[np.bool_]:
    """Return the pairs (n,) with a side that is hardly in its column's language, as py3langid calls it."""
    pairs = PairTexts(src, tgt, Tools(src_lang=languages[0], tgt_lang=languages[1]))
    return (pairs.column("lang") < _UNLIKELY) & (pairs.column("shorter") >= TELLING)


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
