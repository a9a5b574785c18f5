"""Calibrate log odds to two corpora: the share of true pairs, and the noise that their own lines show.

A scorer is fitted where a known share of the candidates are pairs. With another share the odds of every candidate
change by one factor. The share is the one of highest likelihood given the scores, to which the
expectation-maximisation of Saerens, Latinne and Decaestecker (2002, "Adjusting the outputs of a classifier to new a
priori probabilities") converges:

    share = mean of p over the candidates, odds p / (1 - p) = likelihood ratio * share / (1 - share)

This assumes that noise scores as it did where the scorer was fitted. In other text it scores higher or lower, which
matters the more, the fewer translations there are. Two kinds of lines show it: those with scores so low that nearly all
pairs are wrong, and those of the surest pairs when their pair is removed and they are mined again (`noise.removed`).
From the upper fifth of the noise on, the number of wrong pairs above a score falls exponentially (`NoiseTail`). A slope
and a shift of the log odds then make the expected number of wrong pairs in every bin of scores agree with this tail,
with the scorer's slope and the shift of highest likelihood as prior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.margin import BestBothWays, BestCandidates, rounded

# The prior share counts as this many candidates, so that a handful does not determine it.
PRIOR_CANDIDATES = 2.0
# Limit of the evidence of one score: no single candidate settles the share.
MOST_LOG_RATIO = 15.0
HALVINGS = 60

# Noise is exponential above this quantile.
_TAIL = 0.8
# Log odds below which candidates count as noise, and those from which they enter the fit of the line.
_NOISE, _FITTED = math.log(0.1 / 0.9), math.log(0.02 / 0.98)
_SURE = 0.9  # probability of the pairs whose lines show noise when their pair is removed
# A removed pair counts as so much of a pair: translated text is of fewer kinds, and its lines more alike.
_WEIGHT = 0.2
_RATES = (0.2, 1.5)  # of the tail, per nat
_USUAL_RATE, _USUAL_PAIRS = 0.62, 50  # the prior of the rate, which counts as so many pairs
_BINS = 24
# Standard deviations: of the prior of slope and shift, and, relative, of the tail.
_SLOPE, _SHIFT, _MODEL = 0.12, 1.0, 0.4
_ROUNDS = 4
_MOST_TAKEN = 0.5  # the largest share of lines that noise is taken to occupy


def probability(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p (n,) from the logarithms of p / (1 - p)."""
    p: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return p


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


@dataclass(frozen=True)
class Removed:
    """Lines of removed pairs, mined again: the pair's own score, and that of the line's next pair, float64 (r,).

    `next` is -inf for a line without another pair; `lines` is the number of lines of its side.
    """

    score: NDArray[np.float64]
    next: NDArray[np.float64]
    lines: int


@dataclass(frozen=True)
class NoiseTail:
    """The number of wrong pairs above a score, `number` * exp(-`rate` * (score - `start`))."""

    start: float
    number: float
    rate: float

    def above(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected number of wrong pairs above scores (n,) from `start` on."""
        count: NDArray[np.float64] = self.number * np.exp(-self.rate * (score - self.start))
        return count

    @classmethod
    def fit(
        cls,
        score: NDArray[np.float64],
        p: NDArray[np.float64],
        removed: tuple[Removed, ...],
        limits: tuple[float, float],
        line: tuple[float, float],
    ) -> "NoiseTail":
        """Return the tail of highest likelihood.

        Args:
            score: of the one-to-one candidates, (n,).
            p: their probabilities.
            removed: lines of both sides without their pair.
            limits: where the tail starts, and where candidates are no longer sure to be noise; the tail is truncated
                there for them, but not for the removed.
            line: slope and shift that give the probabilities of the removed pairs.
        """
        from scipy.optimize import minimize_scalar

        start, end = limits
        low = (score >= start) & (score < end)
        count, excess = float((1 - p)[low].sum()), float(((1 - p) * (score - start))[low].sum())
        exposure = 0.0  # of the removed lines, for each line without a translation
        for side in removed:
            own = probability(line[0] * side.score + line[1])
            # Both sides have the same pairs.
            weight = np.where(own >= _SURE, own, 0.0) * (_WEIGHT / len(removed))
            high = side.next >= start
            count += float(weight[high].sum())
            excess += float((weight[high] * (side.next[high] - start)).sum())
            exposure += float(weight.sum()) / max(side.lines - float(p.sum()), 1.0)

        def observed(rate: float) -> float:
            """Return the share of the wrong pairs in the tail that is seen."""
            return float(-np.expm1(-rate * (end - start))) + exposure

        def loss(rate: float) -> float:
            prior = _USUAL_PAIRS * (math.log(rate) - rate / _USUAL_RATE)
            return count * math.log(max(observed(rate), 1e-300) / rate) + rate * excess - prior

        rate = float(minimize_scalar(loss, bounds=_RATES, method="bounded").x)
        return cls(start, count / max(observed(rate), 1e-9), rate)


def fit_line(
    score: NDArray[np.float64], share: float, removed: tuple[Removed, ...] = ()
) -> tuple[float, float]:
    """Return slope and shift that turn a scorer's log odds into those of a corpus.

    Log odds (n,) of the one-to-one candidates hold for a `share` of true pairs.
    """
    from scipy.optimize import least_squares

    slope, shift = 1.0, _logit(pair_share(score, share)) - _logit(share)
    if not removed or not len(score):
        return slope, shift
    prior = np.array([slope, shift])
    p = probability(score + shift)
    order = np.argsort(score, kind="stable")
    noise = np.cumsum((1 - p)[order])
    start = float(score[order[min(len(score) - 1, int(np.searchsorted(noise, _TAIL * noise[-1])))]])
    limits = start, max(start, _NOISE - shift)
    fitted = score[score >= max(start, _FITTED - shift)]
    edges = np.unique(np.quantile(fitted, np.linspace(0, 1, _BINS + 1))) if len(fitted) else fitted
    if len(edges) < 2:
        return slope, shift
    edges[-1] = np.inf
    where = np.searchsorted(edges, fitted, side="right") - 1
    for _ in range(_ROUNDS):
        tail = NoiseTail.fit(score, p, removed, limits, (slope, shift))
        expected = -np.diff(tail.above(edges))
        line = least_squares(
            _residuals,
            (slope, shift),
            bounds=((0.05, -np.inf), (5, np.inf)),
            args=(fitted, where, expected, prior),
        ).x
        slope, shift = round(float(line[0]), 6), round(float(line[1]), 6)
        p = probability(slope * score + shift)
    return slope, shift


def _residuals(
    line: NDArray[np.float64],
    score: NDArray[np.float64],
    where: NDArray[np.int64],
    expected: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far the numbers of wrong pairs in the bins, and slope and shift, are from those expected.

    Numbers are compared by their square roots (Anscombe 1948), whose variance is that of the model alone.
    """
    wrong = np.bincount(where, 1 - probability(line[0] * score + line[1]), len(expected))
    gaps = 2 * (np.sqrt(wrong + 0.375) - np.sqrt(expected + 0.375)) / np.sqrt(1 + _MODEL**2 * expected)
    return np.concatenate([gaps, (line - prior) / (_SLOPE, _SHIFT)])


def unseen_pairs(log_odds: NDArray[np.float64], lines: Sequence[int]) -> float:
    """Return the expected number of true pairs that are no candidates, as noise has taken one of their lines.

    Args:
        log_odds: of the one-to-one candidates, (n,), calibrated.
        lines: of both sides.
    """
    p = probability(log_odds)
    order = np.argsort(-log_odds, kind="stable")
    above = np.empty(len(p))
    above[order] = np.cumsum((1 - p)[order])
    free = np.ones(len(p))
    for count in lines:
        free *= 1 - np.clip(above / max(count - float(p.sum()), 1.0), 0, _MOST_TAKEN)
    return float((p * (1 / free - 1)).sum())


@dataclass(frozen=True)
class Calibration:
    """The slope and shift of log odds for two corpora, with the share of true candidates and the pairs unseen."""

    slope: float
    shift: float
    share: float
    unseen: float

    @property
    def neutral(self) -> float:
        """Return the scorer's log odds of a pair that is as likely true as not."""
        return -self.shift / self.slope

    def log_odds(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the calibrated log odds of a scorer's (n,), rounded."""
        return rounded(self.slope * score + self.shift)

    def apply(self, scored: BestBothWays) -> BestBothWays:
        """Return candidates with calibrated log odds."""
        forward, backward = (
            BestCandidates(best.id, self.log_odds(best.score)) for best in (scored.forward, scored.backward)
        )
        return BestBothWays(forward, backward)

    def details(self) -> dict[str, float]:
        """Return the calibration, ready for JSON."""
        return {"share_of_pairs": self.share, "slope": self.slope, "shift": self.shift}


def calibrate(
    score: NDArray[np.float64], share: float, lines: Sequence[int], removed: tuple[Removed, ...] = ()
) -> Calibration:
    """Calibrate log odds (n,) of one-to-one candidates, which were fitted to a `share` of true ones, to corpora.

    Args:
        score: the log odds.
        share: the share of true pairs for which they hold.
        lines: of both corpora.
        removed: what the lines of removed pairs score, for both sides; none in small corpora.
    """
    slope, shift = fit_line(score, share, removed)
    log_odds = slope * score + shift
    true = float(probability(log_odds).mean()) if len(score) else share
    return Calibration(slope, shift, true, unseen_pairs(log_odds, lines))


def _logit(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return math.log(share / (1 - share))
