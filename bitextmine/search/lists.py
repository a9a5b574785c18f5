"""Inverted lists: centres of the lists, the lists nearest to a row, and many queries against them, list by list.

FAISS takes a query and goes through its lists; with as many queries as rows that reads every list hundreds of times,
one row against a few hundred. Here a list is read once for a block of queries and compared by the exact search's
kernel, so that the similarities are final, the neighbours of both sides come out of one pass, and a list that lies on
disk is read in one piece. (The idea is that of faiss.contrib.big_batch_search.)
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.run import Run
from bitextmine.search.exact import search_one
from bitextmine.search.fused import FusedSearch, Map, compiled_runs, in_threads
from bitextmine.search.neighbours import TopK, best_first
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import VectorRows, Vectors

ROUNDS = 8
_MOST_ROWS, _LEAST_ROWS = 1 << 20, 1 << 12
_AT_ONCE = 1 << 14
_ALONE = SearchOptions(threads=1, names=("queries", "indexed vectors"))


def nearest_centre(vectors: Vectors, centres: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the centre with the highest inner product for each row (n, d), int64 (n,); ties go to the lower one.

    Our search takes a tenth of the time of FAISS's own assignment.
    """
    return search_one(vectors, _alike(centres, vectors), 1)[1][:, 0]


def _alike(centres: NDArray[np.float32], vectors: Vectors) -> Vectors:
    return centres.astype(np.float16) if vectors.dtype == np.float16 else centres


def find_centres(vectors: Vectors, count: int, *, seed: int, rounds: int = ROUNDS) -> NDArray[np.float32]:
    """Return `count` centres, float32 (count, d) of length 1, by spherical k-means (Dhillon and Modha 2001).

    Begins with `count` of the n >= count rows, drawn with `seed`; a centre that loses all its rows takes half of
    another's (faiss.contrib.clustering.reassign_centroids).
    """
    from faiss.contrib import clustering

    reassign: Any = clustering.reassign_centroids
    random = np.random.RandomState(seed)  # what reassign_centroids() draws with
    centres = _unit(vectors[np.sort(random.choice(len(vectors), count, replace=False))].astype(np.float32))
    for _ in range(rounds):
        of = nearest_centre(vectors, centres)
        order = np.argsort(of, kind="stable")
        begins = np.flatnonzero(np.diff(of[order], prepend=-1))
        sizes = np.bincount(of, minlength=count)
        sums = np.zeros((count, vectors.shape[1]), dtype=np.float32)
        for start, stop in zip(begins, np.append(begins[1:], len(order)), strict=True):
            members = order[start:stop]
            sums[of[members[0]]] = vectors[members].sum(axis=0, dtype=np.float32)
        reassign(sizes, sums, random)
        centres = _unit(sums)
    return centres


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(length > 0, length, 1)).astype(np.float32)


@dataclass(frozen=True)
class Lists:
    """Rows parted into lists: list l has the rows order[bounds[l] : bounds[l + 1]], ascending.

    `centres` are those of the lists, float32 (lists, d); fetch(l) returns the vectors of list l, in that order,
    C-contiguous.
    """

    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    centres: NDArray[np.float32]
    fetch: Callable[[int], Vectors]

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lists of some rows, -1 for a row that is in none."""
        lists = np.full(int(max(self.order.max(initial=-1), rows.max(initial=-1))) + 1, -1, dtype=np.int64)
        lists[self.order] = np.repeat(np.arange(len(self.centres)), np.diff(self.bounds))
        return lists[rows]


def ranks(rows: Vectors, centres: NDArray[np.float32], lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of lists to search, nearest first, until the given one of each row (b, d) is among them.

    A list of -1 is never found: infinity.
    """
    scores = rows.astype(np.float32) @ centres.T
    own = scores[np.arange(len(lists)), np.maximum(lists, 0)]
    return np.where(lists < 0, np.inf, (scores >= own[:, None]).sum(axis=1))


def queries_by_list(
    rows: Vectors, centres: NDArray[np.float32], probes: int, options: SearchOptions
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows (b, d) that go to each list, list by list, and where each list begins there, (lists + 1,).

    A row goes to the `probes` lists whose centres are nearest.
    """
    from scipy.sparse import csr_matrix

    _, ids = search_one(rows, _alike(centres, rows), probes, options)
    by_row: Any = csr_matrix(
        (np.ones(ids.size, np.int8), ids.ravel(), np.arange(0, ids.size + 1, probes)),
        (len(rows), len(centres)),
    )
    by_list = by_row.tocsc()
    return by_list.indices.astype(np.int32, copy=False), by_list.indptr.astype(np.int64)


def search_lists(
    queries: VectorRows, lists: Lists, probes: int, k: int, run: Run, progress: Progress = silent
) -> tuple[TopK, TopK]:
    """Return the k best rows for each query, among those of the `probes` lists whose centres are nearest to it.

    Also returns the k best queries for each listed row, among those that its list was compared with. Similarities are
    exact, order and ties as in `search_both`. The memory and threads of `run` do not change the result. `progress` is
    called with the number of queries done.

    Returns:
        The queries' neighbours, with row numbers as in lists.order, and those of the listed rows, in that order, with
        query numbers.
    """
    probes = min(probes, len(lists.centres))
    routing = SearchOptions(threads=run.threads)
    fwd, bwd = TopK.empty(len(queries), k), TopK.empty(len(lists.order), k)
    each = 6 * queries.dim + 24 * probes + 24 * k * (run.thread_count + 1)  # bytes
    step = max(_LEAST_ROWS, min(_MOST_ROWS, run.memory_budget // each))
    with in_threads(run.thread_count) as mapped:
        for start in range(0, len(queries), step):
            stop = min(start + step, len(queries))
            rows = queries.block(start, stop)
            by_list = queries_by_list(rows, lists.centres, probes, routing)
            best = _Block(rows, start, lists, *by_list, k, bwd).search(mapped, progress)
            fwd.sim[start:stop], fwd.id[start:stop] = best.sim, best.id
    # Ids are places among the listed rows until here; numbered as rows, ties may stand in another order.
    there = fwd.id >= 0
    fwd.id[there] = lists.order[fwd.id[there]]
    tied = np.flatnonzero(((fwd.sim[:, 1:] == fwd.sim[:, :-1]) & (fwd.id[:, 1:] >= 0)).any(axis=1))
    fwd.sim[tied], fwd.id[tied] = best_first(fwd.sim[tied], fwd.id[tied], k)
    return fwd, bwd


@dataclass
class _Block:
    """Queries (b, d) from number `start` on, to compare with their lists, which `queries_by_list` gives.

    `bwd`, the k best so far of each listed row among the queries before them, is updated.
    """

    queries: Vectors
    start: int
    lists: Lists
    at: NDArray[np.int32]
    begins: NDArray[np.int64]
    k: int
    bwd: TopK

    def __post_init__(self) -> None:
        self._local, self._states = threading.local(), list[TopK]()
        self._compiled = compiled_runs(self.queries.shape[1])

    def search(self, mapped: Map, progress: Progress = silent) -> TopK:
        """Return the neighbours of the queries, as places among the listed rows; `progress` counts queries."""
        wanted = np.flatnonzero((np.diff(self.begins) > 0) & (np.diff(self.lists.bounds) > 0)).tolist()
        count = scaled(progress, len(wanted), len(self.queries))
        for _ in mapped(self._compare, wanted):
            count(1)
        best, *rest = self._states or [TopK.empty(len(self.queries), self.k)]
        for start in range(0, len(best.sim), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            for state in rest:
                best.add(part, state.sim[part], state.id[part])
        return best

    def _compare(self, number: int) -> int:
        """Compare list `number` with its queries.

        Threads share no list, and each has its own state of the queries, so that the order does not matter.
        """
        state: TopK | None = getattr(self._local, "state", None)
        if state is None:
            state = self._local.state = TopK.empty(len(self.queries), self.k)
            self._states.append(state)
        a, b = int(self.lists.bounds[number]), int(self.lists.bounds[number + 1])
        cols = self.lists.fetch(number)
        bwd = TopK(self.bwd.sim[a:b], self.bwd.id[a:b])
        first, last = int(self.begins[number]), int(self.begins[number + 1])
        for begin in range(first, last, _AT_ONCE):
            at = self.at[begin : min(begin + _AT_ONCE, last)]
            fwd = TopK(state.sim[at], state.id[at])
            self._products(self.queries[at], cols, fwd, bwd, a, at)
            state.sim[at], state.id[at] = fwd.sim, fwd.id
        return number

    def _products(
        self, rows: Vectors, cols: Vectors, fwd: TopK, bwd: TopK, base: int, at: NDArray[np.int32]
    ) -> None:
        x, y = VectorRows(rows, rows.dtype), VectorRows(cols, cols.dtype)
        if self._compiled:
            # Queries of this block are numbered from its start on, above all that came before: ids stay comparable
            # until the numbers within the selection become those of the queries.
            first = max(self.start, int(bwd.id.max(initial=-1)) + 1)
            engine = FusedSearch(x, y, self.k, _ALONE, 1 << 62, (first, base))
            engine.block(0, len(rows), fwd, bwd)
            new = bwd.id >= first
            bwd.id[new] = self.start + at[bwd.id[new] - first]
            return
        from bitextmine.search.blocks import BlockSearch

        part, back = TopK.empty(len(rows), self.k), TopK.empty(len(cols), self.k)
        BlockSearch(x, y, _ALONE, 1 << 30).block(0, len(rows), part, back)
        fwd.add(slice(None), part.sim, np.where(part.id < 0, -1, part.id + base))
        bwd.add(slice(None), back.sim, np.where(back.id < 0, -1, self.start + at[back.id]))


def scaled(progress: Progress, steps: int, total: int) -> Progress:
    """Return a progress of `steps` that reports to one of `total`."""
    done = 0

    def report(count: int) -> None:
        nonlocal done
        progress(total * (done + count) // steps - total * done // steps)
        done += count

    return report
