"""The one table of the formats of sentence pairs, by the suffix of a file's name.

`bitextmine --help` reads this module, so a reader and a writer are named here and imported on first use.
"""

import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.sniff import first_bytes, sniff
from bitextmine.files.location import COMPRESSION_SUFFIXES, Location
from bitextmine.files.source import Source
from bitextmine.languages.codes import is_short_code


@dataclass(frozen=True)
class Format:
    """A format of sentence pairs: a row of the table.

    Attributes:
        name, suffixes: its name in options, and those of file names, the usual one first.
        reader: "module:function" in this package, called with a `Source` and `Columns`; returns `Rows` (`protocol`).
        writer: "module:class", called with a binary file and an `Outline`; a `Writer`. Empty: the format is only read.
        lines: rows are lines of text, which `cut` and `paste` handle.
        binary: numbers keep all their digits, and the content is compressed already.
        needs_languages: the two sides are told apart by their languages.
        extra: the optional dependencies of this package that it needs.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str = ""
    lines: bool = False
    binary: bool = False
    needs_languages: bool = False
    extra: str = ""

    def load(self, name: str) -> Any:
        """Import `reader` or `writer`; BitextmineError if it needs a package that is not installed."""
        module, _, function = name.partition(":")
        try:
            return getattr(importlib.import_module(f"{__package__}.{module}"), function)
        except ImportError as e:
            if not self.extra:
                raise
            package = str(e.name).partition(".")[0]
            raise BitextmineError(
                f"{self.name.capitalize()} needs the package {package}; install it with "
                f"pip install 'bitextmine[{self.extra}]'"
            ) from None

    def check_languages(self, langs: tuple[str, str], option: str = "--src and --tgt") -> None:
        """Raise UsageError if the format needs languages, and these are unknown or the same; `option` gives them."""
        if self.needs_languages and (not all(langs) or langs[0] == langs[1]):
            why = f"both are '{langs[0]}'" if all(langs) else f"they are not known; say which with {option}"
            raise UsageError(f"{self.name.upper()} tells source from target by their languages, and {why}")


TSV = Format("tsv", (".tsv", ".txt", ".tab", ""), "tsv:TextRows", "tsv:TextWriter", lines=True)
JSONL = Format("jsonl", (".jsonl", ".ndjson"), "records:open_jsonl", "records:JsonWriter")
TMX = Format("tmx", (".tmx",), "xliff:open_units", "tmx:TmxWriter", needs_languages=True)
_PYARROW: Any = {"binary": True, "extra": "parquet"}
PARQUET = Format("parquet", (".parquet", ".pq"), "parquet:open_parquet", "parquet:ArrowWriter", **_PYARROW)
DATASET = Format("dataset", (), "parquet:open_dataset", extra="parquet")
XLIFF = Format("xliff", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf"), "xliff:open_units")
CSV = Format("csv", (".csv",), "quoted:open_csv", lines=True)
PO = Format("po", (".po", ".pot"), "po:open_po")
# Two files, named by the languages: {lang} stands for these in the name of an output.
MOSES = Format("moses", (".{lang}",), "tsv:open_moses", "tsv:MosesWriter", lines=True, needs_languages=True)

FORMATS = {format.name: format for format in (TSV, JSONL, TMX, PARQUET, XLIFF, CSV, PO, DATASET, MOSES)}
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
_MEANT = {".json": ".jsonl", ".csv": ".tsv", ".xml": ".tmx"}


def format_of(source: Source) -> Format:
    """Return the format of a file to read: by its suffix, or by its first bytes, else TSV; DATASET for a folder.

    UsageError if a compressed file has the name of a format that compresses itself.
    """
    if len(source.files) == 2:
        return MOSES
    if isinstance(source.path, Path) and source.path.is_dir():
        return DATASET
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
        meant = f"; is {_MEANT[output.suffix]} meant?" if output.suffix in _MEANT else ""
        raise UsageError(
            f"{option} {output}: pairs are written as {', '.join(_WRITTEN)}, and {', '.join(COMPRESSION_SUFFIXES)} "
            f"may follow; '{suffix}' is none of these{meant}"
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
