"""Many queries against an inverted file, list by list: each list is compared with all the rows that want it.

FAISS takes a query and goes through its lists; with as many queries as rows that reads every list hundreds of times,
one row against a few hundred. Here a list is read once for a block of queries and compared by the exact search's
kernel, so that the similarities are final, the neighbours of both sides come out of one pass, and a list that lies on
disk is read in one piece. (The idea is that of faiss.contrib.big_batch_search.)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.indexing.clusters import ROUTE_ROWS, Router
from bitextmine.run import Run
from bitextmine.search.engines.select import compiled_runs
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import best_first
from bitextmine.search.rows import VectorRows, Vectors
from bitextmine.search.topk import TopK

_MOST_ROWS, _LEAST_ROWS = 1 << 20, 1 << 12
_AT_ONCE = 1 << 14
_ALONE = SearchOptions(threads=1, names=("queries", "indexed vectors"))


@dataclass(frozen=True)
class Lists:
    """Rows parted into lists: list l has the rows order[bounds[l] : bounds[l + 1]], ascending.

    fetch(l) returns their vectors, in that order, C-contiguous.
    """

    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    fetch: Callable[[int], Vectors]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows in each list."""
        return np.diff(self.bounds)


def block_rows(dim: int, probes: int, k: int, threads: int, memory: int) -> int:
    """Return the number of queries to take at a time within `memory` bytes.

    It is a multiple of ROUTE_ROWS, so that the lists of a row do not depend on the memory.
    """
    each = 6 * dim + 24 * probes + 24 * k * (threads + 1)
    return max(_LEAST_ROWS, min(_MOST_ROWS, memory // each)) // ROUTE_ROWS * ROUTE_ROWS


@dataclass(frozen=True)
class Pass:
    """A search of queries in the `probes` lists whose centres are nearest to each, for k neighbours.

    Attributes:
        queries: the rows to search for.
        lists: the rows to search in.
        centres: of the lists, float32 (lists, d).
        probes: lists per query.
        k: neighbours.
        both: also find the k best queries for each listed row, among those that its list was compared with.
        forward: the queries are the rows of x, not y, in a search of both sides.
        listed: the distinct rows that `lists` numbers, in a search of both sides.
    """

    queries: VectorRows
    lists: Lists
    centres: NDArray[np.float32]
    probes: int
    k: int
    both: bool = True
    forward: bool = True
    listed: VectorRows | None = None


def search_lists(
    which: Pass, run: Run, progress: Callable[[int], object] | None = None
) -> tuple[TopK, TopK | None]:
    """Return the k best rows for each query of a pass; the memory and threads of `run` do not change them.

    Similarities are exact, order and ties as in `search_both`. `progress` is called with the number of queries done.

    Returns:
        The queries' neighbours, with row numbers as in lists.order; those of the listed rows, in the order of
        lists.order, with query numbers.
    """
    queries, lists, k = which.queries, which.lists, which.k
    router = Router(which.centres, which.probes)
    fwd = TopK.empty(len(queries), k)
    bwd = TopK.empty(len(lists.order), k) if which.both else None
    probes = min(which.probes, len(which.centres))
    step = block_rows(queries.dim, probes, k, run.thread_count, run.memory_budget)
    with in_threads(run.thread_count) as mapped:
        for start in range(0, len(queries), step):
            stop = min(start + step, len(queries))
            rows = queries.block(start, stop)
            share = None if progress is None else _Share(progress, stop - start, len(which.centres))
            block = Block(rows, start, lists, *router.route(rows), TopK.empty(len(rows), k), bwd)
            fwd.sim[start:stop], fwd.id[start:stop] = search_block(
                block, mapped, None if share is None else share.done
            )
            if share is not None:
                share.finish()
            queries.release(start, stop)
    number_rows(fwd, lists.order)
    return fwd, bwd


Map = Callable[[Callable[[int], int], list[int]], Iterable[int]]


@contextlib.contextmanager
def in_threads(threads: int) -> Iterator[Map]:
    """Return a `map` over `threads` threads."""
    if threads == 1:
        yield map
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def search_block(
    block: Block, mapped: Map, done: Callable[[int], object] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Compare queries (b, d) with their lists: (similarity (b, k), place among the listed rows (b, k)).

    `done` is called with each list's number.
    """
    wanted = np.flatnonzero((np.diff(block.begins) > 0) & (block.lists.sizes > 0)).tolist()
    for each in mapped(block.compare, wanted):
        if done is not None:
            done(each)
    return block.found()


def number_rows(best: TopK, order: NDArray[np.int64]) -> None:
    """Replace places among the listed rows by the rows' own numbers, in `order`; ties go to the lowest."""
    known = best.id >= 0
    best.id[known] = order[best.id[known]]
    _settle(best)


@dataclass
class Block:
    """Queries to compare with their lists: the state shared by the threads, and the results of each.

    Attributes:
        queries: (b, d).
        start: number of the first query; queries in `bwd` have lower ones.
        lists: the listed rows.
        at: the queries of each list (`Router.route`).
        begins: where each list's queries begin in `at`.
        known: the k best so far of each query; their ids are none of the places in `lists`.
        bwd: the k best so far of each listed row, which are updated.
    """

    queries: Vectors
    start: int
    lists: Lists
    at: NDArray[np.int32]
    begins: NDArray[np.int64]
    known: TopK
    bwd: TopK | None

    def __post_init__(self) -> None:
        self._local = threading.local()
        self._states: list[TopK] = []
        self._compiled = compiled_runs(self.queries.shape[1])

    def compare(self, number: int) -> int:
        """Compare list `number` with its queries.

        Threads share no list, and each has its own state of the queries, so that the order does not matter.
        """
        state: TopK | None = getattr(self._local, "state", None)
        if state is None:
            state = self._local.state = TopK(self.known.sim.copy(), self.known.id.copy())
            self._states.append(state)
        a, b = int(self.lists.bounds[number]), int(self.lists.bounds[number + 1])
        cols = self.lists.fetch(number)
        bwd = None if self.bwd is None else TopK(self.bwd.sim[a:b], self.bwd.id[a:b])
        first, last = int(self.begins[number]), int(self.begins[number + 1])
        for begin in range(first, last, _AT_ONCE):
            at = self.at[begin : min(begin + _AT_ONCE, last)]
            fwd = TopK(state.sim[at], state.id[at])
            self._products(self.queries[at], cols, fwd, bwd, a, at)
            state.sim[at], state.id[at] = fwd.sim, fwd.id
        return number

    def _products(
        self, rows: Vectors, cols: Vectors, fwd: TopK, bwd: TopK | None, base: int, at: NDArray[np.int32]
    ) -> None:
        x, y = VectorRows(rows, rows.dtype), VectorRows(cols, cols.dtype)
        if self._compiled:
            from bitextmine.search.engines.compiled import FusedSearch

            # Queries of this block are numbered from its start on, above all that came before: ids stay comparable
            # until the numbers within the selection become those of the queries.
            first = self.start if bwd is None or not len(bwd.id) else self._after(bwd)
            engine = FusedSearch(x, y, self.known.k, _ALONE, 1 << 62, (first, base))
            engine.block(0, len(rows), fwd, bwd)
            if bwd is not None:
                new = bwd.id >= first
                bwd.id[new] = self.start + at[bwd.id[new] - first]
            return
        from bitextmine.search.engines.blocks import BlockSearch

        part, back = TopK.empty(len(rows), self.known.k), TopK.empty(len(cols), self.known.k)
        BlockSearch(x, y, memory=1 << 30).block(0, len(rows), part, None if bwd is None else back)
        row, place = np.nonzero(part.id >= 0)
        fwd.merge(row, part.id[row, place] + base, part.sim[row, place])
        if bwd is not None:
            col, place = np.nonzero(back.id >= 0)
            bwd.merge(col, self.start + at[back.id[col, place]].astype(np.int64), back.sim[col, place])

    def _after(self, bwd: TopK) -> int:
        return max(self.start, int(bwd.id.max()) + 1)

    def found(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the queries' neighbours, merged from all threads."""
        if not self._states:
            return self.known.sim, self.known.id
        if len(self._states) == 1:
            return self._states[0].sim, self._states[0].id
        sim, ids = np.empty_like(self._states[0].sim), np.empty_like(self._states[0].id)
        for start in range(0, len(sim), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            sim[part], ids[part] = best_first(
                np.concatenate([s.sim[part] for s in self._states], axis=1),
                np.concatenate([s.id[part] for s in self._states], axis=1),
                self.known.k,
            )
        return sim, ids


class _Share:
    """Progress in queries, reported list by list."""

    def __init__(self, progress: Callable[[int], object], queries: int, lists: int) -> None:
        self._progress, self._queries, self._lists, self._told = progress, queries, max(1, lists), 0

    def done(self, number: int) -> None:
        so_far = self._queries * (number + 1) // self._lists
        if so_far - self._told > self._queries // 100:
            self._progress(so_far - self._told)
            self._told = so_far

    def finish(self) -> None:
        self._progress(self._queries - self._told)
        self._told = self._queries


def _settle(best: TopK) -> None:
    tied = np.flatnonzero(((best.sim[:, 1:] == best.sim[:, :-1]) & (best.id[:, 1:] >= 0)).any(axis=1))
    if len(tied):
        best.sim[tied], best.id[tied] = best_first(best.sim[tied], best.id[tied], best.k)
