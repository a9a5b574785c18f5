"""Names of files, parsed once where a user gives them, and the texts that they hold, as bytes and as lines.

A text is a file, plain or compressed, here or by URL, a pipe or standard input.

A line ends at a line feed and nowhere else, so line *i* here is line *i* for ``wc``, ``sed`` and ``paste``: U+2028,
U+0085, form feeds and bare carriage returns stay inside their line.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import itertools
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, InvalidUtf8
from bitextmine.files.storage import AnyPath, Remote, reading, to_path
from bitextmine.files.unpacking import KINDS, PACKED_BYTES, unpack
from bitextmine.files.unpacking import MAGIC as ARCHIVES
from bitextmine.languages.codes import is_code, is_short_code
from bitextmine.run import LONGEST_LINE, Run

log = logging.getLogger(__name__)

ORIGIN = ".origin.tsv"
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# Suffixes that fit the shape of a language code and never are one in practice.
_TEXT = {"txt", "text", "tsv", "csv", "json", "jsonl", "xml", "html", "toml", "yaml", "yml", "md", "log"}
_PAIRS = {"tab", "tmx", "xlf", "pq"}
NOT_LANGUAGES = _TEXT | _PAIRS | {"npy", "npz", "faiss", "model", "part", "tmp", "bak", "lock"}

BLOCK_BYTES = 1 << 18
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# First bytes of what people feed to a tool by mistake, and what to do about each.
MAGIC = (
    *(
        (mark, f"it looks like {KINDS[suffix]}: name it {suffix}, or pipe it through '{KINDS[suffix]} -dc'")
        for suffix, mark in ARCHIVES.items()
    ),
    (b"PK\x03\x04", "it looks like a zip archive: unpack it first"),
    *((mark, "it looks like UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'") for mark in _UTF16),
    (b"\x93NUMPY", "it is a NumPy array: give the text file instead"),
)


@dataclass(frozen=True)
class Location(os.PathLike[str]):
    """A file as a user names it: a path of this machine, a URL, or ``-`` for a standard stream.

    Whatever is asked of the name or of the kind of file is found out once.
    """

    text: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Parse a path; one that is parsed already is returned as it is."""
        return path if isinstance(path, cls) else cls(os.fspath(path))

    def __fspath__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    @cached_property
    def path(self) -> AnyPath:
        """Return the path, or a `Remote` for a URL."""
        return to_path(self.text)

    @property
    def files(self) -> tuple[Self, ...]:
        """Return the files that the name stands for: this one."""
        return (self,)

    @property
    def is_standard(self) -> bool:
        """Return True for ``-``."""
        return self.text == "-"

    @cached_property
    def compression(self) -> str:
        """Return the suffix of the compression (``.gz``, ``.bz2``, ``.xz``, ``.zst``), or an empty string."""
        suffix = self.path.suffix.lower()
        return suffix if suffix in COMPRESSION_SUFFIXES else ""

    @cached_property
    def stem(self) -> AnyPath:
        """Return the path without its compression suffix: ``corpus.fr.gz`` -> ``corpus.fr``."""
        return self.path.with_suffix("") if self.compression else self.path

    @property
    def suffix(self) -> str:
        """Return the suffix before that of the compression, in lower case."""
        return self.stem.suffix.lower()

    @cached_property
    def lang(self) -> str | None:
        """Return the language code that the name of a corpus ends with, before that of the compression."""
        code = self.stem.suffix[1:]
        return code if is_code(code) and code.lower() not in NOT_LANGUAGES else None

    @cached_property
    def is_special(self) -> bool:
        """Return True for a pipe, a terminal or another device, and for /dev/stdin, /proc/self/fd/1 and the like."""
        if isinstance(self.path, Remote):
            return False
        # /dev/stderr may well be a regular file by now; moving another over it would undo the shell's '2>>'.
        if str(self.path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
            return True
        return self.path.exists() and not self.path.is_file() and not self.path.is_dir()

    @property
    def is_stream(self) -> bool:
        """Return True for a standard stream, a pipe or a device: its name tells no format."""
        return self.is_standard or self.is_special

    @cached_property
    def reads_once(self) -> bool:
        """Return True for what can be read only once: standard input, a pipe (``<(zcat corpus.gz)``), a terminal."""
        if self.is_standard or isinstance(self.path, Remote):
            return self.is_standard
        try:
            mode = self.path.stat().st_mode
        except OSError:
            return False
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)

    @property
    def is_nameless(self) -> bool:
        """Return True for a stream whose name is the shell's or the system's, and so tells nothing."""
        return self.reads_once and (self.is_standard or self.text.startswith(("/dev/", "/proc/")))

    @cached_property
    def identity(self) -> str:
        """Return a name that two paths share only if they lead to the same file: the real path, or the URL."""
        if isinstance(self.path, Remote) and not self.text.startswith("file://"):
            return self.text
        return os.path.realpath(self.text.removeprefix("file://"))


def origin_path(corpus: Location) -> AnyPath:
    """Return the file that tells where the lines of a corpus are from."""
    return corpus.stem.with_name(f"{corpus.stem.name}{ORIGIN}")


@dataclass(frozen=True)
class Source(Location):
    """A text to read, and how; ``-`` is standard input.

    All of its iterators raise BitextmineError, while iterating, for an unreadable file and for a damaged or truncated
    archive; those of lines also for a line that is too long.

    Attributes:
        errors: invalid UTF-8: ``strict`` raises InvalidUtf8, ``replace`` puts U+FFFD.
        max_line: the most bytes of a line: 90 kB may unpack to 6 GB.
    """

    errors: str = "strict"
    max_line: int = LONGEST_LINE

    @classmethod
    def of(cls, path: str | os.PathLike[str], run: Run | None = None) -> Self:
        """Parse a path, to be read as the run says; what is parsed already keeps what it knows."""
        source = super().of(path)
        if run is None or (run.errors, run.max_line) == (source.errors, source.max_line):
            return source
        return replace(source, errors=run.errors, max_line=run.max_line)

    def __str__(self) -> str:
        return "<stdin>" if self.is_standard else self.text

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """Open the file to read its bytes, compressed as they may be."""
        try:
            with reading(self.path) as file:
                yield file
        except OSError as e:
            raise self._unreadable(e) from None

    def blocks(
        self, seen: Callable[[int], object] | None = None, *, salvage: bool = False
    ) -> Iterator[bytes]:
        """Yield the decompressed bytes in non-empty blocks.

        `seen` is called with the position in the file before each block, if it has one: a pipe has none. With `salvage`
        a damaged archive is read on behind the damage, for which an empty block stands.
        """
        try:
            if self.is_standard:
                yield from _stdin_blocks()
                return
            with self.open() as file:
                size = PACKED_BYTES if self.compression else BLOCK_BYTES
                blocks = iter(lambda: file.read(size), b"")
                if self.compression:
                    blocks = unpack(blocks, self.text, self.compression, salvage=salvage)
                for block in blocks:
                    if seen is not None and file.seekable():
                        seen(file.tell())
                    yield block
        except OSError as e:
            raise self._unreadable(e) from None

    def line_blocks(self, seen: Callable[[int], object] | None = None) -> Iterator[bytes]:
        """Yield the bytes of `blocks` in blocks that end with a line feed (the last one may not)."""
        done = 0  # lines
        size = 0  # of the parts
        parts: list[bytes] = []  # since the last line feed; a list, or a huge line costs quadratic time
        for block in self.blocks(seen):
            cut = block.rfind(b"\n") + 1
            if cut:
                whole = b"".join([*parts, block[:cut]])
                if len(whole) > self.max_line:
                    for at, line in enumerate(whole.split(b"\n")):
                        if len(line) > self.max_line:
                            raise self._too_long(done + at)
                done += whole.count(b"\n")
                yield whole
                size, parts = 0, []
            if cut < len(block):
                parts.append(block[cut:])
                size += len(parts[-1])
                if size > self.max_line:
                    raise self._too_long(done)
        if parts:
            yield b"".join(parts)

    def byte_lines(self) -> Iterator[list[bytes]]:
        """Yield the lines in lists, without line feeds and without a byte order mark at the start.

        BitextmineError for UTF-16, of which some lines would pass for UTF-8 with NUL characters.
        """
        mark = codecs.BOM_UTF8
        for block in self.line_blocks():
            if mark and block.startswith(_UTF16):
                raise BitextmineError(f"{self}: line 1: {dict(MAGIC)[block[:2]]}")
            yield block.removeprefix(mark).removesuffix(b"\n").split(b"\n")
            mark = b""

    def text_blocks(self) -> Iterator[str]:
        """Yield the text in blocks of whole lines, each ended by one line feed; otherwise as `lines`."""
        return decoded_blocks(self.line_blocks(), self.errors, str(self))

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their line ends, reading no more than a block ahead.

        One carriage return before the line feed goes, as does a byte order mark at the start.
        """
        for text in self.text_blocks():
            yield from text[:-1].split("\n")

    def check(self) -> None:
        """Raise BitextmineError for a missing file of this machine, or a folder; ask before the work."""
        if self.is_stream or isinstance(self.path, Remote):
            return
        try:
            self.path.stat()
            if self.path.is_dir():
                raise IsADirectoryError
        except OSError as e:
            raise self._unreadable(e) from None

    def _unreadable(self, e: OSError) -> BitextmineError:
        if isinstance(e, FileNotFoundError):
            beside = [p.name for s in ("", *COMPRESSION_SUFFIXES) if (p := Path(f"{self.stem}{s}")).exists()]
            hint = f"did you mean {' or '.join(beside)}?" if beside else "check the path"
            return BitextmineError(f"{self}: no such file; {hint}")
        if isinstance(e, IsADirectoryError):
            return BitextmineError(f"{self}: is a directory; name a text file in it")
        return BitextmineError(f"{self}: cannot read: {e.strerror or e}")

    def _too_long(self, lines_before: int) -> BitextmineError:
        return BitextmineError(
            f"{self}: line {lines_before + 1}: longer than {self.max_line:,} bytes, which no sentence is; "
            "check what the file is, or allow longer lines with --max-line"
        )


@dataclass(frozen=True)
class TwoFiles(Source):
    """The two files of a corpus, source and target, where a file of pairs may stand.

    names: as they were given.
    """

    names: tuple[str, str] = ("", "")

    @classmethod
    def join(cls, src: str | os.PathLike[str], tgt: str | os.PathLike[str], **how: Any) -> Self:
        """Join two files; `how` are further fields of `Source`."""
        names = os.fspath(src), os.fspath(tgt)
        return cls(" ".join(names), names=names, **how)

    @cached_property
    def files(self) -> tuple[Source, ...]:  # type: ignore[override]
        """Return both files."""
        return tuple(Source(name, self.errors, self.max_line) for name in self.names)

    def langs(self) -> tuple[str, str] | None:
        """Return the languages that the names end with, before a suffix of compression; None if they do not."""
        src, tgt = (file.lang or "" for file in self.files)
        return (src, tgt) if is_short_code(src) and is_short_code(tgt) and src != tgt else None


def iter_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a file, as `Source.lines`."""
    return Source.of(path).lines()


def _stdin_blocks() -> Iterator[bytes]:
    if sys.stdin is None:
        raise BitextmineError("<stdin>: stdin is closed; pipe a corpus in, or name a file instead of '-'")
    buffer = sys.stdin.buffer
    read = getattr(buffer, "read1", buffer.read)  # what a pipe has now, not only when a block is full
    return iter(lambda: read(BLOCK_BYTES), b"")


# --- lines out of bytes ---


def decoded_blocks(blocks: Iterable[bytes], errors: str, name: str) -> Iterator[str]:
    """Yield blocks of whole lines as `Source.text_blocks` does; the file has this name in messages.

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


def line_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 (64 hexadecimal digits) of lines, each with a line feed, in UTF-8; streams.

    It is the same for a .gz and its plain text.
    """
    digest, lines = hashlib.sha256(), iter(lines)
    while block := list(itertools.islice(lines, 1024)):
        digest.update("\n".join([*block, ""]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
