"""The one table of the formats of sentence pairs, by the suffix of a file's name.

A format that is added here, with a reader and a writer in `tables`, reaches every command. `bitextmine --help` reads
this module, so imports stand inside functions.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from bitextmine.errors import UsageError


class Format(StrEnum):
    """A format of sentence pairs."""

    TSV = "tsv"
    JSONL = "jsonl"
    TMX = "tmx"
    PARQUET = "parquet"


SUFFIXES = {
    "": Format.TSV,
    ".tsv": Format.TSV,
    ".txt": Format.TSV,
    ".tab": Format.TSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".tmx": Format.TMX,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}
_MEANT = {".json": ".jsonl", ".csv": ".tsv", ".xml": ".tmx"}


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file to read: TSV for an unknown suffix, standard input and pipes.

    Raises:
        UsageError: a compressed file is called Parquet.
    """
    found = _format(path) or Format.TSV
    _check_compression(path, found)
    return found


def output_format(path: str | os.PathLike[str], option: str = "-o") -> Format:
    """Return the format of a file to write; two languages (``pairs.en-fr``) may stand for TSV.

    Args:
        path: the file; ``-`` is standard output.
        option: the option that names it, for the message.

    Raises:
        UsageError: the suffix names no format, or Parquet in a compressed file.
    """
    from bitextmine.files.streams import COMPRESSION_SUFFIXES, strip_compression

    suffix = strip_compression(path).suffix
    found = _format(path) or (Format.TSV if _two_languages(suffix[1:]) else None)
    if found is None:
        meant = f"; is {_MEANT[suffix.lower()]} meant?" if suffix.lower() in _MEANT else ""
        raise UsageError(
            f"{option} {os.fspath(path)}: pairs are written as .tsv (or .txt, or no suffix), .jsonl, .tmx or .parquet, "
            f"the first three also with {', '.join(COMPRESSION_SUFFIXES)} behind; '{suffix}' is none of these{meant}"
        )
    _check_compression(path, found)
    return found


def _format(path: str | os.PathLike[str]) -> Format | None:
    from bitextmine.files.streams import is_stream, strip_compression

    return Format.TSV if is_stream(path) else SUFFIXES.get(strip_compression(path).suffix.lower())


def _check_compression(path: str | os.PathLike[str], found: Format) -> None:
    from bitextmine.files.streams import compression, is_stream

    if found == Format.PARQUET and not is_stream(path) and compression(path):
        raise UsageError(
            f"{os.fspath(path)}: Parquet is already compressed; leave {Path(path).suffix} off the name"
        )


def _two_languages(suffix: str) -> bool:
    from bitextmine.languages.codes import is_short_code

    parts = suffix.replace("_", "-").split("-")
    return len(parts) == 2 and all(map(is_short_code, parts))
