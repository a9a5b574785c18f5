"""From neighbours to sentence pairs: which candidates are kept, and in which order they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mine.margin import LOG_ODDS, NEUTRAL, margin, neighbourhood_mean
from bitextmine.mine.matching import heaviest

__all__ = [
    "RETRIEVALS",
    "SCORE_DECIMALS",
    "Best",
    "BestBothWays",
    "NeighboursLike",
    "Pairs",
    "Rescore",
    "best_candidates",
    "candidates",
    "greedy",
    "ordered",
    "retrieve",
    "retrieve_scored",
]

RETRIEVALS = ("forward", "backward", "union", "intersect", "max", "matching")

# Scores are rounded to what the output shows before anything is compared, so that the order of a file agrees
# with the numbers printed in it and equal numbers are ordered by line.
SCORE_DECIMALS = 6

_BLOCK = 1 << 18
_ROUNDS = 64


class NeighboursLike(Protocol):
    """What the search returns: similarities (n, k) and (m, k), ids of the other side, -1 with -inf for
    none.
    """

    @property
    def fwd_sim(self) -> NDArray: ...
    @property
    def fwd_id(self) -> NDArray: ...
    @property
    def bwd_sim(self) -> NDArray: ...
    @property
    def bwd_id(self) -> NDArray: ...


@dataclass(frozen=True)
class Best:
    """The best candidate of each row of one side: id int64 (n,), -1 for none; score float64 (n,), -inf for
    none.
    """

    id: NDArray[np.int64]
    score: NDArray[np.float64]


@dataclass(frozen=True)
class BestBothWays:
    """The best target of each source row (forward) and the best source of each target row (backward)."""

    forward: Best
    backward: Best


# Other scores for the same candidates: takes them, the neighbours, and how many of these count (see `rescoring`).
Rescore = Callable[[BestBothWays, NeighboursLike, int], BestBothWays]


@dataclass(frozen=True)
class Pairs:
    """Candidate pairs: rows of the source int64 (p,), of the target int64 (p,), scores float64 (p,)."""

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.src)

    def take(self, which: NDArray) -> Pairs:
        """The pairs at these positions, or where this mask is true."""
        return Pairs(self.src[which], self.tgt[which], self.score[which])


def best_candidates(
    sim: NDArray, ids: NDArray, mean: NDArray, other_mean: NDArray, kind: str = "ratio"
) -> Best:
    """For each row the neighbour of the highest margin; equal scores go to the lowest id.

    sim, ids (n, k): the row's neighbours on the other side (id -1: none); mean (n,): the neighbourhood mean
    of each row; other_mean (m,): that of each row of the other side. NaN means are "unknown", see `margin`.
    """
    n = len(ids)
    best_id = np.full(n, -1, dtype=np.int64)
    best_score = np.full(n, -np.inf)
    if ids.shape[1] == 0 or not len(other_mean):
        return Best(best_id, best_score)
    for start in range(0, n, _BLOCK):
        block = np.asarray(ids[start : start + _BLOCK], dtype=np.int64)
        there = block >= 0
        cos = np.where(there, np.asarray(sim[start : start + _BLOCK], dtype=np.float64), -np.inf)
        score = margin(cos, mean[start : start + _BLOCK, None], other_mean[np.where(there, block, 0)], kind)
        score = np.round(score, SCORE_DECIMALS) + 0.0  # no -0.0
        top = score.max(axis=1)
        tied = np.where(there & (score == top[:, None]), block, np.iinfo(np.int64).max)
        found = tied.min(axis=1)
        best_id[start : start + len(block)] = np.where(there.any(axis=1), found, -1)
        best_score[start : start + len(block)] = top
    return Best(best_id, best_score)


def candidates(neighbours: NeighboursLike, k: int, kind: str = "ratio") -> BestBothWays:
    """The best candidate of every row of both sides, by margin over the k nearest neighbours.

    Only the first k columns of the neighbours are used, both as candidates and for the neighbourhood means.
    """
    fwd_mean = neighbourhood_mean(neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k])
    bwd_mean = neighbourhood_mean(neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k])
    return BestBothWays(
        best_candidates(neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k], fwd_mean, bwd_mean, kind),
        best_candidates(neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k], bwd_mean, fwd_mean, kind),
    )


def ordered(pairs: Pairs) -> Pairs:
    """The pairs by score, highest first, equal scores by source row, then by target row."""
    return pairs.take(np.lexsort((pairs.tgt, pairs.src, -pairs.score)))


def greedy(pairs: Pairs, n: int, m: int) -> Pairs:
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


def retrieve(best: BestBothWays, how: str = "max", kind: str = "ratio") -> Pairs:
    """The mined pairs, by score, highest first, equal scores by source row, then by target row.

    ``forward``: every source row with its best target. ``backward``: every target row with its best source.
    ``union``: the pairs of either, each once. ``intersect``: the pairs of both. ``max``: out of the union,
    one to one, the best score first. ``matching``: out of the union, one to one, the highest total of score
    above the neutral value of ``kind``, a margin or LOG_ODDS (a pair that scores no more is not taken). Raises
    BitextmineError for another word.
    """
    if how not in RETRIEVALS:
        raise BitextmineError(f"retrieval: unknown way {how!r}; choose one of {', '.join(RETRIEVALS)}")
    n, m = len(best.forward.id), len(best.backward.id)
    src = np.flatnonzero(best.forward.id >= 0)
    forward = Pairs(src, best.forward.id[src], best.forward.score[src])
    if how == "forward":
        return ordered(forward)
    tgt = np.flatnonzero(best.backward.id >= 0)
    backward = Pairs(best.backward.id[tgt], tgt, best.backward.score[tgt])
    if how == "backward":
        return ordered(backward)
    both_ways = best.backward.id[forward.tgt] == forward.src
    if how == "intersect":
        return ordered(forward.take(both_ways))
    once = best.forward.id[backward.src] != backward.tgt
    union = ordered(
        Pairs(
            np.concatenate([forward.src, backward.src[once]]),
            np.concatenate([forward.tgt, backward.tgt[once]]),
            np.concatenate([forward.score, backward.score[once]]),
        )
    )
    if how == "union":
        return union
    if how == "matching":
        chosen = heaviest(union.src, union.tgt, union.score - NEUTRAL[kind], n, m)
        return union.take(np.sort(chosen))
    return greedy(union, n, m)


def retrieve_scored(
    best: BestBothWays, neighbours: NeighboursLike, k: int, how: str, kind: str, rescore: Rescore | None
) -> Pairs:
    """As `retrieve`, after ``rescore``, if it is given, has put log odds in the place of the candidates' margins."""
    if rescore is None:
        return retrieve(best, how, kind)
    return retrieve(rescore(best, neighbours, k), how, LOG_ODDS)
