"""Books and office files as paragraphs: EPUB, DOCX and ODT, which are zip archives of markup, and roughly PDF.

Headings, items of lists and cells of tables are paragraphs of their own; footnotes and text boxes follow the paragraph
that they stand in. Nothing outside the archive is opened, and office files that declare entities are refused.

A PDF has letters at places of a page, and neither paragraphs nor headings. PDFium makes lines of the letters. Page
numbers and running heads go, and lines are joined as those of wrapped text.
"""

import codecs
import contextlib
import functools
import logging
import posixpath
import re
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import ParseError

from bitextmine.documents.kinds import Damaged, Document, DocumentFormat, NoDocument
from bitextmine.documents.pages import library
from bitextmine.documents.sentences import begins_small, ending, paragraphs
from bitextmine.files.source import Source
from bitextmine.languages.codes import language

log = logging.getLogger(__name__)

_LARGEST = 1 << 28  # bytes of text in a file, unpacked: a thousand pages have 20 MB
_LARGEST_LISTING = 1 << 24  # of the parts that name the others
_REMEDY = "fetch it again, or save a copy with the program that made it"
_PIECE = 1 << 16
_SPACES = re.compile(r"[ \t\r\n]+")
_LINES = re.compile(r"\r\n?|\n")
# The text of a link to a note and back.
_MARK = re.compile(r"\s*[\[(]?(?:\d{1,4}|[*†‡§¶]{1,3}|[↑↩⏎^]\ufe0e?)[\])]?[.:]?\s*")
_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}\bencoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""")
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_PAGE_BREAK = ("pagebreak", "doc-pagebreak")


@dataclass(frozen=True)
class _Markup:
    """What the elements of a format mean, by their names without namespaces.

    Attributes:
        blocks: begin and end a paragraph.
        skipped: hold no text of the document.
        characters: stand for characters; a line feed ends a paragraph.
        texts: text stands in these alone (none: everywhere).
        nested: a block within another one stands beside it, as a footnote does, and does not part its text.
        hiding: an element that hides the text of its run.
    """

    blocks: frozenset[str]
    skipped: frozenset[str]
    characters: Mapping[str, str]
    texts: frozenset[str] = frozenset()
    nested: bool = False
    hiding: str = ""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_XHTML = _Markup(
    blocks=_names(
        "p div h1 h2 h3 h4 h5 h6 li td th tr dt dd blockquote section article aside header footer main nav hgroup "
        "figure figcaption caption pre address center body html table ul ol dl hr level1 level2 level3 linegroup line"
    ),
    skipped=_names("head script style rt rp svg iframe audio video template annotation annotation-xml"),
    characters={"br": "\n"},
)
_WORD = _Markup(
    blocks=_names("p"),
    skipped=_names("del moveFrom Fallback"),  # which repeats a text box for older programs
    characters={"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"},
    texts=_names("t"),
    nested=True,
    hiding="vanish",
)
_ODT = _Markup(
    blocks=_names("p h"),
    skipped=_names(
        "tracked-changes annotation note-citation number automatic-styles font-face-decls scripts forms binary-data "
        "desc ruby-text table-of-content-source alphabetical-index-source bibliography-source "
        f"illustration-index-source table-index-source object-index-source user-index-source {_SVG}title"
    ),
    characters={"s": " ", "tab": " ", "line-break": "\n"},
    nested=True,
)


class _Paragraphs:
    """Collects paragraphs; the target of a parser."""

    def __init__(self, markup: _Markup, longest: int) -> None:
        self._markup, self._longest = markup, longest
        self._collected: list[str] = []
        self._text: list[str] = []
        self._size = 0  # of the text
        self._outer: list[list[str]] = []  # texts of the blocks around a nested one
        self._after: list[str] = []  # paragraphs that follow the outermost one
        self._skipped = self._inside = self._lined = 0  # depths in skipped elements, in `texts`, in <pre>
        self._hidden = False  # a run of text
        self._links: list[int | None] = []  # where the text of each open link begins, if it may be a mark

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = _local(tag)
        if self._skipped or self._is_skipped(tag, name, attributes):
            self._skipped += 1
        elif name in self._markup.blocks:
            if self._markup.nested:
                self._outer.append(self._text)
                self._text = []
            else:
                self._end()
            self._lined += name == "pre"
        elif name in self._markup.texts:
            self._inside += 1
        elif name in self._markup.characters and not self._hidden:
            self._text.append(self._markup.characters[name])
        elif name == self._markup.hiding:
            self._hidden = not {"0", "false", "off"}.intersection(attributes.values())
        elif name == "r":
            self._hidden = False
        elif name == "a":
            self._links.append(len(self._text) if "#" in attributes.get("href", "") else None)

    def end(self, tag: str) -> None:
        name = _local(tag)
        if self._skipped:
            self._skipped -= 1
        elif name in self._markup.blocks:
            self._end()
            if self._markup.nested:
                self._text = self._outer.pop()
            self._lined -= name == "pre"
        elif name in self._markup.texts:
            self._inside -= 1
        elif name == "a" and self._links:
            start = self._links.pop()
            if start is not None and _MARK.fullmatch("".join(self._text[start:])):
                del self._text[start:]

    def data(self, text: str) -> None:
        if self._skipped or self._hidden or (self._markup.texts and not self._inside):
            return
        self._size += len(text)
        if self._size > self._longest:
            raise NoDocument(
                f"a paragraph of more than {self._longest:,} characters; allow longer ones with --max-line"
            )
        self._text.append(_LINES.sub("\n", text) if self._lined else _SPACES.sub(" ", text))

    def close(self) -> None:
        self._end()

    def taken(self) -> list[str]:
        paragraphs, self._collected = self._collected, []
        return paragraphs

    def _is_skipped(self, tag: str, name: str, attributes: Mapping[str, str]) -> bool:
        if name in self._markup.skipped or tag in self._markup.skipped or "hidden" in attributes:
            return True
        return (attributes.get("epub:type") or attributes.get("role")) in _PAGE_BREAK

    def _end(self) -> None:
        """End a paragraph, and with the outermost one those that stand beside it."""
        lines = [_SPACES.sub(" ", line).strip() for line in "".join(self._text).split("\n")]
        lines = [line for line in lines if line]
        self._text, self._size, self._links = [], 0, []
        if len(self._outer) > 1:
            self._after += lines
        else:
            self._collected += lines + self._after
            self._after = []


class _OfficeParagraphs(_Paragraphs):
    """Those of a format whose programs declare nothing in it."""

    def doctype(self, *_: Any) -> None:
        raise Damaged(f"damaged: it declares a document type; {_REMEDY}")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].rpartition(":")[2]


def office_documents(kind: DocumentFormat, source: Source, name: str, lang: str | None) -> Iterator[Document]:
    """Yield the document of an EPUB, DOCX or ODT; `lang` is the language that its name tells, if any.

    Otherwise it is the language that a book declares.

    Raises:
        NoDocument: it is another kind of archive, encrypted or too large; Damaged if it cannot be read.
    """
    find, read = _FORMATS[kind]
    with _seekable(source) as file:
        with _damage_named():
            archive = zipfile.ZipFile(file)
            parts, declared = find(archive)

        def texts() -> Iterator[str]:
            with _damage_named():
                names = set(archive.namelist())
                there = [part for part in parts if part in names] or parts
                for missing in sorted(set(parts).difference(there)):
                    log.warning("%s: warning: its part %s is missing", name, missing)
                infos = [archive.getinfo(part) for part in there]
                if sum(info.file_size for info in infos) > _LARGEST:
                    raise NoDocument(f"more than {_LARGEST:,} bytes of text, unpacked")
                for info in infos:
                    with archive.open(info) as part:
                        yield from read(part, source.max_line)

        yield Document(name, "", lang or declared, texts, tags=False)


@contextlib.contextmanager
def _damage_named() -> Iterator[None]:
    """Raise NoDocument for an archive that needs a password, Damaged for one that cannot be read."""
    try:
        yield
    except RuntimeError as error:  # of zipfile: a password, or a method of compression that it does not know
        raise NoDocument(str(error)) from None
    except (KeyError, OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, ParseError) as error:
        reason = error.args[0] if error.args else "it is truncated"
        raise Damaged(f"damaged: {reason}; {_REMEDY}") from None


@contextlib.contextmanager
def _seekable(source: Source) -> Iterator[IO[bytes]]:
    """Open a file that can be read from any place; what is compressed or comes by a pipe is copied first."""
    if not source.compression and not source.is_stream:
        with source.open() as file:
            yield file
        return
    with tempfile.TemporaryFile() as copy:
        for block in source.blocks():
            copy.write(block)
            if copy.tell() > _LARGEST:
                raise NoDocument(f"more than {_LARGEST:,} bytes")
        copy.seek(0)
        yield copy


# --- the parts that hold text, in order, and the language that is declared ---


def _find_epub(archive: zipfile.ZipFile) -> tuple[list[str], str | None]:
    container = _listing(archive, "META-INF/container.xml").find(".//*[@full-path]")
    if container is None:
        raise Damaged(f"damaged: it names no package; {_REMEDY}")
    package = container.get("full-path", "")
    items: dict[str, str] = {}
    spine: list[str] = []
    contents: set[str] = set()  # tables of contents, which repeat the headings
    lang = None
    for element in _listing(archive, package).iter():
        name, path = _local(element.tag), _resolved(package, element.get("href", ""))
        if name == "item" and not element.get("media-type", "").startswith("image/"):
            items[element.get("id", "")] = path
            if "nav" in element.get("properties", "").split():
                contents.add(path)
        elif name == "itemref":
            spine.append(element.get("idref", ""))
        elif name == "reference" and element.get("type") == "toc":
            contents.add(path)
        elif name == "language" and lang is None:
            row = language((element.text or "").strip())
            lang = row.code if row else None
    parts = [items[each] for each in dict.fromkeys(spine) if each in items and items[each] not in contents]
    if _encrypted(archive).intersection(parts):
        raise NoDocument("a book that is encrypted")
    return parts, lang


def _encrypted(archive: zipfile.ZipFile) -> set[str]:
    """Return the parts that are encrypted; fonts may be, in books that anybody can read."""
    name = "META-INF/encryption.xml"
    listing = _listing(archive, name).iter() if name in archive.namelist() else ()
    return {_resolved("", each.get("URI", "")) for each in listing}


def _find_docx(archive: zipfile.ZipFile) -> tuple[list[str], None]:
    if b"wordprocessingml" not in archive.read("[Content_Types].xml"):
        raise NoDocument("no text document; convert it with 'soffice --convert-to txt FILE'")
    main = next(iter(_related(archive, "", "officeDocument")), "word/document.xml")
    return [main, *_related(archive, main, "footnotes"), *_related(archive, main, "endnotes")], None


def _related(archive: zipfile.ZipFile, part: str, kind: str) -> list[str]:
    """Return the parts of a kind that another part names."""
    folder, name = posixpath.split(part)
    relations = posixpath.join(folder, "_rels", f"{name}.rels")
    return [
        _resolved(part, each.get("Target", ""))
        for each in (_listing(archive, relations).iter() if relations in archive.namelist() else ())
        if each.get("Type", "").endswith(f"/{kind}")
    ]


def _listing(archive: zipfile.ZipFile, part: str) -> ElementTree.Element:
    if archive.getinfo(part).file_size > _LARGEST_LISTING:
        raise NoDocument(f"more than {_LARGEST_LISTING:,} bytes in {part}")
    return ElementTree.fromstring(archive.read(part))


def _resolved(part: str, reference: str) -> str:
    path = posixpath.join("/", posixpath.dirname(part), unquote(reference.partition("#")[0]))
    return posixpath.normpath(path).lstrip("/")


# --- the paragraphs of a part ---


def _read_xhtml(file: IO[bytes], longest: int) -> Iterator[str]:
    raw = file.read()
    target = _Paragraphs(_XHTML, longest)
    parser = library("lxml.etree", "office").HTMLParser(
        target=target, encoding="utf-8", no_network=True, huge_tree=True
    )
    text = _decoded(raw).encode()
    if text.strip():
        yield from _parsed(parser, target, (text[at : at + _PIECE] for at in range(0, len(text), _PIECE)))


def _decoded(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    declared = _ENCODING.match(raw)
    try:
        return raw.decode(declared[1].decode() if declared else "utf-8-sig")
    except (LookupError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")


def _read_xml(markup: _Markup, file: IO[bytes], longest: int) -> Iterator[str]:
    target = _OfficeParagraphs(markup, longest)
    return _parsed(ElementTree.XMLParser(target=target), target, iter(lambda: file.read(_PIECE), b""))


def _parsed(parser: Any, target: _Paragraphs, pieces: Iterable[bytes]) -> Iterator[str]:
    for piece in pieces:
        parser.feed(piece)
        yield from target.taken()
    parser.close()
    yield from target.taken()


_FORMATS: dict[
    DocumentFormat, tuple[Callable[..., tuple[list[str], str | None]], Callable[..., Iterator[str]]]
] = {
    DocumentFormat.EPUB: (_find_epub, _read_xhtml),
    DocumentFormat.DOCX: (_find_docx, functools.partial(_read_xml, _WORD)),
    DocumentFormat.ODT: (lambda archive: (["content.xml"], None), functools.partial(_read_xml, _ODT)),
}


# --- PDF ---

_EDGE = 2  # lines at the top and at the bottom of a page that may be its running head or its number
_NEAR = 4  # pages before and after that are looked at: a running head may be on every second one
_REPEATED = 3  # of these pages have it
_NUMBERED = 0.2  # of all pages show numbers that go up with them
_DIGITS = re.compile(r"\d+|\b[ivxlc]{1,6}\Z")
_NUMBER = re.compile(r"[0-9]{1,4}")
_DIVIDED = re.compile("\ufffe\r?\n?")  # for PDFium the hyphen of a word that two lines share
_USUAL = 0.9  # of the lines are shorter than the usual width
_NARROW = 0.85  # of the usual width: lines have more or fewer letters, as these are wide or narrow


def pdf_paragraphs(source: Source) -> Iterator[str]:
    """Yield the paragraphs of a PDF.

    Raises:
        NoDocument: it needs a password, or is too large; Damaged if it cannot be read.
    """
    pages = _without_heads(_pages(source))
    lengths = sorted(len(line) for page in pages for line in page) or [0]
    width = lengths[int(_USUAL * len(lengths))] * _NARROW
    yield from paragraphs(_lines(pages), width=int(width))


def _pages(source: Source) -> list[list[str]]:
    """Return the lines of each page that are not blank."""
    pdfium = library("pypdfium2", "office")
    pages: list[list[str]] = []
    size = 0
    with _seekable(source) as file:
        try:
            document = pdfium.PdfDocument(file)
            for number in range(len(document)):
                page = document[number]
                text = page.get_textpage().get_text_range()
                page.close()
                size += len(text)
                if size > _LARGEST:
                    raise NoDocument(f"more than {_LARGEST:,} characters")
                lines = map(str.strip, _DIVIDED.sub("-\n", text).splitlines())
                pages.append([line for line in lines if line])
        except pdfium.PdfiumError as error:
            if "password" in str(error):
                raise NoDocument("a PDF that needs a password") from None
            raise Damaged(f"a damaged PDF ({str(error).rstrip('.')}); {_REMEDY}") from None
    return pages


def _without_heads(pages: Sequence[list[str]]) -> list[list[str]]:
    """Leave out page numbers and running heads: lines with the number of their page, or with a text of pages nearby."""
    # Places from the top and, below 0, from the bottom, with the lines there.
    edges = [
        {
            at if at < _EDGE else at - len(page): line
            for at, line in enumerate(page)
            if not _EDGE <= at < len(page) - _EDGE
        }
        for page in pages
    ]
    shifts: Counter[int] = Counter()  # of the number of a page from its place in the file
    for at, lines in enumerate(edges):
        shifts.update({number - at for line in lines.values() for number in _numbers(line)})
    usual = {shift for shift, many in shifts.items() if many >= max(_REPEATED, _NUMBERED * len(pages))}
    texts = [{place: _DIGITS.sub("#", line.casefold()) for place, line in lines.items()} for lines in edges]
    kept = []
    for at, page in enumerate(pages):
        near = Counter(item for items in texts[max(0, at - _NEAR) : at + _NEAR + 1] for item in items.items())
        heads = {
            place % len(page)
            for place, line in edges[at].items()
            if near[place, texts[at][place]] >= _REPEATED
            or usual.intersection(n - at for n in _numbers(line))
        }
        kept.append([line for place, line in enumerate(page) if place not in heads])
    return kept


def _numbers(line: str) -> set[int]:
    return {int(word) for word in (line.split()[0], line.split()[-1]) if _NUMBER.fullmatch(word)}


def _lines(pages: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield all lines, and a blank one between pages unless a sentence goes on there."""
    last = ""
    for page in pages:
        if last and page and (ending(last) or not (begins_small(page[0]) or last[-1] in "-\u2010\u00ad,")):
            yield ""
        yield from page
        last = page[-1] if page else last
