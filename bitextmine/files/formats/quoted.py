"""Pairs as spreadsheets write them: CSV, or tab-separated cells in quotation marks, which may hold line ends."""

import csv
import itertools
import re
from collections.abc import Iterator, Sequence

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.cells import one_cell
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.sniff import find_delimiter
from bitextmine.files.formats.tsv import TextRows
from bitextmine.files.source import Source

_HEAD_LINES = 200
_ROWS = 8192


def open_csv(source: Source, columns: Columns) -> TextRows:
    """Return the rows of a file; line ends and tabs in a cell become spaces.

    BitextmineError, here or while reading, for a cell larger than the longest line: a quotation mark without an end.
    """
    lines = _lines(source)
    head = list(itertools.islice(lines, _HEAD_LINES))
    if head and (stated := re.fullmatch(r"sep=(.)\r?\n", head[0])):  # Excel
        delimiter = stated[1]
        del head[0]
    else:
        delimiter = find_delimiter(head) or ","
    return TextRows(source, columns, _rows(itertools.chain(head, lines), delimiter, source))


def _lines(source: Source) -> Iterator[str]:
    """Yield lines with their ends; bytes that are not UTF-8 stay as they are."""
    first = True
    for block in source.line_blocks():
        text = block.decode("utf-8", "surrogateescape")
        if first:
            text, first = text.removeprefix("\ufeff"), False
        yield from (line + "\n" for line in text.removesuffix("\n").split("\n"))


def _rows(lines: Iterator[str], delimiter: str, source: Source) -> Iterator[list[bytes]]:
    """Yield rows as tab-separated lines."""
    csv.field_size_limit(source.max_line)
    record: list[str] = []  # the lines of a row
    last: list[str] = []
    rows = csv.reader(_noted(lines, record), delimiter=delimiter)
    try:
        some: list[bytes] = []
        for row in rows:
            last[:], record[:] = record, ()
            if row:
                some.append("\t".join(map(one_cell, row)).encode("utf-8", "surrogateescape"))
            if len(some) == _ROWS:
                yield some
                some = []
        if len(last) > 1 and _is_open(last, delimiter):
            raise csv.Error("its last cell has no end")
        yield some
    except csv.Error as e:
        line = rows.line_num - len(record or last) + 1
        raise BitextmineError(
            f"{source}: line {line}: not CSV ({e}); is there a quotation mark without an end?"
        ) from None


def _is_open(lines: Sequence[str], delimiter: str) -> bool:
    """Return True if a cell in quotation marks does not end in these lines."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as e:
        return "end of data" in str(e)
    return False


def _noted(lines: Iterator[str], record: list[str]) -> Iterator[str]:
    for line in lines:
        record.append(line)
        yield line
