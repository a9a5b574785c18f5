"""The format of a file of pairs by its first bytes, for names that do not tell it."""

import codecs
import csv
import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from bitextmine.errors import BitextmineError
from bitextmine.files.json_toml import parse_json
from bitextmine.files.source import Source

_HEAD_BYTES, _HEAD_LINES = 1 << 16, 200
_XLIFF = re.compile(rb"<(?:[\w.-]+:)?xliff[\s>]")
_TMX = re.compile(rb"<tmx[\s>]")
_DELIMITERS = ",;\t|"
# A cell in quotation marks, which are doubled inside.
_QUOTED = re.compile(r'(?:^|(?<=\t))"((?:[^"]|"")*+)"(?=\t|\r?$)', re.MULTILINE)
_PO = re.compile(rb'(?:[ \t\r]*(?:#[^\n]*)?\n)*+(?:msgctxt|msgid)[ \t]+"')


def first_bytes(source: Source) -> bytes:
    """Return the first bytes of a file, or of standard input, which keeps them; none of a pipe or a missing file."""
    if source.is_standard:
        peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
        return bytes(peek(_HEAD_BYTES)) if peek else b""
    try:
        return b"" if source.is_stream else next(source.blocks(), b"")[:_HEAD_BYTES]
    except BitextmineError:
        return b""  # who reads it will say why


def sniff(head: bytes) -> str:
    """Return the name of the format that the first bytes show; tsv for all that is none of the others."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")):
        head = head.replace(b"\0", b"")[2 * (head[0] >= 0xFE) :]  # of XML, ASCII is enough
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"<"):
        tmx = _TMX.search(head) or head.startswith(b"<?xml")
        return "xliff" if _XLIFF.search(head) else "tmx" if tmx else "tsv"
    if _PO.match(head):
        return "po"
    if head.startswith(b"{"):
        return "jsonl" if _is_object(head.partition(b"\n")[0]) else "tsv"
    return "csv" if _is_csv(head) else "tsv"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line.decode()), dict)
    except ValueError:  # more than the first bytes
        return line.startswith(b'{"') and len(line) > _HEAD_BYTES // 2


def _is_csv(head: bytes) -> bool:
    """Return True for cells in quotation marks or, in text with few tabs, after commas or semicolons."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines = lines[: min(len(lines) - 1, _HEAD_LINES)]  # the last one may be cut
    tabs = sum(b"\t" in line for line in lines) > len(lines) / 3
    if (tabs and b'"' not in head) or len(lines) < 2:
        return False
    texts = [line.decode("utf-8", "surrogateescape") for line in lines]
    if tabs:
        return is_quoted("\n".join(texts))
    delimiter = find_delimiter([text + "\n" for text in texts])
    return delimiter in (",", ";") and not _is_prose(texts, delimiter)


def _is_prose(lines: Sequence[str], delimiter: str) -> bool:
    """Return True if spaces follow the commas or semicolons that part cells, or digits stand around them."""
    cells = [cell for row in csv.reader(lines, delimiter=delimiter) for cell in pairwise(row)]
    marks = sum(b.startswith(" ") or (a[-1:].isdigit() and b[:1].isdigit()) for a, b in cells)
    return marks > len(cells) / 2


def find_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts lines into rows of the same number of cells; empty if none does."""
    best, cells = "", 1
    for delimiter in _DELIMITERS:
        try:
            with_it = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error:
            continue
        width, rows = max(with_it.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        if width > cells and rows > 0.8 * with_it.total():
            best, cells = delimiter, width
    return best


def is_quoted(text: str) -> bool:
    """Return True if the cells of tab-separated lines are in quotation marks, doubled inside, as of a spreadsheet.

    Marks around whole cells alone do not show it: these may be quotations.
    """
    if text.count('"') % 2:
        text = text[: text.rindex('"')]  # a cell goes on after the text
    cells = _QUOTED.findall(text)
    quoted = any('""' in cell or "\n" in cell or "\t" in cell for cell in cells)
    return quoted and '"' not in _QUOTED.sub("", text)
