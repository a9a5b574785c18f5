"""Search through indexes: similarities are exact, some neighbours are missed; the share that is found is measured."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.exact import Folded, search_one
from bitextmine.search.faiss_index import Index
from bitextmine.search.lists import Lists, ranks, search_lists
from bitextmine.search.neighbours import Neighbours, TopK, best_first
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import rescore
from bitextmine.search.rows import VectorRows, Vectors, check_pair, distinct_rows, unfold

log = logging.getLogger(__name__)

TARGET = 0.99  # the recall@1 to reach
K = 4  # neighbours that the recall of an index counts
_SAMPLE = 2000  # rows of each side that the recall of a search in both directions is measured on
_MERGE_ROWS = 1 << 15
_MOST_RESCORED = 64  # candidates per neighbour
_LITTLE = 0.002


@dataclass(frozen=True)
class Indexed:
    """Vectors (n, d) with their index; BitextmineError if that is of others.

    `rows`: for each vector that the index was built from its row in `vectors`, or -1; None: they are the same.
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

        A flat index is searched by `search_one`; of any other, several times k candidates are rescored. Missing
        neighbours are -1 with -inf. `progress` is called with the number of queries done.
        """
        run, index, pool = run or Run(), self.index, self.vectors
        check_pair(queries, pool, "queries", "indexed vectors")
        if k < 1:
            raise BitextmineError(f"k must be at least 1, found {k}")
        if index.exact and not index.on_gpu:
            options = SearchOptions(memory=run.memory, threads=run.threads)
            return search_one(queries, pool, k, options, progress=progress)
        ids = index.candidates(queries, min(max(1, index.rows), index.factor * k + 16), progress)
        if self.rows is not None:
            ids = np.where(ids < 0, -1, self.rows[ids])
        groups = self.distinct.groups
        if groups is None:
            return rescore(queries, pool, ids, k)
        ids = np.where(ids < 0, -1, groups.first[groups.of[ids]])
        sim, ids = rescore(queries, pool, ids, k)
        return unfold(sim, self.numbers(ids), None, groups)

    @cached_property
    def distinct(self) -> VectorRows:
        """Return the distinct vectors."""
        return distinct_rows(self.vectors, "indexed vectors")[0]

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of rows among the distinct vectors, -1 for none."""
        groups = self.distinct.groups
        return rows if groups is None else np.where(rows < 0, -1, groups.of[rows])

    @cached_property
    def lists(self) -> Lists:
        """Return the lists of an inverted file, of the distinct vectors by number."""
        ids, sizes = self.index.list_ids()
        row = self.numbers(ids if self.rows is None else self.rows[ids])
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
) -> tuple[Neighbours, list[Recall]]:
    """Return the neighbours of `search_both`, found by the indexes of both sides: some may be missed.

    With two inverted files, x's rows are compared with the lists of y that are near them and y's rows with the lists of
    x, and both sides learn from both passes: a true neighbour is missed only if neither finds the other. The number of
    lists is measured on a sample of each side with its exact neighbours, so that TARGET is reached in either
    direction: a few dozen lists instead of hundreds for one pass. Other indexes, and those on GPUs, are asked one by
    one as they were tuned.

    `progress` is called with the queries done, of n + m. Also returns the recall of both directions on these samples;
    of other indexes none.
    """
    on_gpu = x.index.on_gpu or y.index.on_gpu
    if x.index.inverted is None or y.index.inverted is None or on_gpu:
        forward = y.search(x.vectors, k, run=run, progress=progress)
        return Neighbours(*forward, *x.search(y.vectors, k, run=run, progress=progress)), []
    check_pair(x.vectors, y.vectors, "source vectors", "target vectors")
    random = np.random.default_rng(1)
    samples = [_sample(these, those, k, random) for these, those in ((x, y), (y, x))]
    share = max(sample.share for sample in samples)
    in_y, in_x = (max(1, round(share * len(side.lists.centres))) for side in (y, x))
    fwd_here, bwd_there = search_lists(x.distinct, y.lists, in_y, k, run, progress)
    bwd_here, fwd_there = search_lists(y.distinct, x.lists, in_x, k, run, progress)
    for side in (x, y):
        side.index.check_mapped()
    fwd, bwd = _united(fwd_here, fwd_there, x.lists.order), _united(bwd_here, bwd_there, y.lists.order)
    recalls = [
        _recall(best.sim[sample.rows], sample.sim) for sample, best in zip(samples, (fwd, bwd), strict=True)
    ]
    for way, recall, lists, side in zip(("source", "target"), recalls, (in_y, in_x), (y, x), strict=True):
        log.info(
            "search: %d of %d lists for each %s line; found on a sample of %s: %.2f%% of the nearest, %.2f%% of the %d "
            "nearest",
            *(lists, len(side.lists.centres), way, f"{recall.sample:,}"),
            *(100 * recall.at_1, 100 * recall.at_k, k),
        )
    return Folded(x.distinct, y.distinct).neighbours(fwd, bwd), recalls


class _Sample(NamedTuple):
    """Rows (s,) of a side, the exact similarities (s, k) of their neighbours, and the share of lists that finds these.

    It is the least share that reaches TARGET one way or the other, and a standard error of it more.
    """

    rows: NDArray[np.int64]
    sim: NDArray[np.float32]
    share: float


def _sample(x: Indexed, y: Indexed, k: int, random: np.random.Generator) -> _Sample:
    drawn = np.sort(random.permutation(len(x.distinct))[:_SAMPLE])
    rows = x.distinct.take(drawn)
    sim, ids = search_one(rows, y.vectors, k)
    ids = y.numbers(ids)
    real = (ids[:, 0] >= 0) & (sim[:, 0] > 0)
    drawn, rows, best = drawn[real], rows[real], ids[real, 0]
    if not len(drawn):
        return _Sample(drawn, sim[real], 1.0)
    forth = ranks(rows, y.lists.centres, y.lists.of(best))
    back = ranks(y.distinct.take(best), x.lists.centres, x.lists.of(drawn))
    shares = np.minimum(forth / len(y.lists.centres), back / len(x.lists.centres))
    wanted = min(1.0, TARGET + float(np.sqrt(TARGET * (1 - TARGET) / len(drawn))))
    share = float(np.sort(shares)[int(np.ceil(wanted * len(drawn))) - 1])
    return _Sample(drawn, sim[real], min(1.0, share))


def _united(best: TopK, back: TopK, order: NDArray[np.int64]) -> TopK:
    """Merge into the k best of all rows those of the rows in `order`; a pair in both counts once."""
    for start in range(0, len(order), _MERGE_ROWS):
        part = slice(start, start + _MERGE_ROWS)
        rows, sim, ids = order[part], back.sim[part], back.id[part]
        seen = (ids[:, :, None] == best.id[rows][:, None, :]).any(axis=2)
        best.add(rows, np.where(seen, np.float32(-np.inf), sim), np.where(seen, -1, ids))
    return best


# --- the recall of an index, and the effort that reaches a target ---


@dataclass(frozen=True)
class Recall:
    """The share of queries whose best neighbour was found (at_1), and of the k best (at_k), by similarity."""

    at_1: float
    at_k: float
    k: int
    sample: int


def _recall(sim: NDArray[np.float32], exact: NDArray[np.float32]) -> Recall:
    """Return the recall of similarities (s, k) against the exact ones; a tie counts as found."""
    there = ~np.isneginf(exact)
    worst = np.where(there, exact, np.inf).min(axis=1, initial=np.inf)
    hits = np.minimum((sim >= worst[:, None]).sum(axis=1), there.sum(axis=1)).sum()
    has, total = there[:, 0], int(there.sum())
    at_1 = float((sim[has, 0] >= exact[has, 0]).mean()) if has.any() else 1.0
    return Recall(at_1, float(hits / total) if total else 1.0, exact.shape[1], len(exact))


@dataclass(frozen=True)
class OwnRows:
    """Rows of a pool as queries, with their exact neighbours there, themselves left out.

    Shapes: vectors (s, d), own (s,), the numbers of the rows, sim and ids (s, k), -inf and -1 if missing.
    """

    vectors: Vectors
    own: NDArray[np.int64]
    sim: NDArray[np.float32]
    ids: NDArray[np.int64]


def draw(pool: Vectors, k: int = K, size: int = 1000) -> OwnRows:
    """Return a seeded sample of the pool's rows; zero rows, which have only ties, are not drawn."""
    drawn = np.sort(np.random.default_rng(1).permutation(len(pool))[:size])
    own = drawn[(pool[drawn] != 0).any(axis=1)].astype(np.int64)
    vectors = np.ascontiguousarray(pool[own])
    return OwnRows(vectors, own, *_without(*search_one(vectors, pool, k + 1), own, k))


def measure(indexed: Indexed, sample: OwnRows) -> Recall:
    """Return the recall of the index on a sample, rescoring included."""
    k = sample.sim.shape[1]
    return _recall(_without(*indexed.search(sample.vectors, k + 1), sample.own, k)[0], sample.sim)


def tune(indexed: Indexed, sample: OwnRows, target: float = TARGET) -> Recall:
    """Raise nprobe until the recall@1 on the sample reaches the target.

    An inverted file of the vectors as they are gets the least nprobe, by the lists that the neighbours are in. For
    other indexes nprobe is doubled, and where that no longer helps, more candidates are rescored.
    """
    index = indexed.index
    if index.inverted is not None and index.lossless and len(sample.own):
        lists, ids = indexed.lists, indexed.numbers(sample.ids)
        rank = np.stack([ranks(sample.vectors, lists.centres, lists.of(near)) for near in ids.T], axis=1)
        wanted = np.sort(rank[:, 0])[int(np.ceil(target * len(rank))) - 1]
        nprobe = int(min(wanted, len(lists.centres)))
        index.set_effort(nprobe)
        return _recall(np.where(rank <= nprobe, sample.sim, -np.inf).astype(np.float32), sample.sim)
    recall = measure(indexed, sample)
    while recall.at_1 < target:
        before, (nprobe, most) = recall, index.effort()
        if raised := nprobe < most:
            index.set_effort(min(2 * nprobe, most))
            recall = measure(indexed, sample)
        helps = raised and recall.at_1 - before.at_1 >= _LITTLE
        if recall.at_1 < target and not helps:
            if not index.lossless and index.factor < _MOST_RESCORED:
                index.factor *= 2
                recall = measure(indexed, sample)
            elif not raised:
                break
    return recall


def _without(
    sim: NDArray[np.float32], ids: NDArray[np.int64], own: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the k best of each row, less the row itself."""
    mine = ids == own[:, None]
    return best_first(np.where(mine, -np.inf, sim).astype(np.float32), np.where(mine, -1, ids), k)
