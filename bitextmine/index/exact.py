"""Exact k nearest neighbours in both directions, out of one pass over the similarity matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.index import native
from bitextmine.index.fused import FusedSearch
from bitextmine.index.rows import Rows, Vectors, check_pair, scan, unfold
from bitextmine.index.state import Best

BLOCK_ROWS = 8192
MEMORY = 512 * 1024 * 1024
WIDEST = 1 << 15  # sums of int8 products of more would not fit 32 bits


@dataclass(frozen=True)
class Neighbours:
    """The k best rows of y for each row of x (fwd) and the k best rows of x for each row of y (bwd).

    Similarities are float32, ids int64; a missing neighbour (k larger than the other side) is -1 with -inf.
    Each row is ordered by similarity, highest first, equal similarities by id, lowest first.
    """

    fwd_sim: NDArray[np.float32]
    fwd_id: NDArray[np.int64]
    bwd_sim: NDArray[np.float32]
    bwd_id: NDArray[np.int64]


class _Engine(Protocol):
    def block(self, start: int, stop: int, fwd: Best, bwd: Best | None) -> None: ...


def _engine(
    x: Rows,
    y: Rows,
    k: int,
    method: str,
    device: str,
    threads: int | None,
    memory: int,
    names: tuple[str, str],
) -> _Engine:
    kind, _, detail = method.partition(":")
    if kind == "triton" or (kind == "auto" and device != "cpu"):
        from bitextmine.index.gpu import open_search

        search = open_search(x, y, k, device, detail or None, must=kind == "triton")
        if search is not None:
            return search
    if kind == "auto":
        kind = (
            "fused"
            if x.dim <= WIDEST and device == "cpu" and native.instruction_set() is not None
            else "torch"
        )
    if kind == "fused":
        if native.instruction_set() is None or x.dim > WIDEST:
            raise BitextmineError(
                "the compiled search was not built, this processor lacks AVX2, or "
                f"{x.dim} dimensions are too many for it; use method torch"
            )
        return FusedSearch(
            x, y, names=names, threads=threads or native.processors(), memory=memory, isa=detail or None
        )
    if kind == "torch":
        from bitextmine.index.blocks import BlockSearch

        return BlockSearch(x, y, device=device.partition(",")[0], precision=detail or None)
    raise BitextmineError(f"unknown search method {method!r}: expected auto, fused, torch or triton")


def search_both(
    x: Vectors,
    y: Vectors,
    k: int,
    *,
    block_rows: int = BLOCK_ROWS,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
    method: str = "auto",
    memory: int = MEMORY,
    threads: int | None = None,
) -> Neighbours:
    """The k nearest neighbours of every row of x in y and of every row of y in x, by inner product.

    x (n, d) and y (m, d) are float16 or float32, in memory or memory-mapped; rows are L2-normalised or zero
    (a zero row has similarity 0 to everything). Every similarity is the inner product of the vectors given,
    summed in float64 as rescore.products() says and rounded to float32; no neighbour is missed, ties go to
    the lower id. The result is therefore the same, byte for byte, for every block_rows, device, method,
    memory and threads.

    block_rows: rows of x compared at a time (method triton: as many as fit the GPU). device: "cpu" or a torch
    device: "cuda" (with triton every GPU that torch sees), "cuda:1", "cuda:0,cuda:2".
    progress: called with the number of rows of x finished since the last call.
    method: "fused" (compiled, CPU), "torch", "torch:float32|bfloat16|float16", "triton",
    "triton:float16|bfloat16" (CUDA), or "auto": the fastest of those that can be had.
    memory: bytes that the search may hold besides its input and output (a working minimum of about 30 MiB per
    thread is not counted). threads: default the processors available, or OMP_NUM_THREADS.
    Raises BitextmineError for different dimensions, k < 1, and a NaN or infinity (naming the line).
    """
    return _search(x, y, k, True, ("source vectors", "target vectors"), block_rows, device, progress, method,
                   memory, threads)  # fmt: skip


def search_one(
    queries: Vectors,
    pool: Vectors,
    k: int,
    *,
    block_rows: int = BLOCK_ROWS,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
    method: str = "auto",
    memory: int = MEMORY,
    threads: int | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k nearest rows of `pool` for each row of `queries`: (similarity (n, k), id (n, k)), as
    search_both."""
    found = _search(queries, pool, k, False, ("queries", "pool"), block_rows, device, progress, method,
                    memory, threads)  # fmt: skip
    return found.fwd_sim, found.fwd_id


def _search(
    x: Vectors,
    y: Vectors,
    k: int,
    both: bool,
    names: tuple[str, str],
    block_rows: int,
    device: str,
    progress: Callable[[int], object] | None,
    method: str,
    memory: int,
    threads: int | None,
) -> Neighbours:
    dtype = check_pair(x, y, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    if block_rows < 1:
        raise BitextmineError(f"block_rows must be at least 1, found {block_rows}")
    x_groups, y_groups = scan(x, names[0]), scan(y, names[1])
    rows_x = Rows(x, dtype, None if x_groups is None else x_groups.first)
    rows_y = Rows(y, dtype, None if y_groups is None else y_groups.first)
    fwd = Best.empty(len(rows_x), k)
    bwd = Best.empty(len(rows_y), k) if both else None
    if len(rows_x) and len(rows_y):
        engine = _engine(rows_x, rows_y, k, method, device, threads, memory, names)
        step = getattr(engine, "block_rows", block_rows)  # a GPU takes as many rows as it holds
        for start in range(0, len(rows_x), step):
            stop = min(start + step, len(rows_x))
            engine.block(start, stop, fwd, bwd)
            if progress is not None:  # rows that were folded count as well, so that a bar gets to its end
                total, of = len(x), len(rows_x)
                progress(total * stop // of - total * start // of)
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, x_groups, y_groups)
    if bwd is None:
        nothing = np.empty((0, k))
        return Neighbours(fwd_sim, fwd_id, nothing.astype(np.float32), nothing.astype(np.int64))
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, y_groups, x_groups)
    return Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)


__all__ = ["BLOCK_ROWS", "MEMORY", "Neighbours", "search_both", "search_one"]
