"""Choose between exact search and inverted lists, by times measured on a part of the vectors and extrapolated to all.

Other kinds are not tried: 4-bit codes save disk and no time in mining, and a graph takes far longer to build than
exact search takes (index/lab-notes.md).

Times are of the processor, divided by the threads, so that other work on the machine does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

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
_PER_CENTRE = 64
_DRAWN = 512
_K = 4


def choose(
    vectors: Vectors, chosen: NDArray[np.int64], options: IndexOptions, *, disk: int
) -> dict[str, Any]:
    """Return the kind of index that costs least, building included: flat or ivf.

    Up to 32,768 rows measure exact search, finding centres, and searching lists of their final length. All rows tell in
    how many lists the nearest neighbours of 512 of them lie; in mining both sides' indexes look for a pair, so that
    fewer will do. Times are extrapolated by the number of comparisons. Up to FLAT_UP_TO rows nothing is measured.

    Args:
        vectors: (n, d).
        chosen: the rows to index.
        options: queries to come, recall and seed.
        disk: bytes available.

    Returns:
        {"kind", "reason" (in words), "queries", "seconds": {kind: {"build", "search"}}, "bytes_each"}.
    """
    n, dim = len(chosen), int(vectors.shape[1])
    mining = options.queries is None
    asked = n if options.queries is None else options.queries
    result: dict[str, Any] = {"queries": asked, "target": options.recall_target}
    if n <= FLAT_UP_TO:
        return {**result, "kind": "flat", "reason": f"exact search of {n:,} rows needs no index"}
    drawn = np.sort(np.random.default_rng(options.seed).choice(chosen, min(_PART, n), replace=False))
    rates = _Rates(np.ascontiguousarray(vectors[drawn]), n, options.seed, mining)
    seconds = {"flat": {"build": 0.0, "search": asked * rates.exact(n)}}
    lists = _lists_of(n, dim)
    build = rates.centre() * (ROUNDS * _PER_CENTRE * lists * lists + n * lists)
    if build < seconds["flat"]["search"]:
        probes = _probes(vectors, chosen, lists, options)
        seconds["ivf"] = {"build": build, "search": asked * (rates.route() * lists + probes * rates.list())}
    each = {"flat": 4 * dim, "ivf": 2 * dim + 8}
    total = {kind: parts["build"] + parts["search"] for kind, parts in seconds.items()}
    by_cost = sorted(total, key=lambda kind: total[kind])
    best = next((kind for kind in by_cost if n * each[kind] <= disk), None)
    if best is None:
        raise BitextmineError(
            f"no index of {n:,} vectors fits: {by_cost[0]} takes {size(n * each[by_cost[0]])}, {size(disk)} are free "
            "on the disk; use index --type pq, or exact search (mine --search exact), which needs none"
        )
    use = "this side of mining" if mining else f"{asked:,} queries"
    words = ", ".join(f"{kind} {_words(total[kind])}" for kind in by_cost)
    reason = f"estimated for {use}, building included: {words}"
    if best != by_cost[0]:
        reason += f"; no room for {by_cost[0]}"
    result["seconds"] = {
        kind: {what: float(f"{value:.4g}") for what, value in parts.items()}
        for kind, parts in seconds.items()
    }
    return {**result, "kind": best, "reason": reason, "bytes_each": each[best]}


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
