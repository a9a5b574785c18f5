"""Rows of values with names, such as JSON objects and translation units; JSON Lines.

A line of JSON Lines is an object, ``{"translation": {"en": ..., "fr": ...}, "score": ...}``, as in data sets of the
library datasets (https://huggingface.co/docs/datasets, the feature Translation). Objects without a translation are read
by the names of their keys. Languages are compared as in RFC 4647: en-US, en-GB and EN are variants of en, and one side
of a pair together.
"""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import (
    BLOCK_BYTES,
    DECIMALS,
    HEAD_BYTES,
    Added,
    Block,
    Outline,
    Rows,
    Writer,
    as_text,
)
from bitextmine.files.formats.layout import HEAD, Columns, Layout, by_language, find_layout, is_position
from bitextmine.files.json_toml import parse_json
from bitextmine.files.source import Source
from bitextmine.languages.codes import language, language_family, matches

TRANSLATION = "translation"  # the key whose value has a text for each language
_ROWS = 8192  # in a block, where nobody asks for another number
_OPTIONS = {"src": "--scol", "tgt": "--tcol"}
_SURROGATES = re.compile("[\ud800-\udfff]")


class Record(NamedTuple):
    """One row of a file.

    content: values by name, or None and `bad`, the reason; raw: its text in that case; size: its bytes, roughly.
    """

    content: Mapping[str, Any] | None
    size: int
    bad: str = ""
    raw: str = ""


class RecordRows(Rows):
    """A stream of records.

    The first ones are read at once, to find the columns in them: a value that none of the first 200 records has a
    name for is left out. With a translation, an object of texts by language, source and target are its two languages;
    of more, those that the user names (`_languages`). Without one, the columns are found by their names.

    declared: the languages that the file declares, in formats of texts by language; fields: names of values, in any
    record or none; schema: that of Arrow, with the names of all values.
    """

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
        self._records, self._schema = iter(records), schema
        self._ahead: list[Record] = []
        self._langs: tuple[str, ...] = ()
        self._extras: tuple[str, ...] = ()
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
            return
        read = [record.content for record in self._ahead if record.content is not None]
        translations = [t for content in read if isinstance(t := content.get(TRANSLATION), dict)]
        self.translations = bool(translations) or (declared is not None and not whole)
        extras = dict.fromkeys([*fields, *(key for content in read for key in content)])
        if schema is not None:
            extras = dict.fromkeys(schema.names)
        names, unknown = [], ""
        if self.translations:
            extras.pop(TRANSLATION, None)
            self._langs, unknown = _languages(translations, declared or (), columns, name, whole)
            columns = dataclasses.replace(columns, src=None, tgt=None)
            names = list(self._langs) if unknown else ["src", "tgt", *self._langs[2:]]
            if twice := [key for key in extras if key in names]:
                raise BitextmineError(
                    f"{name}: the key '{twice[0]}' stands beside '{TRANSLATION}', whose texts have that name; rename it"
                )
        self._extras = tuple(extras)
        names += extras
        if not names:
            self.layout = Layout(2, ("src", "tgt"), {"src": 0, "tgt": 1})  # not one row can be read
            self._langs = ("src", "tgt")
            return
        head = [[as_text(value) for value in self._row(content)] for content in read]
        self.layout = find_layout(head, columns, name, names)
        if unknown:
            places = {role: at for role, at in self.layout.places.items() if role not in ("src", "tgt")}
            self.layout = dataclasses.replace(self.layout, places=places, unknown=unknown)
        elif self.translations:
            codes = ["" if lang in ("src", "tgt") else lang for lang in self._langs[:2]]
            self.layout = dataclasses.replace(self.layout, src_lang=codes[0], tgt_lang=codes[1])

    def _row(self, content: Mapping[str, Any]) -> list[Any]:
        stated = content.get(TRANSLATION) if self._langs else None
        texts = stated if isinstance(stated, dict) else {}
        row = list(map(texts.get, self._langs))
        if None in row:
            known = [(tag, text) for tag, text in texts.items() if text is not None]
            for at, lang in enumerate(self._langs):
                if row[at] is None:
                    row[at] = next((text for tag, text in known if matches(tag, lang)), None)
        return [*row, *map(content.get, self._extras)]

    def blocks(self, rows: int | None = None, most: int = BLOCK_BYTES) -> Iterator[Block]:
        """Yield the rows."""
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

    def _block(self, records: Sequence[Record], start: int) -> Block:
        places = [self.layout.places[role] for role in ("src", "tgt") if role in self.layout.places]
        codes = [*self._langs, *self._extras]
        rows, bad, untranslated = [], {}, []
        for at, record in enumerate(records):
            row = [record.raw] if record.content is None else self._row(record.content)
            if record.content is None:
                bad[at] = record.bad
            elif wrong := [place for place in places if not isinstance(row[place], str)]:
                code, value = codes[wrong[0]], row[wrong[0]]
                bad[at] = f"no {code}" if value is None else f"{code} is no text"
                if value is None and wrong[0] < len(self._langs):
                    untranslated.append(at)
            rows.append(row)
        return Block(self.layout.names, rows, start, bad, schema=self._schema, untranslated=untranslated)


def _languages(
    rows: Sequence[Mapping[str, Any]], declared: Sequence[str], columns: Columns, name: str, whole: bool
) -> tuple[tuple[str, ...], str]:
    """Return the languages of a file, source and target first, or all and the reason why these are not known.

    Args:
        rows: the texts by language of the first rows.
        declared: the languages that the file declares, source and target, or the source alone, which comes first.
        columns: the user's choice of columns; a language that he names may come later than in the first rows.
        name: of the file, in errors.
        whole: there are no other rows.

    Raises:
        BitextmineError: a language that the file does not have, or one that is source and target.
    """
    stated = declared if len(declared) == 2 else ()
    tags = list(dict.fromkeys([*stated, *(tag for row in rows for tag in row)]))
    langs = list(_joined(tags, rows))
    if declared:
        langs.sort(key=lambda lang: not (matches(lang, declared[0]) or matches(declared[0], lang)))
    asked = [] if whole else [lang for lang in columns.langs if lang and language(lang)]
    later = [lang for lang in asked if not any(matches(tag, lang) for tag in tags)]
    columns = by_language(columns, [*langs, *later], name)
    chosen: list[str | None] = []
    for role, value in (("src", columns.src), ("tgt", columns.tgt)):
        if value is None or (value == role and value not in tags and len(langs) == 2):
            chosen.append(None)
        elif is_position(value) and value not in tags and 0 < int(value[:9]) <= len(langs):
            chosen.append(langs[int(value) - 1])
        elif any(matches(tag, value) for tag in tags):
            chosen.append(value)
        elif without_region := [tag for tag in tags if tag.lower() == language_family(value)]:
            chosen.append(without_region[0])
        elif not whole and language(value):
            chosen.append(value)
        else:
            there = ", ".join(langs)[:200]
            raise BitextmineError(f"{name}: {_OPTIONS[role]} {value}: the translations are in {there}")
    rest = [lang for lang in langs if not any(c and (matches(lang, c) or matches(c, lang)) for c in chosen)]
    if None in chosen and len(rest) != chosen.count(None):
        return tuple(langs), (
            f"{name}: a pair is in two languages, and the translations are in {', '.join(langs)[:200] or 'none'}; "
            "say which two with --scol and --tcol"
        )
    sides = [lang if lang is not None else rest.pop(0) for lang in chosen]
    if sides[0] == sides[1]:
        raise BitextmineError(f"{name}: source and target are both '{sides[0]}'; give two languages")
    return (*sides, *rest), ""


def _joined(tags: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the languages, each once: variants are one language unless a row tells them apart."""
    families: dict[str, dict[str, str]] = {}
    for tag in tags:
        families.setdefault(language_family(tag), {}).setdefault(tag.lower(), tag)
    for family, spelled in families.items():
        variants = list(spelled.values())
        if len(variants) == 1 or any(sum(tag.lower() in spelled for tag in row) > 1 for row in rows):
            yield from variants
        else:
            yield family


# --- writers ---


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
