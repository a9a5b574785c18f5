"""Retrieval: the choice of pairs among the candidates, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.margin import NEUTRAL, BestBothWays
from bitextmine.mining.options import Margin, Retrieval

_BLOCK = 1 << 16


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs and their scores: rows or lines of the source int64 (p,), of the target int64 (p,), scores float64 (p,)."""

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.src)

    def take(self, which: NDArray) -> ScoredPairs:
        """Return the pairs at these positions, or where this mask is true."""
        return ScoredPairs(self.src[which], self.tgt[which], self.score[which])


def joined(*parts: ScoredPairs) -> ScoredPairs:
    """Return all pairs by score, highest first, equal scores by source row, then by target row."""
    src, tgt, score = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "tgt", "score")
    )
    return ScoredPairs(src, tgt, score).take(np.lexsort((tgt, src, -score)))


def greedy(pairs: ScoredPairs, n: int, m: int) -> ScoredPairs:
    """Return the one-to-one pairs out of ordered ones: each whose ends (n, m rows) no better pair has taken."""
    free_src, free_tgt = bytearray(b"\1") * n, bytearray(b"\1") * m
    kept = np.zeros(len(pairs), dtype=bool)
    for start in range(0, len(pairs), _BLOCK):  # lists of all numbers would take several times their memory
        part = slice(start, start + _BLOCK)
        for i, (s, t) in enumerate(
            zip(pairs.src[part].tolist(), pairs.tgt[part].tolist(), strict=True), start
        ):
            if free_src[s] and free_tgt[t]:
                free_src[s] = free_tgt[t] = False
                kept[i] = True
    return pairs.take(kept)


def heaviest(pairs: ScoredPairs, neutral: float = 0.0) -> ScoredPairs:
    """Return the distinct pairs with the highest total score above `neutral` that use no row twice, in the same order.

    Pairs that score no more are never taken. The solution is exact, by shortest augmenting paths (Jonker and Volgenant
    1987, for sparse graphs as in scipy); between matchings of equal score the order of the pairs decides.
    """
    useful = pairs.take(pairs.score - neutral > 0)
    if not len(useful):
        return useful
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows, row = np.unique(useful.src, return_inverse=True)
    columns, column = np.unique(useful.tgt, return_inverse=True)
    # The solver matches every row: each gets a column of its own, of weight 0, to stand for no partner. It takes
    # explicit zeros for missing, so all weights are one higher, which adds the same to every matching.
    own = np.arange(len(rows))
    graph = csr_array(
        (
            np.concatenate([useful.score - neutral, np.zeros(len(rows))]) + 1,
            (np.concatenate([row, own]), np.concatenate([column, len(columns) + own])),
        ),
        shape=(len(rows), len(columns) + len(rows)),
    )
    matched_row, matched_column = min_weight_full_bipartite_matching(graph, maximize=True)
    partner = np.full(len(rows), -1, dtype=np.int64)
    partner[matched_row] = matched_column
    return useful.take(partner[row] == column)


def retrieve(best: BestBothWays, how: str = Retrieval.MAX, kind: str = Margin.RATIO) -> ScoredPairs:
    """Return the mined pairs, highest score first; ties go by source row, then by target row.

    ``forward``: every source row with its best target. ``backward``: every target row with its best source. ``union``:
    the pairs of either, each once. ``intersect``: the pairs of both. ``max``: out of the union, one to one, the best
    score first. ``matching``: out of the union, one to one, the highest total of score above the neutral value of
    ``kind``, a margin or LOG_ODDS (a pair that scores no more is not taken).
    """
    how = Retrieval(how)
    src = np.flatnonzero(best.forward.id >= 0)
    forward = ScoredPairs(src, best.forward.id[src], best.forward.score[src])
    if how == Retrieval.FORWARD:
        return joined(forward)
    tgt = np.flatnonzero(best.backward.id >= 0)
    backward = ScoredPairs(best.backward.id[tgt], tgt, best.backward.score[tgt])
    if how == Retrieval.BACKWARD:
        return joined(backward)
    if how == Retrieval.INTERSECT:
        return joined(forward.take(best.backward.id[forward.tgt] == forward.src))
    union = joined(forward, backward.take(best.forward.id[backward.src] != backward.tgt))
    if how == Retrieval.UNION:
        return union
    if how == Retrieval.MATCHING:
        return heaviest(union, NEUTRAL[kind])
    return greedy(union, len(best.forward.id), len(best.backward.id))
