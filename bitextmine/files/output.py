"""Outputs: plain and compressed files, here or by URL, complete or absent; stdout, devices and pipes in place.

A file that a person names as an output (``-o FILE``) is overwritten, as by any other program. Files with derived names,
beside a corpus or in a model folder, are overwritten only if this program made them, by their content, or empty.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, BinaryIO

from bitextmine.errors import BitextmineError, UsageError, explained
from bitextmine.files.atomic import ELSEWHERE, FULL_DISK, cannot_write, replacing
from bitextmine.files.formats.names import SUFFIXES
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import Location, Source
from bitextmine.files.storage import AnyPath, Remote, reading
from bitextmine.languages.codes import is_short_code

_BUFFER = 1 << 18


@dataclass(frozen=True)
class Destination(Location):
    """A file to write; ``-`` is standard output.

    The file is written beside its path and moved there at the end (`atomic.replacing`); an exception removes it and
    leaves an earlier file of that name as it was. Compressed files have the same bytes for the same text. Other than
    regular files (/dev/stderr, a named pipe) are written in place.
    """

    @property
    def is_standard(self) -> bool:
        """Return True for ``-`` and /dev/stdout."""
        return self.text in ("-", "/dev/stdout")

    def check(self, remedy: str = ELSEWHERE, *, stream: bool = True) -> None:
        """Raise BitextmineError for problems of `open` that show without writing; ask before the work.

        Args:
            remedy: what to do about a folder that takes no files.
            stream: a device or a pipe will do.
        """
        if self.is_stream:
            if not stream:
                raise BitextmineError(f"{self}: cannot write: it is no regular file; {ELSEWHERE}")
            return
        if isinstance(self.path, Remote):
            self.path.check_writable()
            return
        target = Path(os.path.realpath(self.path))
        named = target if self.path.is_symlink() and not target.is_symlink() else self
        try:
            _check_file(target)
            if not target.parent.is_dir():
                raise FileNotFoundError
            with contextlib.suppress(FileNotFoundError):  # its name until it is complete may be too long
                target.with_name(f".{target.name}.tmp").lstat()
            if not os.access(target.parent, os.W_OK | os.X_OK):
                read_only = os.statvfs(target.parent).f_flag & os.ST_RDONLY
                code = errno.EROFS if read_only else errno.EACCES
                raise OSError(code, os.strerror(code))
        except OSError as e:
            raise cannot_write(e, named, remedy) from None

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Yield a binary file, which appears under its name when the block ends.

        Raises:
            BitextmineError: a missing or read-only folder, a full disk, storage that does not take the file.
            BrokenPipeError: the reader of stdout is gone; stdout then points at /dev/null, so nothing complains at
                exit.
        """
        where = ""
        try:
            with contextlib.ExitStack() as stack:
                if self.is_standard:
                    if not hasattr(sys.stdout, "buffer"):
                        raise BitextmineError(
                            "<stdout>: stdout is closed or takes no bytes; name an output file"
                        )
                    sys.stdout.flush()
                    yield sys.stdout.buffer
                    sys.stdout.buffer.flush()
                    return
                if isinstance(self.path, Remote):
                    where = f" in {tempfile.gettempdir()}, where it is made before it is sent"
                    self.path.check_writable()
                raw = self.path.writing() if isinstance(self.path, Remote) else self._opened()
                yield stack.enter_context(_packed(stack.enter_context(raw), self.compression))
        except OSError as e:
            if self.is_standard:
                _mute_stdout(e)
            if e.errno not in FULL_DISK:
                raise
            remedy = "free some space, or name another folder with $TMPDIR" if where else "free some space"
            name = "<stdout>" if self.is_standard else self.text
            raise BitextmineError(f"{name}: cannot write: {e.strerror}{where}; {remedy}") from None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        # Through a symbolic link, so that the link stays one.
        target = Path(self.text if self.is_special else os.path.realpath(self.text))
        with contextlib.ExitStack() as stack:
            try:
                if not self.is_special:
                    _check_file(target)
                file = stack.enter_context(target.open("ab") if self.is_special else replacing(target))
            except OSError as e:
                raise cannot_write(e, self) from None
            yield file


def _check_file(target: Path) -> None:
    """Raise OSError for a folder, and for a link that leads back to itself."""
    if target.is_dir():
        raise IsADirectoryError
    if target.is_symlink():  # though links have been followed
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _mute_stdout(e: OSError) -> None:
    """Send the interpreter's last flush nowhere after a failed write, or it would fail again."""
    if e.errno != errno.EPIPE and e.errno not in FULL_DISK:
        return
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, sys.stdout.fileno())
        finally:
            os.close(null)


@contextlib.contextmanager
def _packed(raw: IO[bytes], suffix: str) -> Iterator[Any]:
    if not suffix:
        yield raw
        return
    if suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
        packed: Any = compressor.stream_writer(raw, closefd=False)
    elif suffix == ".gz":
        # No name and no time in the header, so that the same text gives the same bytes.
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0)
    else:
        packed = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}[suffix](raw, "wb")
    with packed:
        buffered = io.BufferedWriter(packed, _BUFFER)
        yield buffered
        buffered.flush()
        buffered.detach()


def keep_apart(source: Source, outputs: Mapping[str, Destination | None]) -> None:
    """Raise UsageError if an output (option: file, None for nowhere) would overwrite the source, or another one.

    Devices and named pipes may be named as often as one likes.
    """
    taken: dict[str, str] = {}
    for file in source.files:
        if not file.is_standard:
            taken[file.identity] = "the input itself"
            lang = file.stem.suffix
            if is_short_code(lang[1:]) and lang not in SUFFIXES:
                before, _, after = file.text.rpartition(lang)
                taken[Location(before + ".{lang}" + after).identity] = "the input itself"
    for option, output in outputs.items():
        if output is None or (output.is_special and not output.is_standard):
            continue
        where = "-" if output.is_standard else output.identity
        if where in taken:
            name = "standard output" if output.text == "-" else output
            raise UsageError(f"{option} {name} is {taken[where]}; name another file")
        taken[where] = f"where {option} goes, too"


# --- files that this program made ---

_HEAD = 256
_FLOAT16 = rb"\x93NUMPY\x01\x00..\{'descr': '<f2', 'fortran_order': False, 'shape': \(\d+, \d+\), \}"


class Made(Enum):
    """The kinds of files that this program makes, each with a description and a mark.

    The mark is the kind in a manifest, or a pattern of the first bytes.
    """

    PAIRS = "a manifest of mined pairs", "bitext"
    EMBEDDING = "an embedding manifest", "embedding"
    STATE = "a journal of an unfinished embedding", rb'\{"journal": 1, "job": "embed"'
    VECTORS = "vectors of an embedding (float16, a row per line)", _FLOAT16
    INDEX = "an index manifest", "index"
    FAISS = "an index", b"I"  # FAISS marks indexes with four letters: IxFI, IwFl, IHNf
    SEARCH = "a search journal", rb'\{"journal": 1, "job": "search"'
    ORIGINS = "the origins of a corpus", rb"[^\t\n]*(\Z|\t[^\t\n]*(\Z|\t\d+(\Z|\t\d+(\Z|\n))))"

    def __init__(self, words: str, mark: str | bytes) -> None:
        self.words, self.mark = words, mark


def is_ours(path: AnyPath, made: Made) -> bool:
    """Return True for a file of that kind, or an empty one.

    Nothing but zero bytes at the head, as a power cut leaves them, counts as empty.
    """
    head = None  # also if another process removes it now
    with explained(f"{path}: cannot read"), contextlib.suppress(FileNotFoundError):
        if path.is_file():
            with reading(path) as file:
                head = file.read(_HEAD)
    if head is None:
        return False
    if not head.strip(b"\0"):
        return True
    if isinstance(made.mark, bytes):
        return re.match(made.mark, head, re.S) is not None
    with contextlib.suppress(BitextmineError):
        return read_json(path).get("kind") == made.mark
    return False


def check_ours(path: AnyPath, made: Made, instead: str, option: str = "--force") -> None:
    """Raise BitextmineError if a file has that name already and is not of that kind.

    instead: an alternative to moving it away and to the option, for the message.
    """
    there = path.exists() if isinstance(path, Remote) else os.path.lexists(path)
    if there and not is_ours(path, made):
        raise foreign(path, f"is not {made.words}", instead, option)


def foreign(path: AnyPath, holds: str, instead: str, option: str = "--force") -> BitextmineError:
    """Return the error for a file of another program; the arguments complete its sentence."""
    return BitextmineError(
        f"{path}: already exists and {holds}, so it was not overwritten; move it away, {instead}, "
        f"or pass {option}"
    )
