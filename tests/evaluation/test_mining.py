import numpy as np
import pytest

from bitextmine.errors import BitextmineError
from bitextmine.evaluation.mining import evaluate_mining, score_mining
from bitextmine.mining.gold import Gold
from bitextmine.mining.pairing import ScoredPairs


def made_up(n=2000, found=0.9, noise=1000, seed=0):
    """n gold pairs of which a share is found, scored around 1.5, among noise scored around 1.1."""
    rng = np.random.default_rng(seed)
    lines = rng.permutation(n + noise)
    gold = Gold(np.sort(lines[:n]), lines[:n][np.argsort(lines[:n])] + 1)
    hits = rng.random(n) < found
    src = np.concatenate([gold.src[hits], lines[n:]])
    tgt = np.concatenate([gold.tgt[hits], lines[n:]])
    score = np.concatenate([rng.normal(1.5, 0.1, hits.sum()), rng.normal(1.1, 0.1, noise)])
    return ScoredPairs(src, tgt, score), gold


def test_each_half_is_cut_at_the_threshold_of_the_other():
    mined, gold = made_up()
    report = score_mining(mined, gold)
    first, second = report.folds
    assert first.gold + second.gold == report.gold == 2000
    assert abs(first.gold - second.gold) <= 1
    assert first.threshold != second.threshold
    assert report.f1 == pytest.approx((first.f1 + second.f1) / 2)
    for fold in report.folds:
        assert fold.f1 == pytest.approx(2 * fold.correct / (fold.kept + fold.gold))
        assert fold.precision == fold.correct / fold.kept
        assert fold.recall == fold.correct / fold.gold
    assert report.low < report.f1 < report.high
    assert report.f1 <= report.best.f1 + 0.01
    assert report.best.f1 == pytest.approx(0.934, abs=0.02)


def test_the_numbers_are_those_of_a_count_by_hand():
    """With every score far from the threshold both halves cut the same, and everything can be counted at
    once.
    """
    rng = np.random.default_rng(1)
    gold = Gold(np.arange(300), np.arange(300))
    mined = ScoredPairs(
        np.arange(400),
        np.concatenate([np.arange(250), rng.integers(500, 600, 150)]),
        np.concatenate([np.full(270, 2.0), np.full(130, 1.0)]),
    )
    report = score_mining(mined, gold)
    assert (report.best.precision, report.best.recall) == (250 / 270, 250 / 300)
    assert sum(f.correct for f in report.folds) == 250
    assert sum(f.kept for f in report.folds) == 270
    assert report.precision == pytest.approx(250 / 270, abs=0.02)
    assert report.correct == 250


def write(folder, name, lines):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_pair_counts_once_and_one_gold_pair_is_too_few(tmp_path):
    mined = write(tmp_path, "mined.tsv", ["1.5\t1\t1", "1.4\t2\t3", "1.2\t1\t1"])
    report = evaluate_mining(mined, write(tmp_path, "gold.tsv", ["1\t1", "2\t3", "4\t4"]))
    assert (report.correct, report.candidates, report.gold) == (2, 2, 3)
    with pytest.raises(BitextmineError, match="too few"):
        evaluate_mining(mined, write(tmp_path, "one.tsv", ["1\t1"]))
