"""JSON Lines: an object per line, ``{"translation": {"en": ..., "fr": ...}, "score": ...}``.

Data sets for machine translation hold pairs this way (https://huggingface.co/docs/datasets, the feature Translation).
Objects without a translation are read by the names of their keys.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import DECIMALS, Added
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows, RecordWriter
from bitextmine.files.jsonfile import parse_json
from bitextmine.files.layout import Columns
from bitextmine.files.streams import raw_lines

_SURROGATES = re.compile("[\ud800-\udfff]")


def open_jsonl(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a file; a line without a JSON object is a bad row."""
    return RecordRows(path, _records(path), columns)


def _records(path: str | os.PathLike[str]) -> Iterator[Record]:
    for lines in raw_lines(path):
        yield from map(_record, lines)


def _record(line: bytes) -> Record:
    raw = line.decode("utf-8", "replace").removesuffix("\r")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return Record(None, len(line), "invalid UTF-8", raw)
    try:
        content = parse_json(text)
    except ValueError as e:
        return Record(None, len(line), f"not valid JSON ({e})", raw)
    if not isinstance(content, dict):
        return Record(None, len(line), "not a JSON object", raw)
    if "\\u" in text:  # half a pair of surrogates is no character
        content = _whole_characters(content)
    return Record(content, len(line))


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(inner) for inner in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(inner) for key, inner in value.items()}
    return value


class JsonWriter(RecordWriter):
    """Writes an object per row: the texts by language (`langs`), then the other columns by name.

    An empty cell in a column of numbers is null. Line breaks in a text stay.
    """

    numbers = True

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline)
        if TRANSLATION in [*outline.names, *outline.added]:
            raise BitextmineError(
                f"a column is called '{TRANSLATION}', as what holds the texts in JSON Lines; rename it, or write TSV"
            )

    def langs(self) -> tuple[str, str]:
        """Return the keys of the texts."""
        return self._outline.keys()

    def unit(self, sides: Sequence[tuple[str, Any]], others: Mapping[str, Any]) -> str:
        """Return a row as an object in a line."""
        return _dumped({TRANSLATION: dict(sides), **others}) + "\n"

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column, None for NaN."""
        if isinstance(added.values, np.ndarray):
            return [round(v, DECIMALS) if math.isfinite(v) else None for v in added.values.tolist()]
        return added.values


def _dumped(content: dict[str, Any]) -> str:
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:  # a number that JSON has no way to write
        return json.dumps(_finite(content), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return value
