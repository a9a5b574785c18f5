"""The one table of the formats of sentence pairs, by the suffix of a file's name.

`bitextmine --help` reads this module, so a reader and a writer are named here and imported on first use.
"""

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.storage import is_remote


@dataclass(frozen=True)
class Format:
    """A format of sentence pairs: a row of the table.

    Attributes:
        name, suffixes: its name in options, and those of file names, the usual one first.
        reader: "module:function" in this package, called with a path and `Columns`; returns `Rows` (see `protocol`).
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
            found = f"both are '{langs[0]}'" if all(langs) else f"they are not known; say which with {option}"
            raise UsageError(f"{self.name.upper()} tells source from target by their languages, and {found}")


TSV = Format("tsv", (".tsv", ".txt", ".tab", ""), "tsv:TextRows", "tsv:TextWriter", lines=True)
JSONL = Format("jsonl", (".jsonl", ".ndjson"), "records:open_jsonl", "records:JsonWriter")
TMX = Format("tmx", (".tmx",), "tmx:TmxRows", "tmx:TmxWriter", needs_languages=True)
_PYARROW: Any = {"binary": True, "extra": "parquet"}
PARQUET = Format("parquet", (".parquet", ".pq"), "parquet:open_parquet", "parquet:ArrowWriter", **_PYARROW)
DATASET = Format("dataset", (), "parquet:open_dataset", extra="parquet")
XLIFF = Format("xliff", (".xlf", ".xliff", ".sdlxliff"), "tmx:XliffRows")
# Two files, named by the languages: {lang} stands for these in the name of an output.
MOSES = Format("moses", (".{lang}",), "tsv:open_moses", "tsv:MosesWriter", lines=True, needs_languages=True)

FORMATS = {format.name: format for format in (TSV, JSONL, TMX, PARQUET, XLIFF, DATASET, MOSES)}
SUFFIXES = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}
_MEANT = {".json": ".jsonl", ".csv": ".tsv", ".xml": ".tmx"}


@dataclass(frozen=True)
class TwoFiles(os.PathLike[str]):
    """The two files of a corpus, source and target, where a file of pairs may stand."""

    files: tuple[str, str]

    def __fspath__(self) -> str:
        return " ".join(self.files)

    def __str__(self) -> str:
        return os.fspath(self)

    def langs(self) -> tuple[str, str] | None:
        """Return the languages that the names end with, before a suffix of compression; None if they do not."""
        from bitextmine.files.streams import strip_compression
        from bitextmine.languages.codes import is_short_code

        src, tgt = (strip_compression(file).suffix[1:] for file in self.files)
        known = all(is_short_code(lang) and f".{lang}" not in SUFFIXES for lang in (src, tgt))
        return (src, tgt) if known and src != tgt else None


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file to read: TSV for an unknown suffix, standard input and pipes, DATASET for a folder.

    UsageError if a compressed file has the name of a format that compresses itself.
    """
    if isinstance(path, TwoFiles):
        return MOSES
    if not is_remote(path) and Path(path).is_dir():
        return DATASET
    found = _format(path) or TSV
    _check_compression(path, found)
    return found


def output_format(path: str | os.PathLike[str], option: str = "-o") -> Format:
    """Return the format of a file to write (``-``: stdout); two languages (``pairs.en-fr``) may stand for TSV.

    Raises:
        UsageError: the suffix names no format that can be written, or one that compresses itself, compressed; the
            message names the `option`.
    """
    from bitextmine.files.streams import COMPRESSION_SUFFIXES, strip_compression

    suffix = strip_compression(path).suffix
    found = _format(path) or (TSV if _two_languages(suffix[1:]) else None)
    if found is None or not found.writer:
        meant = f"; is {_MEANT[suffix.lower()]} meant?" if suffix.lower() in _MEANT else ""
        written = ", ".join(format.suffixes[0] for format in FORMATS.values() if format.writer)
        raise UsageError(
            f"{option} {os.fspath(path)}: pairs are written as {written}, and {', '.join(COMPRESSION_SUFFIXES)} may "
            f"follow; '{suffix}' is none of these{meant}"
        )
    _check_compression(path, found)
    return found


def _format(path: str | os.PathLike[str]) -> Format | None:
    from bitextmine.files.streams import is_stream, strip_compression

    return TSV if is_stream(path) else SUFFIXES.get(strip_compression(path).suffix.lower())


def _check_compression(path: str | os.PathLike[str], found: Format) -> None:
    from bitextmine.files.streams import compression, is_stream

    if found.binary and not is_stream(path) and (packed := compression(path)):
        raise UsageError(
            f"{os.fspath(path)}: {found.name} is already compressed; leave {packed} off the name"
        )


def _two_languages(suffix: str) -> bool:
    from bitextmine.languages.codes import is_short_code

    parts = suffix.replace("_", "-").split("-")
    return len(parts) == 2 and all(map(is_short_code, parts))
