"""Where a run's pairs are cut: at a given score, at the best F1 on gold, at a false-positive rate, or nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mine.candidates import BestBothWays, NeighboursLike, Rescore
from bitextmine.mine.gold import Gold, pair_codes, read_gold
from bitextmine.mine.margin import Margin
from bitextmine.mine.noise import MIN_LINES, NullFit, fit_null
from bitextmine.mine.options import MiningOptions
from bitextmine.mine.retrieval import ScoredPairs
from bitextmine.mine.sides import Side
from bitextmine.mine.threshold import Tuned, counts_around, tune

__all__ = ["Cut", "choose_cut"]


@dataclass(frozen=True)
class Cut:
    """A threshold, None for none, and by which rule: given, gold, fpr-RATE, none. tuned, null: what it comes from.
    notes: what a person should read about it."""

    value: float | None
    rule: str
    notes: tuple[str, ...] = ()
    tuned: Tuned | None = None
    null: NullFit | None = None

    def keep(self, pairs: ScoredPairs) -> ScoredPairs:
        """The pairs that reach it."""
        return pairs if self.value is None else pairs.take(pairs.score >= self.value)

    def counts(self, score: NDArray[np.float64]) -> list[dict[str, float | int]]:
        """How many of the scores reach each of a few thresholds around this one, with estimates where there are some:
        the false-positive rate and the precision."""
        rows: list[dict[str, float | int]] = []
        for threshold, pairs in counts_around(score, self.value):
            row: dict[str, float | int] = {"threshold": threshold, "pairs": pairs}
            if self.null is not None:
                row["false_positive_rate"] = self.null.rate(threshold)
                row["precision"] = self.null.precision(threshold)
            rows.append(row)
        return rows

    def sources(self, fpr: float) -> dict[str, Any]:
        """What it comes from, ready for JSON."""
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
    errors: str = "strict",
) -> Cut:
    """The cut that the options ask for. pairs: retrieved from `best`, which came from the first k neighbours.

    Raises BitextmineError for gold that cannot be read or is of other texts.
    """
    if isinstance(options.threshold, float):
        return Cut(options.threshold, "given")
    if options.threshold != "auto":
        return Cut(None, "none")
    if options.gold is not None:
        return _by_gold(pairs, sides, options.gold, errors)
    src, tgt = (len(side.unique.rows) for side in sides)
    if min(src, tgt) < MIN_LINES:
        note = (
            f"no threshold: {src} x {tgt} lines are too few to estimate how noise"
            f" scores ({MIN_LINES} are needed); cut the pairs with --threshold after a look at the scores"
        )
        return Cut(None, "none", (note,))
    null = fit_null(
        neighbours, best, k=k, margin=options.margin, retrieval=options.retrieval, rescore=rescore
    )
    return _by_noise(null, options)


def _by_gold(pairs: ScoredPairs, sides: tuple[Side, Side], path: str | os.PathLike[str], errors: str) -> Cut:
    standard = _gold_in_rows(read_gold(path, errors), sides, path)
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
    if options.margin == Margin.ABSOLUTE:
        notes.append(
            "plain cosines part true pairs from noise too badly to estimate this well: the rate may be several "
            "times lower than stated; use --margin ratio"
        )
    return Cut(cut, f"fpr-{options.fpr:g}", tuple(notes), null=null)


def _gold_in_rows(gold: Gold, sides: tuple[Side, Side], path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The gold pairs as codes of row pairs, each once; those of lines that are never mined get codes below
    0.
    """
    for side, lines in zip(sides, (gold.src, gold.tgt), strict=True):
        if int(lines.max()) >= side.unique.lines:
            raise BitextmineError(
                f"{path}: line number {int(lines.max()) + 1}, but {side.text.name} has {side.unique.lines} "
                "lines; these files do not belong together"
            )
    src, tgt = sides
    s, t = src.unique.line_to_row[gold.src], tgt.unique.line_to_row[gold.tgt]
    codes = pair_codes(s, t, len(tgt.unique.rows))
    return np.unique(np.where((s < 0) | (t < 0), -1 - np.arange(len(codes)), codes))
