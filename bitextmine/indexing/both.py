"""Search in both directions through the indexes of both sides: a pair that either index finds is compared once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.indexing.clusters import rank_lists
from bitextmine.indexing.faiss_index import Index
from bitextmine.indexing.lists import Lists, Pass, search_lists
from bitextmine.run import Run
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import best_first
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_pair, unfold
from bitextmine.search.topk import TopK

log = logging.getLogger(__name__)

_MERGE_ROWS = 1 << 15


@dataclass(frozen=True)
class Indexed:
    """One side of a search: vectors (n, d), their index, and `rows` as in `Index.search`."""

    vectors: Vectors
    index: Index
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Wanted:
    """The answer to a search: k neighbours per row, and the recall@1 to reach on a seeded sample of rows."""

    k: int
    target: float = 0.99
    sample: int = 2000
    seed: int = 1


@dataclass(frozen=True)
class IndexedNeighbours(Neighbours):
    """Neighbours found through indexes; `how` holds the kind of search and its measured recall."""

    how: dict[str, Any] = field(default_factory=dict)


class Searcher(Protocol):
    """Another place than this process that compares lists."""

    def exact(self, k: int, progress: Callable[[int], object] | None) -> Neighbours:
        """Return the result of `search_both` for both sides."""

    def lists(self, which: Pass, progress: Callable[[int], object] | None) -> tuple[TopK, TopK | None]:
        """Return the result of `search_lists` for a pass, in both directions."""


def search_both_indexed(
    x: Indexed,
    y: Indexed,
    wanted: Wanted,
    *,
    run: Run | None = None,
    progress: Callable[[int], object] | None = None,
    searcher: Searcher | None = None,
) -> IndexedNeighbours:
    """Return the neighbours of `search_both`, found by the indexes of both sides: some may be missed.

    With two inverted files, x's rows are compared with the lists of y that are near them and y's rows with the lists of
    x, and both sides learn from both passes: a true neighbour is missed only if neither finds the other. The number of
    lists is measured on a sample of each side with its exact neighbours, so that `wanted.target` of the best neighbours
    are found in either direction: a few dozen lists instead of hundreds for one pass. Two flat indexes mean exact
    search; otherwise, and on GPUs, each index is asked as it was tuned.

    Args:
        x: one side, n rows.
        y: the other, m rows.
        wanted: neighbours and recall.
        run: memory and threads.
        progress: called with the queries done, of n + m.
        searcher: compares rows with lists (None: this process); the result is the same.
    """
    run = run or Run()
    on_gpu = x.index.on_gpu or y.index.on_gpu
    if x.index.exact and y.index.exact and not on_gpu:
        progress = _twice(progress, len(x.vectors), len(y.vectors))
        if searcher is not None:
            found = searcher.exact(wanted.k, progress)
        else:
            options = SearchOptions(memory=run.memory, threads=run.threads)
            found = search_both(x.vectors, y.vectors, wanted.k, options, progress=progress)
        return IndexedNeighbours(
            found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id, {"search": "exact"}
        )
    if x.index.inverted is None or y.index.inverted is None or on_gpu:
        if searcher is not None:
            log.info("search: such indexes are asked by this machine alone")
        fwd, bwd = (
            that.index.search(
                this.vectors, that.vectors, wanted.k, rows=that.rows, progress=progress, run=run
            )
            for this, that in ((x, y), (y, x))
        )
        return IndexedNeighbours(*fwd, *bwd, {"search": "each index"})
    return _through_lists(x, y, wanted, searcher or _Here(run), progress)


@dataclass(frozen=True)
class _Here:
    """This process as a searcher of lists."""

    run: Run

    def lists(self, which: Pass, progress: Callable[[int], object] | None) -> tuple[TopK, TopK | None]:
        return search_lists(which, self.run, progress)


def _through_lists(
    x: Indexed,
    y: Indexed,
    wanted: Wanted,
    searcher: Searcher | _Here,
    progress: Callable[[int], object] | None,
) -> IndexedNeighbours:
    dtype = check_pair(x.vectors, y.vectors, "source vectors", "target vectors")
    source, target = _listed(x, dtype), _listed(y, dtype)
    sample = _Sample(source, target, wanted)
    share = sample.enough()
    in_y, in_x = (max(1, round(share * len(side.centres))) for side in (target, source))
    one, back = searcher.lists(source.against(target, in_y, wanted.k, forward=True), progress)
    other, forth = searcher.lists(target.against(source, in_x, wanted.k, forward=False), progress)
    assert back is not None
    assert forth is not None
    for side in (x, y):
        side.index.check_mapped()
    fwd = _united(one, _by_row(forth, source.lists, len(source.rows)))
    del one, forth
    bwd = _united(other, _by_row(back, target.lists, len(target.rows)))
    del other, back
    recall = sample.recall(fwd, bwd)
    how = {
        "search": "lists of both",
        "nprobe": {"source": in_x, "target": in_y},
        "lists": {"source": len(source.centres), "target": len(target.centres)},
        "recall": recall,
    }
    forward, backward = recall["forward"], recall["backward"]
    log.info(
        "search: %d of %d and %d of %d lists; found on samples of %s and %s lines: %.2f%% and %.2f%% of the nearest, "
        "%.2f%% and %.2f%% of the %d nearest",
        in_y,
        len(target.centres),
        in_x,
        len(source.centres),
        f"{forward['sample']:,}",
        f"{backward['sample']:,}",
        100 * forward["at_1"],
        100 * backward["at_1"],
        100 * forward["at_k"],
        100 * backward["at_k"],
        wanted.k,
    )
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, source.groups, target.groups)
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, target.groups, source.groups)
    return IndexedNeighbours(fwd_sim, fwd_id, bwd_sim, bwd_id, how)


@dataclass(frozen=True)
class _Listed:
    """One side's distinct rows, and the same rows in the lists of its index."""

    rows: VectorRows
    groups: Groups | None
    lists: Lists
    centres: NDArray[np.float32]

    def against(self, other: _Listed, probes: int, k: int, *, forward: bool) -> Pass:
        return Pass(self.rows, other.lists, other.centres, probes, k, forward=forward, listed=other.rows)


def _listed(side: Indexed, dtype: np.dtype[Any]) -> _Listed:
    index, vectors = side.index, side.vectors
    index.check_rows(len(vectors) if side.rows is None else len(side.rows))
    groups = index.fold(vectors)
    rows = VectorRows(vectors, dtype, None if groups is None else groups.first)
    return _Listed(rows, groups, index.lists(vectors, side.rows), index.centres)


class _Sample:
    """A sample of both sides with its exact neighbours, to measure how near the right lists are."""

    def __init__(self, x: _Listed, y: _Listed, wanted: Wanted) -> None:
        random = np.random.default_rng(wanted.seed)
        self._target = wanted.target
        self._drawn: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._shares: list[NDArray[np.float64]] = []
        for these, those in ((x, y), (y, x)):
            drawn = np.sort(random.permutation(len(these.rows))[: wanted.sample])
            rows = _take(these.rows, drawn)
            sim, found = search_one(rows, those.rows.vectors, wanted.k)
            if those.groups is not None:
                found = np.where(found < 0, -1, those.groups.of[found])
            real = (found[:, 0] >= 0) & (sim[:, 0] > 0)
            drawn, best = drawn[real], found[real, 0]
            self._drawn.append((drawn, sim[real]))
            one = rank_lists(rows[real], those.centres, _list_of(those)[best])
            other = rank_lists(_take(those.rows, best), these.centres, _list_of(these)[drawn])
            self._shares.append(np.minimum(one / len(those.centres), other / len(these.centres)))

    def enough(self) -> float:
        """Return the least share of the lists that finds the target, and a standard error of it more, both ways."""
        target, found = self._target, []
        for shares in self._shares:
            if len(shares):
                wanted = min(1.0, target + float(np.sqrt(target * (1 - target) / len(shares))))
                found.append(
                    float(np.sort(shares)[min(len(shares) - 1, int(np.ceil(wanted * len(shares))) - 1)])
                )
        return min(1.0, max(found, default=1.0))

    def recall(self, fwd: TopK, bwd: TopK) -> dict[str, dict[str, float]]:
        """Return the share of the samples' neighbours found, by similarity, so that a tie counts as found."""
        out = {}
        for name, best, (drawn, sim) in zip(("forward", "backward"), (fwd, bwd), self._drawn, strict=True):
            there = np.isfinite(sim)
            worst = np.where(there, sim, np.inf).min(axis=1, initial=np.inf)
            got = best.sim[drawn]
            at_k = np.minimum((got >= worst[:, None]).sum(axis=1), there.sum(axis=1)).sum()
            out[name] = {
                "at_1": float((got[:, 0] >= sim[:, 0]).mean()) if len(drawn) else 1.0,
                "at_k": float(at_k / max(1, there.sum())) if len(drawn) else 1.0,
                "sample": len(drawn),
            }
        return out


def _take(rows: VectorRows, at: NDArray[np.int64]) -> Vectors:
    which = at if rows.index is None else rows.index[at]
    return np.ascontiguousarray(rows.vectors[which], dtype=rows.dtype)


def _list_of(side: _Listed) -> NDArray[np.int64]:
    of = np.full(len(side.rows), -1, dtype=np.int64)
    of[side.lists.order] = np.repeat(np.arange(len(side.lists.sizes)), side.lists.sizes)
    return of


def _by_row(best: TopK, lists: Lists, rows: int) -> TopK:
    """Return a state in the order of the lists in the order of the rows."""
    out = TopK.empty(rows, best.k)
    out.sim[lists.order], out.id[lists.order] = best.sim, best.id
    return out


def _united(one: TopK, other: TopK) -> TopK:
    """Merge the k best of two states of the same rows into `one`; a pair in both counts once."""
    k = one.k
    for start in range(0, len(one.sim), _MERGE_ROWS):
        part = slice(start, start + _MERGE_ROWS)
        left, right = other.id[part], one.id[part]
        seen = (left[:, :, None] == right[:, None, :]).any(axis=2)
        sim = np.where(seen, np.float32(-np.inf), other.sim[part])
        ids = np.where(seen, -1, left)
        one.sim[part], one.id[part] = best_first(
            np.concatenate([one.sim[part], sim], axis=1), np.concatenate([right, ids], axis=1), k
        )
    return one


def _twice(progress: Callable[[int], object] | None, n: int, m: int) -> Callable[[int], object] | None:
    """Scale the progress of exact search over n rows to a bar of n + m."""
    if progress is None or not n:
        return progress
    done = 0

    def told(count: int) -> None:
        nonlocal done
        assert progress is not None
        progress((n + m) * (done + count) // n - (n + m) * done // n)
        done += count

    return told
