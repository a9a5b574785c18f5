"""Translation units of XML files, as a stream: TMX 1.4b, to read and to write, and XLIFF 1.x and 2.x, to read.

https://www.gala-global.org/tmx-14b, https://docs.oasis-open.org/xliff/. Read by expat: nothing outside the file is
opened, no entity is declared in it, and the memory for an element is bounded. A unit that is not well-formed becomes a
bad row, and reading goes on at the next one.
"""

import codecs
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import Added, Outline, cell_text, one_cell
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows, RecordWriter
from bitextmine.files.source import Source
from bitextmine.version import __version__

_DEEPEST = 100
_ELEMENT_BYTES = 64  # what an element counts for, beside its text
# What no program writes XML in, and may say something else than it seems to.
_UNREADABLE = {"", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"}
_SLICE = 1 << 14  # bytes parsed at a time: after an exception of ours, expat goes on to their end
_TAG_BYTES = 64  # of a tag that is looked for, when a block ends within it
# Inside a segment: what stands in these is markup of another program, and no text.
_NATIVE = {"bpt", "ept", "it", "ph", "ut"}
_PLACEHOLDERS = {"ph", "x"}
_CONFIRMED = {"1": "yes", "0": "no"}  # Phrase
_MARK = "\0"  # stands for a placeholder; no character of XML
# A letter of a script that has spaces, and so not of Thai, Lao, Burmese, Khmer, Japanese or Chinese.
_LETTER = "[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_GLUED = re.compile(rf"(?:(?<={_LETTER})|(?<=[.,;:!?)\]])){_MARK}+(?={_LETTER})")
_BESIDE_SPACE = re.compile(rf"(?<=\s){_MARK}+\s|{_MARK}+")


class Unit(NamedTuple):
    """The texts of a pair by language, its other values, and the reason if it cannot be read."""

    texts: dict[str, str]
    values: dict[str, Any]
    bad: str = ""


class _Tmx:
    """The elements of TMX, and its units: texts by language, properties by type.

    Attributes:
        unit: the element of a unit.
        parent: the child of the root that holds units, where reading may go on after damage.
        columns: the names of the values that every unit has.
        declared: the languages that the file declares, source first, as far as they are known.
    """

    unit, parent = "tu", "body"
    columns: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element outside units; ValueError if such a file cannot be read."""
        if tag == "header" and (lang := attributes.get("srclang", "")) != "*all*":
            self.declared = (lang,)

    def units(self, element: Element, above: Sequence[Mapping[str, str]]) -> Iterator[Unit]:
        """Yield the pairs of a unit; `above` are the attributes of the elements around it, the outermost first."""
        segments: dict[str, Element] = {}
        bad = ""
        for tuv in element.iter("tuv"):
            lang = tuv.get("xml:lang") or tuv.get("lang") or ""
            if not lang:
                bad = bad or "a tuv without xml:lang"
            elif lang in segments:
                bad = bad or f"two texts in {lang}"
            if (seg := next(tuv.iter("seg"), None)) is not None:
                segments.setdefault(lang, seg)
        props: dict[str, str] = {}
        for prop in element.findall("prop"):
            props.setdefault(prop.get("type", "prop"), _text_of(prop))
        props.pop(TRANSLATION, None)
        yield Unit({lang: _text_of(seg) for lang, seg in segments.items()}, props, bad)
        if not bad:
            yield from _sub_units(segments)


class _Xliff(_Tmx):
    """Those of XLIFF: the segments that have a source, by language, each with its state.

    Segments of 1.x are those that ``seg-source`` and ``target`` mark, or else whole units; matches from other documents
    are left out. Columns: ``state`` as the file has it, the program's own where there is one (memoQ, SDL);
    ``approved`` as it has it, or Phrase's ``confirmed``; ``translate``, inherited from the elements around.
    """

    unit, parent = "trans-unit", "file"
    columns = ("state", "approved", "translate")

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "xliff":
            version = attributes.get("version", "1.2")
            if version.partition(".")[0] not in ("1", "2"):
                raise ValueError(f"XLIFF {version[:20]}: versions 1 and 2 can be read; export one of them")
            if version.startswith("2"):
                self.unit = "unit"
        langs = _declared(attributes)
        if all(langs) and not self.declared:
            self.declared = langs

    def units(self, element: Element, above: Sequence[Mapping[str, str]]) -> Iterator[Unit]:
        src, tgt, translate = "", "", "yes"
        for attributes in (*above, element.attrib):
            inner = _declared(attributes)
            src, tgt = inner[0] or src, inner[1] or tgt
            translate = attributes.get("translate", translate)
        approved = element.get("approved") or _CONFIRMED.get(_prefixed(element.attrib, "confirmed") or "")
        for source, target, state in _segments(element):
            sides = {src or "src": source}
            if target is not None:
                sides[tgt or target.get("xml:lang") or "tgt"] = target
            texts = {lang: text for lang, side in sides.items() if (text := _text_of(side).strip())}
            values = {"state": state, "approved": approved, "translate": translate}
            yield Unit(texts, values)
            for unit in _sub_units({lang: sides[lang] for lang in texts}):
                yield unit._replace(values=values)


def _declared(attributes: Mapping[str, str]) -> tuple[str, str]:
    """Return the languages of source and target that an element states, empty where it does not."""
    src = attributes.get("source-language", attributes.get("srcLang", ""))
    return src, attributes.get("target-language", attributes.get("trgLang", ""))


def _segments(unit: Element) -> Iterator[tuple[Element, Element | None, str | None]]:
    """Yield source, target and state of the segments of a unit."""
    own = _prefixed(unit.attrib, "status")  # memoQ
    confirmed = {segment.get("id"): segment.get("conf") for segment in unit.iter("seg")}  # SDL
    for part in unit.iter("segment") if unit.tag == "unit" else [unit]:
        source, target = part.find("source"), part.find("target")
        state = part.get("state") or (own if target is None else target.get("state", own))
        marked, translated = _marked_segments(part.find("seg-source")), _marked_segments(target)
        if marked and marked.keys() <= translated.keys():
            yield from ((mark, translated[mid], state or confirmed.get(mid)) for mid, mark in marked.items())
        elif source is not None:
            yield source, target, state


def _prefixed(attributes: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in attributes.items() if key.endswith(f":{name}")), None)


def _marked_segments(side: Element | None) -> dict[str | None, Element]:
    marks = () if side is None else side.iter("mrk")
    return {mark.get("mid"): mark for mark in marks if mark.get("mtype") == "seg"}


def open_units(source: Source, columns: Columns) -> RecordRows:
    """Return the rows of a file; its first element tells if it is TMX or XLIFF."""
    stream = _UnitStream(source)
    records = iter(stream)
    first = list(itertools.islice(records, 1))  # the languages are declared before it
    declared, fields = stream.format.declared, stream.format.columns
    return RecordRows(source, itertools.chain(first, records), columns, declared, fields)


class _UnitStream:
    """Reads the units of a file.

    BitextmineError, while reading: no such format, declared entities, or a unit larger than the longest line.

    Attributes:
        format: that of the file, once its first element has been read.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._name, self._most = source, str(source), source.max_line
        self._kind, self.format = "TMX or XLIFF", _Tmx()
        # Open elements outside units, with their attributes.
        self._above: list[tuple[str, dict[str, str]]] = []
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
                f"{self._name}: line {line}: {reason}; is it a complete {self._kind} file?"
            ) from None
        at = min(max(at, 0), len(buffer))
        self._lines = line - 1
        self._records.append(Record(None, self._size, f"{reason} in line {line}", "".join(self._texts)))
        self._tree, self._parser, self._texts = None, None, []
        return at

    def _resume(self, buffer: bytes, start: int) -> int:
        """Begin a new parser at the next unit, or at what holds units; without one in the buffer, there is none."""
        tags = f"{self.format.unit}|{self.format.parent}"
        match = re.compile(rf"<(?:[\w.-]+:)?({tags})[\s/>]".encode()).search(buffer, start)
        at = match.start() if match else max(start, len(buffer) - _TAG_BYTES)
        self._lines += buffer.count(b"\n", start, at)
        if match:
            if match[1].decode() == self.format.parent:
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
            if local not in ("tmx", "xliff"):
                raise self._wrong(
                    f"the file begins with <{local[:60]}>, and TMX with <tmx> or XLIFF with <xliff>"
                )
            self._kind, self.format = local.upper(), _Tmx() if local == "tmx" else _Xliff()
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
    """A unit begins within another one."""

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


def _text_of(element: Element) -> str:
    """Return the text of an element, with words apart where markup of other programs was between them."""
    if not len(element):
        return element.text or ""
    text = _marked(element)
    if _MARK in text:
        text = _BESIDE_SPACE.sub("", _GLUED.sub(" ", text))
    return text


def _sub_units(segments: Mapping[str, Element]) -> Iterator[Unit]:
    """Yield pairs of the texts within markup, such as footnotes (``sub``), in the order of each language."""
    subs = {
        lang: [
            _text_of(sub)
            for native in segment.iter()
            if native.tag in _NATIVE
            for sub in native.findall("sub")
        ]
        for lang, segment in segments.items()
    }
    counts = {len(texts) for texts in subs.values()}
    if len(counts) > 1:
        reason = f"{' or '.join(map(str, sorted(counts)))} texts within markup (<sub>)"
        yield Unit({lang: " ".join(texts) for lang, texts in subs.items()}, {}, reason)
    else:
        yield from (Unit(dict(zip(subs, row, strict=True)), {}) for row in zip(*subs.values(), strict=True))


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


# --- TMX, to write ---

# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TmxWriter(RecordWriter):
    """Writes a unit per row; other columns are its properties, as the cells of TSV.

    A side without a text is left out. Line breaks of any kind become spaces, and characters that XML cannot hold
    U+FFFD.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline, outline.langs)
        head = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
            f'<header creationtool="bitextmine" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
            f'o-tmf="plain" adminlang="en" srclang={quoteattr(outline.langs[0])} datatype="plaintext"/>\n<body>\n'
        )
        out.write(head.encode())

    def unit(self, sides: Sequence[tuple[str, Any]], extras: Mapping[str, Any]) -> str:
        """Return a row as a unit."""
        props = ((name, cell_text(name, value)) for name, value in extras.items())
        named = (f"<prop type={quoteattr(_plain(n))}>{escape(_plain(v))}</prop>" for n, v in props if v)
        texts = (
            f"<tuv xml:lang={quoteattr(lang)}><seg>{escape(_plain(str(text)))}</seg></tuv>"
            for lang, text in sides
        )
        return f"<tu>{''.join(named)}{''.join(texts)}</tu>\n"

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column as cells."""
        return added.cells()

    def close(self) -> None:
        """Write the end of the document."""
        self._out.write(b"</body>\n</tmx>\n")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_cell(text))
