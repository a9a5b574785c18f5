"""Exact k nearest neighbours in both directions, out of one pass over the similarity matrix."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.search import native
from bitextmine.search.best import Best
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.engines.compiled import FusedSearch
from bitextmine.search.native import ISA
from bitextmine.search.rows import Groups, Rows, Vectors, check_pair, scan_digest, unfold
from bitextmine.system import budget, processors, size

log = logging.getLogger(__name__)

_PARTS = 8  # one of so many parts of the memory goes to what allocating and freeing leaves unused
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
    @property
    def block_rows(self) -> int: ...

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
) -> tuple[_Engine, int]:
    """What does the work with `memory` bytes, and how many bytes it needs at least."""
    kind, _, detail = method.partition(":")
    if kind == "triton" or (kind == "auto" and device != "cpu"):
        from bitextmine.search.engines.gpu import open_search

        search = open_search(x, y, k, device, detail or None, must=kind == "triton")
        if search is not None:
            return search, 0
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
        arithmetic, _, isa = detail.partition("-") if detail.startswith("float32") else ("int8", "", detail)
        if arithmetic not in ("int8", "float32") or isa not in ("", *ISA):
            raise BitextmineError(
                f"unknown kind of compiled search {detail!r}: expected float32, {', '.join(ISA)} or float32-avx2"
            )
        threads = threads or processors()
        fused = FusedSearch(
            x, y, k=k, names=names, threads=threads, memory=memory, isa=isa or None, arithmetic=arithmetic
        )
        return fused, FusedSearch.least_memory(x, y, k, threads, arithmetic)
    if kind == "torch":
        from bitextmine.search.engines.blocks import BlockSearch

        device = device.partition(",")[0]
        blocks = BlockSearch(x, y, device=device, precision=detail or None, memory=memory)
        return blocks, BlockSearch.least_memory(x)
    raise BitextmineError(f"unknown search method {method!r}: expected auto, fused, torch or triton")


def search_both(
    x: Vectors,
    y: Vectors,
    k: int,
    *,
    block_rows: int | None = None,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
    method: str = "auto",
    memory: int | None = None,
    threads: int | None = None,
    checkpoint: Checkpoint | None = None,
) -> Neighbours:
    """The k nearest neighbours of every row of x in y and of every row of y in x, by inner product.

    x (n, d) and y (m, d) are float16 or float32, in memory or memory-mapped; rows are L2-normalised or zero
    (a zero row has similarity 0 to everything). Every similarity is the inner product of the vectors given,
    summed in float64 as rescore.products() says and rounded to float32; no neighbour is missed, ties go to
    the lower id. The result is therefore the same, byte for byte, for every block_rows, device, method,
    memory and threads, and for a search that was killed and went on.

    block_rows: most rows of x compared at a time. device: "cpu" or a torch device: "cuda" (with triton every GPU
    that torch sees), "cuda:1", "cuda:0,cuda:2".
    progress: called with the number of rows of x finished since the last call.
    method: "fused" (compiled, CPU; int8 products), "fused:float32", "fused:avx2|avxvnni|avx512vnni",
    "fused:float32-avx2", "torch", "torch:float32|bfloat16|float16", "triton", "triton:float16|bfloat16" (CUDA), or
    "auto": the fastest of those that can be had.
    memory: bytes of the computer's memory (not a GPU's) that the search may take besides arrays given to it: the
    answer, 12 bytes per row and neighbour (twice that, and 32 bytes a row, where rows repeat), blocks of both sides
    at work, pages of memory-mapped vectors, and what can be spared to work faster. Default: half of what is free.
    threads: default the processors available, or OMP_NUM_THREADS.
    checkpoint: where to keep what is found so far, and to go on from; the caller's to remove().
    Raises BitextmineError for different dimensions, k < 1, a NaN or infinity (naming the line), and for too little
    memory (saying how much it takes).
    """
    return _search(
        x,
        y,
        k,
        True,
        ("source vectors", "target vectors"),
        block_rows,
        device,
        progress,
        method,
        memory,
        threads,
        checkpoint,
    )


def search_one(
    queries: Vectors,
    pool: Vectors,
    k: int,
    *,
    block_rows: int | None = None,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
    method: str = "auto",
    memory: int | None = None,
    threads: int | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k nearest rows of `pool` for each row of `queries`: (similarity (n, k), id (n, k)), as
    search_both."""
    found = _search(
        queries,
        pool,
        k,
        False,
        ("queries", "pool"),
        block_rows,
        device,
        progress,
        method,
        memory,
        threads,
        checkpoint,
    )
    return found.fwd_sim, found.fwd_id


def _search(
    x: Vectors,
    y: Vectors,
    k: int,
    both: bool,
    names: tuple[str, str],
    block_rows: int | None,
    device: str,
    progress: Callable[[int], object] | None,
    method: str,
    memory: int | None,
    threads: int | None,
    checkpoint: Checkpoint | None,
) -> Neighbours:
    dtype = check_pair(x, y, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    if block_rows is not None and block_rows < 1:
        raise BitextmineError(f"block_rows must be at least 1, found {block_rows}")
    limit = budget(memory)
    (x_groups, x_digest), (y_groups, y_digest) = scan_digest(x, names[0]), scan_digest(y, names[1])
    rows_x = Rows(x, dtype, None if x_groups is None else x_groups.first)
    rows_y = Rows(y, dtype, None if y_groups is None else y_groups.first)
    answer = 12 * k * (len(rows_x) + len(rows_y) * both) + sum(_unfolding(g, k) for g in (x_groups, y_groups))
    if len(rows_x) and len(rows_y):
        spare = max(0, limit - answer) * (_PARTS - 1) // _PARTS
        engine, least = _engine(rows_x, rows_y, k, method, device, threads, spare, names)
        least = least * _PARTS // (_PARTS - 1) + 1
        if memory is not None and answer + least > memory:
            raise BitextmineError(
                f"{size(memory)} of memory is too little: the {k} nearest of {len(x):,} and {len(y):,} vectors take "
                f"{size(answer)}, comparing them {size(least)}; allow {size(answer + least)} or more (--memory)"
            )
    fwd = Best.empty(len(rows_x), k)
    bwd = Best.empty(len(rows_y), k) if both else None
    if len(rows_x) and len(rows_y):
        key = f"{x_digest} {y_digest} k={k} both={both}"
        done = 0 if checkpoint is None else checkpoint.resume(key, fwd, bwd)
        total, of = len(x), len(rows_x)  # rows that were folded count as well, so that a bar gets to its end
        if done:
            log.info("search: %s of %s lines are done, going on", f"{total * done // of:,}", f"{total:,}")
            if progress is not None:
                progress(total * done // of)
        step = engine.block_rows if block_rows is None else min(block_rows, engine.block_rows)
        while done < of:
            start, done = done, min(done + step, of)
            engine.block(start, done, fwd, bwd)
            if checkpoint is not None:
                checkpoint.save(done, fwd, bwd, last=done == of)
            if progress is not None:
                progress(total * done // of - total * start // of)
        del engine
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, x_groups, y_groups)
    if bwd is None:
        nothing = np.empty((0, k))
        return Neighbours(fwd_sim, fwd_id, nothing.astype(np.float32), nothing.astype(np.int64))
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, y_groups, x_groups)
    return Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)


def _unfolding(groups: Groups | None, k: int) -> int:
    """Bytes that identical rows cost: the groups, and the answer for all rows beside that for one of each."""
    if groups is None:
        return 0
    return sum(a.nbytes for a in (groups.first, groups.of, groups.members, groups.bounds)) + 12 * k * len(
        groups.of
    )


__all__ = ["Neighbours", "search_both", "search_one"]
