"""Files of sentence pairs as streams of blocks of rows, in any of the formats of `formats`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.jsonl import JsonWriter, open_jsonl
from bitextmine.files.formats.names import Format, format_of, output_format
from bitextmine.files.formats.parquet import ArrowRows, ArrowWriter, pyarrow_parquet
from bitextmine.files.formats.protocol import Block, Outline, Rows, Writer
from bitextmine.files.formats.tmx import TmxWriter, check_sides, open_tmx
from bitextmine.files.formats.tsv import TextRows, TextWriter
from bitextmine.files.jsonfile import read_json
from bitextmine.files.layout import Columns, Layout
from bitextmine.files.storage import place
from bitextmine.files.streams import check_writable, display_name, is_stream, open_output
from bitextmine.languages.codes import is_code
from bitextmine.signature import parse_signature

__all__ = [
    "Block",
    "Malformed",
    "Rows",
    "Table",
    "Writer",
    "check_languages",
    "check_pairs_output",
    "open_pairs",
    "open_table",
    "write_rows",
]

_READERS: dict[Format, Callable[[str | os.PathLike[str], Columns | None, int], Rows]] = {
    Format.TSV: TextRows,
    Format.JSONL: open_jsonl,
    Format.TMX: open_tmx,
    Format.PARQUET: ArrowRows,
}
_WRITERS: dict[Format, Callable[[Any, Outline], Writer]] = {
    Format.TSV: TextWriter,
    Format.JSONL: JsonWriter,
    Format.TMX: TmxWriter,
    Format.PARQUET: ArrowWriter,
}

_NEARLY_ALL = 0.95
_FEW = 20  # of so many rows, a good one is enough
_MANY = 10_000  # after so many rows it is clear what a stream is made of


@dataclass(frozen=True)
class Table:
    """An opened input; names: of all its columns, from its header or made up; empty for an empty file."""

    path: str | os.PathLike[str]
    rows: Rows
    names: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        """The places of the columns."""
        return self.rows.layout

    @property
    def has_header(self) -> bool:
        """The names of the columns are in the file."""
        return bool(self.layout.names)

    def langs(self, src: str = "", tgt: str = "") -> tuple[str, str]:
        """Return the languages of both sides: the given ones, else those in the file or in the manifest beside it."""
        if not (src and tgt) and self.layout.src_lang and self.layout.tgt_lang:
            src, tgt = src or self.layout.src_lang, tgt or self.layout.tgt_lang
        if not (src and tgt):
            mined = _mined_languages(self.path)
            src, tgt = src or mined[0], tgt or mined[1]
        return src, tgt


def open_table(
    path: str | os.PathLike[str],
    columns: Columns | None = None,
    last: Sequence[str] = (),
    errors: str | None = None,
) -> Table:
    """Open a file of pairs in the format that its suffix tells and find its columns (`layout.find_layout`).

    Args:
        path: the file; ``-`` is stdin.
        columns: the columns that the user named.
        last: names of the last columns, for a file without a header.
        errors: invalid UTF-8 in text: ``strict`` raises InvalidUtf8, ``replace`` puts U+FFFD, None makes the row bad.

    Raises:
        BitextmineError: the file cannot be opened, or a column is not there.
        UsageError: columns are named, and there is no header.
    """
    found = format_of(path)
    if found == Format.TSV:
        rows: Rows = TextRows(path, columns, len(last), errors)
    else:
        rows = _READERS[found](path, columns, len(last))
    return Table(path, rows, rows.layout.column_names(last))


def _mined_languages(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the languages in the manifest beside a file of pairs; empty without one."""
    beside = place(f"{os.fspath(path)}.json")
    with contextlib.suppress(BitextmineError):
        if not is_stream(path) and beside.is_file():
            content = read_json(beside)
            if content.get("kind") == "bitext" and isinstance(content.get("signature"), str):
                parts = parse_signature(content["signature"])
                src, tgt = parts.get("src", ""), parts.get("tgt", "")
                if is_code(src) and is_code(tgt):
                    return src, tgt
    return "", ""


class Malformed:
    """Counts the rows that cannot be read, and raises when nearly all are: these are not pairs, or other columns."""

    def __init__(self, table: Table) -> None:
        self._name = display_name(table.path)
        self._text = format_of(table.path) == Format.TSV
        self._before = int(table.rows.header_line)
        self.rows = self.count = 0
        self.first = ""  # which row it was, and what was wrong with it

    def add(self, block: Block) -> None:
        """Count a block; raise BitextmineError after many rows, nearly all of them malformed."""
        bad = block.bad()
        if bad and not self.first:
            place = min(bad)
            self.first = f"{self._name}: line {block.start + place + self._before}: {bad[place]}"
        self.rows += len(block)
        self.count += len(bad)
        if self.rows >= _MANY:
            self._check()

    def finish(self) -> None:
        """Raise BitextmineError if nearly all rows were malformed, or all of them."""
        if self.rows >= _FEW or self.count == self.rows:
            self._check()

    def _check(self) -> None:
        if self.count > _NEARLY_ALL * self.rows:
            good = self.rows - self.count
            check = (
                "that tabs separate the cells, and --scol, --tcol and --header"
                if self._text
                else "what the file is"
            )
            raise BitextmineError(
                f"{self.first}; {'not one' if not good else f'only {good:,}'} of {self.rows:,} rows can be read as a "
                f"pair: check {check}"
            )


def check_pairs_output(
    path: str | os.PathLike[str], option: str = "-o", *, only_added: bool = False
) -> Format:
    """Return the format of a file to write, and check its place; ask before the work.

    Args:
        path: the output.
        option: the option that names it.
        only_added: only added columns are to be written, which text alone can hold.

    Raises:
        UsageError: the suffix names no format.
        BitextmineError: the place cannot be written to, or Parquet without pyarrow.
    """
    form = output_format(path, option)
    if only_added and form != Format.TSV:
        raise UsageError(f"{path}: --score-only writes text, to be pasted beside other text")
    check_writable(path)
    if form == Format.PARQUET:
        pyarrow_parquet()
    return form


def check_languages(
    path: str | os.PathLike[str], langs: tuple[str, str], option: str = "--src and --tgt"
) -> None:
    """Raise UsageError for TMX if the languages are unknown or the same; option: how to give them."""
    if output_format(path) == Format.TMX:
        check_sides(langs, option)


@contextlib.contextmanager
def open_pairs(
    path: str | os.PathLike[str], outline: Outline, format: Format | None = None
) -> Iterator[Writer]:
    """Open a file of pairs to write (``-``: stdout), in a format or in the one of its suffix; complete or not there."""
    format = format or output_format(path)
    with open_output(path, "binary") as out:
        writer = _WRITERS[format](out, outline)
        yield writer
        writer.close()


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
    langs: tuple[str, str] = ("", ""),
) -> Iterator[Writer]:
    """Yield a writer of the rows of a table, as `open_pairs` does.

    Args:
        path: the output.
        table: the rows that were read.
        added: names of columns to add; one of them replaces a column of its name in the header.
        header: begin text with a line of names; None: if the input has names.
        only_added: write only the added columns.
        floats: columns of numbers, for formats that have numbers.
        integers: likewise, of whole numbers.
        langs: the languages of source and target, for formats that name them.

    Raises:
        BitextmineError: such a format, and source and target are not known.
    """
    check_pairs_output(path, only_added=only_added)
    if not table.rows.empty and output_format(path) in (Format.JSONL, Format.TMX):
        _ = table.layout.src, table.layout.tgt  # if they are not known, now is the time to say so
    places = table.layout.places
    outline = Outline(
        names=table.names or ("src", "tgt"),
        src=places.get("src"),
        tgt=places.get("tgt"),
        langs=langs,
        added=added,
        header=bool(table.names) and (table.has_header if header is None else header),
        only_added=only_added,
        replaced={at for at, name in enumerate(table.layout.names) if name in added},
        floats=floats,
        integers=integers,
    )
    with open_pairs(path, outline) as writer:
        yield writer
