"""Bytes in and out: plain and compressed files, local or by URL, ``-`` for stdin and stdout, atomic outputs."""

import bz2
import codecs
import contextlib
import errno
import gzip
import io
import lzma
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import ELSEWHERE, FULL_DISK, REFUSED, replacing
from bitextmine.files.storage import Place, Remote, is_remote, open_bytes, place, same_place
from bitextmine.files.unpacking import unpack

COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")

BLOCK_BYTES = 1 << 18
LONGEST_LINE = 10 << 20  # bytes
_longest = LONGEST_LINE


def compression(path: str | os.PathLike[str]) -> str:
    """Return the compression suffix of a path (``.gz``, ``.bz2``, ``.xz``, ``.zst``), or an empty string."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in COMPRESSION_SUFFIXES else ""


def strip_compression(path: str | os.PathLike[str]) -> Place:
    """Return the path without its compression suffix: ``corpus.fr.gz`` -> ``corpus.fr``."""
    return place(path).with_suffix("") if compression(path) else place(path)


def display_name(path: str | os.PathLike[str], standard: str = "<stdin>") -> str:
    """Return the name of a file in messages: its path, or ``<stdin>``."""
    return standard if os.fspath(path) == "-" else os.fspath(path)


def keep_apart(source: str | os.PathLike[str], outputs: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raise UsageError if an output (option: path, None for nowhere) would overwrite the source, or another one.

    Devices and named pipes may be named as often as one likes.
    """
    taken: dict[str, str] = {}
    if os.fspath(source) != "-":
        for file in getattr(source, "files", (source,)):  # two for `TwoFiles`
            taken[same_place(file)] = "the input itself"
            if lang := strip_compression(file).suffix:
                before, _, after = os.fspath(file).rpartition(lang)
                taken[same_place(before + ".{lang}" + after)] = "the input itself"
    for option, path in outputs.items():
        if path is None:
            continue
        where = "-" if os.fspath(path) in ("-", "/dev/stdout") else same_place(path)
        if where != "-" and _written_in_place(path):
            continue
        if where in taken:
            raise UsageError(
                f"{option} {display_name(path, 'standard output')} is {taken[where]}; name another file"
            )
        taken[where] = f"where {option} goes, too"


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return True for standard input or output, a pipe or a device: a name without a format."""
    return os.fspath(path) == "-" or _written_in_place(path)


def read_once(path: str | os.PathLike[str]) -> bool:
    """Return True for a file that can be read only once: stdin, a pipe (``<(zcat corpus.gz)``), a terminal."""
    if os.fspath(path) == "-":
        return True
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


# --- reading ---


def read_blocks(path: str | os.PathLike[str], seen: Callable[[int], object] | None = None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, or of stdin for ``-``, in non-empty blocks.

    `seen` is told the place in the file before each block, if it has one: a pipe has none.

    Raises:
        BitextmineError: while iterating: an unreadable file, a damaged or truncated archive.
    """
    try:
        if os.fspath(path) == "-":
            yield from _stdin_blocks()
            return
        with open_bytes(path) as file:
            if compression(path):
                blocks = unpack(file, os.fspath(path), compression(path))
            else:
                blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
            for block in blocks:
                if seen is not None and file.seekable():
                    seen(file.tell())
                yield block
    except OSError as e:
        raise cannot_read(path, e) from None


def longest_line(most: int | None = None) -> int:
    """Return the most bytes of a line; `most` sets them for the whole process, as ``--max-line`` does."""
    global _longest
    if most is not None:
        _longest = most
    return _longest


def read_line_blocks(
    path: str | os.PathLike[str], seen: Callable[[int], object] | None = None
) -> Iterator[bytes]:
    """Yield the bytes of `read_blocks` in blocks that end with a line feed (the last one may not).

    Raises:
        BitextmineError: a line longer than `longest_line`, before more is read: 90 kB may unpack to 6 GB.
    """
    longest = longest_line()
    done = 0  # lines
    size = 0  # of the parts
    parts: list[bytes] = []  # since the last line feed; a list, or a huge line costs quadratic time
    for block in read_blocks(path, seen):
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join([*parts, block[:cut]])
            if len(whole) > longest:
                for at, line in enumerate(whole.split(b"\n")):
                    if len(line) > longest:
                        raise _too_long(path, done + at, longest)
            done += whole.count(b"\n")
            yield whole
            size, parts = 0, []
        if cut < len(block):
            parts.append(block[cut:])
            size += len(parts[-1])
            if size > longest:
                raise _too_long(path, done, longest)
    if parts:
        yield b"".join(parts)


def raw_lines(path: str | os.PathLike[str]) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in lists, without line feeds and without a byte order mark at the start."""
    mark = codecs.BOM_UTF8
    for block in read_line_blocks(path):
        yield block.removeprefix(mark).removesuffix(b"\n").split(b"\n")
        mark = b""


def _too_long(path: str | os.PathLike[str], lines_before: int, longest: int) -> BitextmineError:
    return BitextmineError(
        f"{display_name(path)}: line {lines_before + 1}: longer than {longest:,} bytes, which no sentence is; "
        "check what the file is, or allow longer lines with --max-line"
    )


def _stdin_blocks() -> Iterator[bytes]:
    if sys.stdin is None:
        raise BitextmineError("<stdin>: stdin is closed; pipe a corpus in, or name a file instead of '-'")
    buffer = sys.stdin.buffer
    read = getattr(buffer, "read1", buffer.read)  # what a pipe has now, not only when a block is full
    return iter(lambda: read(BLOCK_BYTES), b"")


def cannot_read(path: str | os.PathLike[str], e: OSError) -> BitextmineError:
    """Return the error for a file that cannot be opened or read."""
    name = display_name(path)
    if isinstance(e, FileNotFoundError):
        stem = strip_compression(path)
        others = [p.name for s in ("", *COMPRESSION_SUFFIXES) if (p := Path(f"{stem}{s}")).exists()]
        hint = f"did you mean {' or '.join(others)}?" if others else "check the path"
        return BitextmineError(f"{name}: no such file; {hint}")
    if isinstance(e, IsADirectoryError):
        return BitextmineError(f"{name}: is a directory; name a text file in it")
    return BitextmineError(f"{name}: cannot read: {e.strerror or e}")


def check_readable(path: str | os.PathLike[str]) -> None:
    """Raise BitextmineError for a missing file of this machine, or a folder; ask before the work."""
    if is_stream(path) or isinstance(place(path), Remote):
        return
    try:
        if stat.S_ISDIR(Path(path).stat().st_mode):
            raise IsADirectoryError
    except OSError as e:
        raise cannot_read(path, e) from None


# --- writing ---


def check_writable(path: str | os.PathLike[str], remedy: str = ELSEWHERE) -> None:
    """Raise BitextmineError for problems of `open_output` that show without writing; ask before the work.

    remedy: what to do about a folder that takes no files.
    """
    if is_stream(path):
        return
    if isinstance(remote := place(path), Remote):
        remote.check_writable()
        return
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError
        if not target.parent.is_dir():
            raise FileNotFoundError
        with contextlib.suppress(FileNotFoundError):
            target.with_name(f".{target.name}.tmp").lstat()  # its name until it is complete may be too long
        if not os.access(target.parent, os.W_OK | os.X_OK):
            read_only = os.statvfs(target.parent).f_flag & os.ST_RDONLY
            code = errno.EROFS if read_only else errno.EACCES
            raise OSError(code, os.strerror(code))
    except OSError as e:
        raise cannot_open(path, e, remedy) from None


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary writer: stdout for ``-``, else a file that appears under its name only when complete.

    The file is written beside its place and moved there at the end (`atomic.replacing`); an exception removes it and
    leaves an earlier file of that name as it was. ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress, the same bytes
    for the same text. Other than regular files (/dev/stderr, a named pipe) are written in place.

    Raises:
        BitextmineError: a missing or read-only folder, a full disk, storage that does not take the file.
        BrokenPipeError: the reader of stdout is gone; stdout then points at /dev/null, so nothing complains at exit.
    """
    stdout, remote = os.fspath(path) in ("-", "/dev/stdout"), place(path)
    where = ""
    try:
        with contextlib.ExitStack() as stack:
            if stdout:
                if not hasattr(sys.stdout, "buffer"):
                    raise BitextmineError("<stdout>: stdout is closed or takes no bytes; name an output file")
                sys.stdout.flush()
                yield sys.stdout.buffer
                sys.stdout.buffer.flush()
            elif isinstance(remote, Remote):
                where = f" in {tempfile.gettempdir()}, where it is made before it is sent"
                remote.check_writable()
                raw: IO[bytes] = stack.enter_context(remote.writing())
                yield stack.enter_context(_packed(raw, compression(path)))
            else:
                yield stack.enter_context(_packed(stack.enter_context(_opened(remote)), compression(path)))
    except OSError as e:
        if stdout:
            _mute_stdout(e)
        if e.errno not in FULL_DISK:
            raise
        remedy = "free some space, or name another folder with $TMPDIR" if where else "free some space"
        name = "<stdout>" if stdout else os.fspath(path)
        raise BitextmineError(f"{name}: cannot write: {e.strerror}{where}; {remedy}") from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    in_place = _written_in_place(path)
    # Through a symbolic link, so that the link stays one.
    target = path if in_place else Path(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        try:
            if target.is_dir():
                raise IsADirectoryError
            file = stack.enter_context(target.open("ab") if in_place else replacing(target))
        except OSError as e:
            raise cannot_open(path, e) from None
        yield file


def _written_in_place(path: str | os.PathLike[str]) -> bool:
    if is_remote(path):
        return False
    path = Path(path)
    # /dev/stderr may well be a regular file by now; moving another over it would undo the shell's '2>>'.
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


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
        buffered = io.BufferedWriter(packed, BLOCK_BYTES)
        yield buffered
        buffered.flush()
        buffered.detach()


def cannot_open(path: str | os.PathLike[str], e: OSError, remedy: str = ELSEWHERE) -> BitextmineError:
    """Return the error for a file that cannot be made or written."""
    folder = Path(path).parent
    if isinstance(e, (FileNotFoundError, NotADirectoryError)) and not folder.is_dir():
        return BitextmineError(f"{path}: cannot write: there is no folder {folder}; create it first")
    if isinstance(e, IsADirectoryError):
        return BitextmineError(f"{path}: cannot write: it is a directory; name a file")
    if e.errno in REFUSED or isinstance(e, FileNotFoundError):
        reason = "no file can be made" if isinstance(e, FileNotFoundError) else str(e.strerror).lower()
        return BitextmineError(f"{path}: cannot write: {reason} in {folder}; {remedy}")
    return BitextmineError(f"{path}: cannot write: {e.strerror or e}")
