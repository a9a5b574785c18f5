"""Scores that mean the same in every corpus: the share of true pairs, and the odds that it makes.

A scorer is fitted where a known share of the candidates are pairs. With another share the odds of every candidate are
others by one factor. The share is the one of the highest likelihood given the scores, which is where the
expectation-maximisation of Saerens, Latinne and Decaestecker (2002, "Adjusting the outputs of a classifier to new a
priori probabilities") comes to rest:

    share = mean of p over the candidates, odds p / (1 - p) = likelihood ratio * share / (1 - share)

This takes for granted that a true pair scores as true pairs did where the scorer was fitted, and noise as noise.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.candidates import SCORE_DECIMALS, BestBothWays, BestCandidates, NeighboursLike, Rescore
from bitextmine.mining.choices import Retrieval
from bitextmine.mining.margin import LOG_ODDS
from bitextmine.mining.retrieval import retrieve

# So many candidates, with the share of the fit, count as if they had been seen: a handful says little.
PRIOR_CANDIDATES = 2.0
# One score cannot say more than this: no single candidate settles the share.
MOST_LOG_RATIO = 15.0
HALVINGS = 60


def probability(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) p of the logarithms of p / (1 - p)."""
    found: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return found


def pair_share(log_odds: NDArray[np.float64], share: float) -> float:
    """The share of true pairs among candidates, from their log odds (n,) where ``share`` of them are true.

    The likelihood is concave in the share, so that halving an interval finds what the iteration converges to.
    """
    excess = np.expm1(np.clip(log_odds - _logit(share), -MOST_LOG_RATIO, MOST_LOG_RATIO))
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slope = float((excess / (1 + middle * excess)).sum())
        slope += PRIOR_CANDIDATES * (share / middle - (1 - share) / (1 - middle))
        low, high = (middle, high) if slope > 0 else (low, middle)
    return (low + high) / 2


def calibration_error(p: NDArray[np.float64], true: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the expected calibration error (Naeini et al. 2015) of probabilities p (n,); 0 for none.

    It is the gap between the mean of p and the share of true pairs, averaged over bins of equal width and weighted
    by their size.
    """
    where = np.minimum((p * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(where, p, bins) - np.bincount(where, true.astype(np.float64), bins)
    return float(np.abs(gaps).sum() / max(1, len(p)))


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A rescorer whose log odds are shifted by a constant.

    Attributes:
        rescore: gives the log odds.
        by: the constant.
        share: true pairs among the candidates.
    """

    rescore: Rescore
    by: float
    share: float

    def __call__(self, best: BestBothWays, neighbours: NeighboursLike, k: int) -> BestBothWays:
        """Return the candidates with shifted log odds."""
        found = self.rescore(best, neighbours, k)
        return BestBothWays(self._moved(found.forward), self._moved(found.backward))

    def _moved(self, one: BestCandidates) -> BestCandidates:
        return BestCandidates(one.id, np.round(one.score + self.by, SCORE_DECIMALS) + 0.0)  # no -0.0


def calibrated(
    rescore: Rescore, share: float, best: BestBothWays, neighbours: NeighboursLike, k: int
) -> Calibrated:
    """Shift log odds that were fitted to a ``share`` of true one-to-one candidates to these corpora."""
    pairs = retrieve(rescore(best, neighbours, k), Retrieval.MAX, LOG_ODDS)
    here = pair_share(pairs.score, share)
    return Calibrated(rescore, _logit(here) - _logit(share), here)


def _logit(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return math.log(share / (1 - share))
