"""Exact search in C: int8 or float32 products with the selection fused in, every survivor rescored exactly.

Built from fused.c if there is a C compiler; without it blocks.py does the same work with torch, to the same bytes.
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

from bitextmine.errors import BitextmineError
from bitextmine.search.native import ISA, ISA_NAMES, Tile, cache_aligned, library
from bitextmine.search.options import Arithmetic, SearchOptions
from bitextmine.search.rows import VectorRows, check_finite, check_length
from bitextmine.search.topk import TopK
from bitextmine.system import processors

_PANEL, _MR, _MOST_MR = 64, 6, 16
# Rows of x and of y compared at a time: what may be in the answer is computed exactly at the end of such a tile, by
# when most of it has been found not to be. More would not be faster, fewer make the work on y's rows tell.
_MOST_ROWS, _FEWER_ROWS, _LEAST_ROWS = 8192, 1024, 256
_TILES = 4  # of y's rows for each thread, so that all threads end at about the same time
_SLACK = 4e-6  # covers the float32 roundings of a bound and of an exact similarity, for vectors of length 1


@dataclass(frozen=True)
class _Packed:
    """Rows as the products read them: int8 codes or floats, row by row or in panels.

    Attributes:
        codes: the numbers.
        scale: of the codes; None for floats.
        sum: of the codes; None for floats.
        error: the row's part of the bound, per unit of the other row's length.
        lengths: |x| or a little more.
    """

    codes: NDArray[Any]
    scale: NDArray[np.float32] | None
    sum: NDArray[np.int32] | None
    error: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @property
    def longest(self) -> float:
        return float(self.lengths.max(initial=0.0))


class FusedSearch:
    """Compares blocks of x's rows with all of y; `rescored` counts the exact products.

    `memory` is for everything besides the state of the search; it decides `block_rows`, and if y is kept in int8 or
    quantised again for every block. `bases` are the numbers of x's and y's first rows in the answer.
    """

    def __init__(
        self,
        x: VectorRows,
        y: VectorRows,
        k: int,
        options: SearchOptions,
        memory: int,
        bases: tuple[int, int] = (0, 0),
    ) -> None:
        lib, isa = library(), options.instruction_set
        if lib is None:
            raise RuntimeError("the compiled search is not available here")
        best = lib.fused_isa()
        self._isa = best if isa is None else ISA[isa]
        if not lib.fused_has(self._isa):
            raise BitextmineError(f"this processor has {ISA_NAMES[best]}, not {isa}")
        self._lib, self._x, self._y, self._k, self._names = lib, x, y, k, options.names
        self._threads = options.threads or processors()
        self._bases = bases
        self._wide = options.arithmetic == Arithmetic.FLOAT32
        self._dpad = _padded(x.dim)
        # AVX2 adds pairs of products in 16 bits, which leaves room for 6 bits and a sign on one side
        self._levels = 63 if self._isa == ISA["avx2"] else 127
        # x86 multiplies unsigned bytes by signed ones, but for AMX
        self._offset = self._levels + 1 if ISA["avx2"] <= self._isa <= ISA["avx512vnni"] else 0
        self.block_rows = min(max(_LEAST_ROWS, len(x)), _MOST_ROWS)
        share = -(-len(y) // (_TILES * self._threads))
        self._tile = min(max(_FEWER_ROWS, 1 << max(0, share - 1).bit_length()), _MOST_ROWS)
        while (
            self._working(self.block_rows, self._tile) > memory
            and max(self._tile, self.block_rows) > _LEAST_ROWS
        ):
            if self._tile > _FEWER_ROWS or self.block_rows == _LEAST_ROWS:
                self._tile //= 2
            else:
                self.block_rows = max(_LEAST_ROWS, self.block_rows // 2)
        self._tiles = range(0, len(y), self._tile)
        kept = len(self._tiles) * self._tile * (self._dpad + 16)
        self._keep = not self._wide and self._working(self.block_rows, self._tile) + kept <= memory
        self._packed: list[_Packed | None] = [None] * len(self._tiles)
        self._local = threading.local()
        self.rescored = 0

    def least_memory(self) -> int:
        """Return the bytes of a search with the smallest blocks."""
        return self._working(min(max(1, len(self._x)), _LEAST_ROWS), _LEAST_ROWS)

    def _working(self, rows: int, tile: int) -> int:
        """Return the bytes at work when `rows` rows of x are compared with `tile` rows of y at a time."""
        stored = self._x.dim * self._x.dtype.itemsize
        packed = self._dpad * (4 if self._wide else 1)
        cols = min(tile, -(-len(self._y) // _PANEL) * _PANEL)
        candidates = self._lib.fused_workspace(self._isa, rows, cols, self._dpad, self._k, _room(self._k))
        at_work = cols * (stored + packed * (1 if self._wide else 2) + 32)
        return int(rows * (stored + packed + 40) + self._threads * (at_work + candidates + 16 * rows))

    def _quantise(self, rows: NDArray[Any], levels: int, padding: int, name: str, first: int) -> _Packed:
        n, d = rows.shape
        codes = np.empty((n + padding, self._dpad), dtype=np.int8)
        scale, loss, length = (np.empty(n, dtype=np.float32) for _ in range(3))
        total = np.empty(n, dtype=np.int32)
        codes[n:] = 0
        bad = self._lib.fused_quantise(
            self._isa,
            rows,
            rows.dtype == np.float32,
            n,
            d,
            self._dpad,
            levels,
            codes,
            scale,
            loss,
            length,
            total,
        )
        self._check(bad, rows, name, first)
        return _Packed(codes, scale, total, loss, _usable(length, name))

    def _interleave(self, rows: NDArray[Any], width: int, name: str, first: int) -> _Packed:
        n, d = rows.shape
        out = cache_aligned(-(-n // width) * width * self._dpad * 4).view(np.float32)
        length = np.empty(n, dtype=np.float32)
        bad = self._lib.fused_interleave(
            self._isa, rows, rows.dtype == np.float32, n, d, self._dpad, width, out, length
        )
        self._check(bad, rows, name, first)
        return _Packed(out, None, None, np.zeros(n, dtype=np.float32), _usable(length, name))

    def _check(self, bad: int, rows: NDArray[Any], name: str, first: int) -> None:
        if bad == -2:
            raise MemoryError
        if bad >= 0:
            check_finite(rows, name, first)

    def _row_block(self, rows: NDArray[Any], start: int) -> _Packed:
        if self._wide:
            return self._interleave(rows, _MR, self._names[0], start)
        return self._quantise(rows, 127, _MOST_MR, self._names[0], start)

    def _panels(self, rows: NDArray[Any], start: int) -> _Packed:
        if self._wide:
            return self._interleave(rows, _PANEL, self._names[1], start)
        q = self._quantise(rows, self._levels, 0, self._names[1], start)
        panels = cache_aligned(-(-len(rows) // _PANEL) * _PANEL * self._dpad)
        self._lib.fused_pack(q.codes, len(rows), self._dpad, self._offset, panels)
        return _Packed(panels, q.scale, None, q.error, q.lengths)

    def _errors(self, x: _Packed, y: _Packed) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return the error bound of a computed product in two parts: by row of x, by row of y."""
        if not self._wide:
            longest = float((x.lengths + x.error).max(initial=0.0))
            of_x = x.error * y.longest + _SLACK * longest * y.longest
            return of_x.astype(np.float32), (y.error * longest).astype(np.float32)
        # Twice d roundings, and as many numbers as may be too small for float32 (all that were 1e-38 or less, where
        # somebody has switched denormals off)
        lengths = x.lengths.astype(np.float64)
        roundings, tiny = (self._dpad + 16) * 2.0**-23, 2e-38 * self._dpad
        error = roundings * lengths * y.longest + tiny * (x.longest + y.longest + 1)
        return (error * (1 + 1e-6)).astype(np.float32), None

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compare x's rows start..stop with every row of y and merge the results into `fwd` and `bwd`."""
        rows = self._x.block(start, stop)
        n, k = len(rows), fwd.k
        cap = _room(k)
        q = self._row_block(rows, start)
        locks = np.zeros(n, dtype=np.uint8)
        row_sim, row_id = fwd.sim[start:stop], fwd.id[start:stop]
        step = self._tile
        space = self._lib.fused_workspace(self._isa, n, min(step, len(self._y)), self._dpad, k, cap)

        def work(number: int) -> int:
            if getattr(self._local, "size", 0) < space:
                self._local.work, self._local.size = cache_aligned(space), space
            j = self._tiles[number]
            cols = self._y.block(j, j + step)
            packed = self._packed[number] or self._panels(cols, j)
            if self._keep:
                self._packed[number] = packed
            xloss, yloss = self._errors(q, packed)
            col_sim = None if bwd is None else bwd.sim[j : j + step]
            col_id = None if bwd is None else bwd.id[j : j + step]
            at = [
                None if a is None else a.ctypes.data
                for a in (q.codes, q.scale, xloss, q.sum, rows, row_sim, row_id, locks)
            ]
            to = [
                None if a is None else a.ctypes.data
                for a in (packed.codes, packed.scale, yloss, cols, col_sim, col_id, self._local.work)
            ]
            tile = Tile(
                self._isa,
                int(rows.dtype == np.float32),
                k,
                cap,
                int(self._wide),
                0,
                self._x.dim,
                self._dpad,
                n,
                self._bases[0] + start,
                *at,
                len(cols),
                self._bases[1] + j,
                *to,
                0,
            )
            rescored: int = self._lib.fused_tile(ctypes.byref(tile))
            self._y.release(j, j + step)
            return rescored

        self.rescored += _each(work, len(self._tiles), self._threads)
        self._x.release(start, stop)


def _padded(dim: int) -> int:
    return -(-dim // 32) * 32


def _room(k: int) -> int:
    """Return the candidates of a row that may wait for their exact products."""
    return 2 * k + 24


def _usable(lengths: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    check_length(float(lengths.max(initial=0.0)), name)
    return lengths


def _each(work: Callable[[int], int], count: int, threads: int) -> int:
    """Return the sum of work(0..count-1) on several threads; the first error, or Ctrl-C, stops the rest."""
    if threads == 1 or count == 1:
        return sum(map(work, range(count)))
    pool = ThreadPoolExecutor(min(threads, count))
    try:
        return sum(pool.map(work, range(count)))
    finally:
        pool.shutdown(cancel_futures=True)
