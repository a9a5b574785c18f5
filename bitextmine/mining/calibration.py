"""Calibrate log odds to two corpora: the share of true pairs, and the noise that their own lines show.

A scorer is fitted to text of the kinds that the encoder was trained on. On other text its log odds change too slowly
where they are low, and too fast where they are high; `evidence` mends that, by one curve for all corpora.

With another share of pairs than where it was fitted, the odds of every candidate change by one factor. The share is the
one of highest likelihood given the scores, to which the expectation-maximisation of Saerens, Latinne and Decaestecker
(2002, "Adjusting the outputs of a classifier to new a priori probabilities") converges:

    share = mean of p over the candidates, odds p / (1 - p) = likelihood ratio * share / (1 - share)

Where an encoder is weak, pairs score lower, and the share is taken for too low: the median score of the likely pairs
corrects it. The noise of other text scores higher or lower, which matters the more, the fewer translations there are.
Three kinds of lines show it: those with scores so low that nearly all pairs are wrong; those of the surest pairs when
their pair is removed and they are mined again (`noise.removed`); and those lowest of all, whose number tells how many
wrong pairs there are. From the upper fifth of the noise on, the number of wrong pairs above a score falls exponentially
(`NoiseTail`). A slope and a shift of the log odds then make the expected number of wrong pairs in every bin of scores
agree with this tail, with slope 1 and the corrected shift as prior.
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

# The slope of `evidence`: of high scores, of low ones; halfway between at a score, and how fast it changes.
_FLAT, _STEEP, _MIDDLE, _WIDTH = 0.66, 1.8, -1.5, 2.0
# Pairs of this median score have the prior shift of the share alone; it is so much lower for a score higher by one.
_USUAL_SCORE, _PER_SCORE = 7.1, 0.72
# Noise is exponential above this quantile; below the other one, all removed lines and candidates are noise.
_TAIL, _BULK = 0.8, 0.4
_FEWEST = 10  # pairs of removed lines that show the noise
# Log odds below which candidates count as noise, and those from which they enter the fit of the line.
_NOISE, _FITTED = math.log(0.1 / 0.9), math.log(0.02 / 0.98)
_SURE = 0.9  # probability of the pairs whose lines show noise when their pair is removed
# A removed pair counts as so much of a pair: translated text is of fewer kinds, and its lines more alike. The number of
# wrong pairs that the lowest scores tell counts as so much of the tail.
_WEIGHT, _LOWEST = 0.8, 0.2
_RATES = (0.2, 1.5)  # of the tail, per nat
_USUAL_RATE, _USUAL_PAIRS = 0.7, 50  # the prior of the rate, which counts as so many pairs
_BINS = 24
# Standard deviations: of the prior of slope and shift, and, relative, of the expected numbers of wrong pairs.
_SLOPE, _SHIFT, _MODEL = 0.12, 0.8, 0.65
_ROUNDS = 5
_MOST_TAKEN = 0.5  # the largest share of lines that noise is taken to occupy


def probability(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p (n,) from the logarithms of p / (1 - p)."""
    p: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return p


def evidence(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log odds of a scorer's (n,) on text of other kinds than it was fitted to, up to a shift.

    The function rises everywhere, and is 0 at 0; its slope falls from _STEEP to _FLAT.
    """
    rise = np.logaddexp(0, (_MIDDLE - score) / _WIDTH) - np.logaddexp(0, _MIDDLE / _WIDTH)
    bent: NDArray[np.float64] = _FLAT * score - (_STEEP - _FLAT) * _WIDTH * rise
    return bent


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


def neutral_score(log_odds: NDArray[np.float64], share: float) -> float:
    """Return the log odds (n,) from which a candidate is more likely true than not, by the share of highest likelihood.

    Arguments are those of `pair_share`.
    """
    return _logit(share) - _logit(pair_share(log_odds, share))


@dataclass(frozen=True)
class Removed:
    """Lines of removed pairs, mined again: the pair's own score, and that of the line's next pair, float64 (r,).

    `next` is -inf for a line without another pair; `lines` is the number of lines of its side.
    """

    score: NDArray[np.float64]
    next: NDArray[np.float64]
    lines: int


@dataclass(frozen=True)
class Noise:
    """The number of wrong pairs in the candidates, and the scores (r,) of removed lines' next pairs, ascending."""

    number: float
    score: NDArray[np.float64]

    def above(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected number of wrong pairs above scores (n,)."""
        share = 1 - np.searchsorted(self.score, score) / len(self.score)
        count: NDArray[np.float64] = self.number * share
        return count

    @classmethod
    def fit(cls, score: NDArray[np.float64], removed: tuple[Removed, ...]) -> "Noise | None":
        """Return the noise of one-to-one candidates (n,): their lowest are all wrong. None if too few were removed."""
        again = np.sort(np.concatenate([side.next[np.isfinite(side.next)] for side in removed]))
        if len(again) < _FEWEST:
            return None
        low = np.quantile(again, _BULK)
        share = np.searchsorted(again, low) / len(again)
        return cls(float((score < low).sum() / share), again) if share else None


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
        noise: Noise | None = None,
    ) -> "NoiseTail":
        """Return the tail of highest likelihood.

        Args:
            score: of the one-to-one candidates, (n,).
            p: their probabilities.
            removed: lines of both sides without their pair.
            limits: where the tail starts, and where candidates are no longer sure to be noise; the tail is truncated
                there for them, but not for the removed.
            line: slope and shift of the evidence that give the probabilities of the removed pairs.
            noise: all the noise, as the lowest scores tell it.
        """
        from scipy.optimize import minimize_scalar

        start, end = limits
        low = (score >= start) & (score < end)
        count, excess = float((1 - p)[low].sum()), float(((1 - p) * (score - start))[low].sum())
        exposure = 0.0  # of the removed lines, for each line without a translation
        for side in removed:
            own = probability(line[0] * evidence(side.score) + line[1])
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
        seen = observed(rate)
        if noise is not None:
            count += _LOWEST * float(noise.above(np.array([start]))[0])
            seen += _LOWEST
        return cls(start, count / max(seen, 1e-9), rate)


def fit_line(
    score: NDArray[np.float64], share: float, removed: tuple[Removed, ...] = ()
) -> tuple[float, float]:
    """Return slope and shift that turn the evidence of a scorer's log odds into the log odds of a corpus.

    Log odds (n,) of the one-to-one candidates hold for a `share` of true pairs.
    """
    from scipy.optimize import least_squares

    told = evidence(score)
    slope, shift = 1.0, _logit(pair_share(told, share)) - _logit(share)
    if not removed or not len(removed[0].score):
        return slope, shift
    shift -= _PER_SCORE * (float(np.median(removed[0].score)) - _USUAL_SCORE)
    prior = np.array([slope, shift])
    p = probability(told + shift)
    order = np.argsort(score, kind="stable")
    wrong = np.cumsum((1 - p)[order])
    start = float(score[order[min(len(score) - 1, int(np.searchsorted(wrong, _TAIL * wrong[-1])))]])
    noise = Noise.fit(score, removed)
    for _ in range(_ROUNDS):
        log_odds = slope * told + shift
        end = float(score[log_odds >= _NOISE].min(initial=np.inf))
        tail = NoiseTail.fit(score, p, removed, (start, max(start, end)), (slope, shift), noise)
        some = log_odds >= _FITTED
        if noise is None:
            some &= score >= start
        edges = np.unique(np.quantile(score[some], np.linspace(0, 1, _BINS + 1))) if some.any() else score[:0]
        if len(edges) < 2:
            return slope, shift
        above, below = tail.above(np.maximum(edges[:-1], start)), edges[:-1] < start
        each = np.ones(len(above))  # wrong pairs that one observed pair stands for
        if noise is not None:
            above[below] += noise.above(edges[:-1][below]) - noise.above(np.array([start]))
            each[below] += noise.number / len(noise.score)
        line = least_squares(
            _residuals,
            (slope, shift),
            bounds=((0.05, -np.inf), (5, np.inf)),
            args=(
                told[some],
                np.searchsorted(edges[1:-1], score[some], side="right"),
                -np.diff(above, append=0),
                each,
                prior,
            ),
        ).x
        slope, shift = round(float(line[0]), 6), round(float(line[1]), 6)
        p = probability(slope * told + shift)
    return slope, shift


def _residuals(
    line: NDArray[np.float64],
    told: NDArray[np.float64],
    where: NDArray[np.int64],
    expected: NDArray[np.float64],
    each: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far the numbers of wrong pairs in the bins, and slope and shift, are from those expected.

    Numbers are compared by their square roots (Anscombe 1948), whose variance is that of the observed pairs
    and of the model alone.
    """
    wrong = np.bincount(where, 1 - probability(line[0] * told + line[1]), len(expected))
    gaps = 2 * (np.sqrt(wrong + 0.375) - np.sqrt(expected + 0.375)) / np.sqrt(each + _MODEL**2 * expected)
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
    """The slope and shift of the evidence for two corpora, with the share of true candidates and the pairs unseen."""

    slope: float
    shift: float
    share: float
    unseen: float

    def log_odds(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the calibrated log odds of a scorer's (n,), rounded."""
        return rounded(self.slope * evidence(score) + self.shift)

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
    log_odds = slope * evidence(score) + shift
    true = float(probability(log_odds).mean()) if len(score) else share
    return Calibration(slope, shift, true, unseen_pairs(log_odds, lines))


def _logit(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return math.log(share / (1 - share))
