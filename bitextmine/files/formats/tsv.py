"""Tab-separated text as a stream of rows, byte for byte.

Tab-separated as for `cut` and `paste`: a line feed ends a row, a tab ends a cell, and nothing else is special, quotes
included.
"""

from __future__ import annotations

import bisect
import itertools
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import Added, cells_of, one_cell
from bitextmine.files.formats.protocol import BLOCK_BYTES, Block, Outline
from bitextmine.files.layout import HEAD, Columns, Layout, as_number, find_layout
from bitextmine.files.lines import decode_lines
from bitextmine.files.streams import display_name, raw_lines

# Rows so long that HEAD of them, or a block, would be more than this are fewer: memory stays bounded.
_HEAD_BYTES = 1 << 25
Decode = Callable[[bytes, int], str]  # of lines, and the number of the first row
_INTEGER = re.compile(r"-?\d{1,18}")


class TextBlock:
    """Lines of bytes, decoded and cut into cells on demand."""

    def __init__(
        self, raw: list[bytes], start: int, width: int, decode: Decode | None = None, least: int | None = None
    ) -> None:
        self._raw = raw
        self.start = start
        self.width = width
        self._least = least  # cells of a row that may have more or fewer than `width`
        self._decode = decode
        self._cells: list[list[str] | None] | None = None
        self._bad: dict[int, str] | None = None

    def __len__(self) -> int:
        return len(self._raw)

    def cells(self) -> list[list[str] | None]:
        """Return the cells of each row, without the carriage return of a line; None for invalid UTF-8."""
        if self._cells is None:
            raw = b"\n".join(self._raw)
            try:
                text = self._decode(raw, self.start) if self._decode else raw.decode("utf-8")
                rows: list[str | None] = list(text.split("\n"))
            except UnicodeDecodeError:
                rows = [_decoded(line) for line in self._raw]
            self._cells = [None if row is None else row.removesuffix("\r").split("\t") for row in rows]
        return self._cells

    def bad(self) -> dict[int, str]:
        """Return the bad rows (see `Block`)."""
        if self._bad is None:
            width, least = self.width, self._least
            self._bad = {
                row: "invalid UTF-8" if cells is None else f"{len(cells)} columns, not {least or width}"
                for row, cells in enumerate(self.cells())
                if cells is None or (len(cells) != width if least is None else len(cells) < least)
            }
        return self._bad

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return cells as texts (see `Block`)."""
        cells: Any = self.cells()
        return [cells[row][column] for row in rows]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return cells as numbers (see `Block`)."""
        texts = self.texts(column, rows)
        try:
            return np.array([float(text) for text in texts], dtype=np.float64)
        except ValueError:
            return np.array([as_number(text) for text in texts], dtype=np.float64)

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return rows as lines (see `Block`)."""
        if not without:
            return self._raw
        kept = [at for at in range(self.width) if at not in without]
        return [_without(line, self.width, kept) for line in self._raw]

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return rows as values (see `Block`), with U+FFFD for invalid UTF-8.

        A cell without a number in a column of numbers stays text, an empty one there is None.
        """
        rows: list[list[Any]] = [
            line.decode("utf-8", "replace").removesuffix("\r").split("\t") if cells is None else list(cells)
            for line, cells in zip(self._raw, self.cells(), strict=True)
        ]
        for row in rows:
            for at in floats:
                if at < len(row):
                    row[at] = _finite(row[at])
            for at in integers:
                if at < len(row):
                    cell = row[at]
                    row[at] = int(cell) if _INTEGER.fullmatch(cell) else cell or None
        return rows


def _finite(cell: str) -> float | str | None:
    number = as_number(cell)
    return number if math.isfinite(number) else cell or None


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _without(line: bytes, width: int, kept: Sequence[int]) -> bytes:
    """Return a line without some of its cells; a line of another width as it is."""
    ending = b"\r" if line.endswith(b"\r") else b""
    cells = line.removesuffix(b"\r").split(b"\t")
    return line if len(cells) != width else b"\t".join([cells[at] for at in kept]) + ending


class TextRows:
    """A tab-separated stream, ``-`` for stdin; its first rows are read at once, to find the columns.

    lines: instead of those of the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Columns | None = None,
        lines: Iterator[list[bytes]] | None = None,
    ) -> None:
        columns = columns or Columns()
        name, errors = display_name(path), columns.errors
        self.header_line = False
        self._decode: Decode | None = None
        if errors is not None:
            self._decode = lambda raw, row: decode_lines(raw, errors, name, row - 1 + self.header_line)
        self._lines = raw_lines(path) if lines is None else lines
        self._ahead: list[bytes] = []
        size = 0
        while (
            len(self._ahead) <= HEAD and size < _HEAD_BYTES and (more := next(self._lines, None)) is not None
        ):
            self._ahead += more
            size += sum(map(len, more))
        self.layout = Layout(width=0)
        self.empty = True
        if not self._ahead:
            if columns.header:
                raise BitextmineError(f"{name}: empty: --header wants a first line that names the columns")
            return
        head = [
            line.decode("utf-8", "replace").removesuffix("\r").split("\t")
            for line in self._ahead[: _head(self._ahead)]
        ]
        self.layout = find_layout(head, columns, name)
        if self.layout.names:
            if _decoded(self._ahead[0]) is None:
                raise BitextmineError(f"{name}: line 1: the header is not UTF-8")
            self.header_line = True
            del self._ahead[0]
        self.empty = not self._ahead
        places = self.layout.places
        self._least = 1 + max(places.get("src", 0), places.get("tgt", 1)) if columns.ragged else None

    def _block(self, lines: list[bytes], start: int) -> TextBlock:
        return TextBlock(lines, start, self.layout.width, self._decode, self._least)

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[TextBlock]:
        """Yield the rows in blocks (see `Rows`)."""
        start = 1
        waiting: list[bytes] = []
        source = itertools.chain([self._ahead] if self._ahead else [], self._lines)
        self._ahead = []
        size = 0
        for lines in source:
            if rows is None:
                yield self._block(lines, start)
                start += len(lines)
                continue
            waiting.extend(lines)
            size += sum(map(len, lines))
            while len(waiting) >= rows or size >= most:
                many = min(rows, _fill(waiting[:rows], most))
                yield self._block(waiting[:many], start)
                start += many
                size -= sum(map(len, waiting[:many]))
                del waiting[:many]
        if waiting:
            yield self._block(waiting, start)


def _head(lines: Sequence[bytes]) -> int:
    """Return how many of the first lines to look at; the same however a pipe is cut."""
    return min(HEAD, _fill(lines, _HEAD_BYTES))


def _fill(lines: Sequence[bytes], size: int) -> int:
    """Return how many of the lines have that many bytes; all, if they have fewer."""
    return bisect.bisect_left(list(itertools.accumulate(map(len, lines))), size) + 1


class TextWriter:
    """Writes rows as they were read, without some cells, with others added before the line end."""

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out = out
        self._only_added = outline.only_added
        self._without = outline.replaced
        if outline.header:
            kept = [name for at, name in enumerate(outline.names) if at not in outline.replaced]
            names = [*([] if outline.only_added else kept), *outline.added]
            out.write(("\t".join(map(one_cell, names)) + "\n").encode("utf-8", "replace"))

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block (see `Writer`)."""
        if not len(block) or (rows is not None and not len(rows)):
            return
        lines = [] if self._only_added else block.lines(self._without)
        tails: list[bytes] = []
        if added:
            columns = [cells_of(column.values) for column in added]
            tails = "\n".join(map("\t".join, zip(*columns, strict=True))).encode("utf-8").split(b"\n")
        if rows is not None:
            lines, tails = (
                [lines[i] for i in rows] if lines else [],
                [tails[i] for i in rows] if tails else [],
            )
        if self._only_added:
            lines = tails
        elif tails:
            lines = [
                b"%b\t%b\r" % (line[:-1], tail) if line.endswith(b"\r") else b"%b\t%b" % (line, tail)
                for line, tail in zip(lines, tails, strict=True)
            ]
        self._out.write(b"\n".join(lines) + b"\n")
        self._out.flush()  # who reads the pipe need not wait for a full buffer

    def close(self) -> None:
        """Write nothing: the format has no end."""
