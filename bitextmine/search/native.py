"""The compiled part, where there is one: loading it, what this processor can do, exact products."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ISA = {"avx2": 1, "avxvnni": 2, "avx512vnni": 3}
ISA_NAMES = {code: name for name, code in ISA.items()}


@cache
def library() -> ctypes.CDLL | None:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_fused" + suffix)
        if path.exists():
            try:
                lib = ctypes.CDLL(str(path))
            except OSError:  # built for another processor or system
                return None
            lib.fused_isa.restype = ctypes.c_int32
            if lib.fused_isa() == 0:
                return None
            for name in ("fused_workspace", "fused_quantise", "fused_interleave", "fused_tile"):
                getattr(lib, name).restype = ctypes.c_int64
            lib.fused_pack.restype = lib.fused_products.restype = None
            return lib
    return None


def instruction_set() -> str | None:
    """The best of ISA that this processor has, None where the compiled search cannot run."""
    lib = library()
    return None if lib is None else ISA_NAMES[int(lib.fused_isa())]


def compiled_products(
    x: NDArray[Any], y: NDArray[Any], i: NDArray[np.int64], j: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """What rescore.pair_products() is, None where the compiled search or the layout of the rows does not
    allow it.

    The rows go in by address: the caller has checked that i and j are within x and y.
    """
    lib = library()
    same = x.dtype == y.dtype and x.dtype in (np.float16, np.float32) and x.dtype.isnative
    if lib is None or not same or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return None
    i, j = np.ascontiguousarray(i, dtype=np.int64), np.ascontiguousarray(j, dtype=np.int64)
    out = np.empty(len(i), dtype=np.float32)
    lib.fused_products(
        pointer(x),
        pointer(i),
        pointer(y),
        pointer(j),
        ctypes.c_int64(len(i)),
        ctypes.c_int64(x.shape[1]),
        ctypes.c_int32(x.dtype == np.float32),
        ctypes.c_int32(lib.fused_isa()),
        pointer(out),
    )
    return out


def aligned(nbytes: int) -> NDArray[np.uint8]:
    raw = np.empty(nbytes + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + nbytes]


def pointer(a: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)
