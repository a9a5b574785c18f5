"""Pairs in two files of plain text, line i of one translating line i of the other, as Moses and OPUS have them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.cells import Added, one_cell
from bitextmine.files.formats.names import TwoFiles
from bitextmine.files.formats.protocol import Block, Outline
from bitextmine.files.formats.tsv import TextRows
from bitextmine.files.layout import Columns
from bitextmine.files.streams import raw_lines

_ROWS = 8192


def open_moses(path: TwoFiles | str, columns: Columns) -> TextRows:
    """Return the rows of two files: a column each, named by the language that ends the file's name.

    A tab in a text becomes a space.

    Raises:
        UsageError: one name, of a file to write.
        BitextmineError: a file cannot be read, or, while reading, one has more lines.
    """
    if not isinstance(path, TwoFiles):
        raise UsageError(f"{path}: {{lang}} stands in names to write; to read, name both files, source first")
    names = "\t".join(path.langs() or ("src", "tgt")).encode()
    lines = itertools.chain([[names]], _joined(path))
    rows = TextRows(path, dataclasses.replace(columns, header=True), lines)
    rows.header_line = False  # no line of a file
    return rows


def _joined(path: TwoFiles) -> Iterator[list[bytes]]:
    """Yield the lines of both files with a tab between them."""
    sides = [itertools.chain.from_iterable(raw_lines(file)) for file in path.files]
    done = 0
    while True:
        src, tgt = (list(itertools.islice(side, _ROWS)) for side in sides)
        if len(src) != len(tgt):
            counts = [
                done + len(part) + sum(1 for _ in rest) for part, rest in zip((src, tgt), sides, strict=True)
            ]
            raise BitextmineError(
                f"{path.files[0]} has {counted(counts[0], 'line')}, but {path.files[1]} has {counts[1]:,}: "
                "they are not translations line by line"
            )
        if not src:
            return
        done += len(src)
        yield [b"%b\t%b" % (_cell(a), _cell(b)) for a, b in zip(src, tgt, strict=True)]


def _cell(line: bytes) -> bytes:
    return line.removesuffix(b"\r").replace(b"\t", b" ")


class MosesWriter:
    """Writes the texts of rows, a line each; an empty line on both sides for a row that cannot be read."""

    def __init__(self, out: Sequence[Any], outline: Outline) -> None:
        self._out, self._sides = out, outline.sides()

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block (see `Writer`)."""
        wanted = np.arange(len(block)) if rows is None else rows
        bad = block.bad()
        good = [row for row in wanted.tolist() if row not in bad]
        for out, side in zip(self._out, self._sides, strict=True):
            texts = dict(zip(good, block.texts(side, good), strict=True))
            lines = (one_cell(texts.get(row, "")) + "\n" for row in wanted.tolist())
            out.write("".join(lines).encode("utf-8", "replace"))

    def close(self) -> None:
        """Write nothing: the format has no end."""
