"""Rows of values with names, such as JSON objects and translation units: blocks, a reader and a writer of them."""

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
from bitextmine.files.cells import Added, cell_text
from bitextmine.files.formats.protocol import BLOCK_BYTES, Block, Outline
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
        return [as_text(value) for value in self._column(column, rows)]

    def numbers(self, column: int, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return cells as numbers (see `Block`)."""
        return np.array([as_float(value) for value in self._column(column, rows)], dtype=np.float64)

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


def _readable(value: Any) -> Any:
    """Return a value as shown in a cell: lists, objects and booleans as JSON."""
    nested = isinstance(value, (dict, list, bool))
    return json.dumps(value, ensure_ascii=False, default=str) if nested else value


def as_text(value: Any) -> str:
    """Return a value as text, empty for None."""
    return "" if value is None else str(_readable(value))


def as_float(value: Any) -> float:
    """Return a value as a number, NaN for none."""
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return math.nan if value is None else as_number(str(value))


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
        columns: Columns,
        first: Sequence[str] = (),
    ) -> None:
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
        self.translations = False
        self._langs: tuple[str, ...] = ()
        self._others: tuple[str, ...] = ()
        self.layout = Layout(width=0)
        if self.empty:
            return
        read = [record.content for record in self._ahead if record.content is not None]
        translations = [t for content in read if isinstance(t := content.get(TRANSLATION), dict)]
        self.translations = bool(translations)
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
        head = [[as_text(value) for value in self._row(content)] for content in read]
        layout = find_layout(head, columns, name, names)
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
    return (*sides, *rest), dataclasses.replace(columns, src=None, tgt=None), ""


class RecordWriter:
    """The frame of a writer of one unit of text per row.

    A subclass says how a unit looks, and which values an added column has. `numbers`: the format has numbers, so
    columns of numbers are converted; else they stay text.
    """

    numbers = False

    def __init__(self, out: Any, outline: Outline) -> None:
        self._out, self._outline = out, outline
        self._floats = outline.places(outline.floats) if self.numbers else ()
        self._integers = outline.places(outline.integers) if self.numbers else ()

    def unit(self, sides: Sequence[tuple[str, Any]], others: Mapping[str, Any]) -> str:
        """Return a row as text.

        Args:
            sides: language and text of each side that has a text.
            others: the other columns by name, None for nothing.
        """
        raise NotImplementedError

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column."""
        raise NotImplementedError

    def langs(self) -> tuple[str, str]:
        """Return the languages, or the names that stand for them."""
        return self._outline.langs

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block (see `Writer`)."""
        sides, others, langs = self._outline.sides(), self._outline.others(), self.langs()
        columns = [(column.name, self.column(column)) for column in added]
        values = block.values(self._floats, self._integers)
        units = []
        for row in range(len(block)) if rows is None else rows.tolist():
            cells = values[row]
            texts = [
                (lang, cells[at])
                for lang, at in zip(langs, sides, strict=True)
                if at < len(cells) and cells[at] is not None
            ]
            named = {name: cells[at] if at < len(cells) else None for at, name in others}
            units.append(self.unit(texts, {**named, **{name: column[row] for name, column in columns}}))
        self._out.write("".join(units).encode("utf-8", "replace"))
        self._out.flush()  # who reads the pipe need not wait for a full buffer

    def close(self) -> None:
        """Write nothing: most formats have no end."""
