import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.mining.margin import Margin, margin, neighbourhood_mean

cosine = st.floats(-1, 1, allow_nan=False)


@pytest.mark.parametrize("kind", Margin)
@given(st.lists(cosine, min_size=2, max_size=8), cosine, cosine)
def test_finite_and_never_falling_in_the_cosine(kind, cosines, mean_src, mean_tgt):
    rising = np.sort(np.array(cosines))
    score = margin(rising, mean_src, mean_tgt, kind)
    assert np.isfinite(score).all()
    assert (np.diff(score) >= 0).all()


def test_an_unknown_neighbourhood_counts_as_the_pair_itself():
    assert margin(0.8, np.nan, 0.4) == pytest.approx(0.8 / 0.6)
    assert margin(0.8, np.nan, np.nan) == pytest.approx(1)
    assert margin(0.8, np.nan, np.nan, "distance") == 0


@pytest.mark.parametrize("kind", Margin)
def test_no_candidate_is_minus_infinity_without_a_warning(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = margin([-np.inf, 0.5], [np.nan, 0.5], 0.5, kind)
    assert score[0] == -np.inf
    assert np.isfinite(score[1])


def test_bad_input():
    with pytest.raises(ValueError, match="'cosine'"):
        margin(1, 1, 1, "cosine")
    with pytest.raises(BitextmineError, match="NaN"):
        margin([0.5, np.nan], 0.5, 0.5)


def test_mean_leaves_out_what_is_missing():
    """-1 and -3.4e38 are what FAISS returns for an empty slot; one of them in a mean ruins it."""
    sim = np.array(
        [[0.8, 0.6, -3.4028235e38], [0.5, -np.inf, -np.inf], [-np.inf, -np.inf, -np.inf]], np.float32
    )
    ids = np.array([[4, 2, -1], [1, -1, -1], [-1, -1, -1]])
    expected = [0.7, 0.5, np.nan]
    assert np.allclose(neighbourhood_mean(sim, ids), expected, equal_nan=True)
    assert np.allclose(neighbourhood_mean(sim), expected, equal_nan=True)
    assert np.allclose(neighbourhood_mean(np.ones((1, 2)), np.array([[3, -1]])), 1)


def test_mean_of_float16_does_not_overflow():
    sim = np.full((1, 100_000), 1.0, dtype=np.float16)
    assert neighbourhood_mean(sim)[0] == 1.0
