"""Search through an index of vectors, one way or in both directions: similarities are exact, some neighbours missed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.exact import search_one
from bitextmine.search.faiss_index import Index
from bitextmine.search.lists import Lists, Router, search_lists
from bitextmine.search.neighbours import Neighbours, TopK, shares_of
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import rescore
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_finite, check_pair, scan, unfold

log = logging.getLogger(__name__)

TARGET, SAMPLE = 0.99, 2000  # the recall@1 to reach, on so many rows of each side
_LEAST_BY_LIST = 8  # queries per list from which going list by list pays
_BLOCK_ROWS = 1 << 12
_MERGE_ROWS = 1 << 15


@dataclass(frozen=True)
class Indexed:
    """Vectors (n, d) with their index.

    Attributes:
        rows: for each vector that the index was built from its row in `vectors`, or -1; None: they are the same.

    Raises:
        BitextmineError: the index is of other vectors.
    """

    vectors: Vectors
    index: Index
    rows: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self.index.check_of(len(self.vectors) if self.rows is None else len(self.rows), self.vectors.shape[1])

    def search(
        self, queries: Vectors, k: int, *, run: Run | None = None, progress: Progress = silent
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the k nearest vectors that the index finds: (similarity (n, k), row (n, k)) as `search_one`.

        A flat index is searched by `search_one`, an inverted file list by list if there are queries enough; of any
        other, several times k candidates are rescored. Missing neighbours are -1 with -inf. `progress` is called with
        the number of queries done.
        """
        run, index, pool = run or Run(), self.index, self.vectors
        dtype = check_pair(queries, pool, "queries", "indexed vectors")
        if k < 1:
            raise BitextmineError(f"k must be at least 1, found {k}")
        if index.exact and not index.on_gpu:
            options = SearchOptions(memory=run.memory, threads=run.threads)
            return search_one(queries, pool, k, options, progress=progress)
        ivf = index.inverted
        if ivf is not None and not index.on_gpu and len(queries) * ivf.nprobe >= _LEAST_BY_LIST * ivf.nlist:
            for start in range(0, len(queries), _BLOCK_ROWS):
                check_finite(queries[start : start + _BLOCK_ROWS], "queries", start)
            rows = VectorRows(queries, dtype)
            best, _ = search_lists(rows, self.lists, int(ivf.nprobe), k, run, progress, both=False)
            index.check_mapped()
            return unfold(best.sim, best.id, None, self.groups)
        ids = index.candidates(queries, min(max(1, index.rows), index.factor * k + 16), progress)
        if self.rows is not None:
            ids = np.where(ids < 0, -1, self.rows[ids])
        groups = self.groups
        if groups is None:
            return rescore(queries, pool, ids, k)
        ids = np.where(ids < 0, -1, groups.first[groups.of[ids]])
        sim, ids = rescore(queries, pool, ids, k)
        return unfold(sim, np.where(ids < 0, -1, groups.of[ids]), None, groups)

    @cached_property
    def groups(self) -> Groups | None:
        """Return the groups of identical vectors."""
        return scan(self.vectors, "indexed vectors")[0]

    @cached_property
    def distinct(self) -> VectorRows:
        """Return the distinct vectors, the first of each group."""
        return VectorRows(
            self.vectors, self.vectors.dtype, None if self.groups is None else self.groups.first
        )

    @cached_property
    def lists(self) -> Lists:
        """Return the lists of an inverted file, of the distinct vectors by number."""
        ids, sizes = self.index.list_ids()
        row = ids if self.rows is None else self.rows[ids]
        if self.groups is not None:
            row = np.where(row < 0, -1, self.groups.of[row])
        # A selection's row is the vector of the first line that it stands for: one entry for each row is enough.
        first = np.lexsort((ids, row))
        kept = first[np.diff(row[first], prepend=-1) > 0]
        of = np.repeat(np.arange(len(sizes)), sizes)
        kept = kept[np.lexsort((row[kept], of[kept]))]
        order, lengths = row[kept].astype(np.int64), np.bincount(of[kept], minlength=len(sizes))
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        distinct = self.distinct
        at = order if distinct.index is None else distinct.index[order]
        listed = VectorRows(distinct.vectors, distinct.dtype, at)
        return Lists(
            order, bounds, self.index.centres, lambda i: listed.block(int(bounds[i]), int(bounds[i + 1]))
        )


def search_both_indexed(
    x: Indexed, y: Indexed, k: int, run: Run, progress: Progress = silent
) -> tuple[Neighbours, dict[str, Any]]:
    """Return the neighbours of `search_both`, found by the indexes of both sides: some may be missed.

    With two inverted files, x's rows are compared with the lists of y that are near them and y's rows with the lists of
    x, and both sides learn from both passes: a true neighbour is missed only if neither finds the other. The number of
    lists is measured on a sample of each side with its exact neighbours, so that TARGET is reached in either
    direction: a few dozen lists instead of hundreds for one pass. Other indexes, and those on GPUs, are asked one by
    one as they were tuned.

    `progress` is called with the queries done, of n + m. Also returns the kind of search with its measured recall.
    """
    on_gpu = x.index.on_gpu or y.index.on_gpu
    if x.index.inverted is None or y.index.inverted is None or on_gpu:
        forward = y.search(x.vectors, k, run=run, progress=progress)
        backward = x.search(y.vectors, k, run=run, progress=progress)
        return Neighbours(*forward, *backward), {"search": "each index"}
    check_pair(x.vectors, y.vectors, "source vectors", "target vectors")
    sample = _Sample(x, y, k)
    share = sample.enough()
    x_lists, y_lists = len(x.lists.centres), len(y.lists.centres)
    in_y, in_x = (max(1, round(share * count)) for count in (y_lists, x_lists))
    fwd_here, bwd_there = search_lists(x.distinct, y.lists, in_y, k, run, progress)
    bwd_here, fwd_there = search_lists(y.distinct, x.lists, in_x, k, run, progress)
    assert bwd_there is not None
    assert fwd_there is not None
    for side in (x, y):
        side.index.check_mapped()
    best = _united(fwd_here, fwd_there, x.lists.order), _united(bwd_here, bwd_there, y.lists.order)
    recall = sample.recall(*best)
    how = {
        "search": "lists of both",
        "nprobe": {"source": in_x, "target": in_y},
        "lists": {"source": x_lists, "target": y_lists},
        "recall": recall,
    }
    ways = recall["forward"], recall["backward"]
    log.info(
        "search: %d of %d and %d of %d lists; found on samples of %s and %s lines: %.2f%% and %.2f%% of the nearest, "
        "%.2f%% and %.2f%% of the %d nearest",
        *(in_y, y_lists, in_x, x_lists),
        *(f"{way['sample']:,}" for way in ways),
        *(100 * way[at] for at in ("at_1", "at_k") for way in ways),
        k,
    )
    fwd, bwd = best
    return Neighbours(
        *unfold(fwd.sim, fwd.id, x.groups, y.groups), *unfold(bwd.sim, bwd.id, y.groups, x.groups)
    ), how


class _Sample:
    """A seeded sample of both sides with its exact neighbours, to measure how near the right lists are."""

    def __init__(self, x: Indexed, y: Indexed, k: int) -> None:
        random = np.random.default_rng(1)
        self._drawn: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._shares: list[NDArray[np.float64]] = []
        for these, those in ((x, y), (y, x)):
            drawn = np.sort(random.permutation(len(these.distinct))[:SAMPLE])
            rows = these.distinct.take(drawn)
            sim, ids = search_one(rows, those.vectors, k)
            if those.groups is not None:
                ids = np.where(ids < 0, -1, those.groups.of[ids])
            real = (ids[:, 0] >= 0) & (sim[:, 0] > 0)
            drawn, rows, best = drawn[real], rows[real], ids[real, 0]
            self._drawn.append((drawn, sim[real]))
            forth = Router(those.lists.centres).ranks(rows, those.lists.of(best))
            back = Router(these.lists.centres).ranks(those.distinct.take(best), these.lists.of(drawn))
            shares = forth / len(those.lists.centres), back / len(these.lists.centres)
            self._shares.append(np.minimum(*shares))

    def enough(self) -> float:
        """Return the least share of the lists that finds the target, and a standard error of it more, both ways."""
        least = []
        for shares in filter(len, self._shares):
            wanted = min(1.0, TARGET + float(np.sqrt(TARGET * (1 - TARGET) / len(shares))))
            at = min(len(shares) - 1, int(np.ceil(wanted * len(shares))) - 1)
            least.append(float(np.sort(shares)[at]))
        return min(1.0, max(least, default=1.0))

    def recall(self, fwd: TopK, bwd: TopK) -> dict[str, dict[str, float]]:
        """Return the share of the samples' neighbours found, by similarity, so that a tie counts as found."""
        out = {}
        for name, best, (drawn, sim) in zip(("forward", "backward"), (fwd, bwd), self._drawn, strict=True):
            at_1, at_k = shares_of(best.sim[drawn], sim)
            out[name] = {"at_1": at_1, "at_k": at_k, "sample": len(drawn)}
        return out


def _united(best: TopK, back: TopK, order: NDArray[np.int64]) -> TopK:
    """Merge into the k best of all rows those of the rows in `order`; a pair in both counts once."""
    for start in range(0, len(order), _MERGE_ROWS):
        part = slice(start, start + _MERGE_ROWS)
        rows, sim, ids = order[part], back.sim[part], back.id[part]
        seen = (ids[:, :, None] == best.id[rows][:, None, :]).any(axis=2)
        best.add(rows, np.where(seen, np.float32(-np.inf), sim), np.where(seen, -1, ids))
    return best
