"""Exact search in C: int8 products with the selection fused in, every survivor rescored exactly.

Built from fused.c if there is a C compiler; without it blocks.py does the same work with torch, to the same bytes.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine import compiled
from bitextmine.errors import BitextmineError
from bitextmine.search.neighbours import TopK
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import VectorRows, check_finite, check_length
from bitextmine.system import processors

_SETS = ("portable", "neon", "dotprod", "avx2", "avxvnni", "avx512vnni", "amx")  # plain C, ARM, x86
ISA = {name: code for code, name in enumerate(_SETS, 1)}  # as in fused.c
ISA_NAMES = {code: name for name, code in ISA.items()}
_WIDEST = 1 << 15  # dimensions; sums of int8 products of more would not fit 32 bits
_PANEL, _MOST_MR = 64, 16
# Rows of x and of y compared at a time: what may be in the answer is computed exactly at the end of such a tile, by
# when most of it has been found not to be. More would not be faster, fewer make the work on y's rows tell.
_MOST_ROWS, _FEWER_ROWS, _LEAST_ROWS = 8192, 1024, 256
_TILES = 4  # of y's rows for each thread, so that all threads end at about the same time
_SLACK = 4e-6  # covers the float32 roundings of a bound and of an exact similarity, for vectors of length 1


class TileArguments(ctypes.Structure):
    """The struct `tile` of fused.c, field by field."""

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


def library() -> ctypes.CDLL | None:
    """Return the library, or None if there is none (`compiled.library`)."""
    return compiled.library("search")


def instruction_set() -> str | None:
    """Return the best of ISA that this processor has, or None without the compiled search."""
    lib = library()
    return None if lib is None else ISA_NAMES[lib.fused_isa()]


def compiled_runs(dim: int) -> bool:
    """Tell if the compiled engine can search vectors of so many dimensions here."""
    return dim <= _WIDEST and library() is not None


def _cache_aligned(nbytes: int) -> NDArray[np.uint8]:
    """Return uninitialised memory, uint8 (nbytes,), that begins at a multiple of 64 (a cache line)."""
    raw = np.empty(nbytes + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + nbytes]


Map = Callable[[Callable[[int], int], Iterable[int]], Iterable[int]]


@contextlib.contextmanager
def in_threads(threads: int) -> Iterator[Map]:
    """Return a `map` over `threads` threads; the first error, or Ctrl-C, stops the rest."""
    if threads <= 1:
        yield map
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Packed:
    """Rows as the products read them: int8 codes, row by row or in panels, with their scale and sum.

    `error` is the row's part of the bound, per unit of the other row's length; `lengths` are |x| or a little more.
    """

    codes: NDArray[Any]
    scale: NDArray[np.float32]
    sum: NDArray[np.int32]
    error: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @property
    def longest(self) -> float:
        return float(self.lengths.max(initial=0.0))


class FusedSearch:
    """Compares blocks of x's rows with all of y.

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
        self._dpad = -(-x.dim // 32) * 32
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
        if x is y:  # blocks are of whole tiles
            self.block_rows = self._tile = min(self.block_rows, self._tile)
        self._tiles = range(0, len(y), self._tile)
        kept = len(self._tiles) * self._tile * (self._dpad + 16)
        self._keep = self._working(self.block_rows, self._tile) + kept <= memory
        self._packed: list[_Packed | None] = [None] * len(self._tiles)
        self._local = threading.local()

    def least_memory(self) -> int:
        """Return the bytes of a search with the smallest blocks."""
        return self._working(min(max(1, len(self._x)), _LEAST_ROWS), _LEAST_ROWS)

    def _working(self, rows: int, tile: int) -> int:
        """Return the bytes at work when `rows` rows of x are compared with `tile` rows of y at a time."""
        stored = self._x.dim * self._x.dtype.itemsize
        cols = min(tile, -(-len(self._y) // _PANEL) * _PANEL)
        candidates = self._lib.fused_workspace(self._isa, rows, cols, self._dpad, self._k, _room(self._k))
        at_work = cols * (stored + self._dpad * 2 + 32)
        return int(rows * (stored + self._dpad + 40) + self._threads * (at_work + candidates + 16 * rows))

    def _pack(self, side: int, rows: NDArray[Any], first: int) -> _Packed:
        """Return rows of x (side 0) or y (side 1), from number `first` on, as the products read them."""
        lib, isa, dpad, (n, d), float32 = (
            self._lib,
            self._isa,
            self._dpad,
            rows.shape,
            rows.dtype == np.float32,
        )
        error, lengths, scale = (np.empty(n, dtype=np.float32) for _ in range(3))
        levels, padding = ((127, _MOST_MR), (self._levels, 0))[side]
        codes: NDArray[Any] = np.empty((n + padding, dpad), dtype=np.int8)
        codes[n:] = 0
        total = np.empty(n, dtype=np.int32)
        bad = lib.fused_quantise(isa, rows, float32, n, d, dpad, levels, codes, scale, error, lengths, total)
        if bad == -2:
            raise MemoryError
        if bad >= 0:
            check_finite(rows, self._names[side], first)
        check_length(float(lengths.max(initial=0.0)), self._names[side])
        if side:
            panels = _cache_aligned(-(-n // _PANEL) * _PANEL * dpad)
            lib.fused_pack(codes, n, dpad, self._offset, panels)
            codes = panels
        return _Packed(codes, scale, total, error, lengths)

    def _errors(self, x: _Packed, y: _Packed) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the error bound of a computed product in two parts: by row of x, by row of y."""
        longest = float((x.lengths + x.error).max(initial=0.0))
        of_x = x.error * y.longest + _SLACK * longest * y.longest
        return of_x.astype(np.float32), (y.error * longest).astype(np.float32)

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compare x's rows start..stop with every row of y and merge the results into `fwd` and `bwd`.

        If both are one, so are x and y: rows before the block have met it, and those after it count in both ways.
        """
        itself = bwd is fwd
        rows, y, step, dpad, cap = self._x.block(start, stop), self._y, self._tile, self._dpad, _room(fwd.k)
        q = self._pack(0, rows, start)
        row_sim, row_id, locks = fwd.sim[start:stop], fwd.id[start:stop], np.zeros(len(rows), dtype=np.uint8)
        space = self._lib.fused_workspace(self._isa, len(rows), min(step, len(y)), dpad, fwd.k, cap)
        how = (self._isa, rows.dtype == np.float32, fwd.k, cap, self._x.dim, dpad)

        def work(number: int) -> int:
            if getattr(self._local, "size", 0) < space:
                self._local.work, self._local.size = _cache_aligned(space), space
            j = self._tiles[number]
            cols = y.block(j, j + step)
            packed = self._packed[number] or self._pack(1, cols, j)
            if self._keep:
                self._packed[number] = packed
            xloss, yloss = self._errors(q, packed)
            back = None if itself and j < stop else bwd
            col = (None, None) if back is None else (back.sim[j : j + step], back.id[j : j + step])
            tile = TileArguments(
                *(*how, len(rows), self._bases[0] + start),
                *_addresses(q.codes, q.scale, xloss, q.sum, rows, row_sim, row_id, locks),
                *(len(cols), self._bases[1] + j),
                *_addresses(packed.codes, packed.scale, yloss, cols, *col, self._local.work),
            )
            return int(self._lib.fused_tile(ctypes.byref(tile)))

        numbers = range(start // step if itself else 0, len(self._tiles))
        with in_threads(min(self._threads, len(numbers))) as mapped:
            sum(mapped(work, numbers))  # the numbers of exact products


def _addresses(*arrays: NDArray[Any] | None) -> list[int | None]:
    return [None if each is None else each.ctypes.data for each in arrays]


def _room(k: int) -> int:
    return 2 * k + 24
