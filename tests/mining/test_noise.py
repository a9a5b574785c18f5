"""The estimated false-positive rate against the true one, on corpora whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.mining.margin import candidates
from bitextmine.mining.noise import Decoys, fit_mixture, fit_null, search_within, without_pairs
from bitextmine.mining.options import MiningOptions
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.search.exact import search_both


def two_sides(n, m, true, *, dim=64, noise=0.9, topics=60, seed=0):
    """n and m sentences around common topics, the first `true` of both sides translations of each other."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((topics, dim))

    def sentences(count):
        return 0.7 * centres[rng.integers(0, topics, count)] + rng.standard_normal((count, dim))

    meaning = sentences(true)
    sides = []
    for size in (n, m):
        v = np.concatenate([meaning, sentences(size - true)]) + noise * rng.standard_normal((size, dim))
        sides.append((v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float16))
    return sides


def searched(x, y, k=4, margin="ratio"):
    """The neighbours, one to spare, and the best candidates among them."""
    neighbours = search_both(x, y, k + 1)
    return neighbours, candidates(neighbours, k, margin)


def decoys_of(*sides, k=4, margin="ratio"):
    return lambda: [search_within(side, k, margin) for side in sides]


def true_rate(pairs, true, lines, by_source, threshold):
    ends = pairs.src if by_source else pairs.tgt
    kept = np.unique(ends[pairs.score >= threshold])
    return float((kept >= true).sum() / (lines - true))


@pytest.mark.parametrize("k", [4, 16])
@pytest.mark.parametrize(("true", "factor"), [(2000, 2.5), (300, 2.2), (30, 4), (0, 4)])
def test_within_a_small_factor(k, true, factor):
    n, m = 5000, 5500
    x, y = two_sides(n, m, true)
    neighbours, best = searched(x, y, k)
    null = fit_null(neighbours, best, decoys_of(x, y, k=k), MiningOptions(k))
    assert null.side == "source"
    pairs = retrieve(best, "max")
    for rate in (0.01, 0.05):
        found = true_rate(pairs, true, n, True, null.at_rate(rate))
        assert rate / factor <= found <= rate * factor


@pytest.mark.parametrize(
    ("margin", "retrieval"),
    [
        ("ratio", "forward"),
        ("distance", "backward"),
        ("absolute", "intersect"),
        ("distance", "union"),
        ("absolute", "max"),
    ],
)
def test_every_margin_and_retrieval(margin, retrieval):
    n, m, true = 5000, 4500, 1500
    x, y = two_sides(n, m, true, noise=0.7)
    neighbours, best = searched(x, y, margin=margin)
    decoys = decoys_of(x, y, margin=margin)
    null = fit_null(neighbours, best, decoys, MiningOptions(4, margin, retrieval))
    by_source = retrieval == "forward"
    assert null.side == ("source" if by_source else "target")
    found = true_rate(retrieve(best, retrieval), true, n if by_source else m, by_source, null.at_rate(0.05))
    assert 0.025 <= found <= 0.1


def test_without_pairs_is_a_search_in_which_they_never_met():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((30, 8)).astype(np.float32) for _ in range(2))
    wide = search_both(x, y, 5)
    chosen = ScoredPairs(
        np.array([3, 8, 0]), np.array([int(wide.fwd_id[3, 0]), int(wide.fwd_id[8, 3]), 29]), np.zeros(3)
    )
    assert len(set(chosen.tgt.tolist())) == 3
    got = without_pairs(wide, chosen, 4)
    cos = x.astype(np.float64) @ y.astype(np.float64).T
    cos[chosen.src, chosen.tgt] = -np.inf
    assert np.array_equal(got.fwd_id, np.argsort(-cos, axis=1, kind="stable")[:, :4])
    assert np.array_equal(got.bwd_id, np.argsort(-cos.T, axis=1, kind="stable")[:, :4])
    assert np.allclose(got.fwd_sim, -np.sort(-cos, axis=1)[:, :4], atol=1e-5)


@given(
    st.lists(st.floats(-2, 3, allow_nan=False) | st.just(float("-inf")), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_any_scores_give_probabilities_that_do_not_fall(scores, random):
    s1 = np.array(scores)
    s2 = np.array([random.choice([s, s - random.random(), float("-inf")]) for s in scores])
    found = fit_mixture(s1, s2, list, 1)
    true = found(np.sort(s1))
    assert ((true >= 0) & (true <= 1)).all()
    assert (np.diff(true) >= -1e-9).all()


def sides_with_near_copies(n, true, *, dim=64, seed=0):
    """n sentences a side, the first `true` translations; a fifth of all comes in families that say nearly the same."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((60, dim))
    themes = 0.7 * topics[rng.integers(0, 60, 2 * n)] + rng.standard_normal((2 * n, dim))
    shared = rng.permutation(n // 2)
    meaning = themes[n : n + true]
    sides = []
    for _ in (0, 1):
        own = 0.7 * topics[rng.integers(0, 60, n - true)] + rng.standard_normal((n - true, dim))
        some = rng.permutation(n - true)[: n // 5]
        own[some] = themes[shared[rng.integers(0, len(shared), len(some))]] + rng.uniform(
            0.3, 1.2, (len(some), 1)
        ) * (rng.standard_normal((len(some), dim)))
        v = np.concatenate([meaning, own]) + 0.5 * rng.standard_normal((n, dim))
        sides.append((v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float16))
    return sides


def test_decoys_see_near_copies():
    n, true = 5000, 60
    x, y = sides_with_near_copies(n, true)
    neighbours, best = searched(x, y)
    without, seen = (
        fit_null(neighbours, best, decoys, MiningOptions()) for decoys in (list, decoys_of(x, y))
    )
    pairs = retrieve(best, "max")
    right = (pairs.src == pairs.tgt) & (pairs.src < true)
    for kept in (100, 200):
        cut = float(pairs.score[kept - 1])
        truth = float(right[:kept].mean())
        assert abs(seen.precision(cut) - truth) < abs(without.precision(cut) - truth)
        low, high = seen.precision_interval(cut)
        assert 0 <= low < seen.precision(cut) < high <= 1


def test_decoys_are_the_best_margins_within_a_side():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, 8))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x.astype(np.float16)
    cos = x.astype(np.float64) @ x.astype(np.float64).T
    np.fill_diagonal(cos, -np.inf)
    mean = -np.sort(-cos, axis=1)[:, :3].mean(axis=1)
    near = np.argsort(-cos, axis=1)[:, :3]
    expected = [max(cos[i, j] / ((mean[i] + mean[j]) / 2) for j in near[i]) for i in range(40)]
    assert search_within(x, 3, "ratio").score == pytest.approx(sorted(expected), abs=1e-5)


def test_above_is_the_share_of_decoys_where_scales_and_pools_are_the_same():
    score = np.sort(np.random.default_rng(0).gumbel(size=4000))
    some = Decoys(score, 500)
    at = np.quantile(score, [0.5, 0.8])
    marks = np.quantile(score, [0.5, 0.9, 0.99])
    assert some.above(marks, (0.5, 0.8), at, 500) == pytest.approx([0.5, 0.1, 0.01], abs=2e-3)
    # shifted and stretched scores are as far out
    assert some.above(3 * marks - 1, (0.5, 0.8), 3 * at - 1, 500) == pytest.approx([0.5, 0.1, 0.01], abs=2e-3)
    # beyond the highest it goes on falling
    far = some.above(score[-1] + np.array([0.0, 1.0, 2.0]), (0.5, 0.8), at, 500)
    assert (np.diff(far) < 0).all() and (far > 0).all()


def test_without_pairs_when_there_is_no_spare_neighbour():
    wide = search_both(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), 3)
    got = without_pairs(wide, ScoredPairs(np.array([0]), np.array([0]), np.zeros(1)), 3)
    assert got.fwd_id.tolist() == [[1, -1, -1], [1, 0, -1]]
    assert np.isneginf(got.fwd_sim[0, 1:]).all()
