"""Bytes in and out: plain and compressed files, ``-`` for stdin and stdout, outputs that appear complete."""

from __future__ import annotations

import contextlib
import errno
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TextIO, overload

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import FULL_DISK, replacing

__all__ = [
    "compression",
    "display_name",
    "keep_apart",
    "open_output",
    "read_blocks",
    "read_line_blocks",
    "strip_compression",
]

COMPRESSION_SUFFIXES = (".gz", ".xz", ".zst")
KINDS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}

BLOCK_BYTES = 1 << 18
# Compressed bytes taken at a time: small, because a decompressor hands back all they expand to.
PACKED_BYTES = 1 << 14


def compression(path: str | os.PathLike[str]) -> str:
    """The compression suffix of a path (``.gz``, ``.xz``, ``.zst``), or an empty string."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in COMPRESSION_SUFFIXES else ""


def strip_compression(path: str | os.PathLike[str]) -> Path:
    """The path without its compression suffix: ``corpus.fr.gz`` -> ``corpus.fr``."""
    return Path(path).with_suffix("") if compression(path) else Path(path)


def display_name(path: str | os.PathLike[str], standard: str = "<stdin>") -> str:
    """How messages call a file: its path, or ``<stdin>``."""
    return standard if os.fspath(path) == "-" else os.fspath(path)


def keep_apart(source: str | os.PathLike[str], outputs: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raises UsageError where an output would overwrite the source, or two outputs each other.

    outputs: from the option that names it to a path, ``-`` for stdout, None for nowhere. What is not a regular file
    (/dev/null, a named pipe) may be named as often as one likes.
    """
    taken: dict[str, str] = {}
    if os.fspath(source) != "-":
        taken[os.path.realpath(source)] = "the input itself"
    for option, path in outputs.items():
        if path is None:
            continue
        place = "-" if os.fspath(path) in ("-", "/dev/stdout") else os.path.realpath(path)
        if place != "-" and _written_in_place(path):
            continue
        if place in taken:
            raise UsageError(
                f"{option} {display_name(path, 'standard output')} is {taken[place]}; name another file"
            )
        taken[place] = f"where {option} goes, too"


# --- reading ---------------------------------------------------------------------------------------------


def read_blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, or of stdin for ``-``, in non-empty blocks.

    All the members of a ``.gz``, streams of an ``.xz`` and frames of a ``.zst`` are read. Raises
    BitextmineError, while iterating, for a file that cannot be read and for a damaged or truncated archive.
    """
    try:
        if os.fspath(path) == "-":
            yield from _stdin_blocks()
            return
        with open(path, "rb", buffering=0) as file:
            if compression(path):
                yield from _unpack(file, os.fspath(path))
            else:
                while block := file.read(BLOCK_BYTES):
                    yield block
    except OSError as e:
        raise _cannot_read(path, e) from None


def read_line_blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The bytes of `read_blocks`, cut anew so that each block ends with a line feed, but for the last one of a file
    that does not."""
    parts: list[bytes] = []  # since the last line feed; a list, or a huge line costs quadratic time
    for block in read_blocks(path):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, block[:cut]])
            parts = []
        if cut < len(block):
            parts.append(block[cut:])
    if parts:
        yield b"".join(parts)


def _stdin_blocks() -> Iterator[bytes]:
    if sys.stdin is None:
        raise BitextmineError("<stdin>: stdin is closed; pipe a corpus in, or name a file instead of '-'")
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:  # a text stream put in place of stdin, as tests do
        if data := sys.stdin.read().encode():
            yield data
        return
    read = getattr(buffer, "read1", buffer.read)  # what a pipe has now, not only when a block is full
    while block := read(BLOCK_BYTES):
        yield block


def _cannot_read(path: str | os.PathLike[str], e: OSError) -> BitextmineError:
    name = display_name(path)
    if isinstance(e, FileNotFoundError):
        stem = strip_compression(path)
        others = [p.name for s in ("", *COMPRESSION_SUFFIXES) if (p := Path(f"{stem}{s}")).exists()]
        hint = f"did you mean {' or '.join(others)}?" if others else "check the path"
        return BitextmineError(f"{name}: no such file; {hint}")
    if isinstance(e, IsADirectoryError):
        return BitextmineError(f"{name}: is a directory; name a text file in it")
    if isinstance(e, PermissionError):
        return BitextmineError(f"{name}: permission denied; make it readable for you (chmod u+r)")
    return BitextmineError(f"{name}: cannot read: {e.strerror or e}")


def _unpack(file: io.FileIO, name: str) -> Iterator[bytes]:
    """Decompress member after member, and insist on the end of the last one.

    The libraries' own readers differ on this: zstandard's takes a truncated file for a complete one.
    """
    suffix = compression(name)
    kind = KINDS[suffix]
    new, damage = _decompressor(suffix)
    member: Any = None
    waiting = b""  # read already, but belongs to the next member
    total = 0
    while packed := waiting or file.read(PACKED_BYTES):
        total += len(packed) - len(waiting)
        waiting = b""
        if member is None:
            if suffix != ".zst":  # padding with zero bytes between or after members is allowed
                packed = packed.lstrip(b"\0")
                if not packed:
                    continue
            member = new()
        try:
            block = member.decompress(packed)
        except damage as e:
            raise BitextmineError(
                f"{name}: not valid {kind} data ({e}); it is damaged or misnamed, check it with '{kind} -t'"
            ) from None
        if block:
            yield block
        if member.eof:
            waiting = member.unused_data
            member = None
    if total == 0:
        raise BitextmineError(f"{name}: an empty file, which is no {kind} archive; fetch or make it again")
    if member is not None:
        raise BitextmineError(
            f"{name}: truncated {kind} file: its {total:,} bytes stop in the middle of the data; "
            "fetch or make it again"
        )


def _decompressor(suffix: str) -> tuple[Callable[[], Any], type[Exception]]:
    """A maker of decompressors for one member, and what they raise for damaged data."""
    if suffix == ".gz":
        return lambda: zlib.decompressobj(wbits=31), zlib.error
    if suffix == ".xz":
        return lzma.LZMADecompressor, lzma.LZMAError
    import zstandard

    # 2 GiB, so that files of 'zstd --long=31' open too; only as much is taken as a frame asks for.
    return (lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(), zstandard.ZstdError)


# --- writing ---------------------------------------------------------------------------------------------


@overload
def open_output(
    path: str | os.PathLike[str], mode: Literal["text"] = "text"
) -> AbstractContextManager[TextIO]: ...
@overload
def open_output(
    path: str | os.PathLike[str], mode: Literal["binary"]
) -> AbstractContextManager[BinaryIO]: ...
@contextlib.contextmanager
def open_output(path: str | os.PathLike[str], mode: str = "text") -> Iterator[Any]:
    """A writer for ``with``: stdout for ``-``, else a file that appears under its name only when complete.

    The file is written beside its final place and moved there at the end (`atomic.replacing`); an exception
    removes it and leaves an earlier file of that name as it was. ``.gz``, ``.xz`` and ``.zst`` compress (byte for
    byte the same for the same text). ``mode="text"`` writes UTF-8 with ``\\n`` line ends, ``mode="binary"`` bytes.
    What is not a regular file (/dev/stderr, a named pipe) is written in place.

    Raises BitextmineError for a folder that is missing or not writable, and for a full disk.
    BrokenPipeError passes through, with stdout pointed at /dev/null so that nothing complains at exit.
    """
    if mode not in ("text", "binary"):
        raise ValueError(f"mode must be 'text' or 'binary', not {mode!r}")
    if os.fspath(path) in ("-", "/dev/stdout"):
        try:
            yield from _stdout(mode)
        except OSError as e:
            _mute_stdout(e)
            if e.errno in FULL_DISK:
                raise BitextmineError(f"<stdout>: cannot write: {e.strerror}; free some space") from None
            raise
        return

    in_place = _written_in_place(path)
    # Through a symbolic link, so that the link stays one.
    target = Path(path if in_place else os.path.realpath(path))
    if target.is_dir():
        raise BitextmineError(f"{path}: cannot write: it is a directory; name a file")
    try:
        with contextlib.ExitStack() as stack:
            try:
                raw = stack.enter_context(target.open("ab") if in_place else replacing(target))
            except OSError as e:
                raise _cannot_write(path, e) from None
            with _packed(raw, compression(path)) as packed:
                if mode == "binary":
                    yield packed
                else:
                    yield from _text_on(packed)
    except OSError as e:
        if e.errno in FULL_DISK:
            raise BitextmineError(f"{path}: cannot write: {e.strerror}; free some space") from None
        raise


def _written_in_place(path: str | os.PathLike[str]) -> bool:
    path = Path(path)
    # /dev/stderr may well be a regular file by now; moving another over it would undo the shell's '2>>'.
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _text_on(buffer: Any) -> Iterator[TextIO]:
    text = io.TextIOWrapper(buffer, encoding="utf-8", newline="\n")
    try:
        yield text
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            text.detach()  # or it would close the buffer whenever it is collected
        raise
    text.flush()
    text.detach()


def _stdout(mode: str) -> Iterator[Any]:
    if sys.stdout is None:
        raise BitextmineError("<stdout>: stdout is closed; name a file with --out")
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a text stream put in place of stdout, as tests do
        if mode == "binary":
            raise BitextmineError("<stdout>: cannot write bytes to this stdout")
        yield sys.stdout
        return
    if mode == "binary":
        yield buffer
    else:  # not sys.stdout itself: its encoding and line ends follow the locale
        yield from _text_on(buffer)
    buffer.flush()


def _mute_stdout(e: OSError) -> None:
    """After a failed write, let the interpreter's last flush go nowhere instead of failing again."""
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
    packed: Any
    if suffix == ".gz":
        import gzip

        # No name and no time in the header, so that the same text gives the same bytes.
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0)
    elif suffix == ".xz":
        packed = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 (closed below)
    else:
        import zstandard

        compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
        packed = compressor.stream_writer(raw, closefd=False)
    with packed:
        buffered = io.BufferedWriter(packed, BLOCK_BYTES)
        yield buffered
        buffered.flush()
        buffered.detach()


def _cannot_write(path: str | os.PathLike[str], e: OSError) -> BitextmineError:
    folder = Path(path).parent
    if isinstance(e, (FileNotFoundError, NotADirectoryError)):
        return BitextmineError(f"{path}: cannot write: there is no folder {folder}; create it first")
    if isinstance(e, PermissionError):
        return BitextmineError(f"{path}: cannot write: permission denied in {folder}; choose another place")
    return BitextmineError(f"{path}: cannot write: {e.strerror or e}")
