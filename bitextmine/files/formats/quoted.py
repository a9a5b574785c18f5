"""Pairs as spreadsheets write them: CSV, or tab-separated cells in quotation marks, which may hold line ends."""

import csv
import itertools
import re
from collections.abc import Iterator

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.cells import one_cell
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.sniff import find_delimiter
from bitextmine.files.formats.tsv import TextRows
from bitextmine.files.source import Source

_HEAD_LINES = 200
_ROWS = 8192
_END = "\x1eend of file\n"  # a line behind the last one, which becomes part of a cell without an end


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
    for lines in source.byte_lines():
        yield from (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)


def _rows(lines: Iterator[str], delimiter: str, source: Source) -> Iterator[list[bytes]]:
    csv.field_size_limit(source.max_line)
    rows = csv.reader(itertools.chain(lines, [_END]), delimiter=delimiter)
    line = 0
    try:
        while block := list(itertools.islice(rows, _ROWS)):
            last = block[-1][-1] if block[-1] else ""
            if last.endswith(_END):
                line = rows.line_num - last.count("\n") + 1
                raise csv.Error("a cell from here to the end")
            if last == _END[:-1]:
                del block[-1]
            yield ["\t".join(map(one_cell, row)).encode("utf-8", "surrogateescape") for row in block if row]
    except csv.Error as e:
        raise BitextmineError(
            f"{source}: line {line or rows.line_num}: not CSV ({e}); is there a quotation mark without an end?"
        ) from None
