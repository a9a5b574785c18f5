"""Columns of lengths and letters."""

from __future__ import annotations

import math
import string

# Added to both lengths before their logarithms are compared, so that short texts may differ more.
SMOOTH = 10
_NO_LETTERS = bytes(c for c in range(128) if chr(c) not in string.ascii_letters)
_BLANK = b" \t\n\v\f\r"


def lengths(src: str, tgt: str) -> tuple[int, int]:
    """Return the characters of both sides, without blanks at the ends."""
    return len(src.strip()), len(tgt.strip())


def length_ratio(src: str, tgt: str) -> float:
    """Return the ratio of the longer to the shorter side in characters; inf if one is empty, 1 if both are."""
    a, b = lengths(src, tgt)
    if a < b:
        a, b = b, a
    return a / b if b else math.inf if a else 1.0


def letters(text: str) -> float:
    """Return the share of letters among the bytes that are not blank; bytes beyond ASCII count as letters."""
    raw = text.encode("utf-8", "surrogatepass")
    visible = len(raw.translate(None, _BLANK))
    return len(raw.translate(None, _NO_LETTERS)) / visible if visible else 0.0
