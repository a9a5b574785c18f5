"""The one table of the formats of sentence pairs, by the suffix of a file's name; without one, by the first bytes.

`bitextmine --help` reads this module, so a reader and a writer are named here and imported on first use.
"""

import codecs
import csv
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bitextmine.errors import BitextmineError, MissingPackage, UsageError
from bitextmine.files.json_toml import parse_json
from bitextmine.files.source import COMPRESSION_SUFFIXES, Location, Source
from bitextmine.languages.codes import is_short_code


@dataclass(frozen=True)
class Format:
    """A format of sentence pairs: a row of the table.

    Attributes:
        name, suffixes: its name in options, and those of file names, the usual one first.
        reader: "module:function" in this package, called with a `Source` and `Columns`; returns `Rows` (`blocks`).
        writer: "module:class", called with a binary file and an `Outline`; a `Writer`. Empty: the format is only read.
        lines: rows are lines of text, which `cut` and `paste` handle.
        binary: numbers keep all their digits, the content is compressed already, and an optional dependency of this
            package, the extra of the format's name, reads and writes it.
        needs_languages: the two sides are told apart by their languages.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str = ""
    lines: bool = False
    binary: bool = False
    needs_languages: bool = False

    def load(self, name: str) -> Any:
        """Import `reader` or `writer`; MissingPackage if it needs one that is not installed."""
        module, _, function = name.partition(":")
        try:
            return getattr(importlib.import_module(f"{__package__}.{module}"), function)
        except ImportError as e:
            if not self.binary:
                raise
            package = str(e.name).partition(".")[0]
            raise MissingPackage(f"{self.name.capitalize()} needs the package {package}", self.name) from None

    def check_languages(self, langs: tuple[str, str], option: str = "--src and --tgt") -> None:
        """Raise UsageError if the format needs languages, and these are unknown or the same; `option` gives them."""
        if self.needs_languages and (not all(langs) or langs[0] == langs[1]):
            why = f"both are '{langs[0]}'" if all(langs) else f"which are unknown: give {option}"
            what = "NAME.{lang}" if self is MOSES else self.name.upper()
            raise UsageError(f"{what} needs two languages, {why}")


TSV = Format("tsv", (".tsv", ".txt", ".tab", ""), "tsv:TextRows", "tsv:TextWriter", lines=True)
JSONL = Format("jsonl", (".jsonl", ".ndjson"), "records:open_jsonl", "records:JsonWriter")
TMX = Format("tmx", (".tmx",), "xml:open_units", "xml:TmxWriter", needs_languages=True)
PARQUET = Format("parquet", (".parquet", ".pq"), "parquet:open_parquet", "parquet:ArrowWriter", binary=True)
XLIFF = Format("xliff", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf"), "xml:open_units")
CSV = Format("csv", (".csv",), "tsv:open_csv", lines=True)
PO = Format("po", (".po", ".pot"), "po:open_po")
# Two files, named by the languages: {lang} stands for these in the name of an output.
MOSES = Format("moses", (".{lang}",), "tsv:open_moses", "tsv:MosesWriter", lines=True, needs_languages=True)

FORMATS = {format.name: format for format in (TSV, JSONL, TMX, PARQUET, XLIFF, CSV, PO, MOSES)}
_WRITTEN = [format.suffixes[0] for format in FORMATS.values() if format.writer]


def _listed(suffixes: Iterable[str], word: str = "or") -> str:
    *most, last = (suffix for suffix in suffixes if "{" not in suffix)
    return f"{', '.join(most)} {word} {last}"


# For texts of help: the usual suffix of each format that is read, and of those that are written; all that compress.
INPUT_SUFFIXES = _listed((format.suffixes[0] for format in FORMATS.values() if format.suffixes), "and")
OUTPUT_SUFFIXES = _listed(_WRITTEN)
COMPRESSING = _listed(COMPRESSION_SUFFIXES)
SUFFIXES = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}
_PLACE = re.compile(r"\{(?:lang|src|tgt)\}")


def format_of(source: Source) -> Format:
    """Return the format of a file to read: by its suffix, or by its first bytes, else TSV.

    UsageError if a compressed file has the name of a format that compresses itself.
    """
    if len(source.files) == 2:
        return MOSES
    chosen = _format(source) or TSV
    if chosen is TSV:
        chosen = FORMATS[sniff(first_bytes(source))]
    _check_compression(source, chosen)
    return chosen


def output_format(output: Location, option: str = "-o") -> Format:
    """Return the format of a file to write; two languages (``pairs.en-fr``) may stand for TSV.

    Raises:
        UsageError: the suffix names no format that can be written, or one that compresses itself, compressed; the
            message names the `option`.
    """
    suffix = output.stem.suffix
    if (unknown := _PLACE.search(output.text)) and not (suffix == ".{lang}" and unknown[0] == "{lang}"):
        raise UsageError(
            f"{option} {output}: nothing takes the place of {unknown[0]}; two files are NAME.{{lang}}"
        )
    chosen = _format(output) or (TSV if _two_languages(suffix[1:]) else None)
    if chosen is None or not chosen.writer:
        raise UsageError(
            f"{option} {output}: pairs are written as {', '.join(_WRITTEN)}, and {', '.join(COMPRESSION_SUFFIXES)} "
            f"may follow; '{suffix}' is none of these"
            + ("; write NAME.{lang} for two files" if output.lang else "")
        )
    _check_compression(output, chosen)
    return chosen


def _format(location: Location) -> Format | None:
    return TSV if location.is_stream else SUFFIXES.get(location.suffix)


def _check_compression(location: Location, chosen: Format) -> None:
    if chosen.binary and not location.is_stream and location.compression:
        raise UsageError(
            f"{location}: {chosen.name} is already compressed; leave {location.compression} off the name"
        )


def _two_languages(suffix: str) -> bool:
    parts = suffix.replace("_", "-").split("-")
    return len(parts) == 2 and all(map(is_short_code, parts))


# --- by the first bytes ---

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
        return _is_quoted("\n".join(texts))
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


def _is_quoted(text: str) -> bool:
    """Return True if the cells of tab-separated lines are in quotation marks, doubled inside, as of a spreadsheet.

    Marks around whole cells alone do not show it: these may be quotations.
    """
    if text.count('"') % 2:
        text = text[: text.rindex('"')]  # a cell goes on after the text
    cells = _QUOTED.findall(text)
    quoted = any('""' in cell or "\n" in cell or "\t" in cell for cell in cells)
    return quoted and '"' not in _QUOTED.sub("", text)
