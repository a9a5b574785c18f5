"""Unicode normalisation of long texts in linear time: in pieces, with runs of combining marks cut short.

Python sorts the marks of a run by exchanging neighbours, in quadratic time: 40,000 of them take a second and a half,
ten times as many two minutes and a half. And one U+FDFA becomes 18 characters.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

_SHORT = 1000  # characters whose marks are sorted in no time
_MOST_MARKS = 30  # UAX 15, section 13, Stream-Safe Text Format; no writing system has as many on a letter
_PIECE = 1 << 14  # characters
_JOINER = "\u034f"  # combining grapheme joiner: shows nothing, and no mark moves across it
_LAST_MARK = 0x1FFFF  # marks that have an order are in the first two planes


def normal_pieces(text: str) -> Iterator[str]:
    """Yield pieces of a text that can be normalised, in any form, one by one.

    A text of up to 1,000 characters or in ASCII is one piece. In a longer one a U+034F is put after each 30 combining
    marks in a row, as in Unicode's stream-safe text format, so that no piece takes more than linear time.
    """
    if len(text) <= _SHORT or text.isascii():
        yield text
        return
    text = _too_many_marks().sub(rf"\g<0>{_JOINER}", text)
    start = 0
    while start < len(text):
        end = start + _PIECE
        while end < len(text) and not _stands_alone(text[end]):
            end += 1
        yield text[start:end]
        start = end


def _stands_alone(c: str) -> bool:
    """Return True for a character that no normal form moves before the one before it or merges with it."""
    first = unicodedata.normalize("NFKD", c)[0]
    return c == _JOINER or not (unicodedata.category(first)[0] == "M" or "\u1161" <= first <= "\u11ff")


@functools.cache
def _too_many_marks() -> re.Pattern[str]:
    """Match the longest permitted run of characters that decompose into marks, if another one follows."""
    ranges: list[list[int]] = []
    for code in range(0x300, _LAST_MARK + 1):
        if 0xD800 <= code < 0xE000 or not unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0]):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(f"[{marks}]{{{_MOST_MARKS}}}(?=[{marks}])")
