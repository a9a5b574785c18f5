"""Corpora as lines: one sentence per line, UTF-8, plain or compressed, ``-`` for stdin; and digests of lines.

A line ends at a line feed and nowhere else, so line *i* here is line *i* for ``wc``, ``sed`` and ``paste``: U+2028,
U+0085, form feeds and bare carriage returns stay inside their line.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator

from bitextmine.console import counted
from bitextmine.errors import InvalidUtf8
from bitextmine.files.streams import display_name, read_line_blocks

log = logging.getLogger(__name__)

_MOST_CHARACTERS = 1 << 22  # of the lines that are handled together

# First bytes of what people feed to a tool by mistake, and what to do about each.
MAGIC = (
    (b"\x1f\x8b", "it looks like gzip: name it .gz, or pipe it through 'gzip -dc'"),
    (b"\xfd7zXZ\x00", "it looks like xz: name it .xz, or pipe it through 'xz -dc'"),
    (b"\x28\xb5\x2f\xfd", "it looks like zstd: name it .zst, or pipe it through 'zstd -dc'"),
    (b"BZh", "it looks like bzip2: name it .bz2, or pipe it through 'bzip2 -dc'"),
    (b"PK\x03\x04", "it looks like a zip archive: unpack it first"),
    (b"\xff\xfe", "it looks like UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
    (b"\xfe\xff", "it looks like UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
    (b"\x93NUMPY", "it is a NumPy array: give the text file instead"),
)


def iter_lines(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[str]:
    """Yield the lines of a corpus (``-``: stdin), without their line ends, reading no more than a block ahead.

    One carriage return before the line feed goes, as does a byte order mark at the start. Of invalid UTF-8,
    errors="replace" makes U+FFFD.

    Raises:
        BitextmineError: while iterating: an unreadable file, a damaged or truncated archive, invalid UTF-8, or a line
            longer than `streams.longest_line`.
    """
    for text in text_blocks(path, errors):
        yield from text[:-1].split("\n")


def text_blocks(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[str]:
    """Yield the text of a corpus in blocks of whole lines, each ended by one line feed; otherwise as `iter_lines`."""
    return decoded_blocks(read_line_blocks(path), errors, display_name(path))


def decoded_blocks(blocks: Iterable[bytes], errors: str, name: str) -> Iterator[str]:
    """Yield blocks of whole lines as `text_blocks` does; the file has this name in messages.

    Logs a warning at the end if characters were replaced.
    """
    done = damaged = 0
    other = True  # nothing beyond ASCII is UTF-8
    for block in blocks:
        text = decode_lines(block, errors, name, done)
        if errors == "replace" and not text.isascii():
            damaged += sum(map(_is_damaged, block.split(b"\n"))) if "\ufffd" in text else 0
            other = other and text.replace("\ufffd", "").isascii()
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        if text and not text.endswith("\n"):
            text = text.removesuffix("\r") + "\n"
        done += text.count("\n")
        if text:
            yield text
    if damaged:
        cure = "; it looks like another encoding: try 'iconv -f latin1 -t utf-8'" if other else ""
        lines = counted(damaged, "line")
        log.warning("%s: warning: invalid UTF-8 in %s, replaced by U+FFFD%s", name, lines, cure)


def _is_damaged(line: bytes) -> bool:
    return line.decode("utf-8", "replace").count("\ufffd") > line.count("\ufffd".encode())


def decode_lines(raw: bytes, errors: str, name: str, lines_before: int) -> str:
    """Decode whole lines at once (a line feed is never part of another UTF-8 character); raise InvalidUtf8."""
    try:
        text = raw.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        line = lines_before + raw.count(b"\n", 0, e.start) + 1
        column = e.start - raw.rfind(b"\n", 0, e.start)
        at_start = lines_before == 0
        cure = next((advice for magic, advice in MAGIC if at_start and raw.startswith(magic)), "")
        problem = f"byte 0x{raw[e.start]:02x} at byte {column} of the line ({e.reason})"
        raise InvalidUtf8(name, line, problem, cure) from None
    return text.removeprefix("\ufeff") if lines_before == 0 else text


def read_lines(path: str | os.PathLike[str], errors: str = "strict") -> list[str]:
    """Return the lines of a corpus, as `iter_lines` yields them."""
    return list(iter_lines(path, errors))


def some_lines(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield lines in lists of `most`, fewer for long lines, so no list fills the memory."""
    some: list[str] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line)
        if len(some) == most or size > _MOST_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def line_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 (64 hexadecimal digits) of lines, each with a line feed, in UTF-8; streams.

    It is the same for a .gz and its plain text.
    """
    digest = hashlib.sha256()
    for some in some_lines(lines, 4096):
        digest.update("\n".join([*some, ""]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
