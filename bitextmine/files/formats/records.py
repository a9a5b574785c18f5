"""Rows of values with names, such as JSON objects and translation units; JSON Lines.

A line of JSON Lines is an object, ``{"translation": {"en": ..., "fr": ...}, "score": ...}``, as in data sets of the
library datasets (https://huggingface.co/docs/datasets, the feature Translation). Objects without a translation are read
by the names of their keys.
"""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.cells import DECIMALS, Added, cell_text
from bitextmine.files.formats.columns import HEAD, Columns, Layout, as_number, find_layout
from bitextmine.files.formats.protocol import BLOCK_BYTES, HEAD_BYTES, Block, Outline, SomeRows, Writer
from bitextmine.files.formats.translations import Translations, find_translations
from bitextmine.files.json_toml import parse_json
from bitextmine.files.source import Source

TRANSLATION = "translation"  # the key whose value has a text for each language
_ROWS = 8192  # in a block, where nobody asks for another number
_SURROGATES = re.compile("[\ud800-\udfff]")


class Record(NamedTuple):
    """One row of a file.

    content: values by name, or None and `bad`, the reason; raw: its text in that case; size: its bytes, roughly.
    """

    content: Mapping[str, Any] | None
    size: int
    bad: str = ""
    raw: str = ""


class RecordBlock:
    """A `Block` of rows of values; a row that cannot be read may have fewer than there are names.

    schema: that of Arrow, if the rows come from a file with one; untranslated: bad rows that only lack the text in a
    language.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[list[Any]],
        start: int = 1,
        bad: dict[int, str] | None = None,
        schema: Any = None,
        untranslated: Collection[int] = (),
    ) -> None:
        self._names, self._rows, self._bad = names, rows, bad or {}
        self.start, self.width, self.schema, self.untranslated = start, len(names), schema, untranslated

    def __len__(self) -> int:
        return len(self._rows)

    def bad(self) -> dict[int, str]:
        """Return the bad rows."""
        return self._bad

    def texts(self, column: int, rows: SomeRows) -> list[str]:
        """Return cells as texts."""
        return [as_text(value) for value in self._column(column, rows)]

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return cells as numbers."""
        return np.array([as_float(value) for value in self._column(column, rows)], dtype=np.float64)

    def _column(self, column: int, rows: SomeRows) -> list[Any]:
        """Return a column, None for a bad row without such a value."""
        return [row[column] if column < len(row) else None for row in (self._rows[at] for at in rows)]

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return rows as lines."""
        return [
            "\t".join(
                cell_text(self._names[at], _readable(value))
                for at, value in enumerate(row)
                if len(row) != self.width or at not in without
            ).encode("utf-8", "replace")
            for row in self._rows
        ]

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return rows as values; TMX has its numbers as text."""
        numbers = (*floats, *integers)
        rows = [list(row) for row in self._rows]
        for row in rows:
            for at in numbers:
                if at < len(row) and isinstance(row[at], str) and math.isfinite(number := as_number(row[at])):
                    row[at] = int(number) if at in integers and number.is_integer() else number
        return rows


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
    """A stream of records (see `Rows`).

    The first ones are read at once, to find the columns in them: a value that none of the first 200 records has a
    name for is left out. With a translation, an object of texts by language, source and target are its two languages;
    of more, those that the user names (`find_translations`). Without one, the columns are found by their names.

    declared: the languages that the file declares, in formats of texts by language; fields: names of values, in any
    record or none; schema: that of Arrow, with the names of all values.
    """

    header_line = False

    def __init__(
        self,
        source: Source,
        records: Iterable[Record],
        columns: Columns,
        declared: Sequence[str] | None = None,
        fields: Sequence[str] = (),
        schema: Any = None,
    ) -> None:
        name = str(source)
        self._schema = schema
        self._records = iter(records)
        self._ahead: list[Record] = []
        size = 0
        for record in self._records:
            self._ahead.append(record)
            size += record.size
            if len(self._ahead) == HEAD or size > HEAD_BYTES:
                break
        whole = len(self._ahead) < HEAD and size <= HEAD_BYTES
        self.empty = not self._ahead
        if self.empty and schema is None:
            self.layout = Layout(width=0)
            self.translations = False
            return
        read = [record.content for record in self._ahead if record.content is not None]
        translations = [t for content in read if isinstance(t := content.get(TRANSLATION), dict)]
        self.translations = bool(translations) or (declared is not None and not whole)
        self._translations = Translations()
        extras = dict.fromkeys([*fields, *(key for content in read for key in content)])
        if schema is not None:
            extras = dict.fromkeys(schema.names)
        names, unknown = [], ""
        if self.translations:
            extras.pop(TRANSLATION, None)
            self._translations, columns = find_translations(
                translations, declared or (), columns, name, whole
            )
            langs, unknown = self._translations.langs, self._translations.unknown
            names = list(langs) if unknown else ["src", "tgt", *langs[2:]]
            if twice := [key for key in extras if key in names]:
                raise BitextmineError(
                    f"{name}: the key '{twice[0]}' stands beside '{TRANSLATION}', whose texts have that name; rename it"
                )
        self._extras = tuple(extras)
        names += extras
        if not names:
            self.layout = Layout(2, ("src", "tgt"), {"src": 0, "tgt": 1})  # not one row can be read
            self._translations = Translations(("src", "tgt"))
            return
        head = [[as_text(value) for value in self._row(content)] for content in read]
        layout = find_layout(head, columns, name, names)
        if unknown:
            places = {role: at for role, at in layout.places.items() if role not in ("src", "tgt")}
            layout = dataclasses.replace(layout, places=places, unknown=unknown)
        elif self.translations:
            codes = ["" if lang in ("src", "tgt") else lang for lang in self._translations.langs[:2]]
            layout = dataclasses.replace(layout, src_lang=codes[0], tgt_lang=codes[1])
        self.layout = layout

    def _row(self, content: Mapping[str, Any]) -> list[Any]:
        texts = self._translations.texts(content.get(TRANSLATION))
        return [*texts, *(content.get(key) for key in self._extras)]

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[RecordBlock]:
        """Yield the rows in blocks."""
        start, size = 1, 0
        waiting: list[Record] = []
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
        places = [self.layout.places[role] for role in ("src", "tgt") if role in self.layout.places]
        langs = self._translations.langs
        codes = [*langs, *self._extras]
        rows, bad, untranslated = [], {}, []
        for at, record in enumerate(records):
            row = [record.raw] if record.content is None else self._row(record.content)
            if record.content is None:
                bad[at] = record.bad
            elif wrong := [place for place in places if not isinstance(row[place], str)]:
                code, value = codes[wrong[0]], row[wrong[0]]
                bad[at] = f"no {code}" if value is None else f"{code} is no text"
                if value is None and wrong[0] < len(langs):
                    untranslated.append(at)
                elif isinstance(value, list) and wrong[0] < len(langs):
                    bad[at] = f"{len(value)} texts in {code}"
            rows.append(row)
        return RecordBlock(self.layout.names, rows, start, bad, self._schema, untranslated)


class RecordWriter(Writer):
    """The frame of a writer of one unit of text per row.

    A subclass says how a unit looks, and which values an added column has. `numbers`: the format has numbers, so
    columns of numbers are converted; else they stay text.
    """

    numbers = False

    def __init__(self, out: Any, outline: Outline, langs: tuple[str, str]) -> None:
        self._out, self._outline, self._langs = out, outline, langs
        numbers = (outline.floats, outline.integers) if self.numbers else ((), ())
        self._numbers = [{at for at, name in enumerate(outline.names) if name in kept} for kept in numbers]

    def unit(self, sides: Sequence[tuple[str, Any]], extras: Mapping[str, Any]) -> str:
        """Return a row as text: language and text of each side that has one; the other columns by name."""
        raise NotImplementedError

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column."""
        raise NotImplementedError

    def write(self, block: Block, rows: NDArray[np.int64] | None, added: Sequence[Added]) -> None:
        """Write rows of a block."""
        names, sides = self._outline.names, self._outline.sides()
        extras = set(range(len(names))).difference(sides, self._outline.replaced)
        columns = [(column.name, self.column(column)) for column in added]
        values = block.values(*self._numbers)
        units = []
        for row in range(len(block)) if rows is None else rows.tolist():
            cells = values[row] + [None] * len(names)  # a bad row may have fewer
            texts = [(lang, cells[at]) for lang, at in zip(self._langs, sides, strict=True)]
            texts = [(lang, text) for lang, text in texts if text is not None]
            named = {names[at]: cells[at] for at in sorted(extras)}
            units.append(self.unit(texts, {**named, **{name: column[row] for name, column in columns}}))
        self._out.write("".join(units).encode("utf-8", "replace"))
        self._out.flush()  # who reads the pipe need not wait for a full buffer


# --- JSON Lines ---


def open_jsonl(source: Source, columns: Columns) -> RecordRows:
    """Return the rows of a file; a line without a JSON object is a bad row."""
    return RecordRows(source, map(_record, itertools.chain.from_iterable(source.byte_lines())), columns)


def _record(line: bytes) -> Record:
    try:
        text = line.decode("utf-8")
        content = parse_json(text)
        bad = "" if isinstance(content, dict) else "not a JSON object"
    except UnicodeDecodeError:
        bad = "invalid UTF-8"
    except ValueError as e:
        bad = f"not valid JSON ({e})"
    if bad:
        return Record(None, len(line), bad, line.decode("utf-8", "replace").removesuffix("\r"))
    if "\\u" in text:  # half a pair of surrogates is no character
        content = _mapped(
            content, lambda value: _SURROGATES.sub("\ufffd", value) if isinstance(value, str) else value
        )
    return Record(content, len(line))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with a function applied to all that is in it, keys included."""
    if isinstance(value, list):
        return [_mapped(inner, change) for inner in value]
    if isinstance(value, dict):
        return {change(key): _mapped(inner, change) for key, inner in value.items()}
    return change(value)


class JsonWriter(RecordWriter):
    """Writes an object per row: the texts by language, then the other columns by name.

    An empty cell in a column of numbers is null. Line breaks in a text stay.
    """

    numbers = True

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline, outline.keys())
        if TRANSLATION in [*outline.names, *outline.added]:
            raise BitextmineError(
                f"a column is called '{TRANSLATION}', as what holds the texts in JSON Lines; rename it, or write TSV"
            )

    def unit(self, sides: Sequence[tuple[str, Any]], extras: Mapping[str, Any]) -> str:
        """Return a row as an object in a line."""
        content = {TRANSLATION: dict(sides), **extras}
        try:
            return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str) + "\n"
        except ValueError:  # a number that JSON has no way to write
            return json.dumps(_mapped(content, _finite), ensure_ascii=False, default=str) + "\n"

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column, None for NaN."""
        if isinstance(added.values, np.ndarray):
            return [round(v, DECIMALS) if math.isfinite(v) else None for v in added.values.tolist()]
        return added.values


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
