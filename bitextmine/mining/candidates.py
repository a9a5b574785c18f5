"""From neighbours to candidates: for every row of either side the one pair that it would go into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.margin import Margin, margin, neighbourhood_mean

# Scores are rounded to what the output shows before anything is compared, so that the order of a file agrees
# with the numbers printed in it and equal numbers are ordered by line.
SCORE_DECIMALS = 6

_BLOCK = 1 << 18


class NeighboursLike(Protocol):
    """The result of a search: similarities (n, k) and (m, k), and ids of the other side.

    A missing neighbour has id -1 and similarity -inf.
    """

    @property
    def fwd_sim(self) -> NDArray:
        """Similarities of source rows to their neighbours, (n, k)."""

    @property
    def fwd_id(self) -> NDArray:
        """Targets nearest to each source row, (n, k)."""

    @property
    def bwd_sim(self) -> NDArray:
        """Similarities of target rows to their neighbours, (m, k)."""

    @property
    def bwd_id(self) -> NDArray:
        """Sources nearest to each target row, (m, k)."""


@dataclass(frozen=True)
class BestCandidates:
    """The best candidate of each row of one side.

    Attributes:
        id: int64 (n,), -1 for none.
        score: float64 (n,), -inf for none.
    """

    id: NDArray[np.int64]
    score: NDArray[np.float64]


@dataclass(frozen=True)
class BestBothWays:
    """The best target of each source row (forward) and the best source of each target row (backward)."""

    forward: BestCandidates
    backward: BestCandidates


# Other scores for the same candidates: takes them, the neighbours, and how many of these count (see `scorer`).
Rescore = Callable[[BestBothWays, NeighboursLike, int], BestBothWays]


def best_candidates(
    sim: NDArray, ids: NDArray, mean: NDArray, other_mean: NDArray, kind: str = Margin.RATIO
) -> BestCandidates:
    """Return for each row the neighbour of the highest margin; of equal scores the one of the lowest id.

    sim, ids (n, k): the row's neighbours on the other side (id -1: none); mean (n,): the neighbourhood mean
    of each row; other_mean (m,): that of each row of the other side. NaN means are "unknown", see `margin`.
    """
    n = len(ids)
    best_id = np.full(n, -1, dtype=np.int64)
    best_score = np.full(n, -np.inf)
    if ids.shape[1] == 0 or not len(other_mean):
        return BestCandidates(best_id, best_score)
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
    return BestCandidates(best_id, best_score)


def candidates(neighbours: NeighboursLike, k: int, kind: str = Margin.RATIO) -> BestBothWays:
    """Return the best candidate of every row of both sides, by margin over the k nearest neighbours.

    Only the first k columns of the neighbours are used, both as candidates and for the neighbourhood means.
    """
    fwd_mean = neighbourhood_mean(neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k])
    bwd_mean = neighbourhood_mean(neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k])
    return BestBothWays(
        best_candidates(neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k], fwd_mean, bwd_mean, kind),
        best_candidates(neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k], bwd_mean, fwd_mean, kind),
    )
