"""Formats of files of pairs by name and suffix; `bitextmine --help` reads them, so imports stand inside functions."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from bitextmine.errors import UsageError

__all__ = ["SUFFIXES", "Form", "form_of", "output_form"]


class Form(StrEnum):
    """A format of sentence pairs."""

    TSV = "tsv"
    JSONL = "jsonl"
    TMX = "tmx"
    PARQUET = "parquet"


SUFFIXES = {
    "": Form.TSV,
    ".tsv": Form.TSV,
    ".txt": Form.TSV,
    ".tab": Form.TSV,
    ".jsonl": Form.JSONL,
    ".ndjson": Form.JSONL,
    ".tmx": Form.TMX,
    ".parquet": Form.PARQUET,
    ".pq": Form.PARQUET,
}
_MEANT = {".json": ".jsonl", ".csv": ".tsv", ".xml": ".tmx"}


def form_of(path: str | os.PathLike[str]) -> Form:
    """The format of a file to read: by its suffix before any suffix of compression, and tab-separated text for all
    others, for standard input and for pipes. Raises UsageError for Parquet in a compressed file."""
    from bitextmine.files.streams import is_stream, strip_compression

    if is_stream(path):
        return Form.TSV
    form = SUFFIXES.get(strip_compression(path).suffix.lower(), Form.TSV)
    _not_packed(path, form)
    return form


def output_form(path: str | os.PathLike[str], option: str = "-o") -> Form:
    """The format of a file to write, as `form_of` tells it, but a suffix that says nothing is an error. Two languages
    (``pairs.en-fr``) may stand for tab-separated text.

    Raises UsageError for such a suffix, naming the option, and for Parquet in a compressed file.
    """
    from bitextmine.files.streams import COMPRESSION_SUFFIXES, is_stream, strip_compression

    if is_stream(path):
        return Form.TSV
    suffix = strip_compression(path).suffix
    form = SUFFIXES.get(suffix.lower())
    if form is None and _two_languages(suffix[1:]):
        form = Form.TSV
    if form is None:
        meant = f"; is {_MEANT[suffix.lower()]} meant?" if suffix.lower() in _MEANT else ""
        raise UsageError(
            f"{option} {os.fspath(path)}: pairs are written as .tsv (or .txt, or no suffix), .jsonl, .tmx or .parquet, "
            f"the first three also with {', '.join(COMPRESSION_SUFFIXES)} behind; '{suffix}' is none of these{meant}"
        )
    _not_packed(path, form)
    return form


def _not_packed(path: str | os.PathLike[str], form: Form) -> None:
    from bitextmine.files.streams import compression

    if form == Form.PARQUET and compression(path):
        raise UsageError(
            f"{os.fspath(path)}: Parquet is compressed as it is; leave {Path(path).suffix} off the name"
        )


def _two_languages(suffix: str) -> bool:
    """Whether a suffix names two languages: en-fr, de_it."""
    from bitextmine.languages.codes import is_short_code

    parts = suffix.replace("_", "-").split("-")
    return len(parts) == 2 and all(map(is_short_code, parts))
