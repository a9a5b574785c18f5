"""Counting in one pass, against plain Python that keeps everything."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.console import nice_step
from bitextmine.reporting.survey import Sample, Scores
from bitextmine.scoring.judge import Fewest

scores = st.lists(st.integers(-3_000_000, 3_000_000).map(lambda n: n / 1_000_000), min_size=1, max_size=60)


def counted(values, block=7):
    found = Scores()
    for start in range(0, len(values), block):
        found.add(np.array(values[start : start + block]))
    return found


@given(scores, st.integers(-3_000_000, 3_000_000))
def test_counts_at_six_decimals_are_exact(values, threshold):
    found = counted(values)
    assert len(found.values) == len(values)
    for t in (threshold / 1_000_000, *values):
        assert found.at_least(t) == sum(v >= t for v in values)
    for share in (0, 0.1, 0.5, 0.9, 1):
        exact = sorted(values)[min(max(math.ceil(share * len(values)) - 1, 0), len(values) - 1)]
        assert found.quantile(share) == exact


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_a_sample_does_not_depend_on_blocks(block):
    sample: Sample[int] = Sample(50, seed=1)
    for start in range(0, 1000, block):
        sample.offer(min(block, 1000 - start), lambda i, start=start: start + i)
    whole: Sample[int] = Sample(50, seed=1)
    whole.offer(1000, lambda i: i)
    assert sample.items == whole.items
    assert len(set(sample.items)) == 50


@given(
    st.lists(st.lists(st.one_of(st.integers(0, 9).map(float), st.just(math.nan)), max_size=9), max_size=9),
    st.integers(1, 5),
)
@settings(max_examples=200)
def test_fewest_keeps_the_first_of_the_lowest(blocks, size):
    found: Fewest[int] = Fewest(size)
    at = 0
    for block in blocks:
        found.offer(np.array(block, dtype=np.float64), lambda i, at=at: at + i)
        at += len(block)
    values = [v for block in blocks for v in block]
    expected = sorted((i for i, v in enumerate(values) if not math.isnan(v)), key=lambda i: (values[i], i))
    assert found.items == expected[:size]


@pytest.mark.parametrize(("wanted", "step"), [(0.011, 0.02), (0.2, 0.2), (3, 5), (7, 10), (1e-6, 1e-6)])
def test_nice_steps(wanted, step):
    assert nice_step(wanted) == pytest.approx(step)
