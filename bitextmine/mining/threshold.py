"""Thresholds: where a list of scored pairs is cut."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import nice_step
from bitextmine.errors import BitextmineError, UsageError

# How the rule begins that asks for an estimated precision.
PRECISION = "precision="


def parse_threshold(value: str | float | None, *, precision: bool = False) -> float | str:
    """Return ``auto``, ``none``, a finite number or, if allowed, ``precision=SHARE`` from user input; None means none.

    Raises:
        UsageError: the input is anything else.
    """
    if value is None:
        return "none"
    if precision and isinstance(value, str) and value.strip().lower().startswith(PRECISION):
        return f"{PRECISION}{wanted_precision(value):g}"
    if isinstance(value, str) and value.strip().lower() in ("auto", "none"):
        return value.strip().lower()
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        also = " (or 'precision=0.95', for an estimated precision)" if precision else ""
        raise UsageError(f"threshold: expected a number, 'auto' or 'none', found {value!r}{also}")
    return number


def wanted_precision(rule: str) -> float:
    """The share, above 0 and below 1, of a rule ``precision=SHARE``; UsageError for another one."""
    try:
        share = float(rule.strip()[len(PRECISION) :])
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise UsageError(f"threshold: precision= takes a share above 0 and below 1, as 0.95, found {rule!r}")
    return share


@dataclass(frozen=True)
class Tuned:
    """The best cut of a scored list against gold: the threshold and what it gives, shares from 0 to 1."""

    threshold: float
    f1: float
    precision: float
    recall: float
    kept: int
    correct: int


def tune(score: NDArray[np.float64], correct: NDArray[np.bool_], gold: int) -> Tuned:
    """The threshold of the highest F1, as BUCC's scorer finds it.

    score (p,), in any order; correct (p,): whether the pair is gold; gold: how many gold pairs there are.
    Pairs of equal score are kept or dropped together. The threshold lies halfway between the lowest score
    kept and the highest one dropped (at the lowest kept, when none is dropped); of equal F1 the highest
    threshold is taken. Without any correct pair the threshold is +inf and F1 is 0.
    """
    if gold < 1:
        raise BitextmineError("threshold: there is no gold pair to tune it on")
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    hits = np.cumsum(correct[order])
    last = (
        np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.array([], dtype=int)
    )
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


def counts_around(score: NDArray[np.float64], around: float | None = None) -> list[tuple[float, int]]:
    """How many pairs reach each of a few round thresholds: [(threshold, pairs)], lowest threshold first.

    The steps are 0.01, 0.02, 0.05, ... wide, so that ten to twenty of them cover what lies between the median
    and the top 1% of the scores (and `around`).
    """
    score = score[np.isfinite(score)]
    if not len(score):
        return []
    low, high = np.quantile(score, [0.5, 0.99])
    if around is not None and math.isfinite(around):
        low, high = min(low, around), max(high, around)
    wanted = max(float(high - low) / 20, 1e-6)
    step = nice_step(wanted)
    ranked = np.sort(score)
    first, last = math.floor(float(low) / step), math.ceil(float(high) / step)
    steps = [round(i * step, 9) for i in range(first, last + 1)]
    return [(t, int(len(ranked) - np.searchsorted(ranked, t, side="left"))) for t in steps]
