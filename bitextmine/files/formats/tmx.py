"""Files of translation tools: TMX 1.4b (https://www.gala-global.org/tmx-14b); XLIFF 1.2 and 2.0 (OASIS), to read.

Read as a stream, by expat: nothing outside the file is opened, no entity is declared in it, and the memory for an
element is bounded.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.cells import Added, cell_text, cells_of, one_cell
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.names import TMX
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows, RecordWriter
from bitextmine.files.source import Source
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


class TmxRows(RecordRows):
    """The units of TMX: texts by language, properties by type; bad rows for units without both sides.

    Each unit is a small tree when it is complete. BitextmineError, here or while reading: not well-formed, no TMX,
    declared entities, or a unit larger than the longest line.

    Attributes:
        root, unit, kind: the names of the outermost element, of the elements of units, and of the format.
    """

    root, unit, kind = "tmx", "tu", "TMX"

    def __init__(self, source: Source, columns: Columns) -> None:
        self._input, self._name, self._most = source, str(source), source.max_line
        self._header = ""
        self._depth = self._size = 0
        self._tree: TreeBuilder | None = None  # of the unit that is being read
        self._found: list[Record] = []
        self._spelled: dict[str, str] = {}  # codes of languages in small letters, as they came first
        parser = self._parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler, parser.SkippedEntityHandler = self._entity, self._skipped
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        units = self._units()
        first = list(itertools.islice(units, 1))  # the header before it tells the source language
        super().__init__(source, itertools.chain(first, units), columns, self._source())

    def _source(self) -> list[str]:
        """Return the source language as the units have it, once the header has been read."""
        return [self._spelled[self._header]] if self._header in self._spelled else []

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""
        if tag == "header":
            self._header = attributes.get("srclang", "").lower()

    def _pairs(self, unit: Element) -> Iterator[tuple[dict[str, str], dict[str, str], str]]:
        """Yield the texts of a unit by language, its properties, and the reason if it cannot be read."""
        texts: dict[str, str] = {}
        bad = ""
        for tuv in unit.iter("tuv"):
            code = tuv.get("xml:lang") or tuv.get("lang") or ""
            lang = self._spelled.setdefault(code.lower(), code)
            if not code:
                bad = bad or "a tuv without xml:lang"
            elif lang in texts:
                bad = bad or f"two texts in {lang}"
            if (seg := next(tuv.iter("seg"), None)) is not None:
                texts.setdefault(lang, _text(seg))
        props: dict[str, str] = {}
        for prop in unit.findall("prop"):
            props.setdefault(prop.get("type", "prop"), _text(prop))
        props.pop(TRANSLATION, None)
        yield texts, props, bad

    def _units(self) -> Iterator[Record]:
        """Yield the units as they are read."""
        fed = 0
        try:
            for block in self._input.blocks():
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
        if not self._depth and tag != self.root:
            raise self._wrong(f"<{tag[:60]}> where {self.kind} begins with <{self.root}>")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} elements inside each other")
        self._begin(tag, attributes)
        if tag == self.unit:
            self._tree, self._size = TreeBuilder(), 0
        if self._tree is not None:
            self._count(_ELEMENT_BYTES + sum(map(len, attributes.values())))
            self._tree.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._tree is None:
            return
        element = self._tree.end(tag.rpartition(":")[2])
        if element.tag == self.unit:
            self._tree = None
            for texts, props, bad in self._pairs(element):
                record = Record({TRANSLATION: texts, **props}, self._size)
                self._found.append(Record(None, self._size, bad, " ".join(texts.values())) if bad else record)

    def _characters(self, text: str) -> None:
        if self._tree is not None:
            self._count(len(text))
            self._tree.data(text)

    def _count(self, more: int) -> None:
        self._size += more
        if self._size > self._most:
            raise self._wrong(
                f"a unit larger than {self._most:,} bytes, which no sentence is; allow larger ones with --max-line"
            )


class XliffRows(TmxRows):
    """The segments of XLIFF that have a source, by language; a segment without a target is a bad row.

    Segments of 1.2 are those that ``seg-source`` and ``target`` mark, or else whole units; matches from other documents
    are left out.
    """

    root, unit, kind = "xliff", "trans-unit", "XLIFF"
    _sides = ("", "")

    def _source(self) -> list[str]:
        return [self._sides[0]]

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "xliff" and attributes.get("version", "").startswith("2"):
            self.unit = "segment"
            self._sides = attributes.get("srcLang") or "src", attributes.get("trgLang") or "tgt"
        elif tag == "file" and self.unit == "trans-unit":
            src, tgt = (attributes.get(f"{side}-language") for side in ("source", "target"))
            self._sides = src or "src", tgt or "tgt"

    def _pairs(self, unit: Element) -> Iterator[tuple[dict[str, str], dict[str, str], str]]:
        sides = [unit.find(side) for side in ("source", "target")]
        marked = [
            {} if side is None else {m.get("mid"): m for m in side.iter("mrk") if m.get("mtype") == "seg"}
            for side in (unit.find("seg-source"), sides[1])
        ]
        pairs = [[elements.get(mark) for elements in marked] for mark in marked[0]]
        if not pairs or any(target is None for _, target in pairs):
            pairs = [sides] if sides[0] is not None else []
        for pair in pairs:
            found = ("" if side is None else _text(side).strip() for side in pair)
            yield {lang: text for lang, text in zip(self._sides, found, strict=True) if text}, {}, ""


def _text(element: Element) -> str:
    """Return the text of an element without the markup of other programs."""
    parts = [element.text or ""]
    for inner in element:
        parts += ["" if inner.tag in _NATIVE else _text(inner), inner.tail or ""]
    return "".join(parts)
