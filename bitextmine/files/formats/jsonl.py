"""JSON Lines: an object per line, ``{"translation": {"en": ..., "fr": ...}, "score": ...}``.

Data sets for machine translation hold pairs this way (https://huggingface.co/docs/datasets, the feature Translation).
Objects without a translation are read by the names of their keys.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import DECIMALS, Added
from bitextmine.files.formats.protocol import Block, Outline
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows
from bitextmine.files.jsonfile import parse_json
from bitextmine.files.layout import Columns
from bitextmine.files.streams import raw_lines

_SURROGATES = re.compile("[\ud800-\udfff]")


def open_jsonl(path: str | os.PathLike[str], columns: Columns | None = None, last: int = 0) -> RecordRows:
    """Return the rows of a file; a line without a JSON object is a bad row."""
    return RecordRows(path, _records(path), columns, last)


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


def translation_keys(langs: tuple[str, str]) -> tuple[str, str]:
    """Return the keys of the texts: their languages; src and tgt if these are unknown or the same."""
    return langs if all(langs) and langs[0] != langs[1] else ("src", "tgt")


class JsonWriter:
    """Writes an object per row: the texts by language (`translation_keys`), then the other columns by name.

    An empty cell in a column of numbers is null. Line breaks in a text stay.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out = out
        self._outline = outline
        self._floats = outline.places(outline.floats)
        self._integers = outline.places(outline.integers)
        self._keys = translation_keys(outline.langs)
        if TRANSLATION in [*outline.names, *outline.added]:
            raise BitextmineError(
                f"a column is called '{TRANSLATION}', as what holds the texts in JSON Lines; rename it, or write TSV"
            )

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block (see `Writer`)."""
        outline = self._outline
        src, tgt = outline.sides()
        others = outline.others()
        columns = [(column.name, _plain_column(column)) for column in added]
        values = block.values(self._floats, self._integers)
        lines = []
        for row in range(len(block)) if rows is None else rows.tolist():
            cells = values[row]
            sides = ((key, at) for key, at in zip(self._keys, (src, tgt), strict=True) if at < len(cells))
            content = {
                TRANSLATION: {key: cells[at] for key, at in sides if cells[at] is not None},
                **{name: cells[at] if at < len(cells) else None for at, name in others},
                **{name: column[row] for name, column in columns},
            }
            lines.append(_dumped(content))
        if lines:
            self._out.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
            self._out.flush()

    def close(self) -> None:
        """Write nothing: the format has no end."""


def _plain_column(column: Added) -> list[Any]:
    if isinstance(column.values, np.ndarray):
        return [round(v, DECIMALS) if math.isfinite(v) else None for v in column.values.tolist()]
    return list(column.values)


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
