"""Parquet files as a stream of rows, with the optional package pyarrow."""

from __future__ import annotations

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

__all__ = ["ArrowBlock", "ArrowRows", "ArrowWriter", "pyarrow_parquet"]


def pyarrow_parquet() -> Any:
    """The module pyarrow.parquet. Raises BitextmineError where the package is not installed."""
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
        return np.array([as_number(text) for text in self.texts(column, rows)], dtype=np.float64)

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        columns = []
        for at, (name, values) in enumerate(zip(self.table.column_names, self.table.columns, strict=True)):
            if at not in without:
                columns.append([cell_text(name, value) for value in values.to_pylist()])
        return ["\t".join(cells).encode("utf-8", "replace") for cells in zip(*columns, strict=True)]

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        columns = [column.to_pylist() for column in self.table.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def arrow(self, names: Sequence[str], floats: Collection[str], integers: Collection[str]) -> Any:
        """As they are in the file: their types are kept."""
        return self.table.rename_columns(list(names))


class ArrowRows:
    """A Parquet file, read batch by batch; rows without a value for source or target are bad."""

    header_line = False

    def __init__(self, path: str | os.PathLike[str], columns: Columns | None = None, last: int = 0) -> None:
        parquet = pyarrow_parquet()
        import pyarrow

        source = place(path)
        if not source.is_file():
            raise BitextmineError(f"{path}: no such file; check the path")
        try:
            self._file = parquet.ParquetFile(source.open() if isinstance(source, Remote) else source)
        except (pyarrow.ArrowInvalid, OSError) as e:
            raise BitextmineError(f"{path}: not a Parquet file ({str(e).splitlines()[0]})") from None
        self._path = path
        names = tuple(self._file.schema_arrow.names)
        head = next(self._parts(HEAD), None)
        shown = [] if head is None else [head.column(at).to_pylist() for at in range(head.num_columns)]
        rows = [["" if value is None else str(value) for value in row] for row in zip(*shown, strict=True)]
        self.layout = find_layout(rows, columns, os.fspath(path), names=names, last=last)
        self.empty = not rows

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[ArrowBlock]:
        import pyarrow

        start = 1
        waiting = None
        for batch in self._parts(rows or 8192):
            part = batch
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

    def _parts(self, rows: int) -> Iterator[Any]:
        """The file's batches of at most so many rows, as tables."""
        import pyarrow

        batches = self._file.iter_batches(batch_size=rows)
        while True:
            try:
                batch = next(batches, None)
            except (pyarrow.ArrowInvalid, OSError) as e:
                raise BitextmineError(
                    f"{self._path}: damaged Parquet file ({str(e).splitlines()[0]})"
                ) from None
            if batch is None:
                return
            yield pyarrow.Table.from_batches([batch])

    def _block(self, table: Any, start: int) -> ArrowBlock:
        block = ArrowBlock(table.combine_chunks(), start)
        places = self.layout.places
        block.mark_missing([places[role] for role in ("src", "tgt") if role in places])
        return block


class ArrowWriter:
    """Rows to a Parquet file, whose schema is that of the first block."""

    def __init__(self, out: Any, outline: Outline) -> None:
        self._parquet = pyarrow_parquet()
        self._out = out
        self._outline = outline
        self._writer: Any = None

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
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
        """Writes the end of the file; a file without rows has the columns all the same."""
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
