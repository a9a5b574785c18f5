"""Search in both directions through the indexes of both sides: a pair that either index finds is compared once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.run import Run
from bitextmine.search.exact import search_one
from bitextmine.search.faiss_index import Index, shares_found
from bitextmine.search.lists import Lists, Pass, rank_lists, search_lists
from bitextmine.search.neighbours import Neighbours, TopK
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_pair, unfold

log = logging.getLogger(__name__)

TARGET, SAMPLE = 0.99, 2000  # the recall@1 to reach, on so many rows of each side
_MERGE_ROWS = 1 << 15


@dataclass(frozen=True)
class Indexed:
    """One side of a search: vectors (n, d), their index, and `rows` as in `Index.search`."""

    vectors: Vectors
    index: Index
    rows: NDArray[np.int64] | None = None


# Gives the result of a pass, in both directions.
Way = Callable[[Pass, Run, Progress], tuple[TopK, TopK | None]]


def search_both_indexed(
    x: Indexed, y: Indexed, k: int, run: Run, *, elsewhere: Way | None = None, progress: Progress = silent
) -> tuple[Neighbours, dict[str, Any]]:
    """Return the neighbours of `search_both`, found by the indexes of both sides: some may be missed.

    With two inverted files, x's rows are compared with the lists of y that are near them and y's rows with the lists of
    x, and both sides learn from both passes: a true neighbour is missed only if neither finds the other. The number of
    lists is measured on a sample of each side with its exact neighbours, so that TARGET is reached in either
    direction: a few dozen lists instead of hundreds for one pass. Other indexes, and those on GPUs, are asked
    one by one as they were tuned.

    Passes are computed in this process, or `elsewhere` with the same results. `progress` is called with the queries
    done, of n + m. Also returns the kind of search with its measured recall.
    """
    on_gpu = x.index.on_gpu or y.index.on_gpu
    if x.index.inverted is None or y.index.inverted is None or on_gpu:
        if elsewhere is not None:
            log.info("search: such indexes are asked by this machine alone")
        found = [
            that.index.search(this.vectors, that.vectors, k, rows=that.rows, progress=progress, run=run)
            for this, that in ((x, y), (y, x))
        ]
        return Neighbours(*found[0], *found[1]), {"search": "each index"}
    sample = _Sample(_listed(x, y), _listed(y, x), k)
    source, target = sample.sides
    lists = elsewhere or search_lists
    share = sample.enough()
    in_y, in_x = (max(1, round(share * len(side.centres))) for side in (target, source))
    one, back = lists(source.against(target, in_y, k, forward=True), run, progress)
    other, forth = lists(target.against(source, in_x, k, forward=False), run, progress)
    assert back is not None
    assert forth is not None
    for side in (x, y):
        side.index.check_mapped()
    fwd = _united(one, _by_row(forth, source))
    del one, forth
    bwd = _united(other, _by_row(back, target))
    del other, back
    recall = sample.recall(fwd, bwd)
    how = {
        "search": "lists of both",
        "nprobe": {"source": in_x, "target": in_y},
        "lists": {"source": len(source.centres), "target": len(target.centres)},
        "recall": recall,
    }
    ways = recall["forward"], recall["backward"]
    log.info(
        "search: %d of %d and %d of %d lists; found on samples of %s and %s lines: %.2f%% and %.2f%% of the nearest, "
        "%.2f%% and %.2f%% of the %d nearest",
        *(in_y, len(target.centres), in_x, len(source.centres)),
        *(f"{way['sample']:,}" for way in ways),
        *(100 * way[at] for at in ("at_1", "at_k") for way in ways),
        k,
    )
    fwd_found = unfold(fwd.sim, fwd.id, source.groups, target.groups)
    return Neighbours(*fwd_found, *unfold(bwd.sim, bwd.id, target.groups, source.groups)), how


@dataclass(frozen=True)
class _Listed:
    """One side's distinct rows, and the same rows in the lists of its index."""

    rows: VectorRows
    groups: Groups | None
    lists: Lists
    centres: NDArray[np.float32]

    def against(self, other: _Listed, probes: int, k: int, *, forward: bool) -> Pass:
        return Pass(self.rows, other.lists, other.centres, probes, k, forward=forward, listed=other.rows)

    def take(self, at: NDArray[np.int64]) -> Vectors:
        """Return some of the rows."""
        which = at if self.rows.index is None else self.rows.index[at]
        return np.ascontiguousarray(self.rows.vectors[which], dtype=self.rows.dtype)

    def list_of(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lists of some rows, -1 for none."""
        of = np.full(len(self.rows), -1, dtype=np.int64)
        of[self.lists.order] = np.repeat(np.arange(len(self.lists.sizes)), self.lists.sizes)
        return of[at]


def _listed(side: Indexed, other: Indexed) -> _Listed:
    index, vectors = side.index, side.vectors
    dtype = check_pair(vectors, other.vectors, "source vectors", "target vectors")
    index.check_rows(len(vectors) if side.rows is None else len(side.rows))
    groups = index.fold(vectors)
    rows = VectorRows(vectors, dtype, None if groups is None else groups.first)
    return _Listed(rows, groups, index.lists(vectors, side.rows), index.centres)


class _Sample:
    """A seeded sample of both sides with its exact neighbours, to measure how near the right lists are."""

    def __init__(self, x: _Listed, y: _Listed, k: int) -> None:
        random = np.random.default_rng(1)
        self.sides = x, y
        self._drawn: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._shares: list[NDArray[np.float64]] = []
        for these, those in ((x, y), (y, x)):
            drawn = np.sort(random.permutation(len(these.rows))[:SAMPLE])
            rows = these.take(drawn)
            sim, found = search_one(rows, those.rows.vectors, k)
            if those.groups is not None:
                found = np.where(found < 0, -1, those.groups.of[found])
            real = (found[:, 0] >= 0) & (sim[:, 0] > 0)
            drawn, best = drawn[real], found[real, 0]
            self._drawn.append((drawn, sim[real]))
            one = rank_lists(rows[real], those.centres, those.list_of(best))
            other = rank_lists(those.take(best), these.centres, these.list_of(drawn))
            self._shares.append(np.minimum(one / len(those.centres), other / len(these.centres)))

    def enough(self) -> float:
        """Return the least share of the lists that finds the target, and a standard error of it more, both ways."""
        found = []
        for shares in filter(len, self._shares):
            wanted = min(1.0, TARGET + float(np.sqrt(TARGET * (1 - TARGET) / len(shares))))
            at = min(len(shares) - 1, int(np.ceil(wanted * len(shares))) - 1)
            found.append(float(np.sort(shares)[at]))
        return min(1.0, max(found, default=1.0))

    def recall(self, fwd: TopK, bwd: TopK) -> dict[str, dict[str, float]]:
        """Return the share of the samples' neighbours found, by similarity, so that a tie counts as found."""
        out = {}
        for name, best, (drawn, sim) in zip(("forward", "backward"), (fwd, bwd), self._drawn, strict=True):
            at_1, at_k = shares_found(best.sim[drawn], sim)
            out[name] = {"at_1": at_1, "at_k": at_k, "sample": len(drawn)}
        return out


def _by_row(best: TopK, side: _Listed) -> TopK:
    """Return a state in the order of the lists in the order of the rows."""
    out = TopK.empty(len(side.rows), best.k)
    out.sim[side.lists.order], out.id[side.lists.order] = best.sim, best.id
    return out


def _united(one: TopK, other: TopK) -> TopK:
    """Merge the k best of two states of the same rows into `one`; a pair in both counts once."""
    for start in range(0, len(one.sim), _MERGE_ROWS):
        part = slice(start, start + _MERGE_ROWS)
        seen = (other.id[part, :, None] == one.id[part, None, :]).any(axis=2)
        one.add(
            part, np.where(seen, np.float32(-np.inf), other.sim[part]), np.where(seen, -1, other.id[part])
        )
    return one
