"""Search in both directions through the indexes of both sides: a pair that either index finds is compared once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.indexing.clusters import Router
from bitextmine.indexing.faiss_index import Index
from bitextmine.indexing.lists import Lists, search_lists
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import best_first
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_pair, unfold
from bitextmine.search.topk import TopK
from bitextmine.system import budget

log = logging.getLogger(__name__)

__all__ = ["IndexedNeighbours", "Pass", "Searcher", "search_both_indexed"]

_MERGE_ROWS = 1 << 15
_NEVER = 1 << 30


@dataclass(frozen=True)
class IndexedNeighbours(Neighbours):
    """Neighbours found through indexes; `how` tells the kind of search and its measured recall."""

    how: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pass:
    """One of two passes: the rows of one side against the `probes` nearest lists of the other, for k neighbours.

    `forward` is True if x's rows are the queries. Groups are of identical rows.
    """

    forward: bool
    queries: VectorRows
    query_groups: Groups | None
    listed_groups: Groups | None
    lists: Lists
    centres: NDArray[np.float32]
    probes: int
    k: int


class Searcher(Protocol):
    """Another place than this process that compares lists."""

    def exact(self, k: int, progress: Callable[[int], object] | None) -> Neighbours:
        """Return the result of `search_both` for both sides."""

    def lists(self, which: Pass, progress: Callable[[int], object] | None) -> tuple[TopK, TopK | None]:
        """Return the result of `search_lists` for a pass, in both directions."""


def search_both_indexed(
    x: Vectors,
    y: Vectors,
    x_index: Index,
    y_index: Index,
    k: int,
    *,
    x_rows: NDArray[np.int64] | None = None,
    y_rows: NDArray[np.int64] | None = None,
    target: float = 0.99,
    sample: int = 2000,
    seed: int = 1,
    memory: int | None = None,
    progress: Callable[[int], object] | None = None,
    searcher: Searcher | None = None,
) -> IndexedNeighbours:
    """Return what `search_both` does, found by the indexes of both sides: neighbours may be missed.

    With two inverted files, x's rows are compared with the lists of y that are near them and y's rows with the lists of
    x, and both sides learn from both passes: a true neighbour is missed only if neither finds the other. The number of
    lists is measured on `sample` rows of each side with their exact neighbours, so that `target` of the best neighbours
    are found in either direction: a few dozen lists instead of hundreds for one pass. Two flat indexes mean exact
    search; otherwise, and on GPUs, each index is asked as it was tuned.

    Args:
        x: one side, (n, d).
        y: the other, (m, d).
        x_index: the index of x.
        y_index: the index of y.
        k: neighbours per row.
        x_rows: as `rows` in `Index.search`.
        y_rows: likewise.
        target: recall@1 to reach.
        sample: rows to measure it on.
        seed: of the sample.
        memory: bytes to take (default: half of what is free).
        progress: called with the queries done, of n + m.
        searcher: compares rows with lists (None: this process); the result is the same.
    """
    there = x_index.on_gpu or y_index.on_gpu
    if x_index.exact and y_index.exact and not there:
        told = _twice(progress, len(x), len(y))
        if searcher is None:
            found = search_both(x, y, k, SearchOptions(memory=memory), progress=told)
        else:
            found = searcher.exact(k, told)
        return IndexedNeighbours(
            found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id, {"search": "exact"}
        )
    if x_index.inverted is None or y_index.inverted is None or there:
        if searcher is not None:
            log.info("search: such indexes are asked by this machine alone")
        fwd_sim, fwd_id = y_index.search(x, y, k, rows=y_rows, progress=progress, memory=memory)
        bwd_sim, bwd_id = x_index.search(y, x, k, rows=x_rows, progress=progress, memory=memory)
        return IndexedNeighbours(fwd_sim, fwd_id, bwd_sim, bwd_id, {"search": "each index"})
    dtype = check_pair(x, y, "source vectors", "target vectors")
    limit = budget(memory)
    sides = []
    for vectors, index, rows in ((x, x_index, x_rows), (y, y_index, y_rows)):
        index.check_rows(len(vectors) if rows is None else len(rows))
        groups = index.fold(vectors)
        first = None if groups is None else groups.first
        sides.append((VectorRows(vectors, dtype, first), groups, index.lists(vectors, rows), index.centres))
    (xs, x_groups, x_lists, x_centres), (ys, y_groups, y_lists, y_centres) = sides
    probes = _Probes(xs, ys, x_groups, y_groups, x_lists, y_lists, x_centres, y_centres, k, sample, seed)
    share = probes.enough(target)
    in_y, in_x = (max(1, round(share * len(c))) for c in (y_centres, x_centres))
    passes = (
        Pass(True, xs, x_groups, y_groups, y_lists, y_centres, in_y, k),
        Pass(False, ys, y_groups, x_groups, x_lists, x_centres, in_x, k),
    )
    (one, back), (other, forth) = (_passed(which, limit, progress, searcher) for which in passes)
    assert back is not None and forth is not None
    for index in (x_index, y_index):
        index.check_mapped()
    fwd = _united(one, _by_row(forth, x_lists, len(xs)))
    del one, forth
    bwd = _united(other, _by_row(back, y_lists, len(ys)))
    del other, back
    recall = probes.recall(fwd, bwd)
    how = {
        "search": "lists of both",
        "nprobe": {"source": in_x, "target": in_y},
        "lists": {"source": len(x_centres), "target": len(y_centres)},
        "recall": recall,
    }
    forward, backward = recall["forward"], recall["backward"]
    log.info(
        "search: %d of %d and %d of %d lists; found on samples of %s and %s lines: %.2f%% and %.2f%% of the nearest, "
        "%.2f%% and %.2f%% of the %d nearest",
        in_y,
        len(y_centres),
        in_x,
        len(x_centres),
        f"{forward['sample']:,}",
        f"{backward['sample']:,}",
        100 * forward["at_1"],
        100 * backward["at_1"],
        100 * forward["at_k"],
        100 * backward["at_k"],
        k,
    )
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, x_groups, y_groups)
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, y_groups, x_groups)
    return IndexedNeighbours(fwd_sim, fwd_id, bwd_sim, bwd_id, how)


def _passed(
    which: Pass, memory: int, progress: Callable[[int], object] | None, searcher: Searcher | None
) -> tuple[TopK, TopK | None]:
    if searcher is not None:
        return searcher.lists(which, progress)
    return search_lists(
        which.queries,
        which.lists,
        which.centres,
        which.probes,
        which.k,
        both=True,
        memory=memory,
        progress=progress,
    )


class _Probes:
    """A sample of both sides with its exact neighbours, to measure how near the right lists are."""

    def __init__(
        self,
        xs: VectorRows,
        ys: VectorRows,
        x_groups: Groups | None,
        y_groups: Groups | None,
        x_lists: Lists,
        y_lists: Lists,
        x_centres: NDArray[np.float32],
        y_centres: NDArray[np.float32],
        k: int,
        sample: int,
        seed: int,
    ) -> None:
        random = np.random.default_rng(seed)
        in_x, in_y = _list_of(x_lists, len(xs)), _list_of(y_lists, len(ys))
        self._drawn: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        shares: list[NDArray[np.float64]] = []
        for these, those, groups, forward in ((xs, ys, y_groups, True), (ys, xs, x_groups, False)):
            drawn = np.sort(random.permutation(len(these))[:sample])
            rows = _take(these, drawn)
            sim, found = search_one(rows, those.vectors, k)
            if groups is not None:
                found = np.where(found < 0, -1, groups.of[found])
            real = (found[:, 0] >= 0) & (sim[:, 0] > 0)
            drawn, rows, sim, found = drawn[real], rows[real], sim[real], found[real]
            best = found[:, 0]
            self._drawn.append((drawn, sim))
            partners = _take(those, best)
            sources, targets = (rows, partners) if forward else (partners, rows)
            of_x, of_y = (drawn, best) if forward else (best, drawn)
            one = _rank(sources, y_centres, in_y[of_y]) / len(y_centres)
            other = _rank(targets, x_centres, in_x[of_x]) / len(x_centres)
            shares.append(np.minimum(one, other))
        self._shares = shares

    def enough(self, target: float) -> float:
        """Return the least share of the lists that finds the target, and a standard error of it more, both ways."""
        found = []
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


def _list_of(lists: Lists, rows: int) -> NDArray[np.int64]:
    of = np.full(rows, -1, dtype=np.int64)
    of[lists.order] = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
    return of


def _rank(rows: Vectors, centres: NDArray[np.float32], lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of lists to search until the given one is among them."""
    router = Router(centres, 1)
    out = np.full(len(rows), float(_NEVER))
    for start in range(0, len(rows), 1024):
        scores = router.scores(rows[start : start + 1024])
        at = lists[start : start + 1024]
        own = scores[np.arange(len(at)), np.maximum(at, 0)]
        rank = (scores >= own[:, None]).sum(axis=1)
        out[start : start + 1024] = np.where(at >= 0, rank, float(_NEVER))
    return out


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
