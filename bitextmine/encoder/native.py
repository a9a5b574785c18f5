"""The compiled part, where there is one: loading it, and the addresses that it takes."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

__all__ = ["address", "library"]


@cache
def library() -> ctypes.CDLL | None:
    """_native.c as built for this Python; None where there was no compiler, or it is of another system."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_native" + suffix)
        if not path.exists():
            continue
        try:
            lib = ctypes.CDLL(str(path))
        except OSError:
            return None
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        lib.words_new.restype = pointer
        lib.words_new.argtypes = []
        lib.words_free.restype = None
        lib.words_free.argtypes = [pointer]
        lib.words_count.restype = number
        lib.words_count.argtypes = [pointer]
        lib.words_scan.restype = number
        lib.words_scan.argtypes = [pointer, ctypes.c_char_p, number, pointer, pointer, pointer]
        lib.words_pieces.restype = number
        lib.words_pieces.argtypes = [pointer, pointer, number, pointer, pointer, number, pointer, pointer]
        lib.sum_pieces.restype = None
        lib.sum_pieces.argtypes = [
            pointer,
            pointer,
            number,
            pointer,
            pointer,
            number,
            number,
            pointer,
            pointer,
        ]
        lib.match_pieces.restype = number
        lib.match_pieces.argtypes = [pointer, pointer, number, *[pointer] * 4, number, *[pointer] * 4]
        lib.match_windows.restype = number
        lib.match_windows.argtypes = [
            pointer,
            pointer,
            number,
            number,
            *[pointer] * 4,
            number,
            pointer,
            pointer,
        ]
        lib.match_parts.restype = number
        lib.match_parts.argtypes = [pointer, pointer, number, number, *[pointer] * 6, number, pointer]
        return lib
    return None


def address(a: np.ndarray, dtype: type) -> int:
    """Where an array's numbers lie; ValueError if it is of another type or not contiguous, as C would not notice."""
    if a.dtype != dtype or not a.flags.c_contiguous:
        raise ValueError(f"expected contiguous {np.dtype(dtype)}, got {a.dtype} with strides {a.strides}")
    return int(a.ctypes.data)
