"""The share of true pairs, found without knowing which they are, and odds that hold at it."""

import numpy as np
import pytest

from bitextmine.mining.calibration import (
    PRIOR_CANDIDATES,
    Calibrated,
    calibrated,
    calibration_error,
    fit_line,
    pair_share,
    probability,
)
from bitextmine.mining.margin import BestBothWays, BestCandidates

FIT = 0.2


def logit(p):
    return float(np.log(p / (1 - p)))


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
    assert calibration_error(p, true) < 0.02
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


def test_the_error_of_probabilities():
    p, true = np.array([0.05, 0.05, 0.95, 1.0]), np.array([False, True, True, True])
    assert calibration_error(p, true) == pytest.approx((abs(0.1 - 1) + abs(1.95 - 2)) / 4)
    assert calibration_error(np.zeros(0), np.zeros(0, dtype=bool)) == 0


def test_candidates_get_the_odds_of_their_corpora():
    log_odds, true = scores(4000, 0.5, 1)
    rows = np.arange(4000)
    best = BestBothWays(BestCandidates(rows, np.zeros(4000)), BestCandidates(rows, np.zeros(4000)))

    def rescore(both, found, k):
        assert both is best and k == 4
        return BestBothWays(BestCandidates(rows, log_odds), BestCandidates(rows, log_odds))

    moved = calibrated(rescore, FIT, best, None, 4)
    assert (moved.slope, moved.details()["share_of_pairs"]) == (1.0, moved.share)
    assert isinstance(moved, Calibrated) and moved.share == pytest.approx(true.mean(), abs=0.02)
    again = moved(best, None, 4)
    for one in (again.forward, again.backward):
        assert (one.id == rows).all()
        np.testing.assert_allclose(one.score, log_odds + moved.shift, atol=1e-6)
        np.testing.assert_array_equal(one.score, np.round(one.score, 6))


@pytest.mark.parametrize("decoys_per_line", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.03, 0.3])
def test_noise_that_scores_higher_than_where_the_scorer_was_fitted(share, decoys_per_line):
    """A crawl: the noise is wider than the scorer knows; decoys of that width mend the probabilities."""
    rng = np.random.default_rng(5)
    true = rng.random(30_000) < share
    x = np.where(true, rng.normal(3, 1, len(true)), rng.normal(0, 1.35, len(true)))
    log_odds = 3 * x - 4.5 + logit(FIT)
    decoys = [3 * rng.normal(0, 1.35, int(decoys_per_line * len(true))) - 4.5 + logit(FIT) for _ in range(2)]
    plain, mended = (fit_line(log_odds, FIT, some) for some in ((), decoys))
    p = [probability(slope * log_odds + shift) for slope, shift in (plain, mended)]
    before, after = (calibration_error(q, true) for q in p)
    assert plain[0] == 1.0 and mended[0] < 1.0
    assert after < 0.7 * before and after < 0.03
    kept = p[1] > 0.5
    # The prior of the slope, which small corpora need, keeps it from going all the way.
    assert true[kept].mean() == pytest.approx(p[1][kept].mean(), abs=0.1)


def test_decoys_that_agree_with_the_scorer_change_little():
    log_odds, _ = scores(20_000, 0.3, 7)
    decoys, wrong = scores(20_000, 0.3, 8)
    plain, mended = fit_line(log_odds, FIT), fit_line(log_odds, FIT, [decoys[~wrong]])
    assert mended[0] == pytest.approx(1, abs=0.1) and mended[1] == pytest.approx(plain[1], abs=0.5)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_a_line_of_few_candidates_is_near_the_prior(n):
    log_odds, _ = scores(n, 0.5, 2)
    slope, shift = fit_line(log_odds, FIT, [np.full(5, -3.0)])
    assert 0.5 < slope < 1.5 and np.isfinite(shift)
