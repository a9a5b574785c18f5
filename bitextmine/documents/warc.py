"""Crawls: the pages of WARC files and the texts of WET files, also behind damaged records.

The iterator of fastwarc loses what follows a record whose Content-Length is too large, even in other gzip members, and
the records of a truncated .zst; so the records are found here. Each must end where its length says; if it does not,
the next one begins at the next line that begins a record.
"""

import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bitextmine.documents.kinds import Document
from bitextmine.documents.pages import HTML_TYPES, decoded, library, page, too_large
from bitextmine.documents.sentences import paragraphs
from bitextmine.files.source import Source
from bitextmine.files.unpacking import MAGIC, unpack

_PLAIN = "text/plain"
_WGET = "metadata://"  # its log and its arguments
_USUAL_HEAD, _LONGEST_HEAD = 1 << 11, 1 << 16
_PIECE = 1 << 20
_CONTENT_KINDS = ("response", "resource", "conversion")  # of the records with content
_VERSION = rb"WARC/[01]\.\d{1,2}\r?\n"
_HEAD = re.compile(_VERSION + rb"(?:(?!WARC/)[^\r\n][^\n]*+\n)*+\r?\n")
_NEXT = re.compile(rb"(?<=\n)" + _VERSION)
_AFTER = re.compile(rb"[\r\n]*+(?:WARC/|\Z)")
_LONGEST_AFTER = 16
_LENGTH = re.compile(r"[0-9]{1,15}")
_LINE_ENDS = re.compile(rb"[\r\n]++")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_HEADER = re.compile(r"\n([^\s:]++)[ \t]*+:[ \t]*+([^\r\n]*+)")
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Record:
    """A record of a crawl, with what its HTTP headers say; "" and None for what is not known.

    content: what is behind these headers; None if it is too long.
    """

    kind: str
    url: str
    media_type: str = ""
    charset: str = ""
    is_http: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = b""


def crawled(
    source: Source, name: str, seen: Callable[[int], object] | None, machine: bool
) -> Iterator[Document]:
    """Yield the pages of a crawl in order, and a broken document for each damaged record."""
    number = 0
    for record in _Records(_blocks(source, seen), source.max_line):
        if record is None:
            number += 1
            yield Document.broken(f"{name}#{number}", "a damaged or truncated record", damaged=True)
        elif record.kind in _CONTENT_KINDS:
            number += 1
            if _is_page(record):
                text = functools.partial(_paragraphs, record, machine, source.max_line)
                yield Document(f"{name}#{number}", record.url, None, text, tags=record.media_type == _PLAIN)


def _blocks(source: Source, seen: Callable[[int], object] | None) -> Iterator[bytes]:
    """Yield the bytes of a crawl, unpacked also if its name does not say that it is packed, as on standard input."""
    blocks = source.blocks(seen, salvage=True)
    head = next(blocks, None)
    if head is None:
        return blocks
    packed = next((suffix for suffix, magic in MAGIC.items() if head.startswith(magic)), "")
    blocks = itertools.chain([head], blocks)
    return unpack(blocks, str(source), packed, salvage=True) if packed else blocks


def _is_page(record: _Record) -> bool:
    """Return True for a page that was delivered, and for its plain text in a WET file."""
    if not record.is_http:
        return record.media_type in (*HTML_TYPES, _PLAIN) and not record.url.startswith(_WGET)
    return record.status in (None, 200, 203) and record.media_type in ("", *HTML_TYPES, _PLAIN)


def _paragraphs(record: _Record, machine: bool, most: int) -> Iterable[str]:
    if record.content is None:
        raise too_large(most)
    raw = _unpacked(record.content, record.headers, most)
    if record.media_type == _PLAIN:
        return paragraphs(decoded(raw, record.charset).split("\n"))
    return page(raw, record.charset, machine)


def _unpacked(raw: bytes, headers: Mapping[str, str], most: int) -> bytes:
    """Undo the encodings of the transfer, as far as they apply; NoDocument if that gives more than `most` bytes."""
    streams = library("fastwarc.stream_io")
    readers = {
        "chunked": streams.ChunkedReader,
        "gzip": streams.GzipReader,
        "x-gzip": streams.GzipReader,
        "deflate": functools.partial(streams.GzipReader, zlib=True),
        "br": streams.BrotliReader,
        "zstd": streams.ZstdReader,
    }
    for header in ("transfer-encoding", "content-encoding"):
        reader = readers.get(headers.get(header, "").lower())
        if reader is None:
            continue
        try:
            unpacked = reader(io.BytesIO(raw)).read(most + 1)
        except OSError:  # many crawlers unpack, and keep the header
            continue
        if len(unpacked) > most:
            raise too_large(most)
        raw = unpacked or raw
    return raw


# --- records ---


class _Records:
    """Reads the records of blocks of bytes; `_data` holds the bytes from the next one to be read on.

    An empty block stands for lost bytes: these are the end of `_data`, until `_find` goes on behind them.

    longest: the most bytes of a content that is kept.
    """

    def __init__(self, blocks: Iterator[bytes], longest: int) -> None:
        self._blocks, self._longest = blocks, longest
        self._data = bytearray()  # which drops its first bytes without moving the others
        self._stopped = self._finished = False

    def __iter__(self) -> Iterator[_Record | None]:
        """Yield the records, None for each that is damaged."""
        while not self._is_at_end():
            record = self._record()
            yield record
            if record is None:
                self._find()

    def _fill(self, size: int) -> None:
        """Have at least `size` bytes in `_data`, if there are as many."""
        while len(self._data) < size and not self._stopped:
            block = next(self._blocks, None)
            self._finished, self._stopped = block is None, not block
            self._data += block or b""

    def _is_at_end(self) -> bool:
        """Skip line ends; return True if nothing follows, and False also if bytes were lost here."""
        self._fill(1)
        while ends := _LINE_ENDS.match(self._data):
            del self._data[: ends.end()]
            self._fill(1)
        return not self._data and self._finished

    def _record(self) -> _Record | None:
        head = None
        for size in (_USUAL_HEAD, _LONGEST_HEAD):
            self._fill(size)
            if head := _HEAD.match(self._data, 0, _LONGEST_HEAD):
                break
        if head is None:
            return None
        headers = _headers(head[0])
        length = headers.get("content-length", "")
        if not _LENGTH.fullmatch(length):
            return None
        kind = headers.get("warc-type", "").lower()
        record = _Record(kind, headers.get("warc-target-uri", "").strip("<>"), *_media(headers))
        start, end = head.end(), head.end() + int(length)
        if int(length) > self._longest:
            self._fill(start + _LONGEST_HEAD)
            record = _with_content(record, bytes(self._data[start : start + _LONGEST_HEAD]))
            record = replace(record, content=None)
            del self._data[:start]
            return record if self._skip(int(length)) else None
        self._fill(end + _LONGEST_AFTER)
        if len(self._data) < end or not _AFTER.match(self._data, end, end + _LONGEST_AFTER):
            return None
        if kind in _CONTENT_KINDS:
            record = _with_content(record, bytes(self._data[start:end]))
        del self._data[:end]
        return record

    def _skip(self, size: int) -> bool:
        """Leave out bytes; return False if they are not as many, or a record begins among them, which is next then."""
        while size:
            self._fill(min(size, _PIECE))
            piece = min(size, len(self._data))
            inner = _NEXT.search(self._data, 0, piece)
            if inner or not piece:
                del self._data[: inner.start() - 1 if inner else 0]
                return False
            del self._data[:piece]
            size -= piece
        return True

    def _find(self) -> None:
        """Skip to the next record behind the first byte, or to the end."""
        while not (start := _NEXT.search(self._data, 1)):
            if self._finished:
                self._data.clear()
                return
            if self._stopped:
                self._data[:] = b"\n"
            else:  # the last line may be the beginning of a record
                line = self._data.rfind(b"\n", -_LONGEST_HEAD)
                del self._data[: line if line >= 0 else len(self._data)]
            self._stopped = False
            self._fill(len(self._data) + _LONGEST_HEAD)
        del self._data[: start.start()]


def _with_content(record: _Record, content: bytes) -> _Record:
    """Return a record with its content, parted from the HTTP headers if it has them."""
    if record.media_type != "application/http" and not content.startswith(b"HTTP/"):
        return replace(record, content=content)
    end = _END_OF_HEAD.search(content, 0, _LONGEST_HEAD)
    if end is None:
        return replace(record, media_type="", is_http=True, content=content)
    headers = _headers(content[: end.end()])
    media_type, charset = _media(headers)
    status = content[:64].split(b"\n")[0].split(b" ", 2)[1:2]
    code = int(status[0]) if status and status[0].strip().isdigit() else None
    return _Record(record.kind, record.url, media_type, charset, True, code, headers, content[end.end() :])


def _headers(head: bytes) -> dict[str, str]:
    """Return the headers behind the first line, by name in lower case; of several of one name the last."""
    fields = _HEADER.findall(head.decode("utf-8", "backslashreplace"))
    return {name.lower(): value.rstrip() for name, value in fields}


def _media(headers: Mapping[str, str]) -> tuple[str, str]:
    header = headers.get("content-type", "")
    charset = _CHARSET.search(header)
    return header.partition(";")[0].strip().lower(), charset[1].lower() if charset else ""
