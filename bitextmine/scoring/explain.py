"""Pairs near the threshold of a rule, on either side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.files.tables import Block, Table
from bitextmine.scoring.rules import Rule

_CHARACTERS = 100


@dataclass(frozen=True)
class Example:
    """A pair near a threshold: its value, its row (from 1, without a header) and the beginnings of its texts."""

    value: float
    row: int
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.value:.4f}  row {self.row}: {self.src} | {self.tgt}"


class Nearest:
    """The `count` pairs nearest to a rule's threshold on each side; ties go to the first."""

    def __init__(self, count: int, rule: Rule) -> None:
        self.rule = rule
        self._count = count
        self._best: tuple[list[Example], list[Example]] = ([], [])

    def add(
        self,
        block: Block,
        table: Table,
        values: NDArray[np.float64],
        outside: NDArray[np.bool_],
        inside: NDArray[np.bool_],
    ) -> None:
        """Add a block of rows: values (n,), and masks (n,) of the rows that this rule rejects and of the kept rows."""
        threshold = self.rule.value if isinstance(self.rule.value, float) else 0.5
        for best, chosen in zip(self._best, (outside, inside), strict=True):
            rows = np.flatnonzero(chosen)
            if not len(rows):
                continue
            distance = np.abs(values[rows] - threshold)
            if len(best) == self._count:
                rows = rows[distance < abs(best[-1].value - threshold)]
                distance = np.abs(values[rows] - threshold)
            rows = rows[np.argsort(distance, kind="stable")[: self._count]]
            texts = [block.texts(column, rows) for column in (table.layout.src, table.layout.tgt)]
            best += [
                Example(float(values[row]), block.start + int(row), _short(s), _short(t))
                for row, s, t in zip(rows, *texts, strict=True)
            ]
            best.sort(key=lambda example: (abs(example.value - threshold), example.row))
            del best[self._count :]

    def examples(self) -> tuple[list[Example], list[Example]]:
        """Return the pairs outside and inside, nearest first."""
        return self._best


def _short(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text[: 4 * _CHARACTERS]).strip()
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
