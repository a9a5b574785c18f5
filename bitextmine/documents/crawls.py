"""Crawls: the pages of WARC and ARC files, and the texts of WET files."""

import functools
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from bitextmine.documents.document import Document
from bitextmine.documents.pages import HTML_TYPES, decoded, library, page, too_large
from bitextmine.documents.paragraphs import paragraphs
from bitextmine.documents.warc import CONTENT_KINDS, WarcRecord, records
from bitextmine.files.source import Source
from bitextmine.files.unpacking import MAGIC, unpack

_PLAIN = "text/plain"
_WGET = "metadata://"  # its log and its arguments


def crawled(
    source: Source, name: str, seen: Callable[[int], object] | None, machine: bool
) -> Iterator[Document]:
    """Yield the pages of a crawl in order, and a broken document for each damaged record."""
    number = 0
    for record in records(_blocks(source, seen), source.max_line):
        if record is None:
            number += 1
            yield Document.broken(f"{name}#{number}", "a damaged or truncated record", damaged=True)
        elif record.kind in CONTENT_KINDS:
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


def _is_page(record: WarcRecord) -> bool:
    """Return True for a page that was delivered, and for its plain text in a WET file."""
    if not record.is_http:
        return record.media_type in (*HTML_TYPES, _PLAIN) and not record.url.startswith(_WGET)
    return record.status in (None, 200, 203) and record.media_type in ("", *HTML_TYPES, _PLAIN)


def _paragraphs(record: WarcRecord, machine: bool, most: int) -> Iterable[str]:
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
