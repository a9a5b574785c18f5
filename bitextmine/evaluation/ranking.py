"""Which sentence of a pool each measure puts first: cosine, ratio margin, CSLS, the scorer of `mine --rescore`.

CSLS (2 cos - the two neighbourhood means) ranks as the distance margin does, of which it is the double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import progress
from bitextmine.mining.margin import Margin, margin, neighbourhood_mean
from bitextmine.mining.scorer import Rescorer

__all__ = ["Ranked", "rank_in_pool", "rank_muse"]

_BLOCK = 1 << 22


@dataclass(frozen=True)
class Ranked:
    """For each query the row of the pool that each measure puts first, int64 (q,); rescored: None where nothing is."""

    cosine: NDArray[np.int64]
    ratio: NDArray[np.int64]
    csls: NDArray[np.int64]
    rescored: NDArray[np.int64] | None = None


def rank_in_pool(
    queries: NDArray,
    pool: NDArray,
    src_pool: NDArray,
    *,
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    device: str = "cpu",
    memory: int | None = None,
    rescorer: Callable[[NDArray[np.int64], NDArray[np.int64]], Rescorer] | None = None,
    query_rows: NDArray[np.int64] | None = None,
) -> Ranked:
    """Rank a pool (m, d) for queries (q, d), the neighbourhood of a target taken from src_pool (n, d).

    src_pool holds the queries too. The margins choose among the `candidates` nearest by cosine (all of a
    smaller pool): those are the targets whose neighbourhoods are looked up. Ties go to the lower row.
    rescorer: makes one out of increasing rows of src_pool and of pool; query_rows (q,): where src_pool has the queries.
    Raises ValueError for one of these without the other.
    """
    from bitextmine.search.exact import search_one
    from bitextmine.search.neighbours import Neighbours
    from bitextmine.search.options import SearchOptions

    if (rescorer is None) != (query_rows is None):
        raise ValueError("rescorer and query_rows go together")
    most = max(k, csls)
    how = SearchOptions(device=device, memory=memory)
    how = SearchOptions(device=device, memory=memory)
    with progress(len(queries), "search", "queries") as bar:
        sim, ids = search_one(queries, pool, max(most, candidates), how, progress=bar.update)
    targets = np.unique(ids[:, :candidates][ids[:, :candidates] >= 0])
    with progress(len(targets), "neighbourhoods", "candidates") as bar:
        back, back_ids = search_one(
            np.ascontiguousarray(pool[targets]), src_pool, most, how, progress=bar.update
        )
    place = np.searchsorted(targets, ids[:, :candidates])

    def first(kind: Margin, width: int) -> NDArray[np.int64]:
        mean_src = neighbourhood_mean(sim[:, :width], ids[:, :width])
        mean_tgt = neighbourhood_mean(back[:, :width], back_ids[:, :width])
        there = ids[:, :candidates] >= 0
        cos = np.where(there, sim[:, :candidates].astype(np.float64), -np.inf)
        score = margin(cos, mean_src[:, None], mean_tgt[np.where(there, place, 0)], kind)
        return _first(score, ids[:, :candidates])

    rescored = None
    if rescorer is not None and query_rows is not None:
        # A repeated query is one row of the source side.
        rows, some, number = np.unique(query_rows, return_index=True, return_inverse=True)
        near = Neighbours(sim[some], _numbers(ids[some], targets), back, _numbers(back_ids, rows))
        there = ids[some, :candidates] >= 0
        query, column = np.nonzero(there)
        score = np.full(there.shape, -np.inf)
        score[query, column] = rescorer(rows, targets).scores(
            query, near.fwd_id[query, column], near.fwd_sim[query, column].astype(np.float64), near, k
        )
        rescored = _first(score, ids[some, :candidates])[number]
    return Ranked(ids[:, 0], first(Margin.RATIO, k), first(Margin.DISTANCE, csls), rescored)


def _first(score: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """(q,) the id of the highest score, the lowest of equals; ids (q, c), -1 for none."""
    best = (ids >= 0) & (score == score.max(axis=1, keepdims=True))
    found: NDArray[np.int64] = np.where(best, ids, np.iinfo(np.int64).max).min(axis=1)
    return found


def _numbers(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each id is in ``known`` (increasing); len(known) for one that is not; -1 stays."""
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    found: NDArray[np.int64] = np.where(ids < 0, -1, np.where(known[place] == ids, place, len(known)))
    return found


def rank_muse(
    queries: NDArray,
    pool: NDArray,
    *,
    k: int = 4,
    csls: int = 10,
    device: str = "cpu",
    memory: int | None = None,
) -> Ranked:
    """Rank a pool (m, d) for queries (q, d) as MUSE does: the neighbourhood of a target are the nearest *queries*,
    and every sentence of the pool is a candidate. Ties go to the lower row."""
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    how = SearchOptions(device=device, memory=memory)
    with progress(len(queries), "search", "queries") as bar:
        found = search_both(queries, pool, max(k, csls), how, progress=bar.update)

    def means(width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return (
            neighbourhood_mean(found.fwd_sim[:, :width], found.fwd_id[:, :width]),
            neighbourhood_mean(found.bwd_sim[:, :width], found.bwd_id[:, :width]),
        )

    best = {kind: np.full(len(queries), -np.inf) for kind in (Margin.RATIO, Margin.DISTANCE)}
    where = {kind: np.zeros(len(queries), dtype=np.int64) for kind in best}
    widths = {Margin.RATIO: means(k), Margin.DISTANCE: means(csls)}
    asked = queries.astype(np.float32)
    # Blocks of similarities (queries x step) of 32 MiB in float64, of which a few live at a time.
    step = max(1, _BLOCK // max(1, len(queries)))
    for start in range(0, len(pool), step):
        cos = asked @ np.asarray(pool[start : start + step], dtype=np.float32).T
        for kind, (mean_src, mean_tgt) in widths.items():
            score = margin(cos, mean_src[:, None], mean_tgt[None, start : start + step], kind)
            top = score.argmax(axis=1)
            value = score[np.arange(len(score)), top]
            better = value > best[kind]
            best[kind][better] = value[better]
            where[kind][better] = top[better] + start
    return Ranked(found.fwd_id[:, 0], where[Margin.RATIO], where[Margin.DISTANCE])
