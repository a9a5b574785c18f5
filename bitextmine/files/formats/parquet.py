"""Parquet files as a stream of rows, with the optional package pyarrow."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow import types

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.cells import Added
from bitextmine.files.formats.protocol import BLOCK_BYTES, Block, Outline, SomeRows, Writer
from bitextmine.files.formats.records import TRANSLATION, Record, RecordBlock, RecordRows, as_float, as_text
from bitextmine.files.layout import HEAD, Columns, find_layout
from bitextmine.files.storage import Remote, place


def open_parquet(path: str | os.PathLike[str], columns: Columns) -> ArrowRows | RecordRows:
    """Return the rows of a file; of one with a struct `translation` as those of JSON Lines."""
    rows = ArrowRows(path, columns)
    return RecordRows(path, rows.records(), columns) if rows.translations else rows


def open_dataset(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a folder of the library datasets: of `Dataset.save_to_disk`, or of Parquet files.

    Raises:
        UsageError: a folder of several splits.
        BitextmineError: a folder without such files, or a damaged file.
    """
    folder = Path(path)
    files = sorted(folder.glob("*.arrow")) or sorted(folder.rglob("*.parquet"))
    splits = sorted({file.name.partition("-")[0].removesuffix(file.suffix) for file in files})
    if (folder / "dataset_dict.json").is_file():
        splits = [part.name for part in sorted(folder.iterdir()) if part.is_dir()]
    if len(splits) > 1:
        raise UsageError(
            f"{path}: a folder of several splits ({', '.join(splits)[:200]}); name the folder or the file of one"
        )
    if not files:
        raise BitextmineError(f"{path}: a folder without files of pairs (*.arrow, *.parquet); name a file")
    return RecordRows(path, (record for file in files for record in _dataset_records(file)), columns)


def _dataset_records(path: Path) -> Iterator[Record]:
    if path.suffix == ".parquet":
        yield from ArrowRows(path, Columns()).records()
        return
    with _told(path, "not a file of a data set"), pyarrow.memory_map(str(path)) as source:
        for batch in pyarrow.ipc.open_stream(source):
            yield from _records(batch)


def _records(batch: Any) -> Iterator[Record]:
    for content in batch.to_pylist():
        yield Record(content, sum(len(str(value)) for value in content.values()))


class ArrowBlock(RecordBlock):
    """Rows of a Parquet file; a column becomes Python values when it is asked for."""

    def __init__(self, table: Any, start: int, bad: dict[int, str]) -> None:
        self.table, self._names, self.width = table, table.column_names, int(table.num_columns)
        self.start, self._bad = start, bad

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def _rows(self) -> Sequence[list[Any]]:  # type: ignore[override]
        columns = [column.to_pylist() for column in self.table.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return cells as numbers."""
        values = self.table.column(column)
        if types.is_floating(values.type) or types.is_integer(values.type):
            return values.cast("float64").to_numpy(zero_copy_only=False)[np.asarray(rows, dtype=np.int64)]
        return super().numbers(column, rows)

    def _column(self, column: int, rows: SomeRows) -> list[Any]:
        values = self.table.column(column).to_pylist()
        return [values[row] for row in rows]


class ArrowRows:
    """A Parquet file, read batch by batch; rows without a value for source or target are bad.

    translations: the texts are in a struct, to be read with `records`.
    """

    header_line = False

    def __init__(self, path: str | os.PathLike[str], columns: Columns) -> None:
        source = place(path)
        if not source.is_file():
            raise BitextmineError(f"{path}: no such file; check the path")
        self._path = path
        with _told(path, "not a Parquet file"):
            self._file = pyarrow.parquet.ParquetFile(source.open() if isinstance(source, Remote) else source)
            schema = self._file.schema_arrow
        names = tuple(schema.names)
        self.translations = TRANSLATION in names and types.is_struct(schema.field(TRANSLATION).type)
        if self.translations:
            return
        if not names:
            raise BitextmineError(f"{path}: a Parquet file without columns; check what wrote it")
        head = next(self._parts(HEAD), None)
        shown = [[]] if head is None else [list(map(as_text, column.to_pylist())) for column in head.columns]
        rows = [list(row) for row in zip(*shown, strict=True)]
        self.layout = find_layout(rows, columns, os.fspath(path), names)
        self.empty = not rows
        for role in ("src", "tgt", "score"):
            at = self.layout.places.get(role)
            if at is not None and types.is_nested(schema.field(at).type):
                raise BitextmineError(
                    f"{path}: column '{names[at]}' holds {schema.field(at).type}, not text; choose another column"
                )

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[ArrowBlock]:
        """Yield the rows in blocks; `most` does not apply."""
        start = 1
        parts = (part for part in self._parts(rows or 8192) if part.num_rows)
        waiting = next(parts, None)
        while waiting is not None:
            while waiting.num_rows < (rows or 1) and (part := next(parts, None)) is not None:
                waiting = pyarrow.concat_tables([waiting, part])  # batches end with row groups
            block, waiting = waiting.slice(0, rows), waiting.slice(rows or waiting.num_rows)
            yield self._block(block.combine_chunks(), start)
            start += block.num_rows
            waiting = waiting if waiting.num_rows else next(parts, None)

    def _parts(self, rows: int) -> Iterator[Any]:
        """Yield the batches of at most so many rows, as tables with text in place of bytes."""
        batches = self._file.iter_batches(batch_size=rows)
        while True:
            with _told(self._path, "damaged Parquet file"):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
                table = pyarrow.Table.from_batches([batch])
                for at, column in enumerate(table.columns):
                    table = table.set_column(at, table.column_names[at], _as_text(column))
            yield table

    def _block(self, table: Any, start: int) -> ArrowBlock:
        bad: dict[int, str] = {}
        for role in ("src", "tgt"):
            if (at := self.layout.places.get(role)) is not None and table.column(at).null_count:
                missing = np.flatnonzero(table.column(at).is_null().to_numpy())
                bad = {**dict.fromkeys(missing.tolist(), f"no {table.column_names[at]}"), **bad}
        return ArrowBlock(table, start, bad)

    def records(self) -> Iterator[Record]:
        """Yield the rows as values by name."""
        for part in self._parts(8192):
            yield from _records(part)


@contextlib.contextmanager
def _told(path: str | os.PathLike[str], problem: str) -> Iterator[None]:
    """Turn the errors of pyarrow into a message about the file."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as e:
        reason = (str(e).splitlines() or [type(e).__name__])[0]
        raise BitextmineError(f"{path}: {problem} ({reason[:200]})") from None


def _as_text(column: Any) -> Any:
    """Return a column with bytes as text; raise ArrowInvalid for bytes that are not UTF-8."""
    kind = column.type
    if types.is_dictionary(kind) and types.is_binary(kind.value_type):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_fixed_size_binary(kind):
        column, kind = column.cast(pyarrow.binary()), pyarrow.binary()
    if types.is_binary(kind) or types.is_large_binary(kind):
        return column.cast(pyarrow.large_string() if types.is_large_binary(kind) else pyarrow.string())
    if types.is_nested(kind):
        column.to_pylist()  # raises ValueError for two fields of one name
    return column


class ArrowWriter(Writer):
    """Writes rows to a Parquet file with the schema of the first block: that of a Parquet file that is read.

    Texts that were read from a `translation` are written as a struct, the feature Translation of the library datasets.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out, self._outline = out, outline
        self._writer: Any = None

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block."""
        if isinstance(block, ArrowBlock):
            table = block.table.rename_columns(list(self._outline.names))
        else:
            table = self._joined(self._table(block.values((), ())))
        for column in added:
            kind = pyarrow.float64() if isinstance(column.values, np.ndarray) else pyarrow.string()
            values = pyarrow.array(column.values, kind, from_pandas=True)
            if column.name in table.column_names:
                table = table.drop_columns([column.name])
            table = table.append_column(column.name, values)
        self._write(table if rows is None else table.take(rows))

    def _table(self, rows: Sequence[list[Any]]) -> Any:
        """Return rows as a table: numbers in columns of numbers, null for a cell without one; else text.

        A row of too many cells has the last ones in one.
        """
        outline, width = self._outline, len(self._outline.names)
        rows = [[*row[: width - 1], " ".join(row[width - 1 :])] if len(row) > width else row for row in rows]
        arrays = []
        for at, name in enumerate(outline.names):
            cells = [row[at] if at < len(row) else None for row in rows]
            convert, kind = self._kind(name)
            arrays.append(pyarrow.array(list(map(convert, cells)), kind))
        return pyarrow.table(arrays, names=list(outline.names))

    def _kind(self, name: str) -> tuple[Callable[[Any], Any], Any]:
        """Return the function that makes values of a column of its cells, and their type."""
        if name in self._outline.floats:
            return _number, pyarrow.float64()
        return (_whole, pyarrow.int64()) if name in self._outline.integers else (_text, pyarrow.string())

    def _joined(self, table: Any) -> Any:
        """Return a table with source and target in a struct by language, if they were read so."""
        outline = self._outline
        if not outline.translations:
            return table
        names = [outline.names[at] for at in outline.sides()]
        texts = [table.column(name).combine_chunks() for name in names]
        joined = pyarrow.StructArray.from_arrays(texts, names=outline.keys())
        return table.drop_columns(names).append_column(TRANSLATION, joined)

    def _write(self, table: Any) -> None:
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._out, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end of the file; a file without rows has its columns too."""
        if self._writer is None:
            outline = self._outline
            kept = [name for name in outline.names if name not in outline.added]
            columns = {name: self._kind(name)[1] for name in [*kept, *outline.added]}
            self._write(self._joined(pyarrow.schema(columns).empty_table()))
        self._writer.close()


def _number(value: Any) -> float | None:
    number = as_float(value)
    return None if math.isnan(number) else number


def _text(value: Any) -> str | None:
    return None if value is None else as_text(value)


def _whole(value: Any) -> int | None:
    if type(value) is int and abs(value) < 1 << 62:
        return value
    number = as_float(value)
    return int(number) if number.is_integer() and abs(number) < 1 << 62 else None
