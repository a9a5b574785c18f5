"""Exact k nearest neighbours in both directions, out of one pass over the similarity matrix."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.engines.select import open_engine
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_pair, scan_digest, unfold
from bitextmine.search.topk import TopK
from bitextmine.system import budget, size

log = logging.getLogger(__name__)

_PARTS = 8  # one of so many parts of the memory goes to what allocating and freeing leaves unused
_AS_IT_COMES = SearchOptions()


def search_both(
    x: Vectors,
    y: Vectors,
    k: int,
    options: SearchOptions = _AS_IT_COMES,
    *,
    progress: Callable[[int], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Neighbours:
    """Return the k nearest neighbours in both directions, by inner product: of x's rows in y and of y's rows in x.

    Every similarity is the inner product of the vectors given, summed in float64 as `products.products` does and
    rounded to float32; no neighbour is missed, ties go to the lower id. The result is the same, byte for byte, for all
    options, and for a search that was interrupted and resumed.

    Args:
        x: (n, d), float16 or float32, in memory or memory-mapped; rows are L2-normalised or zero (similarity 0 to
            everything).
        y: (m, d), likewise.
        k: neighbours per row.
        options: see `SearchOptions`.
        progress: called with the number of rows of x finished since the last call.
        checkpoint: saves the state, and resumes from it; the caller removes it.

    Raises:
        BitextmineError: different dimensions, k < 1, a NaN or infinity (with its line), an engine that is missing,
            or too little memory (with the bytes it takes).
    """
    return _search((x, y), k, True, options, progress, checkpoint)


def search_one(
    queries: Vectors,
    pool: Vectors,
    k: int,
    options: SearchOptions = _AS_IT_COMES,
    *,
    progress: Callable[[int], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the k nearest rows of `pool` for each row of `queries`: (similarity (n, k), id (n, k)).

    See `search_both`.
    """
    options = replace(options, names=("queries", "pool"))
    found = _search((queries, pool), k, False, options, progress, checkpoint)
    return found.fwd_sim, found.fwd_id


def _search(
    sides: tuple[Vectors, Vectors],
    k: int,
    both: bool,
    options: SearchOptions,
    progress: Callable[[int], object] | None,
    checkpoint: Checkpoint | None,
) -> Neighbours:
    (x, y), names = sides, options.names
    dtype = check_pair(x, y, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    memory = options.memory
    limit = budget(memory)
    (x_groups, x_digest), (y_groups, y_digest) = scan_digest(x, names[0]), scan_digest(y, names[1])
    rows_x = VectorRows(x, dtype, None if x_groups is None else x_groups.first)
    rows_y = VectorRows(y, dtype, None if y_groups is None else y_groups.first)
    answer = 12 * k * (len(rows_x) + len(rows_y) * both) + sum(_unfolding(g, k) for g in (x_groups, y_groups))
    if len(rows_x) and len(rows_y):
        spare = max(0, limit - answer) * (_PARTS - 1) // _PARTS
        engine, least = open_engine(rows_x, rows_y, k, options, spare)
        least = least * _PARTS // (_PARTS - 1) + 1
        if memory is not None and answer + least > memory:
            raise BitextmineError(
                f"{size(memory)} of memory is too little: the {k} nearest of {len(x):,} and {len(y):,} vectors take "
                f"{size(answer)}, comparing them {size(least)}; allow {size(answer + least)} or more (--memory)"
            )
    fwd = TopK.empty(len(rows_x), k)
    bwd = TopK.empty(len(rows_y), k) if both else None
    if len(rows_x) and len(rows_y):
        key = f"{x_digest} {y_digest} k={k} both={both}"
        done = 0 if checkpoint is None else checkpoint.resume(key, fwd, bwd)
        total, of = len(x), len(rows_x)  # rows that were folded count as well, so that a bar gets to its end
        if done:
            log.info("search: %s of %s lines are done, going on", f"{total * done // of:,}", f"{total:,}")
            if progress is not None:
                progress(total * done // of)
        step = min(options.block_rows or engine.block_rows, engine.block_rows)
        while done < of:
            start, done = done, min(done + step, of)
            engine.block(start, done, fwd, bwd)
            if checkpoint is not None:
                checkpoint.save(done, last=done == of)
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
    """Return the bytes that identical rows cost: the groups, and the answer for all rows."""
    if groups is None:
        return 0
    return sum(a.nbytes for a in (groups.first, groups.of, groups.members, groups.bounds)) + 12 * k * len(
        groups.of
    )
