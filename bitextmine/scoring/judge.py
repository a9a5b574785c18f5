"""Test rows against rules: the first rule each row fails, and the duplicate key of a row that passes all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.scoring.columns.catalogue import pair_texts
from bitextmine.scoring.columns.duplicate import pair_hash
from bitextmine.scoring.columns.texts import Tools
from bitextmine.scoring.rules import Rule


@dataclass(frozen=True)
class PlacedRule:
    """A rule, and the place of its column in the rows, from 0 (None: computed from the texts)."""

    rule: Rule
    place: int | None

    @property
    def is_text(self) -> bool:
        """True if it compares texts, not numbers."""
        return isinstance(self.rule.value, str)


class Cells(Protocol):
    """Rows, none of them malformed."""

    def numbers(self, place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a column of some rows as numbers, NaN for none."""

    def texts(self, place: int, rows: NDArray[np.int64]) -> list[str]:
        """Return a column of some rows."""

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Return the sources and targets of some rows."""


@dataclass(frozen=True)
class SentCells:
    """Rows as a worker gets them: the columns of the rules, by place and kind, and the texts."""

    columns: dict[tuple[int, bool], list[str] | NDArray[np.float64]]
    src: list[str]
    tgt: list[str]

    def numbers(self, place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a column, see `Cells`."""
        return np.asarray(self.columns[place, False])[rows]

    def texts(self, place: int, rows: NDArray[np.int64]) -> list[str]:
        """Return a column, see `Cells`."""
        return [str(self.columns[place, True][row]) for row in rows.tolist()]

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Return texts, see `Cells`."""
        at = rows.tolist()
        return [self.src[row] for row in at], [self.tgt[row] for row in at]


@dataclass(frozen=True)
class Judged:
    """The verdict on n rows.

    Attributes:
        reason: int64 (n,): 2i + 1 if rule i finds no value, 2i + 2 if the row fails it, -1 if it passes all.
        values: for each rule float64 (n,), NaN for rows that failed before; empty unless kept.
        hashes: uint64, the duplicate keys of the rows that pass, in order; empty unless duplicates are removed.
    """

    reason: NDArray[np.int64]
    values: list[NDArray[np.float64]]
    hashes: NDArray[np.uint64]


@dataclass(frozen=True)
class Judge:
    """Tests rules in order; `duplicates` is the level of `dedup.line_key`, or "none"."""

    rules: tuple[PlacedRule, ...]
    duplicates: str
    keeps_values: bool = False

    def judge(self, cells: Cells, rows: NDArray[np.int64], count: int, tools: Tools) -> Judged:
        """Judge the good ones (ascending) of `count` rows.

        Raises:
            BitextmineError: a rule wants numbers from a column of text.
        """
        reason = np.full(count, -1, dtype=np.int64)
        values: list[NDArray[np.float64]] = []
        for number, placed in enumerate(self.rules):
            met, missing, value = _apply(placed, cells, rows, tools)
            reason[rows[missing]] = 2 * number + 1
            reason[rows[~met & ~missing]] = 2 * number + 2
            if self.keeps_values:
                every = np.full(count, np.nan)
                every[rows] = value
                values.append(every)
            rows = rows[met]
        hashes = np.empty(0, dtype=np.uint64)
        if self.duplicates != "none" and len(rows):
            keys = (pair_hash(s, t, self.duplicates) for s, t in zip(*cells.pairs(rows), strict=True))
            hashes = np.fromiter(keys, dtype=np.uint64, count=len(rows))
        return Judged(reason, values, hashes)


def _apply(
    placed: PlacedRule, cells: Cells, rows: NDArray[np.int64], tools: Tools
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Return flags of rows that pass a rule, of rows without a value, and the values (for text: 1 if equal)."""
    rule, place = placed.rule, placed.place
    column: Any = None if place is not None else pair_texts(*cells.pairs(rows), tools).column(rule.column)
    if isinstance(rule.value, str):
        if place is not None:
            texts = cells.texts(place, rows)
        else:
            texts = column if isinstance(column, list) else [f"{value:g}" for value in column]
        equal = np.array([text == rule.value for text in texts], dtype=bool)
        return equal, np.zeros(len(rows), dtype=bool), equal.astype(np.float64)
    if isinstance(column, list):
        raise BitextmineError(
            f"the column {rule.column} holds text: a rule on it is {rule.column} = TEXT (--equal)"
        )
    value: NDArray[np.float64] = column if place is None else cells.numbers(place, rows)
    met = value >= rule.value if rule.kind == "min" else value <= rule.value
    return met, np.isnan(value), value
