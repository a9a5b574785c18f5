"""Parquet files as a stream of rows, with the optional package pyarrow."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import Added, cell_text
from bitextmine.files.formats.protocol import BLOCK_BYTES, Block, Outline
from bitextmine.files.layout import HEAD, Columns, as_number, find_layout
from bitextmine.files.storage import Remote, place


def pyarrow_parquet() -> Any:
    """Return the module pyarrow.parquet; raise BitextmineError if the package is missing."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise BitextmineError(
            "Parquet needs the package pyarrow; install it with pip install 'bitextmine[parquet]'"
        ) from None
    return pyarrow.parquet


class _ArrowBlock:
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
        """Mark rows without a text in one of these columns as bad."""
        for column in columns:
            missing = np.array(self.table.column(column).is_null().to_pylist(), dtype=bool)
            for row in np.flatnonzero(missing).tolist():
                self._bad.setdefault(row, f"no {self.table.column_names[column]}")

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        values = self._values(column)
        return ["" if values[row] is None else str(values[row]) for row in rows]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        import pyarrow

        values = self.table.column(column)
        kind = values.type
        if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind):
            return values.cast("float64").to_numpy(zero_copy_only=False)[np.asarray(rows, dtype=np.int64)]
        return np.array([as_number(text) for text in self.texts(column, rows)], dtype=np.float64)

    def _values(self, column: int) -> list[Any]:
        """Return a column as Python values, lists and structs as JSON."""
        values = self.table.column(column)
        if _is_nested(values.type):
            return [
                None if v is None else json.dumps(v, ensure_ascii=False, default=str)
                for v in values.to_pylist()
            ]
        found: list[Any] = values.to_pylist()
        return found

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        columns = [
            [cell_text(name, value) for value in self._values(at)]
            for at, name in enumerate(self.table.column_names)
            if at not in without
        ]
        return ["\t".join(cells).encode("utf-8", "replace") for cells in zip(*columns, strict=True)]

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        columns = [column.to_pylist() for column in self.table.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def arrow(self, names: Sequence[str], floats: Collection[str], integers: Collection[str]) -> Any:
        """Return the rows with the types of the file."""
        return self.table.rename_columns(list(names))


def _is_nested(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_nested(kind))


class ArrowRows:
    """A Parquet file, read batch by batch; rows without a value for source or target are bad."""

    header_line = False

    def __init__(self, path: str | os.PathLike[str], columns: Columns | None = None, last: int = 0) -> None:
        parquet = pyarrow_parquet()
        source = place(path)
        if not source.is_file():
            raise BitextmineError(f"{path}: no such file; check the path")
        self._path = path
        with self._told("not a Parquet file"):
            self._file = parquet.ParquetFile(source.open() if isinstance(source, Remote) else source)
            schema = self._file.schema_arrow
        names = tuple(schema.names)
        if not names:
            raise BitextmineError(f"{path}: a Parquet file without columns; check what wrote it")
        head = next(self._parts(HEAD), None)
        block = None if head is None else _ArrowBlock(head, 1)
        shown = [] if block is None else [block.texts(at, range(len(block))) for at in range(block.width)]
        rows = [list(row) for row in zip(*shown, strict=True)]
        self.layout = find_layout(rows, columns, os.fspath(path), names=names, last=last)
        self.empty = not rows
        for role in ("src", "tgt", "score"):
            at = self.layout.places.get(role)
            if at is not None and _is_nested(schema.field(at).type):
                raise BitextmineError(
                    f"{path}: column '{names[at]}' holds {schema.field(at).type}, not text; choose another column"
                )

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[_ArrowBlock]:
        """Yield the rows in blocks (see `Rows`); `most` does not apply."""
        import pyarrow

        start = 1
        parts = (part for part in self._parts(rows or 8192) if part.num_rows)
        waiting = next(parts, None)
        while waiting is not None:
            while waiting.num_rows < (rows or 1) and (part := next(parts, None)) is not None:
                waiting = pyarrow.concat_tables([waiting, part])  # batches end with row groups
            block, waiting = waiting.slice(0, rows), waiting.slice(rows or waiting.num_rows)
            yield self._block(block, start)
            start += block.num_rows
            waiting = waiting if waiting.num_rows else next(parts, None)

    def _parts(self, rows: int) -> Iterator[Any]:
        """Yield the batches of at most so many rows, as tables with text in place of bytes."""
        import pyarrow

        batches = self._file.iter_batches(batch_size=rows)
        while True:
            with self._told("damaged Parquet file"):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
                table = pyarrow.Table.from_batches([batch])
                for at, column in enumerate(table.columns):
                    table = table.set_column(at, table.column_names[at], _as_text(column))
            yield table

    def _block(self, table: Any, start: int) -> _ArrowBlock:
        block = _ArrowBlock(table.combine_chunks(), start)
        places = self.layout.places
        block.mark_missing([places[role] for role in ("src", "tgt") if role in places])
        return block

    @contextlib.contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        """Turn the errors of pyarrow into a message about the file."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, ValueError) as e:
            reason = (str(e).splitlines() or [type(e).__name__])[0]
            raise BitextmineError(f"{self._path}: {problem} ({reason[:200]})") from None


def _as_text(column: Any) -> Any:
    """Return a column with bytes as text; raise ArrowInvalid for bytes that are not UTF-8."""
    import pyarrow
    import pyarrow.types as types

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


class ArrowWriter:
    """Writes rows to a Parquet file with the schema of the first block."""

    def __init__(self, out: Any, outline: Outline) -> None:
        self._parquet = pyarrow_parquet()
        self._out = out
        self._outline = outline
        self._writer: Any = None

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block (see `Writer`)."""
        import pyarrow

        outline = self._outline
        table = block.arrow(outline.names, outline.floats, outline.integers)
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
        """Write the end of the file; a file without rows has its columns too."""
        if self._writer is None:
            import pyarrow

            outline = self._outline
            kept = [name for name in outline.names if name not in outline.added]
            kinds = {
                **dict.fromkeys(outline.floats, pyarrow.float64()),
                **dict.fromkeys(outline.integers, pyarrow.int64()),
            }
            columns = {
                name: pyarrow.array([], kinds.get(name, pyarrow.string())) for name in [*kept, *outline.added]
            }
            self._write(pyarrow.table(columns))
        self._writer.close()
