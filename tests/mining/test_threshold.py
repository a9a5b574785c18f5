import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import UsageError
from bitextmine.mining.options import MiningOptions, parse_threshold
from bitextmine.mining.threshold import (
    Estimate,
    NoEstimate,
    counts_around,
    cut_by_estimate,
    cut_by_gold,
    tune,
)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=20), st.integers(0, 5))
def test_tune_finds_the_best_f1(drawn, missed):
    score = np.array([s / 2 for s, _ in drawn])
    correct = np.array([c for _, c in drawn], dtype=bool)
    gold = int(correct.sum()) + missed
    if not gold:
        return
    tuned = tune(score, correct, gold)

    def f1(threshold):
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


@given(st.lists(st.integers(-40, 90), min_size=1, max_size=60))
def test_a_table_has_a_row_for_ten_pairs_and_none_twice(drawn):
    table = counts_around(np.array(drawn) / 7)
    counts = [n for _, n in table]
    assert len(table) <= 3 + len(drawn) // 10
    assert counts == sorted(set(counts), reverse=True) and counts[-1] > 0


@pytest.mark.parametrize(
    ("given_", "rule", "parts"),
    [
        (" Precision=.95 ", "precision=0.95", ("precision=", 0.95)),
        ("F1", "f1", ("f", 1.0)),
        ("f0.50", "f0.5", ("f", 0.5)),
        ("fpr=1e-2", "fpr=0.01", ("fpr=", 0.01)),
        ("auto", "auto", ("f", 1.0)),
        (" None ", "none", ("none", 0.0)),
        (1.06, 1.06, ("given", 1.06)),
    ],
)
def test_rules_are_known_where_they_are_allowed(given_, rule, parts):
    assert parse_threshold(given_, estimated=True) == rule
    assert MiningOptions(threshold=given_).rule == parts
    if "=" in str(rule) or str(rule).startswith("f"):
        with pytest.raises(UsageError, match="expected a number"):
            parse_threshold(given_)


def scored(drawn):
    """Scores in steps of a half, so that some are equal, and their probabilities."""
    ranked = sorted(drawn, reverse=True)
    return Estimate(np.array([s / 2 for s, _ in ranked]), np.array([p for _, p in ranked]), 100, "source")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0.001, 1)), min_size=1, max_size=40),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_best_expected_f_is_found(drawn, beta):
    known = scored(drawn)

    def expected(threshold):
        kept = known.score >= threshold
        precision, recall = known.true[kept].mean(), known.true[kept].sum() / known.true.sum()
        return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)

    cut = known.at_f(beta)
    assert cut in known.score
    assert expected(cut) == pytest.approx(max(expected(t) for t in known.score))


def test_a_precision_that_no_threshold_reaches():
    with pytest.raises(NoEstimate, match=r"precision=0.999: no threshold .* the highest is 90%, of 3 pairs"):
        cut_by_estimate("precision=", 0.999, scored([(9, 0.9), (8, 0.9), (7, 0.9), (6, 0.5)]))


def test_a_low_precision_warns_and_names_a_better_threshold():
    p = np.repeat([0.97, 0.6], [50, 400])
    known = Estimate(np.log(p / (1 - p)), p, 1000, "source")
    cut = cut_by_estimate("f", 1.0, known)
    assert known.kept(cut.value) == 450
    assert "64.1%" in cut.notes[1] and "50 pairs" in cut.notes[1]
    assert "64.1%" not in "".join(cut_by_estimate("precision=", 0.9, known).notes)


@pytest.mark.parametrize("unseen", [0, 40])
def test_intervals_hold_what_they_are_of(unseen):
    """Truth drawn from the estimate itself, wrong by a factor of its own in every run."""
    rng = np.random.default_rng(4)
    p = np.sort(rng.beta(0.3, 0.5, 600))[::-1]
    known = Estimate(np.log(p / (1 - p)), p, 900, "source", unseen)
    cut = known.at_f(1)
    kept, inside = known.kept(cut), []
    for _ in range(400):
        own = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + rng.normal(0, 0.4))))
        true = rng.random(len(p)) < own
        precision, recall = true[:kept].mean(), true[:kept].sum() / (true.sum() + unseen)
        for share, (low, high) in (
            (precision, known.precision_interval(cut)),
            (recall, known.recall_interval(cut)),
        ):
            assert 0 <= low <= high <= 1
            inside.append(low <= share <= high)
    assert np.mean(inside) > 0.9
    low, high = known.recall_interval(cut)
    assert low < known.recall(cut) < high


def test_an_interval_that_says_nothing_withholds_the_estimate():
    p = np.array([0.99, 0.7, 0.6])
    headline, warning = cut_by_estimate("f", 1.0, Estimate(np.log(p / (1 - p)), p, 264, "source")).notes
    assert "%" not in headline and "3 pairs are too few for an estimate" in headline
    assert "100% of these pairs may be true" in warning


@pytest.mark.parametrize(("share", "sample"), [(1.0, False), (0.1, True)])
def test_gold_that_is_a_sample_judges_its_own_lines(share, sample):
    """1,000 true pairs above 1,000 wrong ones: of a tenth of the gold the others must not count as wrong."""
    rng = np.random.default_rng(0)
    score = np.sort(rng.normal(0, 1, 2000))[::-1]
    true = np.arange(2000) < 1000
    known = true & (rng.random(2000) < share)
    mentioned = known | (~true & (rng.random(2000) < share))
    cut = cut_by_gold(score, known, mentioned, int(known.sum()), "gold.tsv")
    assert cut.facts["tuned"]["sample"] is sample
    assert abs(int((score >= cut.value).sum()) - 1000) < 30
    assert ("sample" in cut.notes[0]) is sample
