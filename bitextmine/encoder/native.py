"""The compiled part of the encoders (words.c, sums.c, matches.c): what its functions take."""

from __future__ import annotations

import ctypes

from bitextmine import compiled
from bitextmine.compiled import ADDRESS, FLOATS, INT8S, INT32S, INT64, INT64S, NOTHING, ROWS, UINT8S

__all__ = ["INTERFACE", "library"]

PAIRS = (INT32S, INT64S, INT32S, INT64S, INT64)  # ids and offsets of both sides, and how many pairs

INTERFACE = compiled.Interface(
    "bitextmine.encoder._native",
    version=2,
    functions={
        "words_new": (ADDRESS,),
        "words_free": (NOTHING, ADDRESS),
        "words_count": (INT64, ADDRESS),
        "words_scan": (INT64, ADDRESS, INT64, UINT8S, INT64, INT32S, INT64S, INT64S),
        "words_pieces": (INT64, INT32S, INT64S, INT64, INT32S, INT64S, INT64, INT64S, INT32S),
        "sum_pieces": (NOTHING, ROWS, FLOATS, INT64, INT32S, INT64S, INT64, INT64, FLOATS, INT64, FLOATS),
        "match_pieces": (INT64, INT8S, FLOATS, INT64, *PAIRS, FLOATS, INT32S, FLOATS, INT32S),
        "match_windows": (INT64, INT8S, INT32S, INT64, INT64, *PAIRS, FLOATS, FLOATS),
        "match_parts": (
            *(INT64, INT8S, INT32S, INT64, INT64),
            *(INT32S, INT8S, INT64S, INT32S, INT8S, INT64S, INT64, FLOATS),
        ),
    },
)


def library() -> ctypes.CDLL | None:
    """The library, None where it cannot be had (`compiled.library`)."""
    return compiled.library(INTERFACE)
