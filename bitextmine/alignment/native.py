"""The compiled part of the dynamic program (dp.c): what its function takes."""

from __future__ import annotations

import ctypes

from bitextmine import compiled
from bitextmine.compiled import FLOATS, INT64S, NOTHING, ROWS, UINT8S

__all__ = ["INTERFACE", "library"]

INTERFACE = compiled.Interface(
    "bitextmine.alignment._dp",
    version=1,
    functions={"dp_advance": (NOTHING, ROWS, UINT8S, INT64S, FLOATS, INT64S, INT64S, ROWS, INT64S)},
)


def library() -> ctypes.CDLL | None:
    """The library, None where it cannot be had (`compiled.library`)."""
    return compiled.library(INTERFACE)
