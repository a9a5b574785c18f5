"""Thresholds: the rules that cut a list of scored pairs, and the estimates that they rest on."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted, nice_step
from bitextmine.errors import BitextmineError
from bitextmine.mining.options import F_MEASURE, PRECISION, RATE

# Below this estimated precision a note warns.
LOW_PRECISION = 0.8
# A wider interval of the precision says nothing, so no estimate is stated.
_WIDE = 2 / 3
# A smaller share of gold pairs among the candidates suggests the wrong file.
_FEW_GOLD = 0.1
# Gold is a sample if it mentions a smaller share of the pairs that score as its own.
SAMPLE = 0.5
# Estimated and true numbers, of wrong pairs and of missed ones, differ by so much where the truth is known (standard
# deviation of the logarithm of their ratio): mine/quality.md.
_MODEL = 0.5
_UNCERTAIN = "An estimate of scores as weak as these is uncertain"
_ROUNDING = 1e-9  # of shares that are equal but for the order of their sums
_ROWS = 20  # of a table of thresholds
_PAIRS_PER_ROW = 10


@dataclass(frozen=True)
class Tuned:
    """The best cut of a scored list against gold: the threshold, and its figures as shares from 0 to 1."""

    threshold: float
    f1: float
    precision: float
    recall: float
    kept: int
    correct: int


def tune(score: NDArray[np.float64], correct: NDArray[np.bool_], gold: int) -> Tuned:
    """Return the threshold of the highest F1 of pairs (p,), as BUCC's scorer finds it; `gold` pairs are to be found.

    Pairs of equal score are kept or dropped together. The threshold lies halfway between the lowest score kept and the
    highest one dropped (at the lowest kept, when none is dropped); of equal F1 the highest threshold is taken. Without
    any correct pair the threshold is +inf and F1 is 0.
    """
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    hits = np.cumsum(correct[order])
    last = _last_of_equals(ranked)
    if not len(last) or hits[-1] == 0:
        return Tuned(math.inf, 0.0, 0.0, 0.0, 0, 0)
    f1 = 2 * hits[last] / (last + 1 + gold)
    at = int(np.argmax(f1))
    i = int(last[at])
    below = float(ranked[i + 1]) if i + 1 < len(ranked) else float(ranked[i])
    return Tuned(
        threshold=(float(ranked[i]) + below) / 2,
        f1=float(f1[at]),
        precision=float(hits[i]) / (i + 1),
        recall=float(hits[i]) / gold,
        kept=i + 1,
        correct=int(hits[i]),
    )


def _last_of_equals(ranked: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the last place of each distinct score: equal scores are kept or dropped together."""
    return np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])


def counts_around(score: NDArray[np.float64], around: float | None = None) -> list[tuple[float, int]]:
    """Return the number of pairs at or above each of a few round thresholds, lowest threshold first.

    They cover the scores between the median and the top 1% (and `around`) in steps of 0.01, 0.02, 0.05 and so on: a row
    for every ten pairs, at most twenty or so, each with another number of pairs.
    """
    score = score[np.isfinite(score)]
    if not len(score):
        return []
    low, high = np.quantile(score, [0.5, 0.99])
    if around is not None and math.isfinite(around):
        low, high = min(low, around), max(high, around)
    rows = min(_ROWS, max(1, len(score) // _PAIRS_PER_ROW))
    step = nice_step(max(float(high - low) / rows, 1e-6))
    ranked = np.sort(score)
    marks = range(math.floor(float(low) / step), math.ceil(float(high) / step) + 1)
    counts = [(t, int(len(ranked) - np.searchsorted(ranked, t))) for t in (round(i * step, 9) for i in marks)]
    # The highest of the thresholds that keep the same pairs, and none that keeps nothing.
    return [row for row, after in zip(counts, [*counts[1:], (0.0, 0)], strict=True) if row[1] > after[1]]


class NoEstimate(BitextmineError):
    """No threshold has the precision asked for, or there is too little text to estimate it."""


@dataclass(frozen=True)
class Estimate:
    """Scored pairs, best first, with the probability that each is true, float64 (p,).

    `lines` is the number of lines of the `side`, "source" or "target", that is counted; `unseen` the expected number of
    true pairs that are no candidates.
    """

    score: NDArray[np.float64]
    true: NDArray[np.float64]
    lines: int
    side: str
    unseen: float = 0.0

    def kept(self, threshold: float) -> int:
        """Return the number of pairs at or above a score."""
        return int(np.searchsorted(-self.score, -threshold, side="right"))

    @property
    def pairs(self) -> float:
        """Return the expected number of true pairs."""
        return float(self.true.sum()) + self.unseen

    @property
    def without_translation(self) -> float:
        """Return the share of lines without a translation."""
        return max(0.0, 1 - self.pairs / max(1, self.lines))

    def precision(self, threshold: float) -> float:
        """Return the share of true pairs at or above a score; 1 if no pair reaches it."""
        kept = self.kept(threshold)
        return float(self.true[:kept].mean()) if kept else 1.0

    def recall(self, threshold: float) -> float:
        """Return the share of the true pairs that reach a score."""
        return float(self.true[: self.kept(threshold)].sum()) / max(self.pairs, 1e-9)

    def rate(self, threshold: float) -> float:
        """Return the number of wrong pairs at or above a score for each line without a translation."""
        wrong = float((1 - self.true[: self.kept(threshold)]).sum())
        return wrong / max(1.0, self.lines * self.without_translation)

    def precision_interval(self, threshold: float) -> tuple[float, float]:
        """Return an interval that holds the precision in about 95 of 100 runs."""
        kept = self.kept(threshold)
        right = float(self.true[:kept].sum())
        return _share_interval(right, kept - right)

    def recall_interval(self, threshold: float) -> tuple[float, float]:
        """Return an interval that holds the recall in about 95 of 100 runs."""
        right = float(self.true[: self.kept(threshold)].sum())
        return _share_interval(right, self.pairs - right)

    def at_f(self, beta: float) -> float | None:
        """Return the lowest score kept at the highest expected F-measure; None without pairs.

        Recall counts beta times as much as precision. Expected numbers replace those of gold (Jansche 2007, "A maximum
        expected utility framework for binary sequence labeling").
        """
        last = _last_of_equals(self.score)
        if not len(last):
            return None
        found = np.cumsum(self.true)
        expected = (1 + beta**2) * found[last] / (last + 1 + beta**2 * self.pairs)
        return float(self.score[last[int(np.argmax(expected))]])

    def precisions(self) -> NDArray[np.float64]:
        """Return the share of true pairs among those up to each, (p,)."""
        return np.cumsum(self.true) / np.arange(1, len(self.true) + 1)

    def at_precision(self, precision: float) -> float | None:
        """Return the lowest score at and above which a share (0 to 1) of the pairs is true, None for no such score."""
        last = _last_of_equals(self.score)
        reached = last[self.precisions()[last] >= precision - _ROUNDING]
        return float(self.score[reached[-1]]) if len(reached) else None

    def at_rate(self, rate: float) -> float:
        """Return the lowest score at and above which at most so many wrong pairs per line without a translation are."""
        last = _last_of_equals(self.score)
        allowed = rate * max(1.0, self.lines * self.without_translation)
        within = last[np.cumsum(1 - self.true)[last] <= allowed]
        if len(within):
            return float(self.score[within[-1]])
        return float(np.nextafter(self.score[0], np.inf)) if len(self.score) else 0.0

    def highest_precision(self) -> tuple[float, int]:
        """Return the highest precision of any threshold, and the most pairs that have it; (0, 0) without pairs."""
        shares = self.precisions()
        best = float(shares.max(initial=0))
        return best, int(np.flatnonzero(np.append(0.0, shares) >= best - _ROUNDING)[-1])


def _share_interval(right: float, rest: float) -> tuple[float, float]:
    """Return limits of the share of the right pairs, which uncertain numbers of right pairs and others make up.

    Their ratio is off by a factor: that of the model, and for few pairs the uncertainty of their count (Poisson).
    """
    if right <= 0:
        return 0.0, 1.0
    rest = max(0.0, rest)
    spread = math.exp(1.96 * math.sqrt(_MODEL**2 + 2 / (rest + 1)))
    return right / (right + rest * spread + 1), right / (right + max(0.0, rest / spread - 1))


@dataclass(frozen=True)
class Cut:
    """A threshold (None: no cut), its rule, remarks for the user, and figures for the JSON beside the output.

    Rules are given, gold, fBETA, fpr-RATE, precision-SHARE and none.
    """

    value: float | None
    rule: str
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def counts(self, score: NDArray[np.float64]) -> list[dict[str, float | int]]:
        """Count the scores at or above each of a few thresholds, with estimated precision and recall if known."""
        known = self.estimate
        return [
            {"threshold": threshold, "pairs": pairs}
            | (
                {}
                if known is None
                else {"precision": known.precision(threshold), "recall": known.recall(threshold)}
            )
            for threshold, pairs in counts_around(score, self.value)
        ]

    def details(self) -> dict[str, Any]:
        """Return the origin of the threshold, ready for JSON."""
        known, at = self.estimate, self.value
        if known is None:
            return self.facts
        figures = {
            "precision": known.precision,
            "precision_interval": known.precision_interval,
            "recall": known.recall,
            "recall_interval": known.recall_interval,
            "false_positive_rate": known.rate,
        }
        estimate: dict[str, Any] = {
            "side": known.side,
            "share_without_translation": known.without_translation,
        }
        estimate |= {name: None if at is None else figure(at) for name, figure in figures.items()}
        return {**self.facts, "estimate": estimate}


def cut_by_estimate(kind: str, number: float, known: Estimate) -> Cut:
    """Return the cut of a rule that needs an estimate; NoEstimate if no threshold has the precision asked for."""
    value: float | None
    if kind == F_MEASURE:
        value, rule, reason = known.at_f(number), f"f{number:g}", f"the best expected F{number:g}"
    elif kind == RATE:
        value, rule = known.at_rate(number), f"fpr-{number:g}"
        reason = f"about {100 * number:g}% of the {known.side} lines without a translation get a pair"
    else:
        value, rule, reason = (
            known.at_precision(number),
            f"precision-{number:g}",
            f"a precision of {100 * number:g}%",
        )
        if value is None:
            highest, best = known.highest_precision()
            raise NoEstimate(
                f"--threshold precision={number:g}: no threshold gives so high an estimated precision; the highest is "
                f"{math.floor(1000 * highest) / 10:g}%, of {counted(best, 'pair')}. "
                + (f"{_UNCERTAIN}. " if highest < LOW_PRECISION else "")
                + "Ask for less, or mine with --threshold none and read the first pairs, which are the best"
            )
    if value is None or not (kept := known.kept(value)):
        return Cut(value, rule, ("no pair reaches the threshold",), known)
    (low, high), pairs = known.precision_interval(value), counted(kept, "pair")
    if high - low > _WIDE:
        note = f"threshold {value:.4f}: {reason}; {counted(kept, 'pair is', 'pairs are')} too few for an estimate"
        warning = f"warning: from {100 * low:.0f}% to {100 * high:.0f}% of these pairs may be true; read them"
        return Cut(value, rule, (note, warning), known)
    precision = f"{100 * known.precision(value):.1f}% [{100 * low:.0f}, {100 * high:.0f}]"
    least, most = known.recall_interval(value)
    notes = [
        f"threshold {value:.4f}: {reason}; an estimated {precision} of the pairs are true, "
        f"{100 * known.recall(value):.0f}% [{100 * least:.0f}, {100 * most:.0f}] of the true pairs are kept, and "
        f"{100 * known.without_translation:.0f}% of the {known.side} lines have no translation"
    ]
    if known.precision(value) < LOW_PRECISION and kind != PRECISION:
        remedy = f"{_UNCERTAIN}: read the first pairs, which are the best, and give the score where they turn bad as "
        remedy += "--threshold"
        if (better := known.at_precision(0.95)) is not None:
            better_pairs = counted(known.kept(better), "pair")
            remedy = f"--threshold precision=0.95 keeps the better ones (score {better:.4f}, {better_pairs})"
        notes.append(f"warning: only an estimated {precision} of these pairs are true. {remedy}")
    elif low < LOW_PRECISION <= known.precision(value):
        notes.append(
            f"warning: this estimate is uncertain: as few as {100 * low:.0f}% of the {pairs} may be true; read some of "
            "them"
        )
    return Cut(value, rule, tuple(notes), known)


def mentioned_share(
    score: NDArray[np.float64], correct: NDArray[np.bool_], mentioned: NDArray[np.bool_]
) -> float:
    """Return the share of pairs with a line that gold mentions, among those that score as gold pairs do.

    These are the pairs from the median score of the gold pairs up; 1 without any.
    """
    if not correct.any():
        return 1.0
    return float(mentioned[score >= np.median(score[correct])].mean())


def cut_by_gold(
    score: NDArray[np.float64], correct: NDArray[np.bool_], mentioned: NDArray[np.bool_], gold: int, name: str
) -> Cut:
    """Return the cut of the best F1 on `gold` pairs in the file `name`.

    Gold that mentions lines of less than half of the pairs that score as its own is taken for a sample: only pairs with
    a line that it mentions are judged. Otherwise every pair that it lacks is wrong. `score` (p,) is descending;
    `correct` (p,) marks the gold pairs, `mentioned` (p,) the pairs with a line that gold mentions. BitextmineError if
    no pair is gold.
    """
    if not (found := int(correct.sum())):
        raise BitextmineError(
            f"{name}: none of {counted(gold, 'gold pair')} is among the candidates; is it for these corpora, in this "
            "order?"
        )
    known = mentioned_share(score, correct, mentioned)
    sample = known < SAMPLE
    judged = mentioned if sample else np.ones(len(score), dtype=bool)
    tuned = tune(score[judged], correct[judged], gold)
    assumed = f"{name} is taken to be complete: pairs that it lacks count as wrong"
    if sample:
        assumed = (
            f"{name} is taken for a sample: of the pairs that score as high as these, gold knows "
            f"{100 * known:.0f}%, so only pairs with a line that it mentions were judged"
        )
    notes = [
        f"threshold {tuned.threshold:.4f}: the best F1 on the {counted(gold, 'gold pair')} ({100 * tuned.f1:.2f}; "
        f"optimistic, as the threshold was tuned on the same pairs); {assumed}"
    ]
    if found < _FEW_GOLD * gold:
        notes.append(
            f"warning: of {counted(gold, 'gold pair')} in {name} only {found:,} are among the candidates; "
            "is it for these corpora, in this order?"
        )
    figures = {"f1": tuned.f1, "precision": tuned.precision, "recall": tuned.recall, "sample": sample}
    return Cut(tuned.threshold, "gold", tuple(notes), facts={"tuned": figures})
