"""The interface of a format of sentence pairs: rows in blocks, and a writer for blocks of any format."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.cells import Added
from bitextmine.files.formats.columns import Layout

BLOCK_BYTES = 1 << 26
# Rows so long that the first ones, read to find the columns, would be more than this are fewer: memory stays bounded.
HEAD_BYTES = 1 << 25
SomeRows = Sequence[int] | NDArray[np.int64]


class Block(Protocol):
    """Consecutive rows; columns are counted from 0.

    Attributes:
        start: the number of the first row in the stream, from 1; a header does not count.
        width: how many columns a row should have.
    """

    start: int
    width: int

    def __len__(self) -> int: ...

    def bad(self) -> dict[int, str]:
        """Return the rows that cannot be read, by their place in the block, and the reasons."""

    def texts(self, column: int, rows: SomeRows) -> list[str]:
        """Return the cells of a column in some rows, none of them bad."""

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return such cells as numbers; NaN for a cell that is empty or not a number."""

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return every row as a tab-separated line, without its line feed and without some columns."""

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return every row as values: texts, numbers if the format has them, None for nothing.

        Text stays text, except in columns of numbers. A bad row may have fewer values than `width`, or more.
        """


class Rows(Protocol):
    """A stream of blocks.

    Attributes:
        layout: the places of the columns.
        empty: there is no row.
        header_line: the names of the columns stand in a line before the rows.
    """

    layout: Layout
    empty: bool
    header_line: bool

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the rows in blocks of `rows`, or as they come; blocks of about `most` bytes have fewer rows."""


@dataclass(frozen=True)
class Outline:
    """The columns to write.

    Attributes:
        names, added: of all the columns that were read, and of further ones.
        src, tgt, langs: the columns of the texts, from 0, and their languages, as far as known.
        header: begin text with a line of names.
        only_added: write the added columns alone.
        replaced: the columns, from 0, that added ones replace.
        floats, integers: names of columns of numbers, for formats that have numbers.
        unknown: the reason why source and target are not known.
        translations: the texts were read from objects `translation`, and Parquet has them again.
    """

    names: Sequence[str]
    src: int | None = None
    tgt: int | None = None
    langs: tuple[str, str] = ("", "")
    added: Sequence[str] = ()
    header: bool = False
    only_added: bool = False
    replaced: Collection[int] = ()
    floats: Collection[str] = ()
    integers: Collection[str] = ()
    unknown: str = ""
    translations: bool = False

    def keys(self) -> tuple[str, str]:
        """Return the keys of texts by language; src and tgt if the languages are unknown or the same."""
        return self.langs if all(self.langs) and self.langs[0] != self.langs[1] else ("src", "tgt")

    def sides(self) -> tuple[int, int]:
        """Return the columns of the texts; raise BitextmineError if they are not known."""
        if self.src is None or self.tgt is None:
            raise BitextmineError(self.unknown)
        return self.src, self.tgt


class Writer:
    """The output of rows."""

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write some rows of a block (None: all); an added column has one value per row of the block."""
        raise NotImplementedError

    def close(self) -> None:
        """Write the end of the format, if it has one; the file itself stays open."""

    def discard(self) -> None:
        """Write nothing more, after an error."""
