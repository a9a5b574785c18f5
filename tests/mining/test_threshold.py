from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.mining.threshold import counts_around, parse_threshold, tune, wanted_precision


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=20), st.integers(0, 5))
def test_tune_finds_the_best_f1(drawn, missed):
    score = np.array([s / 2 for s, _ in drawn])
    correct = np.array([c for _, c in drawn], dtype=bool)
    gold = int(correct.sum()) + missed
    if not gold:
        return
    tuned = tune(score, correct, gold)

    def f1(threshold: float) -> float:
        kept = score >= threshold
        return 2 * int((kept & correct).sum()) / (int(kept.sum()) + gold)

    best = max([f1(t) for t in score] + [0.0])
    assert tuned.f1 == pytest.approx(best)
    assert f1(tuned.threshold) == pytest.approx(best)
    if best:
        kept = score >= tuned.threshold
        assert (tuned.kept, tuned.correct) == (int(kept.sum()), int((kept & correct).sum()))
        assert all(f1(t) < best for t in score if t > tuned.threshold and score[kept].min() != t)
        # halfway down to the next score
        below = score[~kept]
        expected = (score[kept].min() + below.max()) / 2 if len(below) else score[kept].min()
        assert tuned.threshold == pytest.approx(expected)


def test_tune_without_a_hit_keeps_nothing():
    assert tune(np.array([1.0]), np.array([False]), 3).threshold == math.inf
    assert tune(np.array([]), np.array([], bool), 3).f1 == 0
    with pytest.raises(BitextmineError, match="no gold"):
        tune(np.array([1.0]), np.array([False]), 0)


@pytest.mark.parametrize(
    ("given_", "expected"), [("auto", "auto"), (" None ", "none"), (None, "none"), ("1.06", 1.06), (2, 2.0)]
)
def test_parse(given_, expected):
    assert parse_threshold(given_) == expected


@pytest.mark.parametrize("given_", ["", "high", "nan", "inf", math.inf, "1,06"])
def test_parse_refuses(given_):
    with pytest.raises(BitextmineError, match="expected a number, 'auto' or 'none'"):
        parse_threshold(given_)


def test_counts_are_true_and_few():
    score = np.random.default_rng(0).normal(1.1, 0.1, 5000)
    table = counts_around(score, around=1.6)
    assert 10 <= len(table) <= 24
    assert table[0][0] <= 1.1 < 1.6 <= table[-1][0] + 0.1
    assert all(n == int((score >= t).sum()) for t, n in table)
    assert counts_around(np.array([])) == []
    assert counts_around(np.array([1.0, 1.0]))[0] == (1.0, 2)


@pytest.mark.parametrize("given_", ["precision=0.95", " Precision=.95 ", "precision=9.5e-1"])
def test_a_precision_is_a_rule_where_it_is_allowed(given_):
    assert parse_threshold(given_, precision=True) == "precision=0.95"
    assert wanted_precision("precision=0.95") == 0.95
    with pytest.raises(UsageError, match="expected a number"):
        parse_threshold(given_)


@pytest.mark.parametrize(
    "given_", ["precision=", "precision=1", "precision=0", "precision=nan", "precision=95%"]
)
def test_precisions_that_are_none(given_):
    with pytest.raises(UsageError, match="above 0 and below 1"):
        parse_threshold(given_, precision=True)
