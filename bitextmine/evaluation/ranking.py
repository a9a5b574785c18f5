"""P@1: rank a pool by cosine, ratio margin, CSLS and the scorer of `mine --rescore`, and count the right ones.

CSLS (2 cos - the two neighbourhood means) ranks like the distance margin, of which it is the double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.evaluation.options import RankingOptions
from bitextmine.evaluation.report import Report, percent, wilson
from bitextmine.mining.margin import margin, neighbourhood_mean
from bitextmine.mining.options import Margin
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.scorer import Rescorer
from bitextmine.run import Run

# Neighbours of CSLS, and the nearest targets by cosine, among which the margins choose.
CSLS, CANDIDATES = 10, 10
_PAIRS = 1 << 14
# A candidate stands out from its ends' best so many candidates, itself among them: the runner-up is the one to beat.
_RIVALS = 2
# Of the second margin, where that of the first counts 1; both are in standard deviations of the scores.
SECOND_WEIGHT = 1.4
# Return the vectors, (n, d) and (m, d), of increasing rows of the source pool (n,) and of the pool (m,).
VectorsOf = Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class RetrievalResult:
    """P@1 of one direction by one measure: shares from 0 to 1, with Wilson's 95% interval."""

    src: str
    tgt: str
    measure: str
    p_at_1: float
    low: float
    high: float
    correct: int
    queries: int
    pool: int


@dataclass(frozen=True, repr=False)
class RetrievalReport(Report):
    """P@1 per direction and measure."""

    kind: ClassVar[str] = "retrieval evaluation"
    results: tuple[RetrievalResult, ...]

    def to_table(self) -> str:
        """Return percentages: a row per direction and a column per measure."""
        measures = dict.fromkeys(r.measure for r in self.results)
        rows: dict[tuple[str, str], list[str]] = {}
        for r in self.results:
            row = rows.setdefault((r.src, r.tgt), [f"{r.src}-{r.tgt}", f"{r.queries:,}", f"{r.pool:,}"])
            row.append("{} [{}, {}]".format(*percent(r.p_at_1, r.low, r.high)))
        return self._table(["P@1", "queries", "pool", *measures], list(rows.values()))


# The first row of the pool for each query, int64 (q,), by each measure.
Ranked = dict[str, NDArray[np.int64]]


def results_of(
    languages: tuple[str, str], ranked: Ranked, gold: NDArray[np.int64], pool: int
) -> list[RetrievalResult]:
    """Return P@1 by each measure, where `gold` (q,) has the right row for each query among `pool` rows."""
    rows = []
    for name, best in ranked.items():
        hits, n = int((best == gold).sum()), len(gold)
        rows.append(RetrievalResult(*languages, name, hits / n, *wilson(hits, n), hits, n, pool))
    return rows


def rank_in_pool(
    query_rows: NDArray[np.int64],
    src_pool: NDArray,
    pool: NDArray,
    options: RankingOptions,
    run: Run,
    rescorer: Callable[[NDArray[np.int64], NDArray[np.int64]], Rescorer] | None = None,
    second: VectorsOf | None = None,
) -> Ranked:
    """Rank a pool (m, d) for the rows (q,) of src_pool (n, d), from which target neighbourhoods are taken.

    The margins choose among the candidates nearest by cosine, whose neighbourhoods alone are searched. Ties go to the
    lower row. `rescorer` makes a scorer from increasing rows of src_pool and of pool, `second` returns the vectors of
    such rows by a second encoder.
    """
    from bitextmine.search.exact import search_one
    from bitextmine.search.neighbours import Neighbours
    from bitextmine.search.options import SearchOptions

    most = max(options.k, CSLS)
    queries = np.ascontiguousarray(src_pool[query_rows])
    search = SearchOptions(device=run.device_name, memory=run.memory)
    with run.progress(len(queries), "search", "queries") as bar:
        sim, ids = search_one(queries, pool, max(most, CANDIDATES), search, progress=bar.update)
    chosen = ids[:, :CANDIDATES]
    there = chosen >= 0
    targets = np.unique(chosen[there])
    with run.progress(len(targets), "neighbourhoods", "candidates") as bar:
        rows = np.ascontiguousarray(pool[targets])
        wide = most if second is None else max(most, CANDIDATES)
        back, back_ids = search_one(rows, src_pool, wide, search, progress=bar.update)
    column_of = np.searchsorted(targets, chosen)

    def first(kind: Margin, width: int) -> NDArray[np.int64]:
        mean_src = neighbourhood_mean(sim[:, :width], ids[:, :width])
        mean_tgt = neighbourhood_mean(back[:, :width], back_ids[:, :width])
        cos = np.where(there, sim[:, :CANDIDATES].astype(np.float64), -np.inf)
        return _first(margin(cos, mean_src[:, None], mean_tgt[np.where(there, column_of, 0)], kind), chosen)

    def log_odds(
        pairs: ScoredPairs, rows: NDArray[np.int64], sim: NDArray, ids: NDArray
    ) -> NDArray[np.float64]:
        """Return the scorer's log odds of candidates, from their rows of the source pool and these rows' neighbours."""
        assert rescorer is not None
        near = Neighbours(sim, _numbers(ids, targets), back, _numbers(back_ids, rows))
        own, columns = np.searchsorted(rows, pairs.src), np.searchsorted(targets, pairs.tgt)
        return rescorer(rows, targets).scores(own, columns, pairs.score, near, options.k)

    ranked = {
        "cosine": ids[:, 0],
        f"ratio-{options.k}": first(Margin.RATIO, options.k),
        f"csls-{CSLS}": first(Margin.DISTANCE, CSLS),
    }
    if rescorer is not None:
        # A repeated query is one row of the source side.
        rows, firsts, number = np.unique(query_rows, return_index=True, return_inverse=True)
        query, column = np.nonzero(there[firsts])
        cosine = sim[firsts][query, column].astype(np.float64)
        score = np.full((len(firsts), there.shape[1]), -np.inf)
        pairs_scored = ScoredPairs(rows[query], chosen[firsts][query, column], cosine)
        score[query, column] = log_odds(pairs_scored, rows, sim[firsts], ids[firsts])
        ranked[f"rescored-{options.k}"] = _first(score, chosen[firsts])[number]
    if second is not None:
        # Candidates both ways, each once: the targets nearest to a query, and the sources nearest to these.
        query, column = np.nonzero(there)
        target, rank = np.nonzero(back_ids[:, :CANDIDATES] >= 0)
        src = np.concatenate([query_rows[query], back_ids[target, rank]])
        tgt = np.concatenate([chosen[query, column], targets[target]])
        cosine = np.concatenate([sim[query, column], back[target, rank]]).astype(np.float64)
        _, each = np.unique(src * len(pool) + tgt, return_index=True)
        pairs = ScoredPairs(src[each], tgt[each], cosine[each])
        if rescorer is not None:
            rows = np.unique(pairs.src)
            near = search_one(np.ascontiguousarray(src_pool[rows]), pool, most, search)
            pairs = replace(pairs, score=log_odds(pairs, rows, *near))
        ranked |= _rank_by_both(query_rows, pairs, second)
    return ranked


def _rank_by_both(query_rows: NDArray[np.int64], pairs: ScoredPairs, second: VectorsOf) -> Ranked:
    """Return the first target of each query (q,) by the second margin alone, and by both.

    Args:
        query_rows: rows of the source pool.
        pairs: candidates of these and of further rows, by source and target, with cosines or log odds.
        second: returns vectors by the second encoder.
    """
    rows = [np.unique(side, return_inverse=True) for side in (pairs.src, pairs.tgt)]
    x, y = second(rows[0][0], rows[1][0])
    cosine = np.empty(len(pairs))
    for start in range(0, len(pairs), _PAIRS):
        part = slice(start, start + _PAIRS)
        (_, left), (_, right) = rows
        cosine[part] = np.einsum("ij,ij->i", x[left[part]], y[right[part]], dtype=np.float64)
    alone = _margins(cosine, pairs)
    # The scores of one encoder spread several times as wide as those of another.
    spread = [max(float(values.std()), 1e-9) for values in (pairs.score, cosine)]
    both = _margins(pairs.score, pairs) / spread[0] + SECOND_WEIGHT * alone / spread[1]
    begin, end = (np.searchsorted(pairs.src, query_rows, side=side) for side in ("left", "right"))
    ranked = {}
    for name, score in (
        ("second", alone),
        ("both", both),
    ):  # np.argmax takes the first of ties, the lowest row
        best = [int(np.argmax(score[first:last])) for first, last in zip(begin, end, strict=True)]
        ranked[name] = pairs.tgt[begin + best]
    return ranked


def _margins(score: NDArray[np.float64], pairs: ScoredPairs) -> NDArray[np.float64]:
    """Return the distance margins (p,) of candidates: their scores less the mean of the best `_RIVALS` of each end."""
    return score - (_best_mean(score, pairs.src) + _best_mean(score, pairs.tgt)) / 2


def _best_mean(score: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean (p,) of the `_RIVALS` highest scores among the candidates of each candidate's row."""
    order = np.lexsort((-score, rows))
    _, begin, inverse, size = np.unique(
        rows[order], return_index=True, return_counts=True, return_inverse=True
    )
    rank = np.arange(len(rows)) - begin[inverse]
    total = np.bincount(inverse, np.where(rank < _RIVALS, score[order], 0.0))
    mean = np.empty(len(score))
    mean[order] = (total / np.minimum(size, _RIVALS))[inverse]
    return mean


def _first(score: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the id of the highest score (q,), the lowest of ties; ids (q, c) has -1 for none."""
    best = (ids >= 0) & (score == score.max(axis=1, keepdims=True))
    best_id: NDArray[np.int64] = np.where(best, ids, np.iinfo(np.int64).max).min(axis=1)
    return best_id


def _numbers(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each id in `known` (increasing); len(known) for an unknown one; -1 stays."""
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    position: NDArray[np.int64] = np.where(ids < 0, -1, np.where(known[place] == ids, place, len(known)))
    return position
