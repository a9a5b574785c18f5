"""From candidates to sentence pairs: which are kept, and in which order they come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mining.candidates import BestBothWays, NeighboursLike, Rescore
from bitextmine.mining.choices import Margin, Retrieval
from bitextmine.mining.margin import LOG_ODDS, NEUTRAL
from bitextmine.mining.matching import heaviest

__all__ = ["Retrieval", "ScoredPairs", "greedy", "ordered", "retrieve", "retrieve_scored"]

_ROUNDS = 64


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs and their scores: rows of the source int64 (p,), of the target int64 (p,), scores float64 (p,)."""

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.src)

    def take(self, which: NDArray) -> ScoredPairs:
        """The pairs at these positions, or where this mask is true."""
        return ScoredPairs(self.src[which], self.tgt[which], self.score[which])


def ordered(pairs: ScoredPairs) -> ScoredPairs:
    """The pairs by score, highest first, equal scores by source row, then by target row."""
    return pairs.take(np.lexsort((pairs.tgt, pairs.src, -pairs.score)))


def greedy(pairs: ScoredPairs, n: int, m: int) -> ScoredPairs:
    """One-to-one: go through ordered pairs, keep a pair when neither of its ends (n, m rows) is taken yet.

    Instead of one pair at a time, each round keeps every pair that comes first for both of its ends, and
    drops all others that touch a kept one; the outcome is the same. Long chains are finished one by one.
    """
    left = np.arange(len(pairs))
    kept: list[NDArray[np.int64]] = []
    first_src = np.empty(n, dtype=np.int64)
    first_tgt = np.empty(m, dtype=np.int64)
    taken_src = np.zeros(n, dtype=bool)
    taken_tgt = np.zeros(m, dtype=bool)
    for _ in range(_ROUNDS):
        if not len(left):
            break
        src, tgt = pairs.src[left], pairs.tgt[left]
        # Of several values for one place NumPy keeps the last: backwards, that is the best pair.
        first_src[src[::-1]] = left[::-1]
        first_tgt[tgt[::-1]] = left[::-1]
        wins = (first_src[src] == left) & (first_tgt[tgt] == left)
        kept.append(left[wins])
        taken_src[src[wins]] = True
        taken_tgt[tgt[wins]] = True
        left = left[~(taken_src[src] | taken_tgt[tgt])]
    chain = []
    for i in left.tolist():
        s, t = pairs.src[i], pairs.tgt[i]
        if not (taken_src[s] or taken_tgt[t]):
            taken_src[s] = taken_tgt[t] = True
            chain.append(i)
    kept.append(np.array(chain, dtype=np.int64))
    return pairs.take(np.sort(np.concatenate(kept)))


def retrieve(best: BestBothWays, how: str = Retrieval.MAX, kind: str = Margin.RATIO) -> ScoredPairs:
    """Return the mined pairs, highest score first; ties go by source row, then by target row.

    ``forward``: every source row with its best target. ``backward``: every target row with its best source.
    ``union``: the pairs of either, each once. ``intersect``: the pairs of both. ``max``: out of the union,
    one to one, the best score first. ``matching``: out of the union, one to one, the highest total of score
    above the neutral value of ``kind``, a margin or LOG_ODDS (a pair that scores no more is not taken).

    Raises:
        BitextmineError: the way is unknown.
    """
    if how not in tuple(Retrieval):
        raise BitextmineError(f"retrieval: unknown way {how!r}; choose one of {', '.join(Retrieval)}")
    n, m = len(best.forward.id), len(best.backward.id)
    src = np.flatnonzero(best.forward.id >= 0)
    forward = ScoredPairs(src, best.forward.id[src], best.forward.score[src])
    if how == Retrieval.FORWARD:
        return ordered(forward)
    tgt = np.flatnonzero(best.backward.id >= 0)
    backward = ScoredPairs(best.backward.id[tgt], tgt, best.backward.score[tgt])
    if how == Retrieval.BACKWARD:
        return ordered(backward)
    both_ways = best.backward.id[forward.tgt] == forward.src
    if how == Retrieval.INTERSECT:
        return ordered(forward.take(both_ways))
    once = best.forward.id[backward.src] != backward.tgt
    union = ordered(
        ScoredPairs(
            np.concatenate([forward.src, backward.src[once]]),
            np.concatenate([forward.tgt, backward.tgt[once]]),
            np.concatenate([forward.score, backward.score[once]]),
        )
    )
    if how == Retrieval.UNION:
        return union
    if how == Retrieval.MATCHING:
        chosen = heaviest(union.src, union.tgt, union.score - NEUTRAL[kind], n, m)
        return union.take(np.sort(chosen))
    return greedy(union, n, m)


def retrieve_scored(
    best: BestBothWays, neighbours: NeighboursLike, k: int, how: str, kind: str, rescore: Rescore | None
) -> ScoredPairs:
    """Return the mined pairs as `retrieve` does, scored by log odds if ``rescore`` is given."""
    if rescore is None:
        return retrieve(best, how, kind)
    return retrieve(rescore(best, neighbours, k), how, LOG_ODDS)
