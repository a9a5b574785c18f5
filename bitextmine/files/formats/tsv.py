"""Pairs as lines of text, byte for byte: tab-separated, in two files, or as spreadsheets write them.

Tab-separated as for `cut` and `paste`: a line feed ends a row, a tab ends a cell, and nothing else is special, quotes
included. In two files, as Moses and OPUS have them, line i of one translates line i of the other. In CSV, and in
tab-separated cells in quotation marks, cells may hold line ends; these and tabs become spaces.
"""

import bisect
import csv
import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.blocks import (
    BLOCK_BYTES,
    HEAD_BYTES,
    Added,
    Block,
    Outline,
    Rows,
    Writer,
    one_cell,
)
from bitextmine.files.formats.layout import HEAD, Columns, Layout, find_layout
from bitextmine.files.formats.names import find_delimiter, sniff
from bitextmine.files.source import Source, TwoFiles, decode_lines

_ROWS = 8192  # of two files and of CSV at a time
_QUOTED = "part of a quoted cell with line ends; name a spreadsheet's file .csv"


class TextRows(Rows):
    """A tab-separated stream, ``-`` for stdin; its first rows are read at once, to find the columns.

    lines: instead of those of the file.
    """

    def __init__(
        self, source: Source, columns: Columns | None = None, lines: Iterator[list[bytes]] | None = None
    ) -> None:
        columns = columns or Columns()
        self._name, self._errors = str(source), columns.errors
        self._lines = source.byte_lines() if lines is None else lines
        self._ahead: list[bytes] = []
        # The last rows may be the beginning of a cell in quotation marks, and one of them is malformed.
        self._is_open = self._is_cut = False
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
                    f"{source}: looks like {kind.upper()}; name the file itself, or give it as standard input (-)"
                )
        self.layout = Layout(width=0)
        self.empty = True
        if not self._ahead:
            if columns.header:
                raise BitextmineError(f"{source}: empty: --header wants a first line that names the columns")
            return
        many = min(HEAD, _fill(self._ahead, HEAD_BYTES))  # the same however a pipe is cut
        head = [line.decode("utf-8", "replace").removesuffix("\r").split("\t") for line in self._ahead[:many]]
        self.layout = find_layout(head, columns, self._name)
        if self.layout.names:
            self.header_line = True
            if not _is_utf8(self._ahead.pop(0)):
                raise BitextmineError(f"{source}: line 1: the header is not UTF-8")
        self.empty = not self._ahead
        places = self.layout.places
        self._least = 1 + max(places.get("src", 0), places.get("tgt", 1)) if columns.ragged else None

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the rows."""
        start = 1
        for lines in self._cut(rows, most):
            yield self._block(lines, start)
            start += len(lines)

    def _block(self, lines: list[bytes], start: int) -> Block:
        raw = b"\n".join(lines)
        invalid = set[int]()
        try:
            if self._errors is None:
                text = raw.decode("utf-8")
            else:
                text = decode_lines(raw, self._errors, self._name, start - 1 + self.header_line)
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "replace")
            invalid = {at for at, line in enumerate(lines) if not _is_utf8(line)}
        cells = [line.removesuffix("\r").split("\t") for line in text.split("\n")]
        width, least = self.layout.width, self._least
        bad = {
            at: f"{len(row)} columns, not {least or width}"
            for at, row in enumerate(cells)
            if (len(row) != width if least is None else len(row) < least)
        } | dict.fromkeys(invalid, "invalid UTF-8")
        if bad or self._is_open:
            bad = dict.fromkeys(self._parts_of_cells(cells, bad), _QUOTED) | bad
        else:
            self._is_open = _opens(cells[-1])
        return Block(self.layout.column_names(), cells, start, dict(sorted(bad.items())), raw=lines)

    def _parts_of_cells(self, rows: Sequence[Sequence[str]], bad: Collection[int]) -> Iterator[int]:
        """Yield the rows of cells in quotation marks that hold line ends; of one before the block only those in it."""
        start = 0
        for at, cells in enumerate(rows):
            if self._is_open:
                self._is_cut = self._is_cut or at in bad
                if cells[0].endswith('"') and cells[0].count('"') % 2:
                    yield from range(start, at + 1) if self._is_cut else ()
                elif at in bad and not any('"' in cell for cell in cells):
                    continue
            start, self._is_open, self._is_cut = at, _opens(cells), at in bad

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


def _opens(cells: Sequence[str]) -> bool:
    """Return True if the last cell is the beginning of one in quotation marks."""
    return cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
            columns = [column.cells() for column in added]
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
    sides = [itertools.chain.from_iterable(file.byte_lines()) for file in files]
    done = 0
    while True:
        src, tgt = (list(itertools.islice(side, _ROWS)) for side in sides)
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


# --- spreadsheets ---

_END = "\x1eend of file\n"  # a line behind the last one, which becomes part of a cell without an end


def open_csv(source: Source, columns: Columns) -> TextRows:
    """Return the rows of a file; line ends and tabs in a cell become spaces.

    BitextmineError, here or while reading, for a cell larger than the longest line: a quotation mark without an end.
    """
    lines = (
        line.decode("utf-8", "surrogateescape") + "\n"
        for line in itertools.chain.from_iterable(source.byte_lines())
    )
    head = list(itertools.islice(lines, HEAD))
    if head and head[0].startswith("sep="):  # Excel
        del head[0]
    delimiter = find_delimiter(head) or ","
    return TextRows(source, columns, _rows(itertools.chain(head, lines), delimiter, source))


def _rows(lines: Iterator[str], delimiter: str, source: Source) -> Iterator[list[bytes]]:
    csv.field_size_limit(source.max_line)
    rows = csv.reader(itertools.chain(lines, [_END]), delimiter=delimiter)
    line = 0
    try:
        while block := list(itertools.islice(rows, _ROWS)):
            last = block[-1][-1] if block[-1] else ""
            if last.endswith(_END):
                line = rows.line_num - last.count("\n") + 1
                raise csv.Error("a cell from here to the end")
            if last == _END[:-1]:
                del block[-1]
            yield ["\t".join(map(one_cell, row)).encode("utf-8", "surrogateescape") for row in block if row]
    except csv.Error as e:
        remedy = "is there a quotation mark without an end?"
        if "new-line" in str(e):
            e, remedy = csv.Error("a carriage return without a line feed"), "convert it with tr '\\r' '\\n'"
        raise BitextmineError(f"{source}: line {line or rows.line_num}: not CSV ({e}); {remedy}") from None
