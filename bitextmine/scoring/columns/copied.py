"""The share of a pair that is the same text on both sides."""

from __future__ import annotations

import re

from bitextmine.languages.scripts import UNSPACED

_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+")
_CHARACTERS = 10_000  # of a longer text, the beginning


def copied(src: str, tgt: str) -> float:
    """Return the share of common words among the distinct words of the side that has more of them.

    A letter is a word in scripts without spaces. Case, digits and punctuation do not count; without words equal texts
    have 1, others 0. Names and technical terms are rightly copied: only a value near 1 in a longer pair means that
    nothing was translated.
    """
    a = set(_WORD.findall(src[:_CHARACTERS].casefold()))
    b = set(_WORD.findall(tgt[:_CHARACTERS].casefold()))
    most = max(len(a), len(b))
    if not most:
        return float(src.strip() == tgt.strip() and bool(src.strip()))
    return len(a & b) / most
