import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.evaluation.report import bootstrap, wilson


def test_wilson_on_known_values():
    # 0 of n ends at z^2 / (n + z^2)
    assert wilson(0, 10) == pytest.approx((0, 0.27753), abs=1e-5)
    assert wilson(50, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)


@given(st.integers(0, 50), st.integers(0, 50))
def test_wilson_solves_its_equation(a, b):
    """The ends are where the observed share is 1.96 standard errors off."""
    low, high = wilson(a, a + b)
    assert 0 <= low <= a / max(1, a + b) <= high <= 1
    if a and b:
        for end in (low, high):
            z = abs(a / (a + b) - end) / (end * (1 - end) / (a + b)) ** 0.5
            assert z == pytest.approx(1.959964, abs=1e-6)


def test_wilson_at_the_edges():
    assert wilson(0, 0) == (0, 1)
    assert wilson(7, 7)[1] == 1
    with pytest.raises(ValueError, match="3 successes in 2"):
        wilson(3, 2)


def test_bootstrap_of_a_share_is_the_binomial_interval():
    items = np.array([[1, 1]] * 800 + [[0, 1]] * 200)
    low, high = bootstrap([items], lambda s: s[0][:, 0] / s[0][:, 1])
    assert low == pytest.approx(0.775, abs=0.005)
    assert high == pytest.approx(0.825, abs=0.005)
    assert bootstrap([items], lambda s: s[0][:, 0] / s[0][:, 1]) == (low, high)
