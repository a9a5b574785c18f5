"""Pairs in a tab-separated file: which column holds what, and the rows, block by block."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.lines import LineHasher, iter_lines
from bitextmine.files.streams import display_name

__all__ = ["Block", "Columns", "Layout", "PairFile", "find_layout"]

_BLOCK = 1 << 13
_HEAD = 200

_NAMES = {"score": ("score", "margin", "cosine"), "src": ("src", "source"), "tgt": ("tgt", "target")}
_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,8})*")
_MISSING = {"", "-", "na", "n/a", "none", "null"}


@dataclass(frozen=True)
class Columns:
    """What the user said about the columns: positions from 1 or names of the header; None: find out."""

    score: str | None = None
    src: str | None = None
    tgt: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Layout:
    """Where things are, counted from 0; score is None for pairs without scores.

    names: the header, or empty. src_lang, tgt_lang: languages, where the header names the columns by them.
    width: how many cells most rows have.
    """

    score: int | None
    src: int
    tgt: int
    width: int
    names: tuple[str, ...] = ()
    src_lang: str = ""
    tgt_lang: str = ""

    def describe(self) -> str:
        """In words, for people: which column was read as what."""

        def column(at: int) -> str:
            return f"column {at + 1}" + (f" ({self.names[at]})" if self.names else "")

        score = "no score" if self.score is None else f"score in {column(self.score)}"
        return f"{score}, source in {column(self.src)}, target in {column(self.tgt)}"


@dataclass
class Block:
    """Some rows: their numbers in the file (from 1), texts, and scores (nan where there is none)."""

    row: list[int]
    src: list[str]
    tgt: list[str]
    score: NDArray[np.float64]


@dataclass
class PairFile:
    """A pass over the pairs of a file; what it counts is complete once `blocks` is exhausted.

    short, wide: lines with too few cells (left out) and with more cells than the others; odd_scores: cells
    of the score column without a finite number in them, by kind. Each counts with its first line number.
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

    def blocks(self) -> Iterator[Block]:
        """The rows in order. Raises BitextmineError when the columns cannot be told, and when not one line of
        the file has them.
        """
        name = display_name(self.path)
        hasher = LineHasher()
        lines = iter_lines(self.path, self.errors)
        number = 0  # of lines before this block
        used = 0
        while chunk := list(itertools.islice(lines, _BLOCK)):
            hasher.update(chunk)
            rows = [line.split("\t") for line in chunk]
            start = 0
            if self.layout is None:
                self.layout = find_layout(rows[:_HEAD], self.columns, name)
                start = 1 if self.layout.names else 0
            block = self._block(rows[start:], number + start + 1, self.layout)
            number += len(chunk)
            used += len(block.row)
            if block.row:
                yield block
        self.lines = number
        self.digest = hasher.hexdigest()
        if used == 0 and self.short[0]:
            raise BitextmineError(
                f"{name}: no line has the {self.layout.width if self.layout else 2} columns expected; "
                "check --score-col, --scol and --tcol"
            )

    def _block(self, rows: list[list[str]], first: int, layout: Layout) -> Block:
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
        return Block(numbers, [r[layout.src] for r in rows], [r[layout.tgt] for r in rows], score)

    def _scores(self, cells: list[str], numbers: list[int]) -> NDArray[np.float64]:
        try:
            score = np.array([float(cell) for cell in cells], dtype=np.float64)
        except ValueError:
            score = np.array([_number(cell) for cell in cells], dtype=np.float64)
        for i in np.flatnonzero(~np.isfinite(score)):
            kind = _odd(cells[i])
            self.odd_scores[kind] = _counted(self.odd_scores.get(kind, (0, 0)), [numbers[i]])
            score[i] = np.nan
        return score


def _counted(before: tuple[int, int], numbers: Sequence[int]) -> tuple[int, int]:
    """(how many, first line), with more lines added."""
    if not numbers:
        return before
    return before[0] + len(numbers), before[1] or numbers[0]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _odd(cell: str) -> str:
    text = cell.strip().lower()
    if text in _MISSING:
        return "missing"
    try:
        return "NaN" if math.isnan(float(text)) else "infinite"
    except ValueError:
        return "not a number"


# --- finding the columns -----------------------------------------------------------------------------------


def find_layout(head: list[list[str]], columns: Columns, name: str = "input") -> Layout:
    """Which column is which, from what the user said, else from the header, else from the shape of the first
    rows: score, source, target | source, target, score | source, target | score, two line numbers, source,
    target (as 'mine --ids' writes).

    head: the first lines as cells, at least one. Raises BitextmineError when that does not settle it.
    """
    given = {"score": columns.score, "src": columns.src, "tgt": columns.tgt}
    by_name = [value for value in given.values() if value is not None and not _is_position(value)]
    found, langs = _by_header(head[0])
    header = columns.header
    if header is None:
        header = bool(by_name) or len(found) >= 2
    if header is False and by_name:
        raise BitextmineError(
            f"{name}: column {by_name[0]!r} is asked for by name, but the file is said to have no header; "
            "give its position, from 1"
        )
    names = tuple(head[0]) if header else ()
    body = head[1:] if header else head
    width = Counter(map(len, body)).most_common(1)[0][0] if body else len(head[0])
    if not header:
        found, langs = {}, ("", "")
    at = {**_by_shape(body, width), **found}
    chosen = {key: _position(value, names, name) for key, value in given.items() if value is not None}
    at = {key: value for key, value in at.items() if key in chosen or value not in chosen.values()}
    at.update(chosen)
    missing = [key for key in ("src", "tgt") if key not in at]
    if missing:
        sample = "\t".join(head[0])
        raise BitextmineError(
            f"{name}: line 1: cannot tell which of its {width} column(s) are source and target in {sample[:80]!r}; "
            "expected tab-separated score, source, target; say which with --scol, --tcol and --score-col"
        )
    if at["src"] == at["tgt"]:
        raise BitextmineError(f"{name}: source and target are the same column, {at['src'] + 1}; give two")
    return Layout(at.get("score"), at["src"], at["tgt"], width, names, *langs)


def _is_position(value: str) -> bool:
    return value.isascii() and value.isdecimal()


def _position(value: str, names: tuple[str, ...], name: str) -> int:
    if _is_position(value):
        if int(value) < 1:
            raise BitextmineError(f"{name}: column {value}: columns count from 1")
        return int(value) - 1
    if value not in names:
        raise BitextmineError(f"{name}: no column {value!r}; the first line names: {', '.join(names)[:200]}")
    return names.index(value)


def _by_header(cells: list[str]) -> tuple[dict[str, int], tuple[str, str]]:
    """The columns that a header names, and the languages if it names source and target by them."""
    lower = [cell.strip().lower() for cell in cells]
    found = {}
    for role, names in _NAMES.items():
        at = next((lower.index(n) for n in names if n in lower), None)
        if at is not None:
            found[role] = at
    if "score" in found and not {"src", "tgt"} & found.keys():
        codes = [i for i, cell in enumerate(cells) if i != found["score"] and _CODE.fullmatch(cell.strip())]
        if len(codes) == 2 and len(cells) == 3:
            found["src"], found["tgt"] = codes
            return found, (cells[codes[0]].strip(), cells[codes[1]].strip())
    return found, ("", "")


def _by_shape(rows: list[list[str]], width: int) -> dict[str, int]:
    """The columns of the usual files, by the number of cells and by which of them are numbers."""
    rows = [row for row in rows if len(row) == width]

    def numeric(at: int) -> bool:
        """Numbers or nothing, and a number somewhere; most of the cells, for a file may hold a bad one."""
        right = sum(not math.isnan(_number(row[at])) or _odd(row[at]) in ("missing", "NaN") for row in rows)
        return right >= 0.8 * len(rows) and any(not math.isnan(_number(row[at])) for row in rows)

    def whole(at: int) -> bool:
        return bool(rows) and sum(_is_position(row[at].strip()) for row in rows) >= 0.8 * len(rows)

    if width == 2:
        return {"src": 0, "tgt": 1}
    if width == 3 and rows:
        if not numeric(0) and numeric(2):
            return {"src": 0, "tgt": 1, "score": 2}
        return {"score": 0, "src": 1, "tgt": 2}
    if width == 5 and whole(1) and whole(2):
        return {"score": 0, "src": 3, "tgt": 4}
    return {}
