"""The dynamic program in C, where it was compiled."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["library"]

_ABI = 2


@cache
def library() -> ctypes.CDLL | None:
    """_dp.c as built for this Python; None where there was no compiler, or it is of another system or version."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_dp" + suffix)
        if not path.exists():
            continue
        try:
            found = ctypes.CDLL(str(path))
            found.dp_abi.restype = ctypes.c_int64
            if found.dp_abi() != _ABI:
                return None
            advance = found.dp_advance
        except (OSError, AttributeError):
            return None
        advance.restype = None
        advance.argtypes = [ctypes.c_void_p] * 8
        return found
    return None
