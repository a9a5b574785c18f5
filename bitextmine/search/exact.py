"""Exact k nearest neighbours in both directions, out of one pass over the similarity matrix."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitextmine.arguments import plain_array, whole_number
from bitextmine.console import Progress, silent
from bitextmine.declarations import keywords
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.fused import FusedSearch, compiled_runs, instruction_set
from bitextmine.search.neighbours import Neighbours, TopK
from bitextmine.search.options import Engine, SearchOptions
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_pair, distinct_rows, unfold
from bitextmine.system import available, budget, size

if TYPE_CHECKING:
    from bitextmine.search.blocks import BlockSearch

log = logging.getLogger(__name__)

_PARTS = 8  # one of so many parts of the memory goes to what allocating and freeing leaves unused
_AS_IT_COMES = SearchOptions()


def search_both(
    x: Vectors,
    y: Vectors,
    k: int,
    options: SearchOptions = _AS_IT_COMES,
    *,
    progress: Progress = silent,
    checkpoint: Checkpoint | None = None,
) -> Neighbours:
    """Return the k nearest neighbours in both directions, by inner product: of x's rows in y and of y's rows in x.

    Every similarity is the inner product of the vectors given, summed in float64 as `products.products` does and
    rounded to float32; no neighbour is missed, ties go to the lower id. The result is the same, byte for byte, for all
    options, and for a search that was interrupted and resumed.

    x (n, d) and y (m, d) are float16 or float32, in memory or in a file, with rows L2-normalised or zero (similarity 0
    to everything). `progress` gets the number of rows of x finished since the last call. `checkpoint` saves the state,
    which a search resumes from; the caller removes it.

    Raises:
        BitextmineError: different dimensions, k < 1, a NaN or infinity (with its line), an engine that is missing, or
            too little memory (with the bytes it takes).
    """
    folded = fold(x, y, k, options.names)
    return folded.neighbours(*_search(folded, k, True, options, progress, checkpoint))


def search_one(
    queries: Vectors,
    pool: Vectors,
    k: int,
    options: SearchOptions = _AS_IT_COMES,
    *,
    progress: Progress = silent,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the k nearest rows of `pool` per row of `queries`, as `search_both`: (similarity, id) (n, k).

    If both are one array, a row is its own neighbour, and the compiled search multiplies every two rows once.
    """
    options = replace(options, names=("queries", "pool"))
    folded = fold(queries, pool, k, options.names)
    best, _ = _search(folded, k, False, options, progress, None)
    return unfold(best.sim, best.id, folded.x.groups, folded.y.groups)


@dataclass(frozen=True)
class Folded:
    """The distinct rows of both sides, and a digest of all rows."""

    x: VectorRows
    y: VectorRows
    digest: str = ""

    def neighbours(self, fwd: TopK, bwd: TopK) -> Neighbours:
        """Return the neighbours between all rows, of those between distinct rows."""
        x, y = self.x.groups, self.y.groups
        return Neighbours(*unfold(fwd.sim, fwd.id, x, y), *unfold(bwd.sim, bwd.id, y, x))


def fold(x: Vectors, y: Vectors, k: int, names: tuple[str, str]) -> Folded:
    """Read both sides once, check them and k, and fold identical rows into one; `names` are for messages."""
    dtype = check_pair(x, y, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    rows_x, x_digest = first = distinct_rows(x, names[0], dtype)
    rows_y, y_digest = first if y is x else distinct_rows(y, names[1], dtype)
    return Folded(rows_x, rows_y, f"{x_digest} {y_digest}")


def _search(
    sides: Folded,
    k: int,
    both: bool,
    options: SearchOptions,
    progress: Progress,
    checkpoint: Checkpoint | None,
) -> tuple[TopK, TopK]:
    """Return the neighbours between distinct rows; no rows of y's unless `both`."""
    x, y, memory = sides.x, sides.y, options.memory
    done, of, total, back = 0, len(x), len(x.vectors), len(y) * both
    answer = 12 * k * (of + back) + sum(_unfolding(each.groups, k) for each in (x, y))
    if of and len(y):
        spare = max(0, budget(memory) - answer) * (_PARTS - 1) // _PARTS
        engine, least = open_engine(x, y, k, options, spare)
        least = least * _PARTS // (_PARTS - 1) + 1
        if memory is not None and answer + least > memory:
            raise BitextmineError(
                f"{size(memory)} of memory is too little: the {k} nearest of {total:,} and {len(y.vectors):,} vectors "
                f"take {size(answer)}, comparing them {size(least)}; allow {size(answer + least)} or more (--memory)"
            )
    fwd, bwd = TopK.empty(of, k), TopK.empty(back, k)
    if not of or not len(y):
        return fwd, bwd
    if checkpoint is not None and (done := checkpoint.resume(f"{sides.digest} k={k} both=True", fwd, bwd)):
        # Rows that were folded count as well, so that a bar gets to its end.
        log.info("search: %s of %s lines are done, going on", f"{total * done // of:,}", f"{total:,}")
        progress(total * done // of)
    step = min(options.block_rows or engine.block_rows, engine.block_rows)
    if x is y and not both:  # each pair is met once
        step, both, bwd = engine.block_rows, True, fwd
    while done < of:
        start, done = done, min(done + step, of)
        engine.block(start, done, fwd, bwd if both else None)
        if checkpoint is not None:
            checkpoint.save(done, last=done == of)
        progress(total * done // of - total * start // of)
    return fwd, bwd


def _unfolding(groups: Groups | None, k: int) -> int:
    """Return the bytes that identical rows cost: the groups, and the answer for all rows."""
    if groups is None:
        return 0
    arrays = (groups.first, groups.of, groups.members, groups.bounds)
    return sum(each.nbytes for each in arrays) + 12 * k * len(groups.of)


def open_engine(
    x: VectorRows, y: VectorRows, k: int, options: SearchOptions, memory: int
) -> tuple[FusedSearch | BlockSearch, int]:
    """Return the engine that the options name, or the fastest, and the least bytes that it needs.

    All engines give the same answer, to the byte. They work within `memory` bytes, and a block of rows given twice
    changes nothing the second time. BitextmineError: there is no such engine here.
    """
    engine = options.engine
    if engine == Engine.AUTO:
        # Plain C is slower than torch's products.
        fast = compiled_runs(x.dim) and instruction_set() != "portable"
        engine = Engine.COMPILED if options.device == "cpu" and fast else Engine.TORCH
    if engine == Engine.COMPILED:
        if not compiled_runs(x.dim):
            raise BitextmineError(
                f"the compiled search was not built, or {x.dim} dimensions are too many for it; use engine torch"
            )
        fused = FusedSearch(x, y, k, options, memory)
        return fused, fused.least_memory()
    from bitextmine.search.blocks import BlockSearch

    return BlockSearch(x, y, options, memory), BlockSearch.least_memory(x)


# --- for arrays of any kind ---


@keywords
def knn(x: ArrayLike, y: ArrayLike, k: int, *, run: Run) -> Neighbours:
    """Return the k rows of y with the largest inner product for each row of x, and the k rows of x for each of y.

    Vectors are taken as they are: for cosines divide each by its length. Those of `bitextmine embed` and of encoders
    have length 1.

    Args:
        x: one vector per row, shape (n, d), or anything that np.asarray turns into one. float16 stays float16 if y is
            float16 too; everything else is compared as float32 (float64 is rounded to it).
        y: the same, shape (m, d).
        k: neighbours per row, 1 or more.
        run: or its fields: ``device``, ``threads``, and ``memory``, the bytes that the search may take besides x and y
            (default: half of what is free).

    Returns:
        Neighbours: fwd_sim (n, k) float32 and fwd_id (n, k) int64, rows of y; bwd_sim (m, k) float32 and bwd_id (m, k)
        int64, rows of x. Each row goes from the highest similarity to the lowest; of equal similarities the lower
        id comes first. Where the other side has fewer than k rows, what is missing is id -1 with similarity -inf.
        A similarity is the inner product in float64, rounded once to float32. The result does not depend on device,
        memory or threads.

    Raises:
        BitextmineError: x or y is no matrix of real numbers, holds a NaN, an infinity or a number beyond float32, is so
            long a vector (1e12) that products overflow; different d, d = 0; too little memory; a device that is not
            there. UsageError, one of them: k, memory or threads is no whole number from 1, device no name of one.

    >>> import numpy as np
    >>> x = np.eye(2)
    >>> y = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> neighbours = knn(x, y, 2)
    >>> neighbours.fwd_id
    array([[1, 0],
           [2, 0]])
    >>> neighbours.fwd_sim
    array([[1. , 0.6],
           [1. , 0.8]], dtype=float32)
    >>> neighbours.bwd_id
    array([[1, 0],
           [0, 1],
           [1, 0]])
    """
    how = SearchOptions(run.device_name, run.memory, run.threads, names=("x", "y"))
    neighbours = whole_number("k", k)
    a, b = _matrix(x, "x"), _matrix(y, "y")
    result = 12 * neighbours * (len(a) + len(b))  # float32 and int64
    if result > available():
        raise BitextmineError(
            f"k = {neighbours}: the result alone takes {size(result)}, and {size(available())} of memory is free; ask "
            "for fewer neighbours"
        )
    return search_both(a, b, neighbours, how)


def _matrix(rows: ArrayLike, name: str) -> NDArray[Any]:
    try:
        matrix = np.asarray(plain_array(rows))
    except ValueError as error:  # rows of different lengths
        raise BitextmineError(f"{name}: not a matrix of numbers ({error})") from None
    if matrix.ndim != 2:
        raise BitextmineError(
            f"{name}: expected one vector a row (2 dimensions), found {matrix.ndim} dimension(s)"
        )
    if matrix.dtype.kind not in "fiu":
        raise BitextmineError(f"{name}: expected real numbers, found {matrix.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):  # the search names the row
        return matrix if matrix.dtype in (np.float16, np.float32) else matrix.astype(np.float32)
