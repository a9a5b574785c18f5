"""Files of sentence pairs as streams of rows: tab-separated text or Parquet, read in blocks and written in blocks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.cells import Added
from bitextmine.files.layout import Columns, Layout
from bitextmine.files.parquet import ArrowRows, ArrowWriter, is_parquet
from bitextmine.files.streams import display_name, open_output
from bitextmine.files.tsv import TextRows, TextWriter

__all__ = ["Block", "Malformed", "Rows", "Table", "Writer", "open_table", "write_rows"]

_NEARLY_ALL = 0.95
_FEW = 20  # of so many rows, a good one is enough
_MANY = 10_000  # after so many rows it is clear what a stream is made of


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

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Every row as a tab-separated line, without its line feed and without some columns."""

    def arrow(self, names: Sequence[str], floats: Collection[str], integers: Collection[str]) -> Any:
        """A pyarrow.Table of all rows, its columns called `names`; what was read as text stays text, but for columns
        that are to hold numbers, where a cell that is none becomes a null."""


class Rows(Protocol):
    """A stream of blocks. layout: where its columns are; empty: whether there is no row."""

    layout: Layout
    empty: bool

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """The rows, in blocks of `rows`, or as they come. The last block may be smaller, as may be one of
        lines that are together longer than 256 MiB."""


@dataclass(frozen=True)
class Table:
    """An opened input. names: of all its columns, from its header or made up; empty for a file without a line."""

    path: str | os.PathLike[str]
    rows: Rows
    names: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        return self.rows.layout

    @property
    def has_header(self) -> bool:
        """Whether the names of the columns stand in the file."""
        return bool(self.layout.names)


def open_table(
    path: str | os.PathLike[str], columns: Columns | None = None, last: Sequence[str] = ()
) -> Table:
    """Open a file of pairs (``-`` is stdin; ``.parquet`` by its suffix) and find its columns (`layout.find_layout`).

    last: names of the last columns, where there is no header.

    Raises BitextmineError for what cannot be opened and for a column that is not there, UsageError for columns asked
    for by name where there is no header.
    """
    rows: Rows
    if is_parquet(path):
        rows = ArrowRows(path, columns, len(last))
    else:
        rows = TextRows(path, columns, len(last))
    return Table(path, rows, rows.layout.column_names(last))


class Malformed:
    """Counts the rows that cannot be read, and says when nearly all are: then the columns are not what they were taken
    for, or the file is no file of pairs."""

    def __init__(self, table: Table) -> None:
        self._name = display_name(table.path)
        self._before = int(table.has_header and not is_parquet(table.path))
        self.rows = self.count = 0
        self.first = ""  # which row it was, and what was wrong with it

    def add(self, block: Block) -> None:
        """Raises BitextmineError after many rows, nearly all of them malformed."""
        bad = block.bad()
        if bad and not self.first:
            place = min(bad)
            self.first = f"{self._name}: line {block.start + place + self._before}: {bad[place]}"
        self.rows += len(block)
        self.count += len(bad)
        if self.rows >= _MANY:
            self._check()

    def finish(self) -> None:
        """Raises BitextmineError where nearly all rows were malformed, or all of them."""
        if self.rows >= _FEW or self.count == self.rows:
            self._check()

    def _check(self) -> None:
        if self.count > _NEARLY_ALL * self.rows:
            good = self.rows - self.count
            raise BitextmineError(
                f"{self.first}; {'not one' if not good else f'only {good:,}'} of {self.rows:,} rows can be read as a "
                "pair: check that tabs separate the cells, and --scol, --tcol and --header"
            )


class Writer(Protocol):
    """Where rows go."""

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write some rows of a block (None: all), each with the values of the added columns, which have one value per
        row of the block."""


@contextlib.contextmanager
def write_rows(
    path: str | os.PathLike[str],
    table: Table,
    added: Sequence[str] = (),
    *,
    header: bool | None = None,
    only_added: bool = False,
    floats: Collection[str] = (),
    integers: Collection[str] = (),
) -> Iterator[Writer]:
    """A writer for ``with``: tab-separated text, or Parquet by the file's suffix; complete or not there at all.

    header: whether the first line of text names the columns; None: if they have names in what was read. An added column
    takes the place of one in the header that has its name: that one is left out. floats, integers: columns of numbers,
    for Parquet.
    """
    with open_output(path, "binary") as out:
        if is_parquet(path):
            if only_added:
                raise UsageError(f"{path}: --score-only writes text, to be pasted beside other text")
            writer = ArrowWriter(out, table.names or ("src", "tgt"), added, floats, integers)
            yield writer
            writer.close()
            return
        replaced = {at for at, name in enumerate(table.layout.names) if name in added}
        text = TextWriter(out, only_added, replaced)
        if table.names and (table.has_header if header is None else header):
            kept = [name for at, name in enumerate(table.names) if at not in replaced]
            text.header([*([] if only_added else kept), *added])
        yield text
