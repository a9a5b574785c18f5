"""Blocks of rows of sentence pairs, whatever the format: their cells, and the interfaces of readers and writers."""

import contextlib
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.layout import Layout, as_number
from bitextmine.files.formats.names import Format
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import Source
from bitextmine.files.storage import to_path
from bitextmine.languages.codes import is_code
from bitextmine.signature import parse_signature

BLOCK_BYTES = 1 << 26
# Rows so long that the first ones, read to find the columns, would be more than this are fewer: memory stays bounded.
HEAD_BYTES = 1 << 25
DECIMALS = 4
_MINED_DECIMALS = {"score": 6}  # as `mine` writes them
SomeRows = Sequence[int] | NDArray[np.int64]

# Everything that ends a line or a cell for some reader of TSV: tab, LF, VT, FF, CR, FS, GS, RS, NEL, LS, PS.
_BREAKS = re.compile("[\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]+")


# --- cells ---


def one_cell(text: str) -> str:
    """Return a text as one cell of one line: each run of tabs and line breaks of any kind becomes a space."""
    return _BREAKS.sub(" ", text)


def cell_text(name: str, value: Any) -> str:
    """Return a value of the column `name` as a cell: empty for None, four decimals, six for a score."""
    if isinstance(value, float):
        return f"{value:.{_MINED_DECIMALS.get(name, DECIMALS)}f}"
    return one_cell(as_text(value))


def as_text(value: Any) -> str:
    """Return a value as text: empty for None; lists, objects and booleans as JSON."""
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Added:
    """A column to write beside those that were read: numbers (n,), NaN for none, or texts."""

    name: str
    values: NDArray[np.float64] | Sequence[str]

    def cells(self) -> list[str]:
        """Return the values as cells: numbers with four decimals, empty for NaN."""
        if isinstance(self.values, np.ndarray):
            return ["" if v != v else f"{v:.{DECIMALS}f}" for v in self.values.tolist()]
        return list(self.values)


# --- rows ---


class Block:
    """Consecutive rows of a file; columns are counted from 0.

    Args:
        names: of the columns.
        rows: the values of each row: texts, numbers if the format has them, None for nothing. A bad row may have fewer
            values than there are names, or more.
        start: the number of the first row in the stream, from 1; a header does not count.
        bad: the rows that cannot be read, by their place in the block, and the reasons.
        raw: each row as the line that was read, without its line feed, in formats of lines.
        schema: that of Arrow, if the file has one.
        untranslated: bad rows that only lack the text in a language.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[list[Any]],
        start: int = 1,
        bad: Mapping[int, str] | None = None,
        *,
        raw: Sequence[bytes] | None = None,
        schema: Any = None,
        untranslated: Sequence[int] = (),
    ) -> None:
        self._names, self._rows, self._bad, self._raw = names, rows, bad or {}, raw
        self.start, self.width, self.schema, self.untranslated = start, len(names), schema, untranslated

    def __len__(self) -> int:
        return len(self._rows)

    def bad(self) -> Mapping[int, str]:
        """Return the rows that cannot be read, by their place in the block, and the reasons."""
        return self._bad

    def texts(self, column: int, rows: SomeRows) -> list[str]:
        """Return the cells of a column in some rows as texts."""
        return [v if type(v) is str else as_text(v) for v in self._column(column, rows)]

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return such cells as numbers; NaN for a cell that is empty or not a number."""
        values = self._column(column, rows)
        try:
            return np.array([float(value) for value in values], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return np.array([as_number(value) for value in values], dtype=np.float64)

    def _column(self, column: int, rows: SomeRows) -> list[Any]:
        wanted = rows.tolist() if isinstance(rows, np.ndarray) else rows
        try:
            return [self._rows[at][column] for at in wanted]
        except IndexError:  # a bad row
            return [row[column] if column < len(row) else None for row in map(self._rows.__getitem__, wanted)]

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return every row as a tab-separated line, without its line feed and without some columns.

        A line that was read, and one of another width, stays as it is.
        """
        kept = [at for at in range(self.width) if at not in without]
        if self._raw is not None:
            return [_without(line, kept, self.width) for line in self._raw] if without else [*self._raw]
        lines = []
        for row in self._rows:
            places = kept if len(row) == self.width else range(len(row))
            cells = [cell_text(self._names[at] if at < self.width else "", row[at]) for at in places]
            lines.append("\t".join(cells).encode("utf-8", "replace"))
        return lines

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return every row as values: text stays text, except in columns of numbers."""
        rows = [list(row) for row in self._rows]
        for row in rows:
            for at in (*floats, *integers):
                if at < len(row) and isinstance(row[at], str):
                    number = as_number(row[at])
                    whole = at in integers and number.is_integer()
                    row[at] = int(number) if whole else number if math.isfinite(number) else row[at] or None
        return rows

    def changed(self, rows: Sequence[int], texts: Mapping[int, Sequence[str]]) -> "Block":
        """Return a block with other texts in some rows, none of them bad; `texts` are those of each column."""
        values = [list(row) for row in self._rows]
        raw = None if self._raw is None else [line.split(b"\t") for line in self._raw]
        for column, new in texts.items():
            for row, text in zip(rows, new, strict=True):
                values[row][column] = text
                if raw is not None:
                    end = "\r" if raw[row][column].endswith(b"\r") else ""
                    raw[row][column] = (one_cell(text) + end).encode("utf-8", "replace")
        lines = None if raw is None else list(map(b"\t".join, raw))
        more: dict[str, Any] = {"schema": self.schema, "untranslated": self.untranslated}
        return Block(self._names, values, self.start, self._bad, raw=lines, **more)


def _without(line: bytes, kept: Sequence[int], width: int) -> bytes:
    cells = line.removesuffix(b"\r").split(b"\t")
    if len(cells) != width:
        return line
    return b"\t".join([cells[at] for at in kept]) + (b"\r" if line.endswith(b"\r") else b"")


class Rows:
    """A stream of blocks.

    Attributes:
        source, format: the file, and its format, if `table.open_table` opened it.
        layout: the places of the columns.
        names: those of all columns, from the header or made up; empty for an empty file.
        empty: there is no row.
        header_line: the names of the columns stand in a line before the rows.
        translations: the texts are in objects by language, as the library datasets has them.
    """

    source: Source
    format: Format
    layout: Layout
    names: tuple[str, ...] = ()
    empty: bool
    header_line: bool = False
    translations: bool = False

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the rows in blocks of `rows`, or as they come; blocks of about `most` bytes have fewer rows."""
        raise NotImplementedError

    def langs(self, src: str = "", tgt: str = "") -> tuple[str, str]:
        """Return the languages of both sides: the given ones, else those in the file or in the manifest beside it."""
        for langs in ((self.layout.src_lang, self.layout.tgt_lang), _mined_languages(self.source)):
            if all(langs):
                src, tgt = src or langs[0], tgt or langs[1]
        return src, tgt

    def outline(self, added: Sequence[str] = (), **other: Any) -> "Outline":
        """Return the outline of an output with these rows; an added column replaces one of its name in the header.

        `other` are further fields of `Outline`; the default of `header` is that of the input.
        """
        layout = self.layout
        header = other.pop("header", bool(layout.names))
        return Outline(
            names=self.names or ("src", "tgt"),
            src=layout.places.get("src"),
            tgt=layout.places.get("tgt"),
            added=added,
            header=header,
            replaced={at for at, name in enumerate(layout.names) if name in added},
            unknown=layout.unknown,
            translations=self.translations and not layout.unknown,
            **other,
        )


def _mined_languages(source: Source) -> tuple[str, str]:
    """Return the languages in the manifest beside a file of pairs; empty without one."""
    beside = to_path(f"{source.text}.json")
    with contextlib.suppress(BitextmineError):
        if (
            not source.is_stream
            and beside.is_file()
            and (content := read_json(beside)).get("kind") == "bitext"
        ):
            parts = parse_signature(str(content.get("signature")))
            src, tgt = parts.get("src", ""), parts.get("tgt", "")
            if is_code(src) and is_code(tgt):
                return src, tgt
    return "", ""


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
