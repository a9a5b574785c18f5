"""Files of translation tools: TMX 1.4b (https://www.gala-global.org/tmx-14b); XLIFF 1.2 and 2.0 (OASIS), to read.

Read as a stream, by expat: nothing outside the file is opened, no entity is declared in it, and the memory for an
element is bounded.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
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


class TmxWriter(RecordWriter):
    """Writes a unit per row; other columns are its properties, as the cells of TSV.

    A side without a text is left out. Line breaks of any kind become spaces, and characters that XML cannot hold
    U+FFFD.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline, outline.langs)
        TMX.check_languages(outline.langs)
        head = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
            f'<header creationtool="bitextmine" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
            f'o-tmf="plain" adminlang="en" srclang={quoteattr(outline.langs[0])} datatype="plaintext"/>\n<body>\n'
        )
        out.write(head.encode())

    def unit(self, sides: Sequence[tuple[str, Any]], others: Mapping[str, Any]) -> str:
        """Return a row as a unit."""
        props = ((name, cell_text(name, value)) for name, value in others.items())
        named = (f"<prop type={quoteattr(_plain(n))}>{escape(_plain(v))}</prop>" for n, v in props if v)
        texts = (
            f"<tuv xml:lang={quoteattr(lang)}><seg>{escape(_plain(str(text)))}</seg></tuv>"
            for lang, text in sides
        )
        return f"<tu>{''.join(named)}{''.join(texts)}</tu>\n"

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column as cells."""
        return cells_of(added.values)

    def close(self) -> None:
        """Write the end of the document."""
        self._out.write(b"</body>\n</tmx>\n")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_cell(text))


# --- reading ---


def open_tmx(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a file: texts of units by language, properties by type; bad rows for units without both sides.

    Raises:
        BitextmineError: here or while reading: not well-formed, no TMX, declared entities, or a unit larger than
            `longest_line`.
    """
    return _Units(path).rows(columns)


def open_xliff(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a file: source and target of each segment that has a source, by language.

    Segments of 1.2 are those that ``seg-source`` and ``target`` mark, or else whole units; matches from other documents
    are left out. A segment without a target is a bad row.
    """
    return _Segments(path).rows(columns)


class _Units:
    """The units of a document; `begin` and `finish` know the elements of TMX.

    Attributes:
        root, unit, kind: the names of the outermost element, of the elements of units, and of the format.
    """

    root, unit, kind = "tmx", "tu", "TMX"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._name, self._most = path, display_name(path), longest_line()
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

    def rows(self, columns: Columns) -> RecordRows:
        """Return the rows of the document, whose first unit is read now: it tells the source language."""
        records = self._records()
        first = list(itertools.islice(records, 1))
        return RecordRows(self._path, itertools.chain(first, records), columns, self.source())

    def source(self) -> list[str]:
        """Return the source language as the units have it, once the header has been read."""
        return [self._spelled[self._header]] if self._header in self._spelled else []

    def _records(self) -> Iterator[Record]:
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
        self._native += tag in _NATIVE
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
        self._native -= tag in _NATIVE
        if self._texts is not None:
            self.finish(tag, self._texts)
            if tag == self.unit:
                self._texts = None
        self._open.pop()

    def finish(self, tag: str, texts: dict[str, str]) -> None:
        """Take the end of an element of a unit, whose texts so far are given."""
        if tag in ("seg", "prop") and self._part is not None:
            (texts if tag == "seg" else self._props).setdefault(self._key, "".join(self._part))
            self._part = None
        elif tag == "tu":
            self._props.pop(TRANSLATION, None)
            self.found(texts)

    def found(self, texts: Mapping[str, str]) -> None:
        """Take a unit with its texts by language."""
        content = {TRANSLATION: dict(texts), **self._props}
        bad = Record(None, self._size, self._bad, " ".join(texts.values()))
        self._found.append(bad if self._bad else Record(content, self._size))

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


class _Segments(_Units):
    """The segments of XLIFF. The texts of a unit are by side, and by side and mark."""

    root, unit, kind = "xliff", "trans-unit", "XLIFF"
    _langs = ("", "")
    _side = ""

    def source(self) -> list[str]:
        return [self._langs[0]]

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "xliff" and attributes.get("version", "").startswith("2"):
            self.unit = "segment"
            self._langs = attributes.get("srcLang") or "src", attributes.get("trgLang") or "tgt"
        elif tag == "file" and self.unit == "trans-unit":
            src, tgt = (attributes.get(f"{side}-language") for side in ("source", "target"))
            self._langs = src or "src", tgt or "tgt"
        elif self._texts is None:
            return
        elif self._is_side(tag):
            self._side, self._part, self._native = tag, [], 0
        elif tag == "mrk" and attributes.get("mtype") == "seg" and self._part is not None:
            self._key, self._part = f"{self._side} {attributes.get('mid', '')}", []

    def _is_side(self, tag: str) -> bool:
        return tag in ("source", "seg-source", "target") and self._open[-2] in ("trans-unit", "segment")

    def finish(self, tag: str, texts: dict[str, str]) -> None:
        if tag == "mrk" and self._key and self._part is not None:
            texts[self._key] = "".join(self._part).strip()
            self._key, self._part = "", []
        elif self._is_side(tag) and self._part is not None:
            texts[tag] = "".join(self._part).strip()
            self._part = None
        elif tag == self.unit:
            marks = [key.partition(" ")[2] for key in texts if key.startswith("seg-source ")]
            sides = [(f"seg-source {mark}", f"target {mark}") for mark in marks]
            if not sides or not all(target in texts for _, target in sides):
                sides = [("source", "target")] if "source" in texts else []
            for pair in sides:
                self.found(
                    {lang: texts[key] for lang, key in zip(self._langs, pair, strict=True) if texts.get(key)}
                )
