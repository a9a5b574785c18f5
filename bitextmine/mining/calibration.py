"""Calibrate log odds to a corpus: the share of true pairs, and the noise that decoys show.

A scorer is fitted where a known share of the candidates are pairs. With another share the odds of every candidate
change by one factor. The share is the one of highest likelihood given the scores, to which the
expectation-maximisation of Saerens, Latinne and Decaestecker (2002, "Adjusting the outputs of a classifier to new a
priori probabilities") converges:

    share = mean of p over the candidates, odds p / (1 - p) = likelihood ratio * share / (1 - share)

This assumes that noise scores as it did where the scorer was fitted. In a crawl it scores higher: manuals and games
repeat themselves with one word changed. Sentences of the same language (decoys, see `noise`) show how much higher,
because the scores of the best wrong pairs across languages have the distribution of those within a language, up to a
factor in their number. The factor comes from scores so low that nearly all candidates are noise. A slope and a shift
of the log odds then make the expected number of wrong pairs agree with the decoys in every bin of scores, weighted by
the uncertainty of each number, with the scorer's own slope and shift as prior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.choices import Margin, Retrieval
from bitextmine.mining.cleaning import near_copies
from bitextmine.mining.margin import LOG_ODDS, BestBothWays, BestCandidates, Rescore, rounded
from bitextmine.mining.noise import MIN_LINES, Within, search_within
from bitextmine.mining.retrieval import retrieve
from bitextmine.mining.scorer import NEIGHBOURS, Rescorer, pair_cosines
from bitextmine.mining.sides import Side
from bitextmine.search.neighbours import Neighbours

# The prior share counts as this many candidates, so that a handful does not determine it.
PRIOR_CANDIDATES = 2.0
# Limit of the evidence of one score: no single candidate settles the share.
MOST_LOG_RATIO = 15.0
HALVINGS = 60

# Candidates of these probabilities are noise but for a few, and enough to count; in small corpora the lowest so many.
_LEAST, _MOST = 0.02, 0.1
_DOUBTFUL = 50
_BINS = 24
# Standard deviations: of the prior of slope and shift, and, relative, of the number of decoys, which model noise.
_SLOPE, _SHIFT, _MODEL = 0.08, 0.7, 0.2
_ROUNDS = 2
# Decoys below these log odds count in no bin; no need to find the copies among them.
_LOWEST = -5.0
# More words than between languages must be equal in a near copy: sentences of a manual with one word in four changed
# are wrong pairs across languages, too. With 0.7 decoys in crawls were too few, with 0.9 too many (mine/quality.md).
_COPY_SHARE = 0.8


def probability(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p (n,) from the logarithms of p / (1 - p)."""
    found: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return found


def pair_share(log_odds: NDArray[np.float64], share: float) -> float:
    """Return the share of true pairs among candidates, from log odds (n,) that hold where `share` of them are true.

    The likelihood is concave in the share, so halving an interval finds the limit of the iteration.
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


def fit_line(
    score: NDArray[np.float64], share: float, decoys: Sequence[NDArray[np.float64]] = ()
) -> tuple[float, float]:
    """Return slope and shift that turn a scorer's log odds into those of a corpus.

    Log odds (n,) of the one-to-one candidates hold for a `share` of true pairs; decoys are those of the best wrong
    pairs within each language.
    """
    prior = _logit(pair_share(score, share)) - _logit(share)
    slope, shift = 1.0, prior
    if not decoys or not len(score):
        return slope, shift
    for _ in range(_ROUNDS):
        lowest, highest = ((_logit(p) - shift) / slope for p in (_LEAST, _MOST))
        above = np.sort(score[score >= lowest])
        if len(above) > _DOUBTFUL:
            highest = max(highest, float(above[_DOUBTFUL]))
        doubtful = above[above < highest]
        among = np.mean([((some >= lowest) & (some < highest)).sum() for some in decoys])
        factor = float(((1 - probability(slope * doubtful + shift)).sum() + 1) / (among + 1))
        high = score[score >= lowest]
        if not len(high):
            break
        edges = np.unique(np.quantile(high, np.linspace(0, 1, _BINS + 1)))
        edges[-1] = np.inf
        if len(edges) < 2:
            break
        expected = factor * np.mean([np.histogram(some, edges)[0] for some in decoys], axis=0)
        deviation = np.sqrt(factor * expected + factor**2 + 1 + (_MODEL * expected) ** 2)
        slope, shift = _least_squares(high, edges, expected, deviation, (slope, shift), (1.0, prior))
    return slope, shift


def search_decoys(sides: Sequence[Side]) -> list[Within]:
    """Search each side for its best pairs within itself; none if a side has fewer than MIN_LINES rows."""
    if min((len(side.unique.rows) for side in sides), default=0) < MIN_LINES:
        return []
    return [search_within(side.vectors, NEIGHBOURS, Margin.RATIO) for side in sides]


def decoy_log_odds(
    rescorer: Rescorer, sides: Sequence[Side], searched: Sequence[Within]
) -> list[NDArray[np.float64]]:
    """Return the scorer's log odds of the decoys of each side, as `search_decoys` found them.

    Copies and near copies are left out: across languages they are no candidates.
    """
    found = []
    for number, within in enumerate(searched):
        rows = np.flatnonzero(within.best.id >= 0)
        others = within.best.id[rows]
        # Two rows that are each other's best are compared once.
        codes = np.minimum(rows, others) * len(within.rows) + np.maximum(rows, others)
        _, first, pair = np.unique(codes, return_index=True, return_inverse=True)
        one, other = rows[first], others[first]
        near = within.neighbours
        cosine = pair_cosines(one, other, near.fwd_sim, near.fwd_id)
        score = rescorer.within(number, within.rows).scores(one, other, cosine, near, NEIGHBOURS)
        high = np.flatnonzero(score >= _LOWEST)
        used, at = np.unique(np.stack([one[high], other[high]]), return_inverse=True)
        at = at.reshape(2, len(high))  # NumPy 1 flattens it
        lines = list(sides[number].text.take(sides[number].unique.rows[within.rows[used]]))
        score[high[near_copies(lines, (at[0], at[1]), 0, _COPY_SHARE)]] = -np.inf
        found.append(score[pair])
    return found


def _least_squares(
    score: NDArray[np.float64],
    edges: NDArray[np.float64],
    expected: NDArray[np.float64],
    deviation: NDArray[np.float64],
    start: tuple[float, float],
    prior: tuple[float, float],
) -> tuple[float, float]:
    """Return slope and shift with which the numbers of wrong pairs in the bins come closest to the expected ones."""
    from scipy.optimize import least_squares

    where = np.searchsorted(edges, score, side="right") - 1

    def residuals(line: NDArray[np.float64]) -> NDArray[np.float64]:
        wrong = np.bincount(where, 1 - probability(line[0] * score + line[1]), len(expected))
        apart = (line - prior) / (_SLOPE, _SHIFT)
        found: NDArray[np.float64] = np.concatenate([(wrong - expected) / deviation, apart])
        return found

    found = least_squares(residuals, start, bounds=((0.05, -np.inf), (5, np.inf))).x
    return round(float(found[0]), 6), round(float(found[1]), 6)


@dataclass(frozen=True)
class Calibrated:
    """A rescorer whose log odds are calibrated by a slope and a shift, with the share of true pairs that results."""

    rescore: Rescore
    slope: float
    shift: float
    share: float

    def __call__(self, best: BestBothWays, neighbours: Neighbours, k: int) -> BestBothWays:
        """Return the candidates with calibrated log odds."""
        found = self.rescore(best, neighbours, k)
        return BestBothWays(self._moved(found.forward), self._moved(found.backward))

    def details(self) -> dict[str, float]:
        """Return the calibration, ready for JSON."""
        return {"share_of_pairs": self.share, "slope": self.slope, "shift": self.shift}

    def _moved(self, one: BestCandidates) -> BestCandidates:
        return BestCandidates(one.id, rounded(self.slope * one.score + self.shift))


def calibrated(
    rescore: Rescore,
    share: float,
    best: BestBothWays,
    neighbours: Neighbours,
    k: int,
    decoys: Sequence[NDArray[np.float64]] = (),
) -> Calibrated:
    """Calibrate log odds that were fitted to a `share` of true one-to-one candidates to these corpora."""
    score = retrieve(rescore(best, neighbours, k), Retrieval.MAX, LOG_ODDS).score
    slope, shift = fit_line(score, share, decoys)
    true = float(probability(slope * score + shift).mean()) if len(score) else share
    return Calibrated(rescore, slope, shift, true)


def _logit(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return math.log(share / (1 - share))
