"""Margins (Artetxe and Schwenk, 2019): how far a pair stands out from its neighbourhood, and the best candidates.

score(x, y) = margin(cos(x, y), (mean_k cos(x, NN_k(x)) + mean_k cos(y, NN_k(y))) / 2), where NN_k(x) are
the k nearest neighbours of x in the other language; the candidate itself counts when it is one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mining.options import Margin
from bitextmine.search.neighbours import Neighbours

# A neighbourhood nearer to zero than this says nothing (the noise of a mean of cosines at d = 256 is larger),
# and dividing by it would put noise above every true pair, or flip the order where it is negative.
RATIO_FLOOR = 0.01

_DECIMALS = 6
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Formula:
    """A margin of cosines a over neighbourhood means b: finite for finite cosines, never falling when these rise.

    `neutral` is the margin of a pair that does not stand out from its neighbourhood.
    """

    score: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    neutral: float


FORMULAS = {
    Margin.RATIO: Formula(lambda a, b: a / np.maximum(b, RATIO_FLOOR), 1.0),
    Margin.DISTANCE: Formula(np.subtract, 0.0),
    Margin.ABSOLUTE: Formula(lambda a, b: np.broadcast_to(a, b.shape), 0.0),
}
# The kind of score that `scorer` gives instead of a margin.
LOG_ODDS = "log-odds"
# The score of a pair that does not stand out from its neighbourhood, or is as likely true as not.
NEUTRAL: dict[str, float] = {**{kind: formula.neutral for kind, formula in FORMULAS.items()}, LOG_ODDS: 0.0}


def rounded(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores rounded to the decimals of the output.

    Done before anything is compared, so that the order of a file agrees with the numbers printed in it and equal
    numbers are ordered by line.
    """
    return np.round(score, _DECIMALS) + 0.0  # no -0.0


def neighbourhood_mean(sim: ArrayLike, ids: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the mean similarity of each row's neighbours: (n, k) -> float64 (n,), NaN for a row without any.

    Missing neighbours (id below 0, or a similarity that is not finite, or below -1e30 as FAISS marks an empty slot) do
    not count. The sum runs in float64, so float16 input cannot overflow.
    """
    sim = np.asarray(sim)
    if sim.dtype == np.float16:
        sim = sim.astype(np.float32)
    there = np.isfinite(sim) & (sim > -1e30)
    if ids is not None:
        there &= np.asarray(ids) >= 0
    count = there.sum(axis=1)
    total = np.where(there, sim, 0).sum(axis=1, dtype=np.float64)
    return np.divide(total, count, out=np.full(len(sim), np.nan), where=count > 0)


def margin(
    cos: ArrayLike, mean_src: ArrayLike, mean_tgt: ArrayLike, kind: str = Margin.RATIO
) -> NDArray[np.float64]:
    """Return the margin of each pair, float64, of the shape that the arguments broadcast to.

    With b the average of the two neighbourhood means: ``ratio`` is cos / b, ``distance`` cos - b, ``absolute`` cos. A
    mean that is NaN (no neighbour was found on that side) counts as the pair's own cosine, because the pair itself
    would be the one known neighbour. Where b is below RATIO_FLOOR, negative means included, ``ratio`` is cos /
    RATIO_FLOOR: finite, of the sign of the cosine, and never falling when the cosine rises, so that two negative
    numbers cannot make a good score. A missing candidate (similarity -inf) scores -inf. BitextmineError: a cosine is
    NaN.
    """
    formula = FORMULAS[Margin(kind)]
    a = np.asarray(cos, dtype=np.float64)
    if np.isnan(a).any():
        raise BitextmineError("margin: a cosine is NaN; embed the corpora again")
    src = np.asarray(mean_src, dtype=np.float64)
    tgt = np.asarray(mean_tgt, dtype=np.float64)
    b = (np.where(np.isnan(src), a, src) + np.where(np.isnan(tgt), a, tgt)) / 2
    with np.errstate(invalid="ignore"):  # -inf - -inf, where there is no candidate
        return np.where(np.isneginf(a), -np.inf, formula.score(a, b))


@dataclass(frozen=True)
class BestCandidates:
    """The best candidate of each row of one side: id int64 (n,), -1 for none, and score float64 (n,), -inf for none."""

    id: NDArray[np.int64]
    score: NDArray[np.float64]


@dataclass(frozen=True)
class BestBothWays:
    """The best target of each source row (forward) and the best source of each target row (backward)."""

    forward: BestCandidates
    backward: BestCandidates


def best_candidates(
    sim: NDArray, ids: NDArray, mean: NDArray, other_mean: NDArray, kind: str = Margin.RATIO
) -> BestCandidates:
    """Return for each row the neighbour of the highest margin; of equal scores the one of the lowest id.

    sim, ids (n, k): the row's neighbours on the other side (id -1: none); mean (n,): the neighbourhood mean
    of each row; other_mean (m,): that of each row of the other side. NaN means are "unknown", see `margin`.
    """
    n = len(ids)
    best = BestCandidates(np.full(n, -1, dtype=np.int64), np.full(n, -np.inf))
    if ids.shape[1] == 0 or not len(other_mean):
        return best
    for start in range(0, n, _BLOCK):
        part = slice(start, start + _BLOCK)
        block = np.asarray(ids[part], dtype=np.int64)
        there = block >= 0
        cos = np.where(there, np.asarray(sim[part], dtype=np.float64), -np.inf)
        score = rounded(margin(cos, mean[part, None], other_mean[np.where(there, block, 0)], kind))
        top = score.max(axis=1)
        tied = np.where(there & (score == top[:, None]), block, np.iinfo(np.int64).max)
        best.id[part] = np.where(there.any(axis=1), tied.min(axis=1), -1)
        best.score[part] = top
    return best


def candidates(neighbours: Neighbours, k: int, kind: str = Margin.RATIO) -> BestBothWays:
    """Return the best candidate of every row of both sides, by margin over the first k columns of the neighbours."""
    forward = neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k]
    backward = neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k]
    means = neighbourhood_mean(*forward), neighbourhood_mean(*backward)
    return BestBothWays(
        best_candidates(*forward, *means, kind), best_candidates(*backward, means[1], means[0], kind)
    )
