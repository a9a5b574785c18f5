"""Pairs as lines of text, byte for byte: tab-separated, or in two files.

Tab-separated as for `cut` and `paste`: a line feed ends a row, a tab ends a cell, and nothing else is special, quotes
included. In two files, as Moses and OPUS have them, line i of one translates line i of the other.
"""

import bisect
import contextlib
import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.cells import Added, cells_of, one_cell
from bitextmine.files.formats.columns import HEAD, Columns, Layout, as_number, find_layout
from bitextmine.files.formats.protocol import BLOCK_BYTES, HEAD_BYTES, Block, Outline, SomeRows, Writer
from bitextmine.files.formats.sniff import sniff
from bitextmine.files.source import Source, TwoFiles, decode_lines

Decode = Callable[[bytes, int], str]  # of lines, and the number of the first row
_INTEGER = re.compile(r"-?\d{1,18}")
_TWO_FILES_ROWS = 8192
_LOOKED_BACK = 50  # rows of a block for a cell that does not end in it
_QUOTED = "part of a quoted cell with line ends; name a spreadsheet's file .csv"


class TextBlock:
    """A `Block` of lines of bytes, decoded and cut into cells on demand.

    Attributes:
        opened, open: a cell in quotation marks goes on here from the block before, or from here in the next one.
    """

    def __init__(
        self, raw: list[bytes], start: int, width: int, decode: Decode | None, least: int | None
    ) -> None:
        """Take lines; `least`: cells of a row that may have more or fewer than `width`."""
        self._raw, self._decode, self._least = raw, decode, least
        self.start, self.width = start, width
        self.opened = self.open = False

    def __len__(self) -> int:
        return len(self._raw)

    @cached_property
    def _cells(self) -> list[list[str] | None]:
        """Return the cells of each row, without the carriage return of a line; None for invalid UTF-8."""
        raw = b"\n".join(self._raw)
        rows: Sequence[str | None]
        try:
            rows = (self._decode(raw, self.start) if self._decode else raw.decode("utf-8")).split("\n")
        except UnicodeDecodeError:
            rows = [_decoded(line) for line in self._raw]
        return [None if row is None else row.removesuffix("\r").split("\t") for row in rows]

    @cached_property
    def _bad(self) -> dict[int, str]:
        width, least = self.width, self._least
        bad = {
            row: "invalid UTF-8" if cells is None else f"{len(cells)} columns, not {least or width}"
            for row, cells in enumerate(self._cells)
            if cells is None or (len(cells) != width if least is None else len(cells) < least)
        }
        starts = {at for row in bad for at in (row - 1, row) if at >= 0}
        starts |= {-1} if self.opened else set()
        starts |= {len(self) - 1} if self.open else set()
        quoted: set[int] = set()
        for start in sorted(starts):
            if start not in quoted:  # or what follows is known
                quoted.update(self._quoted(start))
        return dict(sorted({**dict.fromkeys(quoted, _QUOTED), **bad}.items())) if quoted else bad

    def _quoted(self, row: int) -> Iterator[int]:
        """Yield the rows of cells in quotation marks and with line ends, the first of which begins in this one."""
        cells = self._cells[row] if row >= 0 else None
        opened = row < 0 or _opens(cells)
        rows = [row] if row >= 0 else []
        while opened and (row := row + 1) < len(self):
            cells = self._cells[row]
            rows.append(row)
            if cells is None or (not any('"' in cell for cell in cells) and len(cells) == self.width):
                return
            if any('"' in cell for cell in cells):
                if not _closes(cells):
                    return
                yield from rows
                rows, opened = [], _opens(cells)
        if self.open:
            yield from rows

    def may_go_on(self) -> bool:
        """Return True if the last rows are lines of a cell in quotation marks that does not end here."""
        for line in reversed(self._raw[-_LOOKED_BACK:]):
            cells = _row(line)
            if b'"' in line or len(cells) == self.width:
                return _opens(cells)
        return False

    def goes_on(self, following: Sequence[bytes]) -> bool:
        """Return True if the lines that follow have the end of such a cell, or no other end than theirs."""
        last = _row(self._raw[-1])
        for at, line in enumerate(following):
            cells = _row(line)
            if at == 0 and len(last) == len(cells) == self.width and not _closes(last):
                return False
            if b'"' in line:
                return _closes(cells)
            if len(cells) == self.width:
                return False
        return bool(following)

    def bad(self) -> dict[int, str]:
        """Return the bad rows."""
        return self._bad

    def texts(self, column: int, rows: SomeRows) -> list[str]:
        """Return cells as texts."""
        cells: Any = self._cells
        return [cells[row][column] for row in rows]

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return cells as numbers."""
        texts = self.texts(column, rows)
        try:
            return np.array([float(text) for text in texts], dtype=np.float64)
        except ValueError:
            return np.array([as_number(text) for text in texts], dtype=np.float64)

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return rows as lines; of another width as they are."""
        if not without:
            return self._raw
        kept = [at for at in range(self.width) if at not in without]
        lines = []
        for line in self._raw:
            cells = line.removesuffix(b"\r").split(b"\t")
            if len(cells) == self.width:
                line = b"\t".join([cells[at] for at in kept]) + (b"\r" if line.endswith(b"\r") else b"")
            lines.append(line)
        return lines

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return rows as values, with U+FFFD for invalid UTF-8.

        A cell without a number in a column of numbers stays text, an empty one there is None.
        """
        rows: list[list[Any]] = [
            line.decode("utf-8", "replace").removesuffix("\r").split("\t") if cells is None else list(cells)
            for line, cells in zip(self._raw, self._cells, strict=True)
        ]
        for row in rows:
            for at in floats:
                if at < len(row):
                    number = as_number(row[at])
                    row[at] = number if math.isfinite(number) else row[at] or None
            for at in integers:
                if at < len(row):
                    row[at] = int(row[at]) if _INTEGER.fullmatch(row[at]) else row[at] or None
        return rows


def _opens(cells: Sequence[str] | None) -> bool:
    """Return True if the last cell is the beginning of one in quotation marks."""
    return cells is not None and cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1


def _closes(cells: Sequence[str]) -> bool:
    """Return True if the first cell is the end of one in quotation marks."""
    return cells[0].endswith('"') and cells[0].count('"') % 2 == 1


def _row(line: bytes) -> list[str]:
    return (_decoded(line) or "").removesuffix("\r").split("\t")


def _decoded(line: bytes) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        return line.decode("utf-8")
    return None


class TextRows:
    """A tab-separated stream, ``-`` for stdin (see `Rows`); its first rows are read at once, to find the columns.

    lines: instead of those of the file.
    """

    def __init__(
        self, source: Source, columns: Columns | None = None, lines: Iterator[list[bytes]] | None = None
    ) -> None:
        columns = columns or Columns()
        name, errors = str(source), columns.errors
        self.header_line = False
        self._decode: Decode | None = None
        if errors is not None:
            self._decode = lambda raw, row: decode_lines(raw, errors, name, row - 1 + self.header_line)
        self._lines = source.byte_lines() if lines is None else lines
        self._ahead: list[bytes] = []
        size = 0
        while (
            len(self._ahead) <= HEAD and size < HEAD_BYTES and (more := next(self._lines, None)) is not None
        ):
            self._ahead += more
            size += sum(map(len, more))
        if lines is None and source.is_stream and not source.is_standard:  # a pipe, read once
            kind = sniff(b"\n".join([*self._ahead, b""]))
            if kind != "tsv":
                raise BitextmineError(
                    f"{name}: looks like {kind.upper()}; name the file itself, or give it as standard input (-)"
                )
        self.layout = Layout(width=0)
        self.empty = True
        if not self._ahead:
            if columns.header:
                raise BitextmineError(f"{name}: empty: --header wants a first line that names the columns")
            return
        many = min(HEAD, _fill(self._ahead, HEAD_BYTES))  # the same however a pipe is cut
        head = [line.decode("utf-8", "replace").removesuffix("\r").split("\t") for line in self._ahead[:many]]
        self.layout = find_layout(head, columns, name)
        if self.layout.names:
            if _decoded(self._ahead[0]) is None:
                raise BitextmineError(f"{name}: line 1: the header is not UTF-8")
            self.header_line = True
            del self._ahead[0]
        self.empty = not self._ahead
        places = self.layout.places
        self._least = 1 + max(places.get("src", 0), places.get("tgt", 1)) if columns.ragged else None

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[TextBlock]:
        """Yield the rows in blocks."""
        start, opened = 1, False
        cut = self._cut(rows, most)
        lines = next(cut, None)
        while lines is not None:
            block = TextBlock(lines, start, self.layout.width, self._decode, self._least)
            following = next(cut, None) if block.may_go_on() else None
            block.opened, block.open = opened, following is not None and block.goes_on(following)
            yield block
            start, opened = start + len(lines), block.open
            lines = next(cut, None) if following is None else following

    def _cut(self, rows: int | None, most: int) -> Iterator[list[bytes]]:
        ahead, self._ahead = [self._ahead] if self._ahead else [], []
        size, waiting = 0, list[bytes]()
        for lines in itertools.chain(ahead, self._lines):
            if rows is None:
                yield lines
                continue
            waiting.extend(lines)
            size += sum(map(len, lines))
            while len(waiting) >= rows or size >= most:
                block = waiting[: min(rows, _fill(waiting[:rows], most))]
                yield block
                size -= sum(map(len, block))
                del waiting[: len(block)]
        if waiting:
            yield waiting


def _fill(lines: Sequence[bytes], size: int) -> int:
    """Return how many of the lines have that many bytes; all, if they have fewer."""
    return bisect.bisect_left(list(itertools.accumulate(map(len, lines))), size) + 1


class TextWriter(Writer):
    """Writes rows as they were read, without some cells, with others added before the line end."""

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out, self._only_added, self._without = out, outline.only_added, outline.replaced
        self._header = b""  # until the first row shows that the input can be read
        if outline.header:
            kept = [name for at, name in enumerate(outline.names) if at not in outline.replaced]
            names = [*([] if outline.only_added else kept), *outline.added]
            self._header = ("\t".join(map(one_cell, names)) + "\n").encode("utf-8", "replace")

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block."""
        if not len(block) or (rows is not None and not len(rows)):
            return
        lines = [] if self._only_added else block.lines(self._without)
        tails: list[bytes] = []
        if added:
            columns = [cells_of(column.values) for column in added]
            tails = "\n".join(map("\t".join, zip(*columns, strict=True))).encode("utf-8").split(b"\n")
        if rows is not None:
            lines, tails = ([cells[i] for i in rows] if cells else [] for cells in (lines, tails))
        if self._only_added:
            lines = tails
        elif tails:
            lines = [
                b"%b\t%b\r" % (line[:-1], tail) if line.endswith(b"\r") else b"%b\t%b" % (line, tail)
                for line, tail in zip(lines, tails, strict=True)
            ]
        self._out.write(self._header + b"\n".join(lines) + b"\n")
        self._header = b""
        self._out.flush()  # who reads the pipe need not wait for a full buffer

    def close(self) -> None:
        """Write the header of a file without rows."""
        self._out.write(self._header)


# --- two files ---


def open_moses(source: Source, columns: Columns) -> TextRows:
    """Return the rows of two files: a column each, named by the language that ends the file's name.

    A tab in a text becomes a space.

    Raises:
        UsageError: one name, of a file to write.
        BitextmineError: a file cannot be read, or, while reading, one has more lines.
    """
    if not isinstance(source, TwoFiles):
        raise UsageError(
            f"{source}: {{lang}} stands in names to write; to read, name both files, source first"
        )
    names = "\t".join(source.langs() or ("src", "tgt")).encode()
    lines = itertools.chain([[names]], _joined(source.files))
    rows = TextRows(source, dataclasses.replace(columns, header=True), lines)
    rows.header_line = False  # no line of a file
    return rows


def _joined(files: Sequence[Source]) -> Iterator[list[bytes]]:
    """Yield the lines of both files with a tab between them."""
    sides = [itertools.chain.from_iterable(file.byte_lines()) for file in files]
    done = 0
    while True:
        src, tgt = (list(itertools.islice(side, _TWO_FILES_ROWS)) for side in sides)
        if len(src) != len(tgt):
            src_lines, tgt_lines = (
                done + len(part) + sum(1 for _ in rest) for part, rest in zip((src, tgt), sides, strict=True)
            )
            raise BitextmineError(
                f"{files[0]} has {counted(src_lines, 'line')}, but {files[1]} has {tgt_lines:,}: "
                "they are not translations line by line"
            )
        if not src:
            return
        done += len(src)
        yield [b"%b\t%b" % (_cell(a), _cell(b)) for a, b in zip(src, tgt, strict=True)]


def _cell(line: bytes) -> bytes:
    return line.removesuffix(b"\r").replace(b"\t", b" ")


class MosesWriter(Writer):
    """Writes the texts of rows, a line each; an empty line on both sides for a row that cannot be read."""

    def __init__(self, out: Sequence[Any], outline: Outline) -> None:
        self._out, self._sides = out, outline.sides()

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block."""
        wanted = np.arange(len(block)) if rows is None else rows
        bad = block.bad()
        good = [row for row in wanted.tolist() if row not in bad]
        for out, side in zip(self._out, self._sides, strict=True):
            texts = dict(zip(good, block.texts(side, good), strict=True))
            lines = (one_cell(texts.get(row, "")) + "\n" for row in wanted.tolist())
            out.write("".join(lines).encode("utf-8", "replace"))
