"""Web pages, from files of HTML and from crawls in WARC; needs the extra ``web``."""

import codecs
import contextlib
import functools
import importlib
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bitextmine.documents.document import Document, NoDocument, paragraphs
from bitextmine.errors import BitextmineError
from bitextmine.files.source import Source

_PAGES = ("text/html", "application/xhtml+xml")
_BREAK = re.compile(r"[\n\t]+")
# resiliparse takes time that grows with the square of the depth.
_DEEPEST = 1000
_NESTING = re.compile(rb"<(/?)(?:div|section|article|ul|ol|dl|blockquote|center|main|form)\b", re.IGNORECASE)
_LIST = re.compile(r"<(/?)ul\b", re.IGNORECASE)
_LINK = re.compile(r"<a\b[^<]*(?:<(?!/?a\b)[^<]*)*", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>?")
_UNKNOWN = "application/octet-stream"  # also said of short text beyond ASCII
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WESTERN = ("cp1252", "iso-8859-1", "latin-1", "ascii")
_MOSTLY = 0.05  # of the characters beyond ASCII: fewer damaged ones than this, and it is UTF-8 all the same
# Marks that machine translation leaves in a page: Google Translate in the browser and its proxy, Microsoft Translator,
# and metadata that say so. Plugins as WPML and GTranslate mark only the choice of languages, whoever translated.
_TRANSLATED = re.compile(
    rb"""<html\b[^>]{0,2000}\btranslated-(?:ltr|rtl)\b"""
    rb"""|<html\b[^>]{0,2000}\blang\s*=\s*["']?[a-z-]{2,20}-x-mtfrom-"""
    rb"""|<font\s[^>]{0,200}\bvertical-align:\s*inherit"""
    rb"""|<[a-z][^>]{0,500}\s_msttexthash\s*="""
    rb"""|<base\b[^>]{0,500}\.translate\.goog\b"""
    rb"""|<meta\b[^>]{0,500}(?:machine[- ]?translat|translated-by-machine)""",
    re.IGNORECASE,
)
_GZIP = b"\x1f\x8b\x08"
_RECORD = b"WARC/1."
_BLOCK = 1 << 18
_PACKED = 1 << 12


def _library(name: str) -> Any:
    """Import a module of the extra `web`; BitextmineError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BitextmineError(
            f"these documents need the package {name.partition('.')[0]}; install it with pip install 'bitextmine[web]'"
        ) from None


def page(raw: bytes, charset: str | None = None, machine: bool = False) -> list[str]:
    """Return the paragraphs of the main text of a web page; `charset` is what its server says.

    Raises:
        NoDocument: it is no HTML, elements are nested too deeply, or, unless `machine`, it was machine-translated.
    """
    kind = _library("resiliparse.parse.encoding").detect_mime(raw[:_BLOCK])
    binary = b"\0" in raw[:_BLOCK] and not raw.startswith(_UTF_16)
    if binary or kind not in (*_PAGES, "text/plain", "text/xml", "application/xml", _UNKNOWN):
        raise NoDocument(f"not HTML ({kind})")
    if raw.count(b"<") > _DEEPEST and _depth(raw) > _DEEPEST:
        raise NoDocument(f"elements nested more than {_DEEPEST:,} deep")
    if not machine and _TRANSLATED.search(raw):
        raise NoDocument(
            "machine translation, by marks in its HTML; keep such pages with --machine-translated"
        )
    extract = _library("resiliparse.extract.html2text").extract_plain_text
    html = _with_lists(_decoded(raw, charset))
    text = extract(html, main_content=True, alt_texts=False, list_bullets=False)
    return [line for line in map(str.strip, _BREAK.split(text)) if line]


def _with_lists(html: str) -> str:
    """Make `<ol>` of each `<ul>` with less text inside links than outside: resiliparse takes most `<ul>` for menus."""
    parts: list[str] = []
    done = start = depth = 0
    for tag in _LIST.finditer(html):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth == 1 and not tag[1]:
            start = tag.start()
        elif depth == 0 and start >= done:
            some = html[start : tag.end()]
            if _letters("".join(_LINK.findall(some))) < _letters(_LINK.sub("", some)):
                parts += html[done:start], _LIST.sub(r"<\1ol", some)
                done = tag.end()
            start = tag.end()
    return "".join(parts) + html[done:]


def _letters(html: str) -> int:
    return len("".join(_TAG.sub("", html).split()))


def page_file(source: Source, seen: Callable[[int], object] | None, machine: bool) -> list[str]:
    """Return the paragraphs of a file of HTML; NoDocument as for `page`, or if it is too large."""
    parts, size = [], 0
    for block in source.blocks(seen):
        parts.append(block)
        size += len(block)
        if size > source.max_line:
            raise _too_large(source.max_line)
    return page(b"".join(parts), machine=machine)


def crawled(
    source: Source, name: str, seen: Callable[[int], object] | None, machine: bool
) -> Iterator[Document]:
    """Yield the pages of a WARC, and the texts of a WET file, in order; damaged records are passed over.

    After a damaged record the next one is looked for, in files of this machine that are not compressed or gzip.
    """
    warc = _library("fastwarc.warc")
    kinds = warc.WarcRecordType.response | warc.WarcRecordType.resource | warc.WarcRecordType.conversion
    number = place = 0  # of the record: its number, and its first byte in the file
    with _opened(source) as file:
        while True:
            try:
                for record in warc.ArchiveIterator(file, record_types=kinds):
                    place, number = record.stream_pos, number + 1
                    if seen is not None:
                        seen(place)
                    if _is_page(record):
                        url = record.headers.get("WARC-Target-URI") or ""
                        text = functools.partial(_content, record, machine, source.max_line)
                        yield Document(f"{name}#{number}", url, None, text, tags=_is_plain(record))
            except BaseException as problem:  # a failure inside the library is no Exception
                if not isinstance(problem, OSError) and type(problem).__name__ != "PanicException":
                    raise
                number += 1
                yield Document.broken(f"{name}#{number}", "a damaged record")
                found = _next_record(file, place + 1)
                if found is None:
                    return
                place = file.seek(found)
                continue
            if source.compression == ".gz" and not _is_whole(file, place):
                yield Document.broken(
                    f"{name}#{number + 1}", "a truncated file: its last record is not whole"
                )
            return


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[Any]:
    if source.is_standard or source.compression in (".bz2", ".xz"):
        yield _Unpacked(source.blocks())
        return
    with source.open() as file:
        yield file


class _Unpacked:
    """Blocks of bytes as a file that cannot go back, for fastwarc, which asks for its place by a seek."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left, self._place = blocks, b"", 0

    def read(self, size: int = -1) -> bytes:
        self._left = self._left or next(self._blocks, b"")
        size = len(self._left) if size < 0 else size
        some, self._left = self._left[:size], self._left[size:]
        self._place += len(some)
        return some

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        if (whence, offset) not in ((0, self._place), (1, 0)):
            raise OSError("a stream cannot go back")
        return self._place


def _is_whole(file: Any, start: int) -> bool:
    """Return True if the last gzip member, which begins at `start` or later, has an end."""
    file.seek(start)
    member = zlib.decompressobj(wbits=31)
    while block := member.unused_data or file.read(_PACKED):
        if member.eof:
            member = zlib.decompressobj(wbits=31)
        while block and not member.eof:
            member.decompress(block, _BLOCK)
            block = member.unconsumed_tail
    return member.eof


def _next_record(file: Any, start: int) -> int | None:
    """Return the place of the next record or gzip member; None if there is no other, or the file cannot go back."""
    if isinstance(file, _Unpacked):
        return None
    file.seek(start)
    before = b""
    while block := file.read(_BLOCK):
        both = before + block
        found = [at for mark in (_GZIP, _RECORD) if (at := both.find(mark)) >= 0]
        if found:
            return start - len(before) + min(found)
        before = both[-len(_RECORD) :]
        start += len(block)
    return None


def _is_page(record: Any) -> bool:
    """Return True for a page that was delivered, and for its plain text in a WET file."""
    kind = _kind(record)
    if not record.is_http:
        return kind.startswith(("text/plain", *_PAGES))
    status = record.http_headers.status_code if record.http_headers is not None else None
    return status in (None, 200, 203) and (not kind or kind in (*_PAGES, "text/plain"))


def _kind(record: Any) -> str:
    return (record.http_content_type if record.is_http else record.headers.get("Content-Type")) or ""


def _is_plain(record: Any) -> bool:
    return _kind(record).startswith("text/plain")


def _content(record: Any, machine: bool, most: int) -> Iterable[str]:
    if record.content_length > most:
        raise _too_large(most)
    raw = record.reader.read(most)
    if len(raw) < record.content_length:
        raise NoDocument("a truncated record")
    if record.is_http and record.http_headers is not None:
        raw = _plain(raw, record.http_headers, most)
    if _is_plain(record):
        return paragraphs(_decoded(raw, record.http_charset).split("\n"))
    return page(raw, record.http_charset, machine)


def _plain(raw: bytes, headers: Any, most: int) -> bytes:
    """Undo the encodings of the transfer, as far as they apply; NoDocument if that gives more than `most` bytes."""
    streams = _library("fastwarc.stream_io")
    readers = {
        "chunked": streams.ChunkedReader,
        "gzip": streams.GzipReader,
        "x-gzip": streams.GzipReader,
        "deflate": functools.partial(streams.GzipReader, zlib=True),
        "br": streams.BrotliReader,
        "zstd": streams.ZstdReader,
    }
    for header in ("Transfer-Encoding", "Content-Encoding"):
        reader = readers.get((headers.get(header) or "").strip().lower())
        if reader is None:
            continue
        try:
            unpacked = reader(io.BytesIO(raw)).read(most + 1)
        except OSError:  # many crawlers unpack, and keep the header
            continue
        if len(unpacked) > most:
            raise _too_large(most)
        raw = unpacked or raw
    return raw


def _decoded(raw: bytes, charset: str | None) -> str:
    """Decode a page: as UTF-8 if it is UTF-8, then as declared, then as its bytes look."""
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", "replace")
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    damaged = text.count("\ufffd")
    if not damaged:
        return text
    encodings = _library("resiliparse.parse.encoding")
    looks = encodings.detect_encoding(raw) or "cp1252"
    said = encodings.map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    said = said or encodings.detect_encoding(raw, from_html_meta=True)
    if looks == "utf-8" or damaged < _MOSTLY * sum(not c.isascii() for c in text):
        return text
    # Latin-1 takes any bytes: it is what servers say of everything.
    for encoding in (said, looks) if said not in _WESTERN else (looks,):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeDecodeError, TypeError):
            continue
    return str(encodings.bytes_to_str(raw, looks))


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for tag in _NESTING.finditer(raw):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _too_large(most: int) -> NoDocument:
    return NoDocument(f"a page of more than {most:,} bytes; allow larger ones with --max-line")
