"""The compiled part of exact search (fused.c): its structures, this processor's instruction sets, exact products."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine import compiled
from bitextmine.search.options import InstructionSet

ISA = {each.value: code for code, each in enumerate(InstructionSet, 1)}  # as in fused.c
ISA_NAMES = {code: name for name, code in ISA.items()}


class Tile(ctypes.Structure):
    """The struct `tile` of fused.c, field by field."""

    _fields_ = [
        *[(name, ctypes.c_int32) for name in ("isa", "dtype", "k", "cap", "arithmetic", "reserved")],
        *[(name, ctypes.c_int64) for name in ("d", "dpad", "rows", "row_base")],
        *[
            (n, ctypes.c_void_p)
            for n in ("xq", "xscale", "xloss", "xsum", "xrows", "row_sim", "row_id", "row_lock")
        ],
        *[(name, ctypes.c_int64) for name in ("cols", "col_base")],
        *[(n, ctypes.c_void_p) for n in ("ypack", "yscale", "yloss", "yrows", "col_sim", "col_id", "work")],
        ("rescored", ctypes.c_int64),
    ]


def library() -> ctypes.CDLL | None:
    """Return the library, or None if there is none (`compiled.library`)."""
    return compiled.library("search")


def instruction_set() -> str | None:
    """Return the best of ISA that this processor has, or None without the compiled search."""
    lib = library()
    return None if lib is None else ISA_NAMES[lib.fused_isa()]


def instruction_sets() -> list[str]:
    """Return those of ISA that this processor has, the best last."""
    lib = library()
    return [] if lib is None else [name for name, code in ISA.items() if lib.fused_has(code)]


def compiled_products(
    x: NDArray[Any], y: NDArray[Any], i: NDArray[np.int64], j: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Return the result of `products.pair_products`, or None if there is no compiled search for such rows.

    The rows go in by address: the caller has checked that i and j are within x and y.
    """
    lib = library()
    same = x.dtype == y.dtype and x.dtype in (np.float16, np.float32) and x.dtype.isnative
    if lib is None or not same or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return None
    i, j = np.ascontiguousarray(i, dtype=np.int64), np.ascontiguousarray(j, dtype=np.int64)
    out = np.empty(len(i), dtype=np.float32)
    lib.fused_products(x, i, y, j, len(i), x.shape[1], x.dtype == np.float32, lib.fused_isa(), out)
    return out


def cache_aligned(nbytes: int) -> NDArray[np.uint8]:
    """Return uninitialised memory, uint8 (nbytes,), that begins at a multiple of 64 (a cache line)."""
    raw = np.empty(nbytes + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + nbytes]
