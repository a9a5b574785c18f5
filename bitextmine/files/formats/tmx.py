"""Translation memories: TMX 1.4b (https://www.gala-global.org/tmx-14b), a ``tu`` per pair, a ``tuv`` per side.

Read as a stream, by expat: nothing outside the file is opened, no entity is declared in it, and the memory for an
element is bounded.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import Added, cell_text, cells_of, one_cell
from bitextmine.files.formats.names import TMX
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows, RecordWriter
from bitextmine.files.layout import Columns
from bitextmine.files.streams import display_name, longest_line, read_blocks
from bitextmine.version import __version__

# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 100
_ELEMENT_BYTES = 64  # what an element counts for, beside its text
# Inside a segment: what stands in these is markup of another program, and no text.
_NATIVE = {"bpt", "ept", "it", "ph", "ut"}

TMX_TAIL = "</body>\n</tmx>\n"


def tmx_head(src_lang: str) -> str:
    """Return the text before the first unit; src_lang: the language that the units are translations of."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="bitextmine" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
        f'o-tmf="plain" adminlang="en" srclang={quoteattr(src_lang)} datatype="plaintext"/>\n<body>\n'
    )


def tmx_unit(props: Iterable[tuple[str, str]], sides: Iterable[tuple[str, str]]) -> str:
    """Return a unit: properties (type, value), then texts (language, text).

    Line breaks of any kind become spaces, and characters that XML cannot hold U+FFFD.
    """
    named = "".join(f"<prop type={quoteattr(_plain(kind))}>{_text(value)}</prop>" for kind, value in props)
    texts = "".join(f"<tuv xml:lang={quoteattr(lang)}><seg>{_text(text)}</seg></tuv>" for lang, text in sides)
    return f"<tu>{named}{texts}</tu>\n"


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_cell(text))


def _text(text: str) -> str:
    return escape(_plain(text))


class TmxWriter(RecordWriter):
    """Writes a unit per row; other columns are its properties, as the cells of TSV.

    A side without a text is left out.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline)
        TMX.check_languages(outline.langs)
        out.write(tmx_head(outline.langs[0]).encode())

    def unit(self, sides: Sequence[tuple[str, Any]], others: Mapping[str, Any]) -> str:
        """Return a row as a unit."""
        props = ((name, cell_text(name, value)) for name, value in others.items())
        return tmx_unit(((n, v) for n, v in props if v), ((lang, str(text)) for lang, text in sides))

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column as cells."""
        return cells_of(added.values)

    def close(self) -> None:
        """Write the end of the document."""
        self._out.write(TMX_TAIL.encode())


# --- reading ---


def open_tmx(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a file: the texts of each unit by language, and its properties by type.

    A unit without both sides is a bad row.

    Raises:
        BitextmineError: here or while reading: not well-formed, no TMX, declared entities, or a unit larger than
            `longest_line`.
    """
    return units_as_rows(Units(path), path, columns)


def units_as_rows(units: Units, path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a document, whose first unit is read now: it tells the source language."""
    records = units.records()
    first = next(records, None)
    return RecordRows(
        path, records if first is None else itertools.chain([first], records), columns, units.source
    )


class Units:
    """The units of a document; `begin` and `finish` know the elements of TMX.

    Attributes:
        root, unit, kind: the names of the outermost element, of the elements of units, and of the format.
    """

    root, unit, kind = "tmx", "tu", "TMX"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._name = display_name(path)
        self._most = longest_line()
        self._header = ""
        self._open: list[str] = []  # elements, from the outermost
        self._found: list[Record] = []
        self._texts: dict[str, str] | None = None  # of the unit that is being read
        self._props: dict[str, str] = {}
        self._bad = ""
        self._size = 0
        self._key = ""
        self._part: list[str] | None = None  # of the segment or property that is being read
        self._native = 0
        self._spelled: dict[str, str] = {}  # codes of languages in small letters, as they came first
        parser = self._parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    @property
    def source(self) -> list[str]:
        """The source language as the units have it, once the header has been read."""
        return [self._spelled[self._header]] if self._header in self._spelled else []

    def records(self) -> Iterator[Record]:
        """Yield the units as they are read."""
        fed = 0
        try:
            for block in read_blocks(self._path):
                self._parser.Parse(block, False)
                fed += len(block)
                if fed - self._parser.CurrentByteIndex > self._most:  # a tag, a comment
                    raise self._wrong(f"something longer than {self._most:,} bytes, which no sentence is")
                yield from self._found
                self._found = []
            self._parser.Parse(b"", True)
        except expat.ExpatError as e:
            what = expat.ErrorString(e.code)
            raise BitextmineError(
                f"{self._name}: line {e.lineno}: not well-formed XML ({what}); is it a whole {self.kind} file?"
            ) from None
        except (LookupError, ValueError):
            raise BitextmineError(
                f"{self._name}: line 1: declares an encoding that cannot be read; convert the file to UTF-8 with iconv"
            ) from None
        yield from self._found

    def _wrong(self, what: str) -> BitextmineError:
        return BitextmineError(f"{self._name}: line {self._parser.CurrentLineNumber}: {what}")

    def _entity(self, name: str, *_: object) -> None:
        raise self._wrong(
            f"declares the entity '{name[:60]}', which no {self.kind} needs, and which may stand for anything"
        )

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._wrong(
                f"the entity '&{name[:60]};' is not declared in this file; write the character itself"
            )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self._open and tag != self.root:
            raise self._wrong(f"<{tag[:60]}> where {self.kind} begins with <{self.root}>")
        self._open.append(tag)
        if len(self._open) > _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} elements inside each other")
        if tag == self.unit:
            self._texts, self._props, self._bad, self._size = {}, {}, "", 0
        if self._texts is not None:
            self._count(_ELEMENT_BYTES + sum(map(len, attributes.values())))
        if tag in _NATIVE:
            self._native += 1
        self.begin(tag, attributes)

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""
        if tag == "header":
            self._header = attributes.get("srclang", "").lower()
        if self._texts is None:
            return
        if tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._key = self._spelled.setdefault(code.lower(), code)
            if not code:
                self._bad = self._bad or "a tuv without xml:lang"
            elif self._key in self._texts:
                self._bad = self._bad or f"two texts in {self._key}"
        elif tag == "seg" and "tuv" in self._open:
            self._part, self._native = [], 0
        elif tag == "prop" and self._open[-2:-1] == ["tu"]:
            self._key, self._part, self._native = attributes.get("type", "prop"), [], 0

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        if tag in _NATIVE:
            self._native -= 1
        if self._texts is not None:
            self.finish(tag)
            if tag == self.unit:
                self._texts = None
        self._open.pop()

    def finish(self, tag: str) -> None:
        """Take the end of an element of a unit."""
        assert self._texts is not None
        texts = self._texts
        if tag == "seg" and self._part is not None:
            texts.setdefault(self._key, "".join(self._part))
            self._part = None
        elif tag == "prop" and self._part is not None:
            self._props.setdefault(self._key, "".join(self._part))
            self._part = None
        elif tag == "tu":
            props = {kind: value for kind, value in self._props.items() if kind != TRANSLATION}
            self.found(texts, props)

    def found(self, texts: Mapping[str, str], props: Mapping[str, str]) -> None:
        """Take a unit: texts by language, and properties."""
        content = {TRANSLATION: dict(texts), **props}
        raw = " ".join(texts.values())
        self._found.append(
            Record(None, self._size, self._bad, raw) if self._bad else Record(content, self._size)
        )

    def _characters(self, text: str) -> None:
        if self._part is not None:
            self._count(len(text))
            if not self._native:
                self._part.append(text)

    def _count(self, more: int) -> None:
        self._size += more
        if self._size > self._most:
            raise self._wrong(
                f"a unit larger than {self._most:,} bytes, which no sentence is; allow larger ones with --max-line"
            )
