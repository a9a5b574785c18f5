"""Where a run's pairs are cut: at a given score, at the best F1 on gold, at a false-positive rate, or nowhere."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.mining.candidates import BestBothWays, NeighboursLike, Rescore
from bitextmine.mining.decoys import Decoys, sampled_decoys
from bitextmine.mining.gold import Gold, check_line_numbers, pair_codes
from bitextmine.mining.margin import Margin
from bitextmine.mining.noise import MIN_LINES, NullFit, fit_null
from bitextmine.mining.options import MiningOptions
from bitextmine.mining.retrieval import ScoredPairs
from bitextmine.mining.sides import Side
from bitextmine.mining.threshold import Tuned, counts_around, tune

# Below this estimated precision a note says how to get better pairs.
LOW_PRECISION = 0.8


@dataclass(frozen=True)
class Cut:
    """A threshold and its origin.

    Attributes:
        value: the lowest score of a pair; None for no threshold.
        rule: given, gold, fpr-RATE, precision-SHARE or none.
        notes: sentences for the user.
        tuned: the tuning on gold pairs, if there was one.
        null: the null distribution, if it was estimated.
    """

    value: float | None
    rule: str
    notes: tuple[str, ...] = ()
    tuned: Tuned | None = None
    null: NullFit | None = None

    def keep(self, pairs: ScoredPairs) -> ScoredPairs:
        """Return the pairs that reach the threshold."""
        return pairs if self.value is None else pairs.take(pairs.score >= self.value)

    def counts(self, score: NDArray[np.float64]) -> list[dict[str, float | int]]:
        """Count the scores at or above each of a few thresholds around this one.

        With a null distribution, add the estimated false-positive rate and precision.
        """
        rows: list[dict[str, float | int]] = []
        for threshold, pairs in counts_around(score, self.value):
            row: dict[str, float | int] = {"threshold": threshold, "pairs": pairs}
            if self.null is not None:
                row["false_positive_rate"] = self.null.rate(threshold)
                row["precision"] = self.null.precision(threshold)
            rows.append(row)
        return rows

    def sources(self, fpr: float) -> dict[str, Any]:
        """Return the origin of the threshold, ready for JSON."""
        found: dict[str, Any] = {}
        if self.tuned is not None:
            found["tuned"] = {
                "f1": self.tuned.f1,
                "precision": self.tuned.precision,
                "recall": self.tuned.recall,
            }
        if self.null is not None:
            found["null"] = {
                "fpr": fpr,
                "side": self.null.side,
                "share_without_translation": self.null.noise_share,
                "precision": self.null.precision(self.value) if self.value is not None else None,
                "precision_interval": self.null.interval(self.value) if self.value is not None else None,
            }
        return found


def choose_cut(
    pairs: ScoredPairs,
    best: BestBothWays,
    neighbours: NeighboursLike,
    sides: tuple[Side, Side],
    options: MiningOptions,
    k: int,
    rescore: Rescore | None = None,
    gold: Gold | None = None,
) -> Cut:
    """The cut that the options ask for. pairs: retrieved from `best`, which came from the first k neighbours.

    Raises BitextmineError for gold that cannot be read or is of other texts.
    """
    if isinstance(options.threshold, float):
        return Cut(options.threshold, "given")
    if options.threshold != "auto" and options.precision is None:
        return Cut(None, "none")
    if gold is not None:
        assert options.gold is not None
        return _by_gold(pairs, sides, gold, options.gold)
    src, tgt = (len(side.unique.rows) for side in sides)
    if min(src, tgt) < MIN_LINES:
        if options.precision is not None:
            raise BitextmineError(
                f"--threshold {options.threshold}: {src} x {tgt} lines are too few to estimate a precision "
                f"({MIN_LINES} are needed); give a number, or --threshold none"
            )
        note = (
            f"no threshold: {src} x {tgt} lines are too few to estimate how noise"
            f" scores ({MIN_LINES} are needed); cut the pairs with --threshold after a look at the scores"
        )
        return Cut(None, "none", (note,))

    def decoys() -> list[Decoys]:
        return [sampled_decoys(side.vectors, k, options.margin) for side in sides]

    null = fit_null(
        neighbours,
        best,
        k=k,
        margin=options.margin,
        retrieval=options.retrieval,
        rescore=rescore,
        decoys=decoys,
    )
    return _by_noise(null, options) if options.precision is None else _by_precision(null, options)


def _by_gold(pairs: ScoredPairs, sides: tuple[Side, Side], gold: Gold, path: str | os.PathLike[str]) -> Cut:
    standard = _gold_in_rows(gold, sides, path)
    codes = pair_codes(pairs.src, pairs.tgt, len(sides[1].unique.rows))
    tuned = tune(pairs.score, np.isin(codes, standard), len(standard))
    note = (
        f"threshold {tuned.threshold:.4f}: the best F1 on the {len(standard):,} gold pairs ({100 * tuned.f1:.2f}, an"
        " optimistic number: the same pairs chose it)"
    )
    return Cut(tuned.threshold, "gold", (note,), tuned=tuned)


def _by_noise(null: NullFit, options: MiningOptions) -> Cut:
    cut = null.threshold(options.fpr)
    kept = (
        f"{100 * null.precision(cut):.1f}% of the pairs kept are true"
        if (null.s1 >= cut).any()
        else "and no pair scores so high: try a higher --fpr, or more neighbours (-k)"
    )
    notes = [
        f"threshold {cut:.4f}: about {100 * options.fpr:g}% of the {null.side} lines without a translation get a pair; "
        f"an estimated {100 * null.noise_share:.0f}% of the lines have none, {kept}"
    ]
    if (null.s1 >= cut).any() and null.precision(cut) < LOW_PRECISION:
        better = null.at_precision(0.95)
        notes.append(
            f"warning: only {_precision(null, cut)} of these pairs are true, by estimate: few lines have a "
            "translation here. "
            + (
                "--threshold precision=0.95 keeps the better ones"
                f" (score {better:.4f}, {counted(int((null.s1 >= better).sum()), 'pair')})"
                if better is not None
                else f"No threshold gives 95%; the highest is {100 * null.highest_precision()[0]:.0f}%"
            )
        )
    return Cut(cut, f"fpr-{options.fpr:g}", (*notes, *_plain_cosines(options)), null=null)


def _by_precision(null: NullFit, options: MiningOptions) -> Cut:
    wanted = options.precision
    assert wanted is not None
    cut = null.at_precision(wanted)
    if cut is None:
        highest, pairs = null.highest_precision()
        raise BitextmineError(
            f"--threshold {options.threshold}: no threshold gives so high an estimated precision; the highest is "
            f"{_floored(highest)}, of {counted(pairs, 'pair')}. Ask for less, or mine with --threshold none and look"
        )
    kept = int((null.s1 >= cut).sum())
    note = (
        f"threshold {cut:.4f}: {_precision(null, cut)} of the pairs kept are true, by estimate; about "
        f"{100 * null.rate(cut):.2g}% of the {null.side} lines without a translation get a pair; an estimated "
        f"{_share_found(null, kept):.0f}% of all true pairs are kept"
    )
    return Cut(cut, f"precision-{wanted:g}", (note, *_plain_cosines(options)), null=null)


def _share_found(null: NullFit, kept: int) -> float:
    """Of the pairs that are true, in %, how many are among the first ones."""
    return 100 * float(null.true[:kept].sum()) / max(float(null.true.sum()), 1e-9)


def _floored(share: float) -> str:
    """A share in %, rounded down, so that asking for what is printed succeeds."""
    return f"{math.floor(1000 * share) / 10:g}%"


def _precision(null: NullFit, cut: float) -> str:
    low, high = null.interval(cut)
    return f"{100 * null.precision(cut):.1f}% [{100 * low:.0f}, {100 * high:.0f}]"


def _plain_cosines(options: MiningOptions) -> tuple[str, ...]:
    if options.margin != Margin.ABSOLUTE:
        return ()
    return (
        "plain cosines part true pairs from noise too badly to estimate this well: the rate may be several times lower "
        "than stated; use --margin ratio",
    )


def _gold_in_rows(gold: Gold, sides: tuple[Side, Side], path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """Return the distinct gold pairs as codes of row pairs; pairs with a line that is not mined get codes below 0."""
    for side, lines in zip(sides, (gold.src, gold.tgt), strict=True):
        check_line_numbers(os.fspath(path), lines, side.text.name, side.unique.lines)
    src, tgt = sides
    s, t = src.unique.line_to_row[gold.src], tgt.unique.line_to_row[gold.tgt]
    codes = pair_codes(s, t, len(tgt.unique.rows))
    return np.unique(np.where((s < 0) | (t < 0), -1 - np.arange(len(codes)), codes))
