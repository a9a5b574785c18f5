"""Choose the kind of index that pays, by times measured on a part of the vectors and extrapolated to all.

Times are of the processor, divided by the threads, so that other work on the machine does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.indexing.faiss_index import FLAT_UP_TO, factory_string
from bitextmine.indexing.lists import (
    ROUNDS,
    Lists,
    Pass,
    Router,
    find_centres,
    nearest_centre,
    rank_lists,
    search_lists,
)
from bitextmine.indexing.options import IndexOptions
from bitextmine.run import Run
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.rows import VectorRows, Vectors
from bitextmine.system import processors, size

_PART = 1 << 15  # rows that times are measured on
_QUERIES = 1 << 12
_SMALL = 1 << 12  # rows of the trial graph
_PER_CENTRE = 64
_DRAWN = 512
_K = 4


def choose(
    vectors: Vectors, chosen: NDArray[np.int64], options: IndexOptions, *, memory: int, disk: int
) -> dict[str, Any]:
    """Return the kind of index that costs least, building included.

    Up to 32,768 rows measure exact search, finding centres, searching lists (of their final length), PQ fast-scan in
    such lists, and graphs of 4,096 and 16,384. All rows tell in how many lists the nearest neighbours of 512 of them
    lie; in mining both sides' indexes look for a pair, so that fewer will do. Exact search and lists are extrapolated
    by the number of comparisons, a graph as it grew. Up to FLAT_UP_TO rows nothing is measured.

    Args:
        vectors: (n, d).
        chosen: the rows to index.
        options: queries to come, recall and seed.
        memory: bytes available.
        disk: bytes available.

    Returns:
        {"kind", "reason" (in words), "queries", "seconds": {kind: {"build", "search"}}, "bytes_each"}.
    """
    n, dim, seed = len(chosen), int(vectors.shape[1]), options.seed
    mining = options.queries is None
    asked = n if options.queries is None else options.queries
    result: dict[str, Any] = {"queries": asked, "target": options.recall_target}
    if n <= FLAT_UP_TO:
        return {**result, "kind": "flat", "reason": f"exact search of {n:,} rows needs no index"}
    drawn = np.sort(np.random.default_rng(seed).choice(chosen, min(_PART, n), replace=False))
    part = np.ascontiguousarray(vectors[drawn])
    rest = _Rates(part, n, seed, mining)
    seconds = {"flat": {"build": 0.0, "search": asked * rest.exact(n)}}
    lists = _lists_of(n, dim)
    build = rest.centre() * (ROUNDS * _PER_CENTRE * lists * lists + n * lists)
    if build < seconds["flat"]["search"]:
        probes = _probes(vectors, chosen, lists, options)
        seconds["ivf"] = {"build": build, "search": asked * (rest.route() * lists + probes * rest.list())}
        close = seconds["ivf"]["build"] + seconds["ivf"]["search"] > seconds["flat"]["search"] / 20
        if close or not _fits("ivf", n * (2 * dim + 8), memory, disk):
            fast = rest.fast_scan()
            if fast is not None:  # in mining the lists are compared as they are, whatever the codes
                scan = seconds["ivf"]["search"] if mining else asked * probes * fast[1]
                seconds["pq"] = {"build": build + n * fast[0], "search": scan}
            small, large = rest.graph(_SMALL), rest.graph(4 * _SMALL)
            growth = (max(0.0, float(np.log(b / a) / np.log(4))) for a, b in zip(small, large, strict=True))
            adding, searching = (b * (n / (4 * _SMALL)) ** g for b, g in zip(large, growth, strict=True))
            seconds["hnsw"] = {"build": n * adding, "search": asked * searching}
    each = {"flat": 4 * dim, "ivf": 2 * dim + 8, "pq": dim // 4 + 8, "hnsw": dim + 8 + 272}
    fits = [kind for kind in seconds if _fits(kind, n * each[kind], memory, disk)]
    if not fits:
        least = min(seconds, key=lambda kind: each[kind])
        raise BitextmineError(
            f"no kind of index of {n:,} vectors that pays fits: {least} takes {size(n * each[least])}, {size(disk)} "
            "are free on the disk; use exact search (mine --search exact), which needs none"
        )
    total = {kind: seconds[kind]["build"] + seconds[kind]["search"] for kind in seconds}
    best = min(fits, key=lambda kind: total[kind])
    words = ", ".join(f"{kind} {_words(total[kind])}" for kind in sorted(total, key=lambda kind: total[kind]))
    use = "this side of mining" if mining else f"{asked:,} queries"
    reason = f"estimated for {use}, building included: {words}"
    if left_out := [kind for kind in total if kind not in fits and total[kind] < total[best]]:
        reason += f"; no room for {', '.join(left_out)}"
    result["seconds"] = {
        kind: {what: float(f"{value:.4g}") for what, value in parts.items()}
        for kind, parts in seconds.items()
    }
    return {**result, "kind": best, "reason": reason, "bytes_each": each[best]}


def _fits(kind: str, needed: int, memory: int, disk: int) -> bool:
    return needed <= disk and (kind in ("flat", "ivf") or needed <= memory)


def _lists_of(rows: int, dim: int) -> int:
    spec = factory_string("ivf", rows, dim)
    return int(spec.removeprefix("IVF").partition(",")[0])


def _words(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 36000 else f"{seconds / 3600:.3g} h"


def _time(work: Callable[[], object], times: int = 2) -> float:
    """Return the least processor seconds of a few runs, divided by the threads."""
    best = np.inf
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return float(best) / processors()


def _probes(vectors: Vectors, chosen: NDArray[np.int64], lists: int, options: IndexOptions) -> float:
    """Return the number of lists to search for the nearest other row, measured on 512 rows.

    In mining either of the two may find the other. The centres are found in fewer rounds than the index's.
    """
    random = np.random.default_rng(options.seed)
    drawn = np.sort(random.choice(chosen, min(_PER_CENTRE // 4 * lists, len(chosen)), replace=False))
    centres = find_centres(np.ascontiguousarray(vectors[drawn]), lists, seed=options.seed, rounds=4)
    rows = np.sort(random.choice(chosen, min(_DRAWN, len(chosen)), replace=False))
    queries = np.ascontiguousarray(vectors[rows])
    _, found = search_one(queries, vectors, 2)
    other = np.where(found[:, 0] == rows, found[:, 1], found[:, 0])
    queries, others = queries[other >= 0], np.ascontiguousarray(vectors[other[other >= 0]])
    if not len(queries):
        return 1.0
    needed = rank_lists(queries, centres, nearest_centre(others, centres))
    if options.queries is None:
        needed = np.minimum(needed, rank_lists(others, centres, nearest_centre(queries, centres)))
    return float(np.quantile(needed, options.recall_target))


class _Rates:
    """Seconds per elementary step, measured on a part whose lists are as long as those of all n vectors."""

    def __init__(self, part: Vectors, n: int, seed: int, mining: bool) -> None:
        faiss.omp_set_num_threads(processors())
        self._part, self._mining = part, mining
        self._queries = np.ascontiguousarray(part[:: max(1, len(part) // _QUERIES)][:_QUERIES])
        self._some = part[: min(len(part), 1024)].astype(np.float32)  # in place of centres
        self._count = max(2, round(len(part) * _lists_of(n, part.shape[1]) / n))
        self._probes = max(1, self._count // 4)
        self._centres = find_centres(part, self._count, seed=seed, rounds=4)
        of = nearest_centre(part, self._centres)
        order = np.argsort(of, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=self._count))]).astype(np.int64)
        ordered = np.ascontiguousarray(part[order])
        self._lists = Lists(order, bounds, lambda i: ordered[bounds[i] : bounds[i + 1]])

    def exact(self, n: int) -> float:
        """Return the seconds of a query against all n rows."""
        search = search_both if self._mining else search_one
        took = _time(lambda: search(self._queries, self._part, _K)) / (2 if self._mining else 1)
        return took / len(self._queries) / len(self._part) * n

    def centre(self) -> float:
        """Return the seconds of a row against a centre."""
        return _time(lambda: nearest_centre(self._part, self._some)) / len(self._part) / len(self._some)

    def route(self) -> float:
        """Return the seconds of a query against a centre, choosing among them."""
        router = Router(self._some, 32)
        return _time(lambda: router.route(self._queries)) / len(self._queries) / len(self._some)

    def list(self) -> float:
        """Return the seconds of a query against a list."""
        rows = VectorRows(self._queries, self._queries.dtype)
        which = Pass(rows, self._lists, self._centres, self._probes, _K, both=self._mining)
        took = _time(lambda: search_lists(which, Run(memory=1 << 30)))
        return max(0.0, took / len(self._queries) / self._probes)

    def fast_scan(self) -> tuple[float, float] | None:
        """Return the seconds to add a row to a list of 4-bit codes, and to search one; None if there can be none."""
        dim = self._part.shape[1]
        codes = factory_string("pq", len(self._part), dim).partition(",")[2]
        try:
            index: Any = faiss.index_factory(dim, f"IVF{self._count},{codes}", faiss.METRIC_INNER_PRODUCT)
            index.quantizer.add(self._centres)
            index.train(self._part[: 1 << 13].astype(np.float32))
        except RuntimeError:
            return None
        index.nprobe = self._probes
        adding, searching = _times(index, self._part, self._queries)
        return adding, searching / self._probes

    def graph(self, size: int) -> tuple[float, float]:
        """Return the seconds to add a row to a graph of `size`, and to search it."""
        dim = self._part.shape[1]
        index: Any = faiss.index_factory(dim, factory_string("hnsw", size, dim), faiss.METRIC_INNER_PRODUCT)
        index.train(self._part[:size].astype(np.float32))
        index.hnsw.efSearch = 512  # a million real sentences took 480 for 99% of the nearest
        return _times(index, self._part[:size], self._queries[:1024])


def _times(index: Any, rows: Vectors, queries: Vectors) -> tuple[float, float]:
    """Return the seconds to add a row, and of a query."""
    rows, queries = rows.astype(np.float32), queries.astype(np.float32)
    adding = _time(lambda: index.add(rows), 1) / len(rows)
    return adding, _time(lambda: index.search(queries, 8 * _K)) / len(queries)
