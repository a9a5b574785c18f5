"""Memory-mapped vectors that do not pile up in memory: pages that were read are given back."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The kernel maps this much around a page that is touched, in blocks aligned to it.
_AROUND = 1 << 16


def is_mapped(a: NDArray[Any]) -> bool:
    """Tell if the rows are pages of a shared map of a file, which `release` can drop; copy-on-write pages cannot go."""
    return isinstance(a, np.memmap) and a.mode != "c" and _map(a) is not None


def release(a: NDArray[Any], start: int = 0, stop: int | None = None) -> None:
    """Give the pages of rows start..stop of a memory map back to the system; other arrays are left alone.

    The rows stay in the file and can be read again, at the same time even. Rows that are not contiguous are left alone.
    """
    rows = a[start:stop]
    if (
        not is_mapped(a)
        or not rows.nbytes
        or not rows.flags.c_contiguous
        or not hasattr(mmap, "MADV_DONTNEED")
    ):
        return
    held = _map(a)
    assert held is not None
    with contextlib.suppress(ValueError, OSError):  # closed meanwhile, or a system that will not
        base = np.frombuffer(held, dtype=np.uint8).ctypes.data
        size = len(held)
        first = rows.ctypes.data - base
        low = first // _AROUND * _AROUND
        high = min(-(-(first + rows.nbytes) // _AROUND) * _AROUND, size)
        held.madvise(mmap.MADV_DONTNEED, low, high - low)


def _map(a: NDArray[Any]) -> mmap.mmap | None:
    held = getattr(a, "_mmap", None)
    return held if isinstance(held, mmap.mmap) else None
