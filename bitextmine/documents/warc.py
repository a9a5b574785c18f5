"""Records of WARC and ARC files, one after the other, also behind damaged ones.

The iterator of fastwarc loses what follows a record whose Content-Length is too large, even in other gzip members, and
the records of a truncated .zst; so the records are found here. Each must end where its length says; if it does not,
the next one begins at the next line that begins a record.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bitextmine.run import LONGEST_LINE

_USUAL_HEAD, _LONGEST_HEAD = 1 << 11, 1 << 16
_PIECE = 1 << 20
CONTENT_KINDS = ("response", "resource", "conversion")  # of the records with content
_VERSION = rb"WARC/[01]\.\d{1,2}\r?\n"
_ARC_LINE = (
    rb"((?:https?|ftp|dns|filedesc):\S{1,4000}+) \S{1,40}+ \d{8,14}+ (\S{1,200}+) "
    rb"(?:\S{1,200} ){0,6}(\d{1,12})\r?\n"
)
_WARC_HEAD = re.compile(_VERSION + rb"(?:(?!WARC/)[^\r\n][^\n]*+\n)*+\r?\n")
_ARC_HEAD = re.compile(_ARC_LINE)
_NEXT_WARC, _NEXT_ARC = (re.compile(rb"(?<=\n)" + head) for head in (_VERSION, _ARC_LINE))
_AFTER_WARC, _AFTER_ARC = (
    re.compile(rb"[\r\n]*+(?:" + start + rb"|\Z)") for start in (rb"WARC/", rb"https?:|ftp:|dns:")
)
_LONGEST_AFTER = 16
_LONGEST_LENGTH = 15  # digits
_LINE_ENDS = re.compile(rb"[\r\n]++")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_HEADER = re.compile(r"\n([^\s:]++)[ \t]*+:[ \t]*+([^\r\n]*+)")
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class WarcRecord:
    """A record of an archive.

    Attributes:
        kind: its WARC-Type; ``response`` for a record of ARC.
        url: its address.
        media_type, charset: those of its content, in lower case; "" if they are not known.
        is_http: its content came by HTTP.
        status: of the HTTP response, None if it is not known.
        headers: of the HTTP response, by name in lower case.
        content: what is behind the HTTP headers; None if it is too long.
    """

    kind: str
    url: str
    media_type: str = ""
    charset: str = ""
    is_http: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = b""


def records(blocks: Iterator[bytes], longest: int = LONGEST_LINE) -> Iterator[WarcRecord | None]:
    """Yield the records of an archive, None for each that is damaged; an empty block stands for lost bytes.

    longest: the most bytes of a content that is kept.
    """
    source = _Source(blocks, longest)
    source.fill(_LONGEST_AFTER)
    read, following = (
        (_arc_record, _NEXT_ARC) if source.data.startswith(b"filedesc:") else (_warc_record, _NEXT_WARC)
    )
    while not source.is_at_end():
        record = read(source)
        yield record
        if record is None:
            source.find(following)


class _Source:
    """The bytes of blocks, of which `data` holds those from the next one to be read on.

    Bytes that were lost are the end of `data`, until `find` goes on behind them.
    """

    def __init__(self, blocks: Iterator[bytes], longest: int) -> None:
        self.longest = longest
        self._blocks, self.data = blocks, bytearray()  # which drops its first bytes without moving the others
        self._stopped = self._finished = False

    def fill(self, size: int) -> bool:
        """Have at least `size` bytes in `data`; return False if there are not as many."""
        while len(self.data) < size and not self._stopped:
            block = next(self._blocks, None)
            self._finished, self._stopped = block is None, not block
            self.data += block or b""
        return len(self.data) >= size

    def drop(self, size: int) -> None:
        """Leave out bytes of `data`."""
        del self.data[:size]

    def is_at_end(self) -> bool:
        """Skip line ends; return True if nothing follows, and False also if bytes were lost here."""
        while self.fill(1) and (ends := _LINE_ENDS.match(self.data)):
            self.drop(ends.end())
        return not self.data and self._finished

    def skip(self, size: int, following: re.Pattern[bytes]) -> bool:
        """Leave out bytes; return False if they are not as many, or a record begins among them, which is next then."""
        while size:
            self.fill(min(size, _PIECE))
            piece = min(size, len(self.data))
            inner = following.search(self.data, 0, piece)
            if inner or not piece:
                self.drop(inner.start() - 1 if inner else 0)
                return False
            self.drop(piece)
            size -= piece
        return True

    def find(self, following: re.Pattern[bytes]) -> None:
        """Skip to the next record behind the first byte, or to the end."""
        while not (start := following.search(self.data, 1)):
            if self._finished:
                self.data.clear()
                return
            if self._stopped:
                self.data[:] = b"\n"
            else:  # the last line may be the beginning of a record
                line = self.data.rfind(b"\n", -_LONGEST_HEAD)
                self.drop(line if line >= 0 else len(self.data))
            self._stopped = False
            self.fill(len(self.data) + _LONGEST_HEAD)
        self.drop(start.start())


def _warc_record(source: _Source) -> WarcRecord | None:
    head = None
    for size in (_USUAL_HEAD, _LONGEST_HEAD):
        source.fill(size)
        if head := _WARC_HEAD.match(source.data, 0, _LONGEST_HEAD):
            break
    if head is None:
        return None
    headers = _headers(head[0])
    length = headers.get("content-length", "")
    if not (length.isdecimal() and length.isascii() and len(length) <= _LONGEST_LENGTH):
        return None
    kind = headers.get("warc-type", "").lower()
    record = WarcRecord(kind, headers.get("warc-target-uri", "").strip("<>"), *_media(headers))
    return _with_content(source, head.end(), int(length), record, (_AFTER_WARC, _NEXT_WARC))


def _arc_record(source: _Source) -> WarcRecord | None:
    source.fill(_LONGEST_HEAD >> 3)
    head = _ARC_HEAD.match(source.data)
    if head is None:
        return None
    url, media_type, length = (part.decode("utf-8", "backslashreplace") for part in head.groups())
    kind = "filedesc" if url.startswith("filedesc:") else "response"
    return _with_content(
        source, head.end(), int(length), WarcRecord(kind, url, media_type.lower()), (_AFTER_ARC, _NEXT_ARC)
    )


def _with_content(
    source: _Source,
    start: int,
    length: int,
    bare: WarcRecord,
    marks: tuple[re.Pattern[bytes], re.Pattern[bytes]],
) -> WarcRecord | None:
    """Return a record with its content, which begins at `start`; None if it does not end where it should.

    marks: what is behind a record, and the beginning of the next one.
    """
    after, following = marks
    if length > source.longest:
        source.fill(start + _LONGEST_HEAD)
        record = replace(_parsed(bare, bytes(source.data[start : start + _LONGEST_HEAD])), content=None)
        source.drop(start)
        return record if source.skip(length, following) else None
    end = start + length
    source.fill(end + _LONGEST_AFTER)
    if len(source.data) < end or not after.match(source.data, end, end + _LONGEST_AFTER):
        return None
    record = _parsed(bare, bytes(source.data[start:end])) if bare.kind in CONTENT_KINDS else bare
    source.drop(end)
    return record


def _parsed(record: WarcRecord, content: bytes) -> WarcRecord:
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
    return WarcRecord(record.kind, record.url, media_type, charset, True, code, headers, content[end.end() :])


def _headers(head: bytes) -> dict[str, str]:
    """Return the headers behind the first line, by name in lower case; of several of one name the last."""
    fields = _HEADER.findall(head.decode("utf-8", "backslashreplace"))
    return {name.lower(): value.rstrip() for name, value in fields}


def _media(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the media type of headers, and its charset."""
    header = headers.get("content-type", "")
    charset = _CHARSET.search(header)
    return header.partition(";")[0].strip().lower(), charset[1].lower() if charset else ""
