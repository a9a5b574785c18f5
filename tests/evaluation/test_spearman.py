"""Spearman's correlation against SciPy's, ties among the values."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from bitextmine.evaluation import sts as module
from bitextmine.evaluation.sts import redrawn, spearman


def oracle(x, y):
    with warnings.catch_warnings(action="ignore"):  # of equal values, which have no correlation
        return spearmanr(x, y).statistic


def made(n, levels, seed):
    """Two columns that go together a little; x has so many values, y as many as there are rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n).astype(float)
    return x, x / levels + rng.normal(size=n)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12))
def test_any_pattern_of_ties(rows):
    x, y = np.array(rows, dtype=float).T
    np.testing.assert_allclose(spearman(x, y), oracle(x, y), atol=1e-12)


@pytest.mark.parametrize("block", [1, 64, 1 << 21])
def test_drawn_anew_is_as_if_the_pairs_were_copied(block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "RESAMPLES", 40)
    columns = [made(23, 5, 3), made(23, 100, 4)]
    found = redrawn(columns)
    assert found.shape == (2, 40)
    rng = np.random.default_rng(1)
    for draw in range(40):
        times = rng.multinomial(23, np.full(23, 1 / 23))
        for at, (x, y) in enumerate(columns):
            copies = oracle(np.repeat(x, times), np.repeat(y, times))
            np.testing.assert_allclose(found[at, draw], copies, atol=1e-12)


def test_a_draw_of_one_value_has_no_correlation():
    x = np.array([0.0, 0.0, 1.0])
    found = redrawn([(x, x)])[0]
    assert np.isnan(found).any()
    assert (found[~np.isnan(found)] > 0.999).all()
