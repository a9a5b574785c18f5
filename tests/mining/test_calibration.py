"""The share of true pairs, found without knowing which they are, and odds that hold at it."""

import numpy as np
import pytest

from bitextmine.mining.calibration import (
    PRIOR_CANDIDATES,
    Noise,
    NoiseTail,
    Removed,
    calibrate,
    evidence,
    fit_line,
    pair_share,
    probability,
    unseen_pairs,
)
from bitextmine.mining.margin import BestBothWays, BestCandidates

FIT = 0.2


def logit(p):
    return float(np.log(p / (1 - p)))


def calibration_error(p, true, bins=10):
    """The gap between probability and share of true ones, averaged over bins of equal width (Naeini et al. 2015)."""
    where = np.minimum((p * bins).astype(int), bins - 1)
    return np.abs(np.bincount(where, p - true, bins)).sum() / len(p)


def scores(n, share, seed):
    """Log odds at FIT of n candidates, and which are true: normal scores, whose ratio of likelihoods is known."""
    rng = np.random.default_rng(seed)
    true = rng.random(n) < share
    x = rng.standard_normal(n) + np.where(true, 3.0, 0.0)
    return 3 * x - 4.5 + logit(FIT), true


def em(log_odds, share):
    """The iteration of Saerens et al., with PRIOR_CANDIDATES besides."""
    ratio = np.exp(log_odds - logit(FIT))
    for _ in range(20_000):
        p = ratio * share / (ratio * share + 1 - share)
        share = (p.sum() + PRIOR_CANDIDATES * FIT) / (len(p) + PRIOR_CANDIDATES)
    return share


@pytest.mark.parametrize("share", [0.01, 0.2, 0.7, 0.99])
def test_the_share_is_found_and_the_probabilities_hold(share):
    log_odds, true = scores(20_000, share, 3)
    found = pair_share(log_odds, FIT)
    assert found == pytest.approx(true.mean(), abs=0.01)
    p = probability(log_odds + logit(found) - logit(FIT))
    assert p.mean() == pytest.approx(found, abs=1e-3)
    assert calibration_error(p, true) < 0.03
    if share != FIT:
        assert calibration_error(p, true) < calibration_error(probability(log_odds), true)


@pytest.mark.parametrize("n", [1, 5, 300])
def test_it_is_where_the_iteration_comes_to_rest(n):
    log_odds, _ = scores(n, 0.3, n)
    assert pair_share(log_odds, FIT) == pytest.approx(em(log_odds, 0.5), abs=1e-6)


def test_few_candidates():
    assert pair_share(np.zeros(0), FIT) == pytest.approx(FIT)
    sure = pair_share(np.full(1, 50.0), FIT)
    assert FIT < sure < 0.6, "one pair does not settle it"
    assert 0 < pair_share(np.full(5000, -50.0), FIT) < 1e-3
    assert 1 - 1e-3 < pair_share(np.full(5000, 50.0), FIT) < 1


GRID = np.linspace(-60, 60, 60_001)


def scorer_of(told):
    """The log odds of a scorer that are evidence `told`."""
    return np.interp(told, evidence(GRID), GRID)


def test_evidence_rises_the_faster_the_lower():
    """Its slope is the logistic curve from 1.8 to 0.66; the area under it is the evidence."""
    slope = 0.66 + 1.14 / (1 + np.exp((GRID + 1.5) / 2))
    area = np.concatenate([[0], np.cumsum((slope[1:] + slope[:-1]) / 2 * np.diff(GRID))])
    np.testing.assert_allclose(evidence(GRID), area - np.interp(0, GRID, area), atol=1e-3)
    np.testing.assert_allclose(np.gradient(evidence(GRID), GRID)[1:-1], slope[1:-1], atol=1e-4)


def test_candidates_get_the_odds_of_their_corpora():
    told, true = scores(4000, 0.5, 1)
    log_odds, rows = scorer_of(told), np.arange(4000)
    calibration = calibrate(log_odds, FIT, (4000, 4000))
    assert calibration.slope == 1.0
    assert (
        calibration.details()["share_of_pairs"] == calibration.share == pytest.approx(true.mean(), abs=0.02)
    )
    best = BestCandidates(rows, log_odds)
    moved = calibration.apply(BestBothWays(best, best))
    for side in (moved.forward, moved.backward):
        assert (side.id == rows).all()
        np.testing.assert_allclose(side.score, told + calibration.shift, atol=1e-3)
        np.testing.assert_array_equal(side.score, np.round(side.score, 6))


FITTED = 0.7  # nats by which noise falls in one nat, where the scorer was fitted
LOWEST, TOP = -5.0, 14.0  # the scores of noise start where those of pairs end


def corpora(share, rate, n=20_000, seed=5):
    """Log odds of n one-to-one pairs, which of them are true, and lines of removed pairs.

    Noise falls by `rate`, and the scorer took this to be FITTED: the pairs are where its evidence has them.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(LOWEST, TOP, 10_001)
    below = np.cumsum(np.exp(evidence(x) - FITTED * x))
    true = rng.random(n) < share

    def noise(count):
        return LOWEST + rng.exponential(1 / rate, count)

    log_odds = np.where(true, np.interp(rng.random(n), below / below[-1], x), noise(n))
    return log_odds, true, tuple(Removed(log_odds[true], noise(true.sum()), n) for _ in range(2))


@pytest.mark.parametrize("rate", [0.45, 0.8])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_the_tail_of_the_noise_is_found(share, rate):
    log_odds, true, removed = corpora(share, rate)
    start = float(np.quantile(log_odds[~true], 0.8))
    # A high shift: all removed pairs count as sure.
    tail = NoiseTail.fit(log_odds, true.astype(float), removed, (start, start + 2 / rate), (1.0, 99.0))
    for score in (start, start + 1 / rate, start + 3 / rate):
        expected = (~true).sum() * np.exp(-rate * (score - LOWEST))
        assert tail.above(np.array([score]))[0] == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_the_lowest_candidates_tell_the_number_of_wrong_pairs(share):
    log_odds, true, removed = corpora(share, FITTED)
    noise = Noise.fit(log_odds, removed)
    assert noise.number == pytest.approx((~true).sum(), rel=0.1)
    for score in (LOWEST, LOWEST + 1, LOWEST + 3):
        assert noise.above(np.array([score]))[0] == pytest.approx((log_odds[~true] > score).sum(), rel=0.15)
    few = tuple(Removed(side.score[:3], side.next[:3], side.lines) for side in removed)
    assert Noise.fit(log_odds, few) is None


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_noise_that_scores_higher_than_where_the_scorer_was_fitted(share):
    """Removed pairs show that the noise reaches higher than the scorer knows, and mend the probabilities."""
    log_odds, true, removed = corpora(share, 0.6)
    errors = []
    for some in ((), removed):
        slope, shift = fit_line(log_odds, FIT, some)
        p = probability(slope * evidence(log_odds) + shift)
        kept = p > 0.5
        errors.append(abs(p[kept].mean() - true[kept].mean()))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.15


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_noise_as_where_the_scorer_was_fitted(share):
    log_odds, true, removed = corpora(share, FITTED)
    slope, shift = fit_line(log_odds, FIT, removed)
    assert slope == pytest.approx(1, abs=0.15)
    assert calibration_error(probability(slope * evidence(log_odds) + shift), true) < 0.02


def test_pairs_that_score_lower_where_the_encoder_is_weak():
    """They are taken for noise by the share alone; the median of the likely pairs and the noise mend that."""
    rng = np.random.default_rng(3)
    true = rng.random(3000) < 0.6
    log_odds = np.where(true, rng.normal(1, 3.5, 3000), rng.normal(-5.5, 1, 3000))
    likely = true & (log_odds > 0)
    again = (rng.normal(-5.5, 1, likely.sum()) for _ in range(2))
    removed = tuple(Removed(log_odds[likely], other, 3000) for other in again)
    errors = []
    for some in ((), removed):
        slope, shift = fit_line(log_odds, FIT, some)
        errors.append(calibration_error(probability(slope * evidence(log_odds) + shift), true))
    assert errors[1] < 0.5 * errors[0]


def test_pairs_that_noise_hides():
    """A true pair loses to noise on either side as often as noise scores higher."""
    rng = np.random.default_rng(2)
    n = 20_000
    noise = rng.normal(-4, 1, n)
    true = rng.normal(-3.5, 1, 2000)
    seen = (true > rng.choice(noise, 2000)) & (true > rng.choice(noise, 2000))
    lost = (~seen).sum()
    log_odds = np.concatenate([noise, true[seen]])
    assert 0 < unseen_pairs(log_odds, (n, n)) < lost
    assert unseen_pairs(np.full(100, 9.0), (1000, 1000)) == pytest.approx(0, abs=0.1)
    assert unseen_pairs(np.zeros(0), (5, 5)) == 0
