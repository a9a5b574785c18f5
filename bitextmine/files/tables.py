"""Rows of columns as streams: tab-separated text, byte for byte, or Parquet; read in blocks, written in blocks.

Tab-separated here means what `cut` and `paste` mean by it: a line feed ends a row, a tab ends a cell, and nothing else
is special, quotes included.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.streams import display_name, open_output, read_blocks
from bitextmine.mine.bitext import one_cell

__all__ = ["Added", "Block", "Rows", "Table", "cells_of", "is_parquet", "open_table", "write_rows"]

_BOM = b"\xef\xbb\xbf"
DECIMALS = 4


@dataclass(frozen=True)
class Added:
    """A column to write beside those that were read: numbers (n,), NaN for none, or texts."""

    name: str
    values: NDArray[np.float64] | Sequence[str]


def cells_of(values: NDArray[np.float64] | Sequence[str]) -> list[str]:
    """A column as cells of text: numbers with four decimals, nothing for NaN."""
    if isinstance(values, np.ndarray):
        return ["" if v != v else f"{v:.{DECIMALS}f}" for v in values.tolist()]
    return list(values)


class Block(Protocol):
    """Some consecutive rows. Columns are counted from 0."""

    start: int  # the number of the first row in the stream, from 1; a header does not count
    width: int  # how many columns a row should have

    def __len__(self) -> int: ...

    def bad(self) -> dict[int, str]:
        """The rows that cannot be read, by their place in the block, and why."""

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """The cells of a column in some rows, none of them bad."""

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """The same as numbers; NaN for a cell that is empty or no number."""

    def lines(self) -> list[bytes]:
        """Every row as a tab-separated line, without its line feed."""

    def arrow(self, names: Sequence[str]) -> Any:
        """A pyarrow.Table of all rows, its columns called `names`."""


class Rows(Protocol):
    """A stream of blocks. names: those in the header, or empty; width: how many columns a row should have, 0 while no
    row has been read."""

    names: tuple[str, ...]
    width: int

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """The rows, in blocks of exactly `rows` (the last one may be smaller), or as they come."""


# --- tab-separated text ----------------------------------------------------------------------------------


class TextBlock:
    """Lines of bytes; decoded and cut into cells when that is asked for."""

    def __init__(self, raw: list[bytes], start: int, width: int) -> None:
        self._raw = raw
        self.start = start
        self.width = width
        self._cells: list[list[str] | None] | None = None
        self._bad: dict[int, str] | None = None

    def __len__(self) -> int:
        return len(self._raw)

    def cells(self) -> list[list[str] | None]:
        """Per row its cells, without the carriage return at the end of a line; None for invalid UTF-8."""
        if self._cells is None:
            try:
                text = b"\n".join(self._raw).decode("utf-8")
                rows: list[str | None] = list(text.split("\n"))
            except UnicodeDecodeError:
                rows = [_decoded(line) for line in self._raw]
            self._cells = [None if row is None else row.removesuffix("\r").split("\t") for row in rows]
        return self._cells

    def bad(self) -> dict[int, str]:
        if self._bad is None:
            width = self.width
            self._bad = {
                row: "invalid UTF-8" if cells is None else f"{len(cells)} columns, not {width}"
                for row, cells in enumerate(self.cells())
                if cells is None or len(cells) != width
            }
        return self._bad

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        cells: Any = self.cells()
        return [cells[row][column] for row in rows]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        texts = self.texts(column, rows)
        try:
            return np.array([float(text) for text in texts], dtype=np.float64)
        except ValueError:
            return np.array([_number(text) for text in texts], dtype=np.float64)

    def lines(self) -> list[bytes]:
        return self._raw

    def arrow(self, names: Sequence[str]) -> Any:
        """Texts, but for columns that are named as a score: numbers. A row of too many cells has the last ones in one,
        invalid UTF-8 becomes U+FFFD."""
        import pyarrow

        from bitextmine.clean.columns import COLUMNS

        rows = [
            line.decode("utf-8", "replace").removesuffix("\r").split("\t") if cells is None else cells
            for line, cells in zip(self._raw, self.cells(), strict=True)
        ]
        last = len(names) - 1
        columns = []
        for at, name in enumerate(names):
            texts = [
                (" ".join(row[at:]) if at == last else row[at]) if at < len(row) else None for row in rows
            ]
            if name in COLUMNS and not COLUMNS[name].is_text:
                numbers = [_number(text or "") for text in texts]
                columns.append(pyarrow.array([None if n != n else n for n in numbers], pyarrow.float64()))
            else:
                columns.append(pyarrow.array(texts, pyarrow.string()))
        return pyarrow.table(columns, names=list(names))


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


class TextRows:
    """A tab-separated stream. With `header`, the first line names the columns; otherwise the first row of at least
    `least` cells says how many a row should have."""

    def __init__(self, path: str | os.PathLike[str], *, header: bool = False, least: int = 1) -> None:
        self._path = path
        self._lines = _raw_lines(path)
        self._ahead: list[bytes] = []
        self._least = least
        self.names: tuple[str, ...] = ()
        self.width = 0
        if header:
            self._read_header()

    def _read_header(self) -> None:
        name = display_name(self._path)
        first = next(self._lines, None)
        if first is None:
            raise BitextmineError(f"{name}: empty: --header wants a first line that names the columns")
        try:
            line = first[0].decode("utf-8")
        except UnicodeDecodeError:
            raise BitextmineError(f"{name}: line 1: the header is not UTF-8") from None
        self.names = tuple(line.removesuffix("\r").split("\t"))
        self.width = len(self.names)
        self._ahead = first[1:]

    def peek(self) -> list[bytes]:
        """The rows that are read already, at least one unless the stream is at its end."""
        if not self._ahead:
            self._ahead = next(self._lines, [])
        return self._ahead

    def blocks(self, rows: int | None = None) -> Iterator[TextBlock]:
        start = 1
        waiting: list[bytes] = []
        source = itertools.chain([self._ahead] if self._ahead else [], self._lines)
        self._ahead = []
        for lines in source:
            if rows is None:
                yield self._block(lines, start)
                start += len(lines)
                continue
            waiting.extend(lines)
            while len(waiting) >= rows:
                yield self._block(waiting[:rows], start)
                start += rows
                del waiting[:rows]
        if waiting:
            yield self._block(waiting, start)

    def _block(self, lines: list[bytes], start: int) -> TextBlock:
        if not self.width:
            widths = (line.count(b"\t") + 1 for line in lines)
            self.width = next((width for width in widths if width >= self._least), 0)
        return TextBlock(lines, start, self.width or self._least)


def _raw_lines(path: str | os.PathLike[str]) -> Iterator[list[bytes]]:
    """The lines of a stream as they come, without line feeds and without a byte order mark at the start."""
    parts: list[bytes] = []
    first = True
    for block in read_blocks(path):
        cut = block.rfind(b"\n")
        if cut < 0:
            parts.append(block)
            continue
        parts.append(block[:cut])
        lines = b"".join(parts).split(b"\n")
        parts = [block[cut + 1 :]] if cut + 1 < len(block) else []
        if first:
            lines[0] = lines[0].removeprefix(_BOM)
            first = False
        yield lines
    if parts and (last := b"".join(parts)):
        yield [last.removeprefix(_BOM) if first else last]


# --- Parquet ---------------------------------------------------------------------------------------------


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its suffix."""
    return Path(path).suffix.lower() in (".parquet", ".pq")


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise BitextmineError(
            "Parquet needs the package pyarrow; install it with pip install 'bitextmine[parquet]'"
        ) from None
    return pyarrow.parquet


class ArrowBlock:
    """Rows of a Parquet file."""

    def __init__(self, table: Any, start: int) -> None:
        self.table = table
        self.start = start
        self.width = int(table.num_columns)
        self._bad: dict[int, str] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def bad(self) -> dict[int, str]:
        return self._bad

    def mark_missing(self, columns: Sequence[int]) -> None:
        """Rows without a text in one of these columns are bad."""
        for column in columns:
            values = self.table.column(column)
            if values.null_count:
                for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                    self._bad.setdefault(row, f"no {self.table.column_names[column]}")

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        values = self.table.column(column).to_pylist()
        return ["" if values[row] is None else str(values[row]) for row in rows]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        import pyarrow

        values = self.table.column(column)
        kind = values.type
        if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind):
            return values.cast("float64").to_numpy(zero_copy_only=False)[np.asarray(rows, dtype=np.int64)]
        return np.array([_number(text) for text in self.texts(column, rows)], dtype=np.float64)

    def lines(self) -> list[bytes]:
        columns = []
        for values in self.table.columns:
            columns.append([_cell(value) for value in values.to_pylist()])
        return ["\t".join(cells).encode("utf-8", "replace") for cells in zip(*columns, strict=True)]

    def arrow(self, names: Sequence[str]) -> Any:
        return self.table.rename_columns(list(names))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{DECIMALS}f}"
    return one_cell(str(value))


class ArrowRows:
    """A Parquet file, read batch by batch; text columns without a value make a row bad."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        parquet = _pyarrow_parquet()
        import pyarrow

        if not Path(path).is_file():
            raise BitextmineError(f"{path}: no such file; check the path")
        try:
            self._file = parquet.ParquetFile(path)
        except (pyarrow.ArrowInvalid, OSError) as e:
            raise BitextmineError(f"{path}: not a Parquet file ({str(e).splitlines()[0]})") from None
        self._path = path
        self.names = tuple(self._file.schema_arrow.names)
        self.width = len(self.names)
        self.needed: list[int] = []

    def blocks(self, rows: int | None = None) -> Iterator[ArrowBlock]:
        import pyarrow

        start = 1
        waiting = None
        batches = self._file.iter_batches(batch_size=rows or 8192)
        while True:
            try:
                batch = next(batches, None)
            except (pyarrow.ArrowInvalid, OSError) as e:
                raise BitextmineError(
                    f"{self._path}: damaged Parquet file ({str(e).splitlines()[0]})"
                ) from None
            if batch is None:
                break
            part = pyarrow.Table.from_batches([batch])
            if rows is not None:  # batches end with row groups
                waiting = part if waiting is None else pyarrow.concat_tables([waiting, part])
                if waiting.num_rows < rows:
                    continue
                part, waiting = waiting.slice(0, rows), waiting.slice(rows)
            yield self._block(part, start)
            start += part.num_rows
        while waiting is not None and waiting.num_rows:
            part, waiting = waiting.slice(0, rows), waiting.slice(rows)
            yield self._block(part, start)
            start += part.num_rows

    def _block(self, table: Any, start: int) -> ArrowBlock:
        block = ArrowBlock(table.combine_chunks(), start)
        block.mark_missing(self.needed)
        return block


# --- both ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """An opened input: its rows, and where the two texts are (columns from 0)."""

    rows: TextRows | ArrowRows
    src: int
    tgt: int
    header: bool

    @property
    def names(self) -> tuple[str, ...]:
        return self.rows.names

    def column(self, name: str) -> int | None:
        """The column of a name in the header, or None."""
        return self.names.index(name) if name in self.names else None


def open_table(path: str | os.PathLike[str], src: str, tgt: str, *, header: bool = False) -> Table:
    """Open a file (``-`` is stdin; ``.parquet`` by its suffix) whose texts are in the columns `src` and `tgt`, each a
    number from 1 or a name in the header.

    Raises BitextmineError for what cannot be opened, and for a column that is not there.
    """
    if is_parquet(path):
        table = ArrowRows(path)
        at = [_find(path, column, table.names, table.width) for column in (src, tgt)]
        table.needed = at
        return Table(table, at[0], at[1], header)
    if header:
        rows = TextRows(path, header=True)
        at = [_find(path, column, rows.names, rows.width) for column in (src, tgt)]
    else:
        at = [_find(path, column, (), 0) for column in (src, tgt)]
        rows = TextRows(path, least=max(at) + 1)
    return Table(rows, at[0], at[1], header)


def _find(path: str | os.PathLike[str], column: str, names: Sequence[str], width: int) -> int:
    if column in names:
        return names.index(column)
    if column.isascii() and column.isdigit() and int(column) >= 1:
        if width and int(column) > width:
            raise BitextmineError(
                f"{display_name(path)}: there is no column {column}: the header names {width}: {', '.join(names)}"
            )
        return int(column) - 1
    if names:
        raise BitextmineError(
            f"{display_name(path)}: no column is called '{column}'; there are {', '.join(names)}"
        )
    raise UsageError(
        f"column '{column}': columns have names only where the first line is a header (--header); "
        "give its number, counted from 1"
    )


class Writer(Protocol):
    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write some rows of a block (None: all), each with the values of the added columns, which have one value per
        row of the block."""


class TextWriter:
    """Rows as they were read, with cells added before the line end."""

    def __init__(self, out: Any, only_added: bool = False) -> None:
        self._out = out
        self._only_added = only_added

    def header(self, names: Sequence[str]) -> None:
        self._out.write(("\t".join(names) + "\n").encode("utf-8"))

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        if not len(block) or (rows is not None and not len(rows)):
            return
        lines = [] if self._only_added else block.lines()
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


class ArrowWriter:
    """Rows to a Parquet file, whose schema is that of the first block. Where there is no header, the last columns are
    called `last`, and the others src, tgt and column3, column4, ..."""

    def __init__(self, out: Any, table: Table, added: Sequence[str], last: Sequence[str] = ()) -> None:
        self._parquet = _pyarrow_parquet()
        self._out = out
        self._names = list(table.names)
        self._last = last
        self._places = {table.src: "src", table.tgt: "tgt"}
        self._added = added
        self._writer: Any = None

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        import pyarrow

        if not self._names:
            self._names = [self._places.get(i, f"column{i + 1}") for i in range(block.width)]
            if len(self._last) <= block.width:
                self._names[block.width - len(self._last) :] = self._last
        table = block.arrow(self._names)
        for column in added:
            if isinstance(column.values, np.ndarray):
                values = pyarrow.array(column.values, pyarrow.float64(), from_pandas=True)
            else:
                values = pyarrow.array(column.values, pyarrow.string())
            if column.name in table.column_names:
                table = table.drop_columns([column.name])
            table = table.append_column(column.name, values)
        self._write(table if rows is None else table.take(rows))

    def _write(self, table: Any) -> None:
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._out, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        """Writes the end of the file; a file without rows has the columns all the same."""
        if self._writer is None:
            import pyarrow

            names = [*(self._names or ("src", "tgt", *self._last)), *self._added]
            self._write(pyarrow.table([pyarrow.array([], pyarrow.string())] * len(names), names=names))
        self._writer.close()


@contextlib.contextmanager
def write_rows(
    path: str | os.PathLike[str],
    table: Table,
    added: Sequence[str] = (),
    *,
    only_added: bool = False,
    last: Sequence[str] = (),
) -> Iterator[Writer]:
    """A writer for ``with``: tab-separated text, or Parquet by the file's suffix; complete or not there at all.

    The header of `table`, if it has one, is written first, with the names of the added columns. last: what the last
    columns are called where there is no header; Parquet needs names.
    """
    with open_output(path, "binary") as out:
        if is_parquet(path):
            if only_added:
                raise UsageError(f"{path}: --score-only writes text, to be pasted beside other text")
            writer = ArrowWriter(out, table, added, last)
            yield writer
            writer.close()
            return
        text = TextWriter(out, only_added)
        if table.header:
            text.header([*(() if only_added else table.names), *added])
        yield text
