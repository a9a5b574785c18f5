"""Outputs: plain and compressed files, here or by URL, complete or absent; stdout, devices and pipes in place."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import ELSEWHERE, FULL_DISK, cannot_write, replacing
from bitextmine.files.location import Location
from bitextmine.files.source import Source
from bitextmine.files.storage import Remote

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

    def beside(self, ending: str) -> Destination:
        """Return the file of the same name with a further ending: m.tsv -> m.tsv.json."""
        return Destination(f"{self.text}{ending}")

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
            with contextlib.suppress(FileNotFoundError):
                target.with_name(
                    f".{target.name}.tmp"
                ).lstat()  # its name until it is complete may be too long
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
                elif isinstance(self.path, Remote):
                    where = f" in {tempfile.gettempdir()}, where it is made before it is sent"
                    self.path.check_writable()
                    raw: IO[bytes] = stack.enter_context(self.path.writing())
                    yield stack.enter_context(_packed(raw, self.compression))
                else:
                    raw = stack.enter_context(self._opened())
                    yield stack.enter_context(_packed(raw, self.compression))
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
            if lang := file.stem.suffix:
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
