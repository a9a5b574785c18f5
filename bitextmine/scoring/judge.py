"""Rows against rules: which rule each fails first, and what a pair is known by if it meets all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.scoring.columns.catalogue import pair_texts
from bitextmine.scoring.columns.duplicate import pair_hash
from bitextmine.scoring.columns.texts import PairTexts, Tools
from bitextmine.scoring.rules import Rule

__all__ = ["Cells", "Judge", "Judged", "PlacedRule", "SentCells"]


@dataclass(frozen=True)
class PlacedRule:
    """A rule, and the place of its column in the rows, from 0; None for one that is computed from the texts."""

    rule: Rule
    place: int | None

    @property
    def is_text(self) -> bool:
        """Whether it looks at texts, and not at numbers."""
        return isinstance(self.rule.value, str)


class Cells(Protocol):
    """Some rows, none of them bad."""

    def numbers(self, place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """A column of some rows as numbers, NaN for none."""

    def texts(self, place: int, rows: NDArray[np.int64]) -> list[str]:
        """A column of some rows."""

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Sources and targets of some rows."""


@dataclass(frozen=True)
class SentCells:
    """Rows as a worker gets them: just the columns that the rules look at, by their place, and the texts."""

    columns: dict[tuple[int, bool], list[str] | NDArray[np.float64]]
    src: list[str]
    tgt: list[str]

    def numbers(self, place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """As Cells says."""
        found = self.columns[place, False]
        assert isinstance(found, np.ndarray)
        return found[rows]

    def texts(self, place: int, rows: NDArray[np.int64]) -> list[str]:
        """As Cells says."""
        found = self.columns[place, True]
        assert isinstance(found, list)
        return [found[row] for row in rows.tolist()]

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """As Cells says."""
        at = rows.tolist()
        return [self.src[row] for row in at], [self.tgt[row] for row in at]


@dataclass(frozen=True)
class Judged:
    """Of n rows: reason int64 (n,), 2i + 1 where rule i finds no value, 2i + 2 where it is not met, -1 where all are;
    values: for each rule float64 (n,), NaN where it was not asked, if they are wanted; hashes uint64 of the rows that
    meet all rules, in order, if duplicates are looked for."""

    reason: NDArray[np.int64]
    values: list[NDArray[np.float64]]
    hashes: NDArray[np.uint64]


class Judge:
    """Tries rules in their order. duplicates: by what pairs are the same ("none": nobody asks); keeps: whether the
    values are wanted, too."""

    def __init__(
        self, rules: Sequence[PlacedRule], duplicates: str, tools: Tools, *, keeps: bool = False
    ) -> None:
        self._rules, self._duplicates, self._tools, self._keeps = rules, duplicates, tools, keeps

    def judge(self, cells: Cells, rows: NDArray[np.int64], count: int) -> Judged:
        """Judges the good ones (ascending) of `count` rows.

        Raises BitextmineError for a rule that wants numbers of a column of text.
        """
        reason = np.full(count, -1, dtype=np.int64)
        values: list[NDArray[np.float64]] = []
        for number, placed in enumerate(self._rules):
            met, missing, value = self._apply(placed, cells, rows)
            reason[rows[missing]] = 2 * number + 1
            reason[rows[~met & ~missing]] = 2 * number + 2
            if self._keeps:
                spread = np.full(count, np.nan)
                spread[rows] = value
                values.append(spread)
            rows = rows[met]
        hashes = np.empty(0, dtype=np.uint64)
        if self._duplicates != "none" and len(rows):
            keys = (pair_hash(s, t, self._duplicates) for s, t in zip(*cells.pairs(rows), strict=True))
            hashes = np.fromiter(keys, dtype=np.uint64, count=len(rows))
        return Judged(reason, values, hashes)

    def _apply(
        self, placed: PlacedRule, cells: Cells, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
        """Which of these rows meet a rule, which have no value, and the values (for text: whether it is equal)."""
        rule = placed.rule
        if isinstance(rule.value, str):
            texts = self._texts(placed, cells, rows)
            equal = np.array([text == rule.value for text in texts], dtype=bool)
            return equal, np.zeros(len(rows), dtype=bool), equal.astype(np.float64)
        value = self._numbers(placed, cells, rows)
        met = value >= rule.value if rule.kind == "min" else value <= rule.value
        return met, np.isnan(value), value

    def _numbers(self, placed: PlacedRule, cells: Cells, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        if placed.place is not None:
            return cells.numbers(placed.place, rows)
        values = self._computed(cells, rows).column(placed.rule.column)
        if not isinstance(values, np.ndarray):
            column = placed.rule.column
            raise BitextmineError(
                f"the column {column} holds text: a rule on it is {column} = TEXT (--equal)"
            )
        return values

    def _texts(self, placed: PlacedRule, cells: Cells, rows: NDArray[np.int64]) -> list[str]:
        if placed.place is not None:
            return cells.texts(placed.place, rows)
        values = self._computed(cells, rows).column(placed.rule.column)
        return values if isinstance(values, list) else [f"{value:g}" for value in values.tolist()]

    def _computed(self, cells: Cells, rows: NDArray[np.int64]) -> PairTexts:
        return pair_texts(*cells.pairs(rows), self._tools)
