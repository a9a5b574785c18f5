"""The compiled search: int8 products with the selection fused in, every survivor rescored exactly.

Built from _fused.c where a C compiler is at hand; without it, or on a processor without AVX2, blocks.py does
the same work with torch. The answer is the same, to the byte.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.index.native import ISA, ISA_NAMES, aligned, library, pointer
from bitextmine.index.rows import Rows, check_finite, check_length
from bitextmine.index.state import Best

_PANEL, _MR = 64, 6
_TILE = 1024
_SLACK = 4e-6  # covers the float32 roundings of a bound and of an exact similarity, for vectors of length 1


class _Tile(ctypes.Structure):
    """Field by field what _fused.c calls `tile`."""

    _fields_ = [
        *[(name, ctypes.c_int32) for name in ("isa", "dtype", "k", "cap")],
        *[(name, ctypes.c_int64) for name in ("d", "dpad", "rows", "row_base")],
        *[
            (n, ctypes.c_void_p)
            for n in ("xq", "xscale", "xloss", "xsum", "xrows", "row_sim", "row_id", "row_lock")
        ],
        *[(name, ctypes.c_int64) for name in ("cols", "col_base")],
        *[(n, ctypes.c_void_p) for n in ("ypack", "yscale", "yloss", "yrows", "col_sim", "col_id", "work")],
        ("rescored", ctypes.c_int64),
    ]


@dataclass(frozen=True)
class _Quantised:
    """Rows as int8: codes (n + padding, dpad), scale, loss |x - scale*codes|, length |x|, sum of the
    codes."""

    codes: NDArray[np.int8]
    scale: NDArray[np.float32]
    loss: NDArray[np.float32]
    length: NDArray[np.float32]
    sum: NDArray[np.int32]


@dataclass(frozen=True)
class _Packed:
    panels: NDArray[np.uint8]
    scale: NDArray[np.float32]
    loss: NDArray[np.float32]
    longest: float


class FusedSearch:
    """Compares blocks of x's rows with all of y; `rescored` counts the exact products that took.

    Up to `memory` bytes are spent on keeping y in int8; without room for it, y is quantised again for every
    block.
    """

    def __init__(
        self, x: Rows, y: Rows, *, names: tuple[str, str], threads: int, memory: int, isa: str | None = None
    ) -> None:
        lib = library()
        if lib is None:
            raise RuntimeError("the compiled search is not available here")
        best = int(lib.fused_isa())
        self._isa = best if isa is None else ISA[isa]
        if self._isa > best:
            raise RuntimeError(f"this processor has {ISA_NAMES[best]}, not {isa}")
        self._lib, self._x, self._y, self._names = lib, x, y, names
        self._threads = max(1, threads)
        self._dpad = -(-x.dim // 32) * 32
        # AVX2 adds pairs of products in 16 bits, which leaves room for 6 bits and a sign on one side
        self._levels = 63 if self._isa == ISA["avx2"] else 127
        self._tiles = range(0, len(y), _TILE)
        self._keep = len(y) * self._dpad <= memory
        self._packed: list[_Packed | None] = [None] * len(self._tiles)
        self._local = threading.local()
        self.rescored = 0

    def _quantise(self, rows: NDArray[Any], levels: int, padding: int, name: str, first: int) -> _Quantised:
        n, d = rows.shape
        codes = np.empty((n + padding, self._dpad), dtype=np.int8)
        scale, loss, length = (np.empty(n, dtype=np.float32) for _ in range(3))
        out = _Quantised(codes, scale, loss, length, np.empty(n, dtype=np.int32))
        codes[n:] = 0
        i64 = ctypes.c_int64
        bad = self._lib.fused_quantise(
            pointer(rows), ctypes.c_int32(rows.dtype == np.float32), i64(n), i64(d), i64(self._dpad),
            ctypes.c_int32(levels), pointer(codes), pointer(scale),
            pointer(loss), pointer(length), pointer(out.sum),
        )  # fmt: skip
        if bad == -2:
            raise MemoryError
        if bad >= 0:
            check_finite(rows, name, first)
        check_length(float(length.max(initial=0.0)), name)
        return out

    def _pack(self, rows: NDArray[Any], first: int) -> _Packed:
        q = self._quantise(rows, self._levels, 0, self._names[1], first)
        panels = aligned(-(-len(rows) // _PANEL) * _PANEL * self._dpad)
        self._lib.fused_pack(
            pointer(q.codes), ctypes.c_int64(len(rows)), ctypes.c_int64(self._dpad),
            ctypes.c_int32(self._levels + 1), pointer(panels),
        )  # fmt: skip
        return _Packed(panels, q.scale, q.loss, float(q.length.max(initial=0.0)))

    def block(self, start: int, stop: int, fwd: Best, bwd: Best | None) -> None:
        """Compares x's rows start..stop with every row of y and merges what is found into fwd and bwd."""
        rows = self._x.block(start, stop)
        n, k = len(rows), fwd.k
        cap = 2 * k + 24
        q = self._quantise(rows, 127, _MR, self._names[0], start)
        longest = float((q.length + q.loss).max(initial=0.0))
        locks = np.zeros(n, dtype=np.uint8)
        row_sim, row_id = fwd.sim[start:stop], fwd.id[start:stop]
        space = int(self._lib.fused_workspace(ctypes.c_int64(n), ctypes.c_int32(k), ctypes.c_int32(cap)))

        def work(number: int) -> int:
            if getattr(self._local, "size", 0) < space:
                self._local.work, self._local.size = aligned(space), space
            j = self._tiles[number]
            cols = self._y.block(j, j + _TILE)
            packed = self._packed[number] or self._pack(cols, j)
            if self._keep:
                self._packed[number] = packed
            xloss = (q.loss * packed.longest + _SLACK * longest * packed.longest).astype(np.float32)
            yloss = (packed.loss * longest).astype(np.float32)
            col_sim = None if bwd is None else bwd.sim[j : j + _TILE]
            col_id = None if bwd is None else bwd.id[j : j + _TILE]
            at = [
                None if a is None else a.ctypes.data
                for a in (q.codes, q.scale, xloss, q.sum, rows, row_sim, row_id, locks)
            ]
            to = [
                None if a is None else a.ctypes.data
                for a in (packed.panels, packed.scale, yloss, cols, col_sim, col_id, self._local.work)
            ]
            tile = _Tile(
                self._isa, int(rows.dtype == np.float32), k, cap, self._x.dim, self._dpad, n, start, *at,
                len(cols), j, *to, 0,
            )  # fmt: skip
            return int(self._lib.fused_tile(ctypes.byref(tile)))

        self.rescored += _each(work, len(self._tiles), self._threads)


def _each(work: Callable[[int], int], count: int, threads: int) -> int:
    """The sum of work(0..count-1), on several threads; the first error, or Ctrl-C, stops the rest."""
    if threads == 1 or count == 1:
        return sum(map(work, range(count)))
    pool = ThreadPoolExecutor(min(threads, count))
    try:
        return sum(pool.map(work, range(count)))
    finally:
        pool.shutdown(cancel_futures=True)
