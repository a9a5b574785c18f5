"""Precision, recall and F1 of mined pairs against gold, by BUCC's rules with an honest threshold.

BUCC (Zweigenbaum, Sharoff and Rapp, 2018) counts a mined pair as correct if the gold has it, and takes F1 at a
threshold. Here the threshold is tuned on one half of the source sentences and applied to the other, both ways. (MTEB's
"BUCC" is another task: nearest neighbours among gold sentences alone.)
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.evaluation.report import RESAMPLES, SEED, FileName, Report, bootstrap, percent
from bitextmine.mining.gold import Gold, pair_codes, read_gold, read_mined
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.threshold import Tuned, tune
from bitextmine.signature import signature


@dataclass(frozen=True)
class Fold:
    """One half, cut at the threshold tuned on the other: shares from 0 to 1, and counts of pairs."""

    threshold: float
    precision: float
    recall: float
    f1: float
    kept: int
    correct: int
    gold: int


@dataclass(frozen=True, repr=False)
class MiningReport(Report):
    """F1 of mined pairs; shares from 0 to 1.

    Attributes:
        folds: both halves.
        precision, recall, f1: their means.
        low, high: the 95% bootstrap interval of f1 (source sentences resampled within each half, thresholds held).
        best: the best single threshold, which has seen the answers: an upper bound, not a result.
        candidates: pairs before any threshold.
        correct: gold pairs among them; correct / gold is the highest recall any threshold can give.
    """

    kind: ClassVar[str] = "mining evaluation"

    folds: tuple[Fold, Fold]
    precision: float
    recall: float
    f1: float
    low: float
    high: float
    best: Tuned
    candidates: int
    correct: int
    gold: int

    def to_table(self) -> str:
        """Return percentages, aligned for a terminal."""
        shares, counts = ["precision", "recall", "F1"], ["pairs", "correct", "gold"]
        header = ["", "threshold", *shares, *counts]
        a, b = self.folds
        parts: list[tuple[str, Any, int, int, int]] = [
            ("half 1", a, a.kept, a.correct, a.gold),
            ("half 2", b, b.kept, b.correct, b.gold),
            ("mean", self, a.kept + b.kept, a.correct + b.correct, self.gold),
            ("best", self.best, self.best.kept, self.best.correct, self.gold),
        ]
        rows = []
        for name, p, kept, correct, gold in parts:
            threshold = "-" if p is self else f"{p.threshold:.4f}"
            values = percent(p.precision, p.recall, p.f1)
            rows.append([name, threshold, *values, *map(str, (kept, correct, gold))])
        f1 = "F1 {} [{}, {}] (95%)".format(*percent(self.f1, self.low, self.high))
        remark = f"{f1}, each half cut at the threshold tuned on the other; 'best' is tuned on the test pairs"
        return self._table(header, rows, remark)


def score_mining(mined: ScoredPairs, gold: Gold) -> MiningReport:
    """Score arrays of mined pairs, as `evaluate_mining` does."""
    src, tgt, gold_src, gold_tgt = mined.src, mined.tgt, gold.src, gold.tgt
    width = 1 + int(max(tgt.max(initial=0), gold_tgt.max(initial=0)))
    gold_codes = np.unique(pair_codes(gold_src, gold_tgt, width))
    if len(gold_codes) < 2:
        raise BitextmineError(
            f"gold: {len(gold_codes)} pair(s), too few to tune a threshold on one half and test on the other"
        )
    codes = pair_codes(src, tgt, width)
    best_first = np.lexsort((codes, -mined.score))
    _, first = np.unique(codes[best_first], return_index=True)
    chosen = best_first[np.sort(first)]  # a pair found twice counts once, at its best score
    codes, score = codes[chosen], mined.score[chosen]
    correct = np.isin(codes, gold_codes)
    folds, events = _cross(score, correct, codes // width, gold_codes // width)
    low, high = bootstrap(events, _mean_f1)
    precision, recall, f1 = (
        (getattr(folds[0], x) + getattr(folds[1], x)) / 2 for x in ("precision", "recall", "f1")
    )
    best, n = tune(score, correct, len(gold_codes)), len(gold_codes)
    return MiningReport(
        *(folds, precision, recall, f1, low, high, best, len(codes), int(correct.sum()), n),
        signature=signature(task="mining", gold=n, folds=2, seed=SEED, resamples=RESAMPLES, equal="line"),
        notes=_remarks(score, correct, folds),
    )


def _cross(
    score: NDArray[np.float64],
    correct: NDArray[np.bool_],
    src_of_pair: NDArray[np.int64],
    src_of_gold: NDArray[np.int64],
) -> tuple[tuple[Fold, Fold], list[NDArray[np.int64]]]:
    """Cut each half at the threshold tuned on the other; return the halves and the counts by source sentence."""
    # The source sentences of gold, and the other ones, are each shuffled and cut in two, so that either half has its
    # share of both.
    rng = np.random.default_rng(SEED)
    parts = np.unique(src_of_gold), np.setdiff1d(src_of_pair, src_of_gold)
    in_first = np.concatenate([rng.permutation(part)[: (len(part) + 1) // 2] for part in parts])
    pair_first, gold_first = np.isin(src_of_pair, in_first), np.isin(src_of_gold, in_first)
    folds: list[Fold] = []
    events: list[NDArray[np.int64]] = []
    for test, test_gold in ((pair_first, gold_first), (~pair_first, ~gold_first)):
        threshold = tune(score[~test], correct[~test], max(1, int((~test_gold).sum()))).threshold
        kept = test & (score >= threshold)
        hits, n, g = int((kept & correct).sum()), int(kept.sum()), int(test_gold.sum())
        f1 = 2 * hits / (n + g) if n + g else 0.0
        folds.append(Fold(threshold, hits / n if n else 0.0, hits / g if g else 0.0, f1, n, hits, g))
        events.append(_counts_by_source(src_of_pair[kept], correct[kept], src_of_gold[test_gold]))
    return (folds[0], folds[1]), events


def _mean_f1(sums: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    each = [2 * s[:, 0] / np.maximum(s[:, 1] + s[:, 2], 1) for s in sums]
    return np.asarray((each[0] + each[1]) / 2)


def _remarks(
    score: NDArray[np.float64], correct: NDArray[np.bool_], folds: tuple[Fold, Fold]
) -> tuple[str, ...]:
    if not len(score):
        return ("there is no mined pair: nothing was found, or the file is not the output of 'mine --ids'",)
    remarks = []
    if not correct.any():
        remarks.append("no mined pair is gold: are these the gold pairs of the same two files?")
    lowest = float(score.min())
    if any(fold.threshold <= lowest for fold in folds):
        remarks.append(
            f"the tuned threshold is the lowest score present ({lowest:.4f}): if the pairs were cut before, mine them "
            "with --threshold none"
        )
    return tuple(remarks)


def _counts_by_source(
    kept_src: NDArray[np.int64], correct: NDArray[np.bool_], gold_src: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return correct, kept and gold pairs (sources, 3) of each source sentence that has any."""
    sources, row = np.unique(np.concatenate([kept_src, gold_src]), return_inverse=True)
    kept, gold = row[: len(kept_src)], row[len(kept_src) :]
    counts = [np.bincount(part, minlength=len(sources)) for part in (kept[correct], kept, gold)]
    return np.stack(counts, axis=1)


def evaluate_mining(mined: FileName, gold: FileName) -> MiningReport:
    """Measure precision, recall and F1 of mined pairs, the threshold tuned on one half and applied to the other.

    Args:
        mined: the output of ``mine --ids --threshold none``: score, source line, target line, ...
        gold: a TSV file of line numbers, from 1.

    Raises:
        BitextmineError: malformed files, or fewer than two gold pairs.
    """
    return score_mining(read_mined(mined), read_gold(gold))
