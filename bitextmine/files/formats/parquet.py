"""Parquet files as a stream of rows, with the optional package pyarrow."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow import types

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import Added, Block, Outline, Writer, as_text
from bitextmine.files.formats.layout import Columns, as_number
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows
from bitextmine.files.source import Source
from bitextmine.files.storage import Remote

_ROWS = 8192  # read at a time, fewer of long texts:
_BATCH_BYTES = 1 << 25


def open_parquet(source: Source, columns: Columns) -> RecordRows:
    """Return the rows of a file, with its schema unless the texts are in a struct `translation`.

    Raises:
        BitextmineError: here or while reading: no file, a damaged one, or one without columns.
    """
    file = _opened(source)
    with _explained(source, "damaged Parquet file"):
        schema = _with_text(file.schema_arrow.empty_table()).schema
    names = schema.names
    if not names or len(set(names)) < len(names):
        wrong = "with two columns of one name" if names else "without columns"
        raise BitextmineError(f"{source}: a Parquet file {wrong}; check what wrote it")
    if TRANSLATION in names and types.is_struct(schema.field(TRANSLATION).type):
        schema = None
    return RecordRows(source, _records(source, file), columns, schema=schema)


def parquet_records(source: Source) -> Iterator[Record]:
    """Return the rows of a Parquet file as values by name; BitextmineError, here or while reading, if it is damaged."""
    return _records(source, _opened(source))


def _opened(source: Source, **options: Any) -> Any:
    if source.is_stream:
        raise BitextmineError(f"{source}: Parquet is not read from a pipe; name the file")
    path = source.path
    if not path.is_file():
        raise BitextmineError(f"{source}: no such file; check the path")
    with _explained(source, "not a Parquet file"):
        return pyarrow.parquet.ParquetFile(path.open() if isinstance(path, Remote) else path, **options)


def _batches(file: Any, source: Source) -> Iterator[Any]:
    """Yield the rows of a file in batches of bounded size: a page of 1 kB may hold a text of 1 MB a thousand times.

    ArrowInvalid for texts longer than the longest line on the average.
    """
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        bytes_a_row = 1.0
        for at in range(group.num_columns):
            column = group.column(at)
            values = max(column.num_values, 1)
            longest = column.total_uncompressed_size / values
            if longest > source.max_line:
                raise pyarrow.ArrowInvalid(
                    f"{column.path_in_schema}: texts longer than {source.max_line:,} bytes; allow them with --max-line"
                )
            most_rows = min(values, _ROWS)
            if column.has_dictionary_page and most_rows * column.total_uncompressed_size > _BATCH_BYTES:
                longest = max(longest, _longest_in_dictionary(file, source, number, column.path_in_schema))
            bytes_a_row += longest * values / max(group.num_rows, 1)
        rows = max(1, min(_ROWS, int(_BATCH_BYTES / bytes_a_row)))
        yield from file.iter_batches(batch_size=rows, row_groups=[number])


def _longest_in_dictionary(file: Any, source: Source, group: int, column: str) -> int:
    """Return the bytes of the longest text in the dictionary of a column, 0 without one; read no more than that."""
    alone = _opened(source, read_dictionary=[column], metadata=file.metadata, buffer_size=1 << 16)
    array = next(alone.iter_batches(batch_size=1, row_groups=[group], columns=[column])).column(0)
    while types.is_nested(array.type):
        array = array.flatten()
        array = array[0] if isinstance(array, list) else array
    if not types.is_dictionary(array.type) or not len(array.dictionary):
        return 0
    return int(pyarrow.compute.max(pyarrow.compute.binary_length(array.dictionary)).as_py() or 0)


def _records(source: Source, file: Any) -> Iterator[Record]:
    batches = _batches(file, source)
    while True:
        with _explained(source, "damaged Parquet file"):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)
            rows = _with_text(pyarrow.Table.from_batches([batch])).to_pylist()
        plain = (c.dictionary_decode() if types.is_dictionary(c.type) else c for c in batch.columns)
        size = sum(column.nbytes for column in plain) // max(len(rows), 1)
        for content in rows:
            yield Record(content, size)


@contextlib.contextmanager
def _explained(source: Source, problem: str) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as e:
        reason = (str(e).splitlines() or [type(e).__name__])[0]
        raise BitextmineError(f"{source}: {problem} ({reason[:200]})") from None


def _with_text(table: Any) -> Any:
    """Return a table with text in place of bytes; raise ArrowInvalid for bytes that are not UTF-8."""
    for at, column in enumerate(table.columns):
        kind = column.type
        if types.is_dictionary(kind) and types.is_binary(kind.value_type):
            column, kind = column.cast(kind.value_type), kind.value_type
        if types.is_fixed_size_binary(kind):
            column, kind = column.cast(pyarrow.binary()), pyarrow.binary()
        if types.is_binary(kind) or types.is_large_binary(kind):
            text = pyarrow.large_string() if types.is_large_binary(kind) else pyarrow.string()
            table = table.set_column(at, table.column_names[at], column.cast(text))
    return table


class ArrowWriter(Writer):
    """Writes rows to a Parquet file with the schema of the first block: that of a Parquet file that is read.

    Texts that were read from a `translation` are written as a struct, the feature Translation of the library datasets.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out, self._outline = out, outline
        self._writer: Any = None

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block."""
        table = self._joined(self._table(block.values((), ()), block.schema))
        for column in added:
            kind = pyarrow.float64() if isinstance(column.values, np.ndarray) else pyarrow.string()
            values = pyarrow.array(column.values, kind, from_pandas=True)
            if column.name in table.column_names:
                table = table.drop_columns([column.name])
            table = table.append_column(column.name, values)
        self._write(table if rows is None else table.take(rows))

    def _table(self, rows: Sequence[list[Any]], schema: Any) -> Any:
        """Return rows as a table of a schema, if there is one.

        Else numbers are in columns of numbers, null for a cell without one, and all others are text; a row of too many
        cells has the last ones in one.
        """
        outline, width = self._outline, len(self._outline.names)
        rows = [[*row[: width - 1], " ".join(row[width - 1 :])] if len(row) > width else row for row in rows]
        arrays = []
        for at, name in enumerate(outline.names):
            cells = [row[at] if at < len(row) else None for row in rows]
            convert, kind = (None, schema.field(at).type) if schema else self._kind(name)
            arrays.append(pyarrow.array(list(map(convert, cells)) if convert else cells, kind))
        return pyarrow.table(arrays, names=list(outline.names))

    def _kind(self, name: str) -> tuple[Callable[[Any], Any], Any]:
        if name in self._outline.floats:
            return _number, pyarrow.float64()
        if name in self._outline.integers:
            return _whole, pyarrow.int64()
        return lambda cell: None if cell is None else as_text(cell), pyarrow.string()

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

    def discard(self) -> None:
        """Write no end of the file, which pyarrow would do when the file is closed already."""
        if self._writer is not None:
            self._writer.is_open = False


def _number(value: Any) -> float | None:
    number = as_number(value)
    return None if math.isnan(number) else number


def _whole(value: Any) -> int | None:
    if type(value) is int and abs(value) < 1 << 62:
        return value
    number = as_number(value)
    return int(number) if number.is_integer() and abs(number) < 1 << 62 else None
