"""The pairs of a file for the report, block by block; what is wrong with rows is counted and stops nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.names import Form, form_of
from bitextmine.files.layout import HEAD, Columns, Layout, as_number, find_layout, kind_of_no_number
from bitextmine.files.lines import LineHasher, iter_lines, some_lines
from bitextmine.files.storage import open_bytes
from bitextmine.files.streams import display_name
from bitextmine.files.tables import open_table

__all__ = ["PairReader", "ReadPairs"]

_BLOCK = 1 << 13


@dataclass
class ReadPairs:
    """Some rows: their numbers in the file (from 1), texts, and scores (nan where there is none)."""

    row: list[int]
    src: list[str]
    tgt: list[str]
    score: NDArray[np.float64]


@dataclass
class PairReader:
    """A pass over the pairs of a file; what it counts is complete once `blocks` is exhausted.

    short, wide: lines with too few cells, and rows of another form that are no pairs (left out), and lines with more
    cells than the others; first_bad: why the first such row is none; odd_scores: cells
    of the score column without a finite number in them, by kind. Each counts with its first line number.
    digest: the SHA-256 of the lines, of a file that is not tab-separated that of its bytes.
    """

    path: str | os.PathLike[str]
    columns: Columns = field(default_factory=Columns)
    errors: str = "strict"
    layout: Layout | None = None
    lines: int = 0
    digest: str = ""
    short: tuple[int, int] = (0, 0)
    wide: tuple[int, int] = (0, 0)
    odd_scores: dict[str, tuple[int, int]] = field(default_factory=dict)
    first_bad: str = ""

    def blocks(self) -> Iterator[ReadPairs]:
        """The rows in order. Raises BitextmineError when the columns cannot be told, and when not one line of
        the file has them.
        """
        yield from self._text_blocks() if self.is_text else self._table_blocks()
        used = self.lines - (1 if self._has_header_line() else 0) - self.short[0]
        if used == 0 and self.short[0] and not self.is_text:
            raise BitextmineError(
                f"{display_name(self.path)}: no row of it is a pair; the first: {self.first_bad}"
            )
        if used == 0 and self.short[0]:
            raise BitextmineError(
                f"{display_name(self.path)}: no line has the {self.layout.width if self.layout else 2} columns "
                "expected; check --score-col, --scol and --tcol"
            )

    @property
    def digest_of(self) -> str:
        """What the digest is of, for people."""
        return f"SHA-256 of the {'lines' if self.is_text else 'file'}"

    @property
    def is_text(self) -> bool:
        """Whether the file is tab-separated text."""
        return form_of(self.path) == Form.TSV

    def _has_header_line(self) -> bool:
        return self.layout is not None and bool(self.layout.names) and self.is_text

    def _text_blocks(self) -> Iterator[ReadPairs]:
        hasher = LineHasher()
        for chunk in some_lines(iter_lines(self.path, self.errors), _BLOCK):
            hasher.update(chunk)
            rows = [line.split("\t") for line in chunk]
            start = 0
            if self.layout is None:
                self.layout = find_layout(rows[:HEAD], self.columns, display_name(self.path))
                start = 1 if self.layout.names else 0
            block = self._block(rows[start:], self.lines + start + 1, self.layout)
            self.lines += len(chunk)
            if block.row:
                yield block
        self.digest = hasher.hexdigest()

    def _table_blocks(self) -> Iterator[ReadPairs]:
        rows = open_table(self.path, self.columns).rows
        layout = self.layout = rows.layout
        for block in rows.blocks(_BLOCK):
            bad = block.bad()
            good = np.array([row for row in range(len(block)) if row not in bad], dtype=np.int64)
            numbers = (good + block.start).tolist()
            self.short = _counted(self.short, [block.start + row for row in sorted(bad)])
            if bad and not self.first_bad:
                self.first_bad = f"row {block.start + min(bad)}: {bad[min(bad)]}"
            score = (
                np.full(len(good), np.nan)
                if layout.score is None
                else self._scores(block.texts(layout.score, good), numbers)
            )
            self.lines += len(block)
            yield ReadPairs(numbers, block.texts(layout.src, good), block.texts(layout.tgt, good), score)
        with open_bytes(self.path) as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()

    def _block(self, rows: list[list[str]], first: int, layout: Layout) -> ReadPairs:
        needed = 1 + max(layout.src, layout.tgt, -1 if layout.score is None else layout.score)
        numbers = list(range(first, first + len(rows)))
        sizes = set(map(len, rows))
        if min(sizes, default=needed) < needed:
            self.short = _counted(
                self.short, [n for n, r in zip(numbers, rows, strict=True) if len(r) < needed]
            )
            kept = [(n, r) for n, r in zip(numbers, rows, strict=True) if len(r) >= needed]
            numbers, rows = [n for n, _ in kept], [r for _, r in kept]
        if max(sizes, default=0) > layout.width:
            wide = [n for n, r in zip(numbers, rows, strict=True) if len(r) > layout.width]
            self.wide = _counted(self.wide, wide)
        score = (
            np.full(len(rows), np.nan)
            if layout.score is None
            else self._scores([r[layout.score] for r in rows], numbers)
        )
        return ReadPairs(numbers, [r[layout.src] for r in rows], [r[layout.tgt] for r in rows], score)

    def _scores(self, cells: list[str], numbers: list[int]) -> NDArray[np.float64]:
        try:
            score = np.array([float(cell) for cell in cells], dtype=np.float64)
        except ValueError:
            score = np.array([as_number(cell) for cell in cells], dtype=np.float64)
        for i in np.flatnonzero(~np.isfinite(score)):
            kind = kind_of_no_number(cells[i])
            self.odd_scores[kind] = _counted(self.odd_scores.get(kind, (0, 0)), [numbers[i]])
            score[i] = np.nan
        return score


def _counted(before: tuple[int, int], numbers: Sequence[int]) -> tuple[int, int]:
    """(how many, first line), with more lines added."""
    if not numbers:
        return before
    return before[0] + len(numbers), before[1] or numbers[0]
