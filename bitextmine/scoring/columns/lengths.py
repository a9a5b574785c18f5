"""Columns about the lengths and the letters of a pair."""

from __future__ import annotations

import math
import string

__all__ = ["length_deviation", "length_ratio", "lengths", "letters"]

# Added to both lengths where they are compared on a logarithmic scale, so that short texts may differ more.
_SMOOTH = 10
_NO_LETTERS = bytes(c for c in range(128) if chr(c) not in string.ascii_letters)
_BLANK = b" \t\n\v\f\r"


def lengths(src: str, tgt: str) -> tuple[int, int]:
    """Characters of both sides, blanks at the ends not counted."""
    return len(src.strip()), len(tgt.strip())


def length_ratio(src: str, tgt: str) -> float:
    """The longer side's characters over the shorter side's, 1 or more; inf when one side is empty, 1 when both are."""
    a, b = lengths(src, tgt)
    if a < b:
        a, b = b, a
    return a / b if b else math.inf if a else 1.0


def length_deviation(src: str, tgt: str, usual: float = 1.0) -> float:
    """How far the ratio of the lengths is from the usual one, as the absolute value of a logarithm (0 is usual; 0.69 is
    half or double), with 10 characters added to both lengths. usual: target over source."""
    a, b = lengths(src, tgt)
    return abs(math.log((b + _SMOOTH) / (a * usual + _SMOOTH)))


def letters(text: str) -> float:
    """The share of letters among the bytes that are not blank, 0 for none; bytes beyond ASCII count as letters."""
    raw = text.encode("utf-8", "surrogatepass")
    visible = len(raw.translate(None, _BLANK))
    return len(raw.translate(None, _NO_LETTERS)) / visible if visible else 0.0
