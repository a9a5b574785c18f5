"""Rows in memory, of values with names: JSON objects and translation units."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import cell_text
from bitextmine.files.formats.protocol import BLOCK_BYTES, arrow_table
from bitextmine.files.layout import HEAD, Columns, Layout, as_number, find_layout, is_position
from bitextmine.files.streams import display_name

TRANSLATION = "translation"  # the key whose value has a text for each language
_ROWS = 8192  # in a block, where nobody asks for another number
_HEAD_BYTES = 1 << 25


class Record(NamedTuple):
    """One row of a file.

    content: values by name, or None and `bad`, the reason; raw: its text in that case; size: its bytes, roughly.
    """

    content: Mapping[str, Any] | None
    size: int
    bad: str = ""
    raw: str = ""


class RecordBlock:
    """Rows of values; a row that cannot be read may have fewer than there are names."""

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[list[Any]],
        start: int = 1,
        bad: Mapping[int, str] | None = None,
    ) -> None:
        self._names, self._rows = names, rows
        self.start = start
        self.width = len(names)
        self._bad = dict(bad or {})

    def __len__(self) -> int:
        return len(self._rows)

    def bad(self) -> dict[int, str]:
        """Return the bad rows (see `Block`)."""
        return self._bad

    def texts(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return cells as texts (see `Block`)."""
        return [_text(value) for value in self._column(column, rows)]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return cells as numbers (see `Block`)."""
        return np.array([_number(value) for value in self._column(column, rows)], dtype=np.float64)

    def _column(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> list[Any]:
        """Return a column, None for a bad row without such a value."""
        return [row[column] if column < len(row) else None for row in (self._rows[at] for at in rows)]

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return rows as lines (see `Block`)."""
        return [
            "\t".join(
                cell_text(self._names[at], _readable(value))
                for at, value in enumerate(row)
                if len(row) != self.width or at not in without
            ).encode("utf-8", "replace")
            for row in self._rows
        ]

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return rows as values (see `Block`)."""
        return [list(row) for row in self._rows]

    def arrow(self, names: Sequence[str], floats: Collection[str], integers: Collection[str]) -> Any:
        """Return rows as a pyarrow.Table (see `Block`)."""

        def column(at: int) -> list[Any]:
            return self._column(at, range(len(self)))

        return arrow_table(names, column, floats, integers, (_number, _whole, _text))


def _readable(value: Any) -> Any:
    """Return a value as shown in a cell: lists, objects and booleans as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else value


def _text(value: Any) -> str:
    return "" if value is None else str(_readable(value))


def _number(value: Any) -> float:
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return as_number(value) if isinstance(value, str) else math.nan


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if math.isfinite(number) and number == int(number) and abs(number) < 1 << 62 else None


class RecordRows:
    """A stream of records.

    The first ones are read at once, to find the columns in them: a value that none of the first 200 records has a
    name for is left out. With a translation, an object of texts by language, source and target are its two languages;
    of more, those that the user names. Without one, the columns are found by their names.

    first: the language that is the source if there are two and the user names none.
    """

    header_line = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        records: Iterable[Record],
        columns: Columns | None = None,
        last: int = 0,
        first: Sequence[str] = (),
    ) -> None:
        columns = columns or Columns()
        name = display_name(path)
        self._records = iter(records)
        self._ahead: list[Record] = []
        size = 0
        for record in self._records:
            self._ahead.append(record)
            size += record.size
            if len(self._ahead) == HEAD or size > _HEAD_BYTES:
                break
        self.empty = not self._ahead
        self._langs: tuple[str, ...] = ()
        self._others: tuple[str, ...] = ()
        self.layout = Layout(width=0)
        if self.empty:
            return
        read = [record.content for record in self._ahead if record.content is not None]
        translations = [t for content in read if isinstance(t := content.get(TRANSLATION), dict)]
        others = dict.fromkeys(key for content in read for key in content)
        names: list[str] = []
        if translations:
            del others[TRANSLATION]
            langs = dict.fromkeys([*(lang for t in translations for lang in t)])
            ordered = [
                *(lang for lang in first if lang in langs),
                *(lang for lang in langs if lang not in first),
            ]
            self._langs, columns, unknown = _sides(ordered, columns, name)
            names = [*(() if unknown else ("src", "tgt")), *self._langs[0 if unknown else 2 :]]
            if twice := [key for key in others if key in names]:
                raise BitextmineError(
                    f"{name}: the key '{twice[0]}' stands beside '{TRANSLATION}', whose texts have that name; rename it"
                )
        else:
            unknown = ""
        self._others = tuple(others)
        names += others
        if not names:  # not one row can be read
            self.layout = Layout(2, ("src", "tgt"), {"src": 0, "tgt": 1})
            self._langs = ("src", "tgt")
            return
        head = [[_text(value) for value in self._row(content)] for content in read]
        layout = find_layout(head, columns, name, names=names, last=last)
        if unknown:
            places = {role: at for role, at in layout.places.items() if role not in ("src", "tgt")}
            layout = dataclasses.replace(layout, places=places, unknown=unknown)
        elif translations:
            codes = ["" if lang in ("src", "tgt") else lang for lang in self._langs[:2]]
            layout = dataclasses.replace(layout, src_lang=codes[0], tgt_lang=codes[1])
        self.layout = layout

    def _row(self, content: Mapping[str, Any]) -> list[Any]:
        translation = content.get(TRANSLATION) if self._langs else None
        texts = translation if isinstance(translation, dict) else {}
        return [*(texts.get(lang) for lang in self._langs), *(content.get(key) for key in self._others)]

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[RecordBlock]:
        """Yield the rows in blocks (see `Rows`)."""
        start = 1
        waiting: list[Record] = []
        size = 0
        for record in itertools.chain(self._ahead, self._records):
            waiting.append(record)
            size += record.size
            if len(waiting) == (rows or _ROWS) or size >= most:
                yield self._block(waiting, start)
                start += len(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._block(waiting, start)

    def _block(self, records: Sequence[Record], start: int) -> RecordBlock:
        names = self.layout.names
        places = [self.layout.places[role] for role in ("src", "tgt") if role in self.layout.places]
        codes = [*self._langs, *self._others]
        found, bad = [], {}
        for at, record in enumerate(records):
            if record.content is None:
                found.append([record.raw])
                bad[at] = record.bad
                continue
            row = self._row(record.content)
            for place in places:
                if not isinstance(row[place], str):
                    bad.setdefault(
                        at, f"no {codes[place]}" if row[place] is None else f"{codes[place]} is no text"
                    )
            found.append(row)
        return RecordBlock(names, found, start, bad)


def _sides(langs: Sequence[str], columns: Columns, name: str) -> tuple[tuple[str, ...], Columns, str]:
    """Return the languages with source and target first, the remaining column options, and why the two are unknown.

    Raises:
        BitextmineError: a language is not there.
    """
    chosen: list[str | None] = []
    for option, value, at in (("--scol", columns.src, 0), ("--tcol", columns.tgt, 1)):
        if value is None:
            chosen.append(None)
        elif value in langs or (is_position(value) and 0 < int(value[:9]) <= len(langs)):
            chosen.append(value if value in langs else langs[int(value) - 1])
        elif value == ("src", "tgt")[at] and len(langs) == 2:
            chosen.append(None)
        else:
            raise BitextmineError(
                f"{name}: {option} {value}: the translations are in {', '.join(langs)[:200]}"
            )
    rest = [lang for lang in langs if lang not in chosen]
    if len(langs) < 2 or (len(rest) != chosen.count(None) and None in chosen):
        return (
            tuple(langs),
            dataclasses.replace(columns, src=None, tgt=None),
            f"{name}: a pair is in two languages, and the translations are in {', '.join(langs)[:200] or 'none'}; "
            "say which two with --scol and --tcol",
        )
    sides = [lang if lang is not None else rest.pop(0) for lang in chosen]
    if sides[0] == sides[1]:
        raise BitextmineError(f"{name}: source and target are both '{sides[0]}'; give two languages")
    return (*sides, *rest), Columns(columns.score, None, None, columns.header), ""
