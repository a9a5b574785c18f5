"""Inverted lists: centres of the lists, the lists nearest to a row, and many queries against them, list by list.

FAISS takes a query and goes through its lists; with as many queries as rows that reads every list hundreds of times,
one row against a few hundred. Here a list is read once for a block of queries and compared by the exact search's
kernel, so that the similarities are final, the neighbours of both sides come out of one pass, and a list that lies on
disk is read in one piece. (The idea is that of faiss.contrib.big_batch_search.)
"""

import threading
import warnings
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
from bitextmine.search.options import SearchOptions, default_arithmetic
from bitextmine.search.rows import VectorRows, Vectors

ROUNDS = 8
# Rows whose products with the centres are made together. What is made together may decide the last bit of a product, so
# that blocks of queries begin at multiples of this.
ROUTE_ROWS = 2048
_MOST_ROWS, _LEAST_ROWS = 1 << 20, 1 << 12
_AT_ONCE = 1 << 14
_ALONE = SearchOptions(threads=1, names=("queries", "indexed vectors"))


def nearest_centre(vectors: Vectors, centres: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the centre with the highest inner product for each row (n, d), int64 (n,); ties go to the lower one.

    Our search takes a tenth of the time of FAISS's own assignment.
    """
    centres = centres.astype(np.float16) if vectors.dtype == np.float16 else centres
    return search_one(vectors, centres, 1)[1][:, 0]


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


class Router:
    """Finds the `probes` lists whose centres are nearest to a row.

    Products are made in this processor's fastest arithmetic; only lists at the edge, with two centres about as near,
    depend on it.
    """

    def __init__(self, centres: NDArray[np.float32], probes: int) -> None:
        import torch  # here, and not above: most builds of an index route nothing, and loading it takes seconds

        self._dtype = getattr(torch, default_arithmetic("cpu"))
        self._centres = torch.from_numpy(np.ascontiguousarray(centres)).to(self._dtype).T
        self._lists = len(centres)
        self._probes = min(probes, self._lists)

    def scores(self, rows: Vectors) -> NDArray[np.float32]:
        """Return the products of rows (b, d) with the centres, float32 (b, lists)."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a read-only map is only read
            block = torch.from_numpy(np.ascontiguousarray(rows)).to(self._dtype)
        out: NDArray[np.float32] = (block @ self._centres).float().numpy()
        return out

    def near(self, rows: Vectors) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the lists of rows (b, d): all of them, row after row and ascending; the number for each row, (b,).

        A row has `probes` lists, or more if several centres are equally near.
        """
        found: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.int64]] = []
        for start in range(0, len(rows), ROUTE_ROWS):
            scores = self.scores(rows[start : start + ROUTE_ROWS])
            if self._probes < self._lists:
                at = self._lists - self._probes
                near = scores >= np.partition(scores, at, axis=1)[:, at : at + 1]
            else:
                near = np.ones(scores.shape, dtype=bool)
            counts.append(near.sum(axis=1))
            flat = np.flatnonzero(near)
            flat %= self._lists
            found.append(flat.astype(np.int32))
        if not found:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        return np.concatenate(found), np.concatenate(counts)


def by_list(
    lists: NDArray[np.int32], counts: NDArray[np.int64], total: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows of each of `total` lists, from the lists of each row (`Router.near`).

    Row numbers, ascending within a list; and where each list begins, (total + 1,).
    """
    from scipy.sparse import csr_matrix

    begins = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(counts), total)
    found: Any = csr_matrix((np.ones(len(lists), np.int8), lists, begins), shape=shape).tocsc()
    return found.indices.astype(np.int32, copy=False), found.indptr.astype(np.int64)


def rank_lists(rows: Vectors, centres: NDArray[np.float32], lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of lists to search, nearest first, until the given one of each row is among them.

    A list of -1 is never found: infinity.
    """
    router = Router(centres, 1)
    out = np.full(len(rows), np.inf)
    for start in range(0, len(rows), 1024):
        scores = router.scores(rows[start : start + 1024])
        at = lists[start : start + 1024]
        own = scores[np.arange(len(at)), np.maximum(at, 0)]
        out[start : start + 1024] = np.where(at >= 0, (scores >= own[:, None]).sum(axis=1), np.inf)
    return out


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
        """Return the number of rows in each list."""
        return np.diff(self.bounds)


def block_rows(dim: int, probes: int, k: int, threads: int, memory: int) -> int:
    """Return the number of queries to take at a time within `memory` bytes.

    It is a multiple of ROUTE_ROWS, so that the lists of a row do not depend on the memory.
    """
    each = 6 * dim + 24 * probes + 24 * k * (threads + 1)
    return max(_LEAST_ROWS, min(_MOST_ROWS, memory // each)) // ROUTE_ROWS * ROUTE_ROWS


@dataclass(frozen=True)
class Pass:
    """A search of `queries` in the `probes` lists whose centres are nearest to each, for k neighbours.

    Attributes:
        lists: the rows to search in.
        centres: of the lists, float32 (lists, d).
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


def search_lists(which: Pass, run: Run, progress: Progress = silent) -> tuple[TopK, TopK | None]:
    """Return the k best rows for each query of a pass; the memory and threads of `run` do not change them.

    Similarities are exact, order and ties as in `search_both`. `progress` is called with the number of queries done.
    Returns the queries' neighbours, with row numbers as in lists.order, and those of the listed rows, in that order,
    with query numbers.
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
            at = by_list(*router.near(rows), len(which.centres))
            block = Block(rows, start, lists, *at, TopK.empty(len(rows), k), bwd)
            best = block.search(mapped, progress)
            fwd.sim[start:stop], fwd.id[start:stop] = best.sim, best.id
    number_rows(fwd, lists.order)
    return fwd, bwd


def number_rows(best: TopK, order: NDArray[np.int64]) -> None:
    """Replace places among the listed rows by the rows' own numbers, in `order`; ties go to the lowest."""
    known = best.id >= 0
    best.id[known] = order[best.id[known]]
    tied = np.flatnonzero(((best.sim[:, 1:] == best.sim[:, :-1]) & (best.id[:, 1:] >= 0)).any(axis=1))
    best.sim[tied], best.id[tied] = best_first(best.sim[tied], best.id[tied], best.k)


@dataclass
class Block:
    """Queries (b, d) to compare with their lists: the state shared by the threads, and the results of each.

    Attributes:
        start: number of the first query; queries in `bwd` have lower ones.
        at, begins: the queries of each list, and where each list's begin (`by_list`).
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
        self._local, self._states = threading.local(), list[TopK]()
        self._compiled = compiled_runs(self.queries.shape[1])

    def search(self, mapped: Map, progress: Progress = silent) -> TopK:
        """Return the neighbours of the queries, as places among the listed rows; `progress` counts queries."""
        wanted = np.flatnonzero((np.diff(self.begins) > 0) & (self.lists.sizes > 0)).tolist()
        told = scaled(progress, len(wanted), len(self.queries))
        for _ in mapped(self._compare, wanted):
            told(1)
        best, *others = self._states or [self.known]
        for start in range(0, len(best.sim), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            for other in others:
                best.add(part, other.sim[part], other.id[part])
        return best

    def _compare(self, number: int) -> int:
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
            # Queries of this block are numbered from its start on, above all that came before: ids stay comparable
            # until the numbers within the selection become those of the queries.
            first = self.start if bwd is None else max(self.start, int(bwd.id.max(initial=-1)) + 1)
            engine = FusedSearch(x, y, self.known.k, _ALONE, 1 << 62, (first, base))
            engine.block(0, len(rows), fwd, bwd)
            if bwd is not None:
                new = bwd.id >= first
                bwd.id[new] = self.start + at[bwd.id[new] - first]
            return
        from bitextmine.search.blocks import BlockSearch

        part, back = TopK.empty(len(rows), self.known.k), TopK.empty(len(cols), self.known.k)
        BlockSearch(x, y, _ALONE, 1 << 30).block(0, len(rows), part, None if bwd is None else back)
        row, place = np.nonzero(part.id >= 0)
        fwd.merge(row, part.id[row, place] + base, part.sim[row, place])
        if bwd is not None:
            col, place = np.nonzero(back.id >= 0)
            bwd.merge(col, self.start + at[back.id[col, place]].astype(np.int64), back.sim[col, place])


def scaled(progress: Progress, steps: int, total: int) -> Progress:
    """Return a progress of `steps` that reports to one of `total`."""
    done = 0

    def told(count: int) -> None:
        nonlocal done
        progress(total * (done + count) // steps - total * done // steps)
        done += count

    return told
