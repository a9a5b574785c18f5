"""Translation units of XML files, as a stream: what TMX and XLIFF share.

Read by expat: nothing outside the file is opened, no entity is declared in it, and the memory for an element is
bounded. A unit that is not well-formed becomes a bad row, and reading goes on at the next one.
"""

import codecs
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.records import TRANSLATION, Record
from bitextmine.files.source import Source

_DEEPEST = 100
_ELEMENT_BYTES = 64  # what an element counts for, beside its text
# What no program writes XML in, and may say something else than it seems to.
_UNREADABLE = {"", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"}
_SLICE = 1 << 14  # bytes parsed at a time: after an exception of ours, expat goes on to their end
_TAG_BYTES = 64  # of a tag that is looked for, when a block ends within it
# Inside a segment: what stands in these is markup of another program, and no text.
_NATIVE = {"bpt", "ept", "it", "ph", "ut"}
_PLACEHOLDERS = {"ph", "x"}
_MARK = "\0"  # stands for a placeholder; no character of XML
# A letter of a script that has spaces, and so not of Thai, Lao, Burmese, Khmer, Japanese or Chinese.
_LETTER = "[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_GLUED = re.compile(rf"(?:(?<={_LETTER})|(?<=[.,;:!?)\]])){_MARK}+(?={_LETTER})")
_BESIDE_SPACE = re.compile(rf"(?<=\s){_MARK}+\s|{_MARK}+")


class Unit(NamedTuple):
    """The texts of a pair by language, its other values, and the reason if it cannot be read."""

    texts: dict[str, Any]
    values: dict[str, Any]
    bad: str = ""


class UnitFormat:
    """The elements of a format of translation units.

    Attributes:
        name, root: of the format, and of its outermost element.
        unit: the element of a unit.
        parents: children of the root that hold units, where reading may go on after damage.
        columns: names of the values that every unit has.
        declared: the languages that the file declares, source first, as far as they are known.
    """

    name = root = unit = ""
    parents: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element outside units; ValueError if such a file cannot be read."""

    def units(self, element: Element, above: Sequence[Mapping[str, str]]) -> Iterator[Unit]:
        """Yield the pairs of a unit; `above` are the attributes of the elements around it, the outermost first."""
        raise NotImplementedError


class UnitStream:
    """Reads the units of a file.

    BitextmineError, while reading: no such format, declared entities, or a unit larger than the longest line.

    Attributes:
        format: that of the file, once its first element has been read.
    """

    def __init__(self, source: Source, formats: Sequence[UnitFormat]) -> None:
        self._source, self._name, self._most = source, str(source), source.max_line
        self._formats = {format.root: format for format in formats}
        self.format = formats[0]
        self._above: list[
            tuple[str, dict[str, str]]
        ] = []  # open elements outside units, with their attributes
        self._tree: TreeBuilder | None = None  # of the unit that is being read
        self._depth = self._size = 0
        self._texts: list[str] = []  # all characters of the unit
        self._undeclared = ""  # an entity in it
        self._records: list[Record] = []
        self._any = False
        self._parser: Any = self._new_parser()  # None after damage
        self._origin = 0  # of the first byte of `_rest`, in the parser's count
        self._lines = 0  # before the first byte of the parser
        self._rest = b""  # of the last block, not parsed yet

    def __iter__(self) -> Iterator[Record]:
        blocks = _as_utf8(self._source.blocks(), self._name)
        slices = (block[at : at + _SLICE] for block in blocks for at in range(0, len(block), _SLICE))
        for piece in itertools.chain(slices, [b""]):
            self._parse(piece)
            if self._parser is not None and len(self._rest) > self._most:  # a tag, a comment
                raise self._wrong(f"something longer than {self._most:,} bytes, which no sentence is")
            yield from self._records
            self._records = []

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler, parser.SkippedEntityHandler = self._entity, self._skipped
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        return parser

    def _parse(self, block: bytes) -> None:
        """Parse a block, the last one if it is empty; after damage go on at the next unit."""
        buffer = self._rest + block
        start = 0 if self._parser is None else len(self._rest)
        while True:
            if self._parser is None:
                start = self._resume(buffer, start)
                if self._parser is None:
                    self._rest = buffer[start:]
                    return
            try:
                self._parser.Parse(memoryview(buffer)[start:], not block)
            except (expat.ExpatError, _Unclosed) as e:
                start = self._damage(e, buffer)
                continue
            at = max(0, self._parser.CurrentByteIndex - self._origin)
            self._rest = buffer[at:]
            self._origin += at
            return

    def _damage(self, error: Exception, buffer: bytes) -> int:
        """Make a bad row of what was being read; return the place from which to look for the next unit."""
        if isinstance(error, _Unclosed):
            reason, at, line = f"<{self.format.unit}> without an end", error.index, error.line
        else:
            reason = f"not well-formed XML ({expat.ErrorString(self._parser.ErrorCode)})"
            at, line = self._parser.ErrorByteIndex + 1, self._parser.ErrorLineNumber
        at, line = at - self._origin, line + self._lines
        if not self._any:
            raise BitextmineError(
                f"{self._name}: line {line}: {reason}; is it a whole {self.format.name} file?"
            ) from None
        at = min(max(at, 0), len(buffer))
        self._lines = line - 1
        self._records.append(Record(None, self._size, f"{reason} in line {line}", "".join(self._texts)))
        self._tree, self._parser, self._texts = None, None, []
        return at

    def _resume(self, buffer: bytes, start: int) -> int:
        """Begin a new parser at the next unit, or at what holds units; without one in the buffer, there is none."""
        tags = "|".join((self.format.unit, *self.format.parents))
        match = re.compile(rf"<(?:[\w.-]+:)?({tags})[\s/>]".encode()).search(buffer, start)
        at = match.start() if match else max(start, len(buffer) - _TAG_BYTES)
        self._lines += buffer.count(b"\n", start, at)
        if match:
            if match[1].decode() in self.format.parents:
                del self._above[1:]
            self._parser = self._new_parser()
            self._parser.StartElementHandler = self._parser.EndElementHandler = None
            before = "".join(f"<{name}>" for name, _ in self._above).encode()
            self._parser.Parse(before, False)
            self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
            self._depth, self._origin = len(self._above), len(before) - at
        return at

    def _wrong(self, what: str) -> BitextmineError:
        return BitextmineError(f"{self._name}: line {self._lines + self._parser.CurrentLineNumber}: {what}")

    def _entity(self, name: str, *_: object) -> None:
        raise self._wrong(
            f"declares the entity '{name[:60]}', which no file of pairs needs, and which may stand for anything"
        )

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            self._undeclared = self._undeclared or name[:60]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(":")[2] if ":" in tag else tag
        if not self._any:
            if local not in self._formats:
                readable = " or ".join(f"{v.name} with <{v.root}>" for v in self._formats.values())
                raise self._wrong(f"the file begins with <{local[:60]}>, and {readable}")
            self.format = self._formats[local]
        self._any = True
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} elements inside each other")
        if local == self.format.unit:
            if self._tree is not None:
                raise _Unclosed(self._parser.CurrentByteIndex, self._parser.CurrentLineNumber)
            self._tree, self._size, self._texts, self._undeclared = TreeBuilder(), 0, [], ""
        if self._tree is not None:
            self._size += _ELEMENT_BYTES + (sum(map(len, attributes.values())) if attributes else 0)
            if self._size > self._most:
                raise self._too_large()
            self._tree.start(local, attributes)
        else:
            try:
                self.format.begin(local, attributes)
            except ValueError as e:
                raise self._wrong(str(e)) from None
            self._above.append((tag, attributes))

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._tree is None:
            if len(self._above) > 1:  # the root stays, for what may follow damage
                self._above.pop()
            return
        element = self._tree.end(tag.rpartition(":")[2] if ":" in tag else tag)
        if element.tag != self.format.unit:
            return
        self._tree = None
        for texts, values, bad in self.format.units(element, [attrs for _, attrs in self._above]):
            if self._undeclared:
                bad = f"the entity '&{self._undeclared};' is not declared in this file"
            record = Record({TRANSLATION: texts, **values}, self._size)
            self._records.append(Record(None, self._size, bad, " ".join(texts.values())) if bad else record)
        self._texts = []

    def _characters(self, text: str) -> None:
        if self._tree is not None:
            self._size += len(text)
            if self._size > self._most:
                raise self._too_large()
            self._texts.append(text)
            self._tree.data(text)

    def _too_large(self) -> BitextmineError:
        return self._wrong(
            f"a unit larger than {self._most:,} bytes, which no sentence is; allow larger ones with --max-line"
        )


class _Unclosed(Exception):
    """A unit begins within another one, at this byte and line of the parser."""

    def __init__(self, index: int, line: int) -> None:
        self.index, self.line = index, line


def _as_utf8(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield XML in UTF-8, whatever its byte order mark or its declaration says."""
    head = b""
    for head in itertools.accumulate(blocks):
        if len(head) >= 256 or b">" in head:
            break
    declared = re.match(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)", head)
    encoding = declared[1].decode() if declared else "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, b"<\0")):
        encoding = "utf-16-le"
    elif head.startswith((codecs.BOM_UTF16_BE, b"\0<")):
        encoding = "utf-16-be"
    elif encoding.lower().startswith("utf-16"):
        encoding = "utf-8"  # or the declaration would not have been found
    try:
        b" ".decode(encoding, "ignore")  # LookupError for a codec that makes no text
        codec = codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        codec = ""
    if codec in _UNREADABLE:
        raise BitextmineError(
            f"{name}: line 1: declares an encoding that cannot be read; convert the file to UTF-8 with iconv"
        )
    blocks = itertools.chain([head], blocks) if head else blocks
    if codec == "utf-8":
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    mark = "\ufeff"
    for text in filter(None, map(decoder.decode, blocks)):  # an empty block would be the last one
        yield text.removeprefix(mark).encode()
        mark = ""


def text_of(element: Element) -> str:
    """Return the text of an element, with words apart where markup of other programs was between them."""
    if not len(element):
        return element.text or ""
    text = _marked(element)
    if _MARK in text:
        text = _BESIDE_SPACE.sub("", _GLUED.sub(" ", text))
    return text


def sub_units(segments: Mapping[str, Element]) -> Iterator[Unit]:
    """Yield pairs of the texts within markup, such as footnotes (``sub``), in the order of each language."""
    if not any(map(len, segments.values())):
        return
    subs = {
        lang: [
            text_of(sub)
            for native in segment.iter()
            if native.tag in _NATIVE
            for sub in native.findall("sub")
        ]
        for lang, segment in segments.items()
    }
    counts = {len(texts) for texts in subs.values()}
    if len(counts) > 1:
        texts = {lang: " ".join(texts) for lang, texts in subs.items()}
        yield Unit(texts, {}, f"{' or '.join(map(str, sorted(counts)))} texts within markup (<sub>)")
        return
    for row in zip(*subs.values(), strict=True):
        yield Unit(dict(zip(subs, row, strict=True)), {})


def _marked(element: Element) -> str:
    """Return the text of an element with a mark in place of each placeholder."""
    parts = [element.text or ""]
    for inner in element:
        if inner.tag not in _NATIVE:
            parts.append(_marked(inner))
        if inner.tag in _PLACEHOLDERS:
            parts.append(_MARK)
        parts.append(inner.tail or "")
    return "".join(parts)
