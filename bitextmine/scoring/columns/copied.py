"""How much of a pair is the same text on both sides."""

from __future__ import annotations

import re

__all__ = ["copied"]

_WORD = re.compile(r"[^\W\d_]+")
_CHARACTERS = 10_000  # of a longer text, the beginning


def copied(src: str, tgt: str) -> float:
    """The words that both sides have, over the words of the side that has more of them; each distinct word counts once,
    case, digits and punctuation do not. Without words: 1 for equal texts, else 0.

    Names and technical terms are rightly copied: only a value near 1 in a pair of some length means that nothing was
    translated.
    """
    a = set(_WORD.findall(src[:_CHARACTERS].casefold()))
    b = set(_WORD.findall(tgt[:_CHARACTERS].casefold()))
    most = max(len(a), len(b))
    if not most:
        return float(src.strip() == tgt.strip() and bool(src.strip()))
    return len(a & b) / most
