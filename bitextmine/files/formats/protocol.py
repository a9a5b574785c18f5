"""What a format of sentence pairs offers: rows in blocks, and a writer that takes blocks of any format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import Added
from bitextmine.files.layout import Layout

__all__ = ["BLOCK_BYTES", "Block", "Outline", "Rows", "Writer"]


BLOCK_BYTES = 1 << 28


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

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Every row as values: texts, numbers where the format has them, None for nothing. What was read as text stays
        text, but for columns that are to hold numbers. A bad row may have fewer values than `width`, or more."""

    def arrow(self, names: Sequence[str], floats: Collection[str], integers: Collection[str]) -> Any:
        """A pyarrow.Table of all rows, its columns called `names`; what was read as text stays text, but for columns
        that are to hold numbers, where a cell that is none becomes a null."""


class Rows(Protocol):
    """A stream of blocks. layout: where its columns are; empty: whether there is no row; header_line: whether their
    names stand in a line of their own, before the rows."""

    layout: Layout
    empty: bool
    header_line: bool

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the rows in blocks of `rows`, or as they come; blocks of about `most` bytes have fewer rows."""


@dataclass(frozen=True)
class Outline:
    """What is to be written.

    names: of all the columns that were read. src, tgt: which of them hold the texts, from 0; None: not known. langs:
    their languages, empty where not known. added: names of columns behind those; one of them takes the place of a
    column of its name. header: whether text begins with a line of names. only_added: the added columns alone. replaced:
    the columns that others take the place of. floats, integers: names of columns that hold numbers.
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

    def sides(self) -> tuple[int, int]:
        """Which columns hold the texts. Raises BitextmineError where that is not known."""
        if self.src is None or self.tgt is None:
            raise BitextmineError(
                "the columns of source and target are not known; say which with --scol and --tcol"
            )
        return self.src, self.tgt

    def others(self) -> list[tuple[int, str]]:
        """The columns, from 0, and their names, that hold no text and are not replaced. Raises as `sides` does."""
        sides = self.sides()
        return [
            (at, name) for at, name in enumerate(self.names) if at not in sides and at not in self.replaced
        ]

    def places(self, names: Collection[str]) -> set[int]:
        """The columns, from 0, that have one of these names."""
        return {at for at, name in enumerate(self.names) if name in names}


class Writer(Protocol):
    """Where rows go."""

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write some rows of a block (None: all), each with the values of the added columns, which have one value per
        row of the block."""

    def close(self) -> None:
        """Write what comes at the end. The file itself stays open."""
