"""Corpora on disk: one sentence per line, UTF-8, plain or compressed, ``-`` for stdin and stdout.

A line ends at a line feed and nowhere else, so that line *i* here is line *i* for ``wc``, ``sed`` and
``paste``: U+2028, U+0085, form feeds and bare carriage returns stay inside their line.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import lzma
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TextIO, overload

from bitextmine.errors import BitextmineError

__all__ = [
    "LineHasher",
    "corpus_language",
    "corpus_stem",
    "find_corpus",
    "iter_lines",
    "line_digest",
    "open_output",
    "read_lines",
]

COMPRESSION_SUFFIXES = (".gz", ".xz", ".zst")

BLOCK_BYTES = 1 << 18
# Compressed bytes taken at a time: small, because a decompressor hands back all they expand to.
PACKED_BYTES = 1 << 16
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# First bytes of what people feed to a tool by mistake, and what to do about each.
MAGIC = (
    (b"\x1f\x8b", "it looks like gzip: name it .gz, or pipe it through 'gzip -dc'"),
    (b"\xfd7zXZ\x00", "it looks like xz: name it .xz, or pipe it through 'xz -dc'"),
    (b"\x28\xb5\x2f\xfd", "it looks like zstd: name it .zst, or pipe it through 'zstd -dc'"),
    (b"BZh", "it looks like bzip2: pipe it through 'bzip2 -dc'"),
    (b"PK\x03\x04", "it looks like a zip archive: unpack it first"),
    (b"\xff\xfe", "it looks like UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
    (b"\xfe\xff", "it looks like UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
    (b"\x93NUMPY", "it is a NumPy array: give the text file instead"),
)

# Suffixes that fit the shape of a language code and never are one in practice.
NOT_LANGUAGES = frozenset(
    "txt text tsv csv json jsonl xml html toml yaml yml md log npy npz faiss model part tmp bak lock".split()
)
LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")


def iter_lines(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[str]:
    """Yield the lines of a corpus, without their line ends, reading no more than a block ahead.

    ``path`` is a file (``.gz``, ``.xz`` and ``.zst`` are decompressed by their suffix, through all their
    members or frames) or ``-`` for stdin. One carriage return before the line feed goes, as does a byte
    order mark at the start of the file; a missing final newline is no matter; an empty file has no lines.

    ``errors="strict"`` refuses invalid UTF-8, ``errors="replace"`` puts U+FFFD in its place and keeps the
    number of lines. Raises BitextmineError, while iterating, for a file that cannot be opened or read, for
    invalid UTF-8 (naming the line) and for an archive that is damaged or cut short.
    """
    if errors not in ("strict", "replace"):
        raise ValueError(f"errors must be 'strict' or 'replace', not {errors!r}")
    name = display_name(path)
    done = 0
    parts: list[bytes] = []  # the bytes since the last newline; a list, so that a huge line costs linear time
    for block in _blocks(path):
        cut = block.rfind(b"\n")
        if cut < 0:
            parts.append(block)
            continue
        parts.append(block[:cut])
        lines = _decode(b"".join(parts), errors, name, done).split("\n")
        parts = [block[cut + 1 :]] if cut + 1 < len(block) else []
        done += len(lines)
        yield from _without_cr(lines)
    if parts:
        text = _decode(b"".join(parts), errors, name, done)
        if text:
            yield text.removesuffix("\r")


def read_lines(path: str | os.PathLike[str], errors: str = "strict") -> list[str]:
    """All the lines of a corpus, as `iter_lines` yields them."""
    return list(iter_lines(path, errors))


def display_name(path: str | os.PathLike[str]) -> str:
    """How messages call this input: its path, or ``<stdin>``."""
    return "<stdin>" if os.fspath(path) == "-" else os.fspath(path)


def _decode(raw: bytes, errors: str, name: str, lines_before: int) -> str:
    """Decode whole lines at once (a newline byte is never part of another UTF-8 character)."""
    try:
        text = raw.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        line = lines_before + raw.count(b"\n", 0, e.start) + 1
        column = e.start - raw.rfind(b"\n", 0, e.start)
        hint = next(
            (f"; {advice}" for magic, advice in MAGIC if not lines_before and raw.startswith(magic)), None
        )
        if hint is None:
            hint = "; fix the file, or pass --errors replace to read such bytes as U+FFFD"
        raise BitextmineError(
            f"{name}: line {line}: invalid UTF-8: byte 0x{raw[e.start]:02x} at byte {column} of the line ({e.reason}){hint}"
        ) from None
    return text.removeprefix("\ufeff") if not lines_before else text


def _without_cr(lines: list[str]) -> list[str]:
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def _blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The decompressed bytes of a file or of stdin, in non-empty blocks."""
    name = display_name(path)
    try:
        if os.fspath(path) == "-":
            yield from _stdin_blocks()
            return
        suffix = _compression(path)
        with open(path, "rb", buffering=0) as file:
            if suffix:
                yield from _unpack(file, suffix, name)
            else:
                while block := file.read(BLOCK_BYTES):
                    yield block
    except OSError as e:
        raise _cannot_read(path, e) from None


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
        stem = corpus_stem(path)
        others = [p.name for s in ("", *COMPRESSION_SUFFIXES) if (p := Path(f"{stem}{s}")).exists()]
        hint = f"; did you mean {' or '.join(others)}?" if others else "; check the path"
        return BitextmineError(f"{name}: no such file{hint}")
    if isinstance(e, IsADirectoryError):
        return BitextmineError(f"{name}: is a directory; name a text file in it")
    if isinstance(e, PermissionError):
        return BitextmineError(f"{name}: permission denied; make it readable for you (chmod u+r)")
    return BitextmineError(f"{name}: cannot read: {e.strerror or e}")


# --- compression -----------------------------------------------------------------------------------------


def _compression(path: str | os.PathLike[str]) -> str:
    """The compression suffix of a path, or an empty string."""
    suffix = Path(path).suffix
    return suffix if suffix in COMPRESSION_SUFFIXES else ""


def _unpack(file: io.FileIO, suffix: str, name: str) -> Iterator[bytes]:
    """Decompress member after member, and insist on the end of the last one.

    The three libraries' own readers differ on this: zstandard's takes a truncated file for a complete one.
    """
    new = _decompressor(suffix)
    kind = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}[suffix]
    member, waiting, total = None, b"", 0  # waiting: read, but belongs to the next member
    while True:
        packed = waiting or file.read(PACKED_BYTES)
        waiting = b""
        total += len(packed)
        if not packed:
            break
        if member is None:
            if suffix != ".zst":  # tar and tape tools pad with zero bytes
                packed = packed.lstrip(b"\0")
                if not packed:
                    continue
            member = new()
        try:
            block = member.decompress(packed)
        except (zlib.error, lzma.LZMAError, *_zstd_errors(suffix)) as e:
            raise BitextmineError(
                f"{name}: not valid {kind} data ({e}); the file is damaged or misnamed, check it with '{kind} -t'"
            ) from None
        if block:
            yield block
        if member.eof:
            waiting = member.unused_data
            total -= len(waiting)
            member = None
    if member is not None or total == 0:
        raise BitextmineError(
            f"{name}: truncated {kind} file: it ends after {total:,} bytes, in the middle of the data; "
            "fetch or make it again"
        )


def _decompressor(suffix: str) -> Callable[[], Any]:
    if suffix == ".gz":
        return lambda: zlib.decompressobj(wbits=31)
    if suffix == ".xz":
        return lzma.LZMADecompressor
    import zstandard

    # 2 GiB, so that files of 'zstd --long=31' open too; only as much is taken as a frame asks for.
    return lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


def _zstd_errors(suffix: str) -> tuple[type[Exception], ...]:
    if suffix != ".zst":
        return ()
    import zstandard

    return (zstandard.ZstdError,)


# --- digests ---------------------------------------------------------------------------------------------


class LineHasher:
    """SHA-256 over lines, each followed by a line feed, in UTF-8: the same for a .gz and its plain text."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.lines = 0

    def update(self, lines: Iterable[str]) -> None:
        """Add lines (which hold no line feed)."""
        rest = iter(lines)
        while chunk := list(itertools.islice(rest, 4096)):
            self.lines += len(chunk)
            chunk.append("")
            self._hash.update("\n".join(chunk).encode("utf-8", "surrogatepass"))

    def hexdigest(self) -> str:
        """64 hexadecimal digits."""
        return self._hash.hexdigest()


def line_digest(lines: Iterable[str]) -> str:
    """The SHA-256 (64 hexadecimal digits) of a text, given as its lines; streams."""
    hasher = LineHasher()
    hasher.update(lines)
    return hasher.hexdigest()


# --- names -----------------------------------------------------------------------------------------------


def corpus_stem(path: str | os.PathLike[str]) -> Path:
    """The path without its compression suffix: ``corpus.fr.gz`` -> ``corpus.fr``."""
    path = Path(path)
    return path.with_suffix("") if _compression(path) else path


def corpus_language(path: str | os.PathLike[str], override: str | None = None) -> str:
    """The language of a corpus: ``override`` if given, else the last suffix before any compression suffix.

    Raises BitextmineError when the name tells no language.
    """
    if override:
        return override
    if os.fspath(path) == "-":
        raise BitextmineError("<stdin>: stdin has no name to take a language from; pass --lang")
    language = _language_suffix(corpus_stem(path))
    if language is None:
        suffix = corpus_stem(path).suffix
        found = f"'{suffix}' is not a language code" if suffix else "the name has no suffix"
        raise BitextmineError(
            f"{path}: no language: {found}; name it like corpus.fr (or corpus.fr.gz), or pass --lang"
        )
    return language


def _language_suffix(stem: Path) -> str | None:
    suffix = stem.suffix[1:]
    if not LANGUAGE.fullmatch(suffix) or suffix.lower() in NOT_LANGUAGES:
        return None
    return suffix


def find_corpus(directory: str | os.PathLike[str], lang: str, name: str | None = None) -> Path:
    """The one corpus of a language in a folder (its subfolders are not searched).

    ``name`` picks one of several: ``corpus`` for ``corpus.fr``, or the whole file name. A plain file is
    preferred to a compressed one of the same name. Raises BitextmineError when none fits or several do.
    """
    directory = Path(directory)
    try:
        files = sorted(p for p in directory.iterdir() if p.is_file())
    except OSError as e:
        raise BitextmineError(
            f"{directory}: cannot list the folder: {e.strerror or e}; check --dir"
        ) from None
    by_language: dict[str, list[Path]] = {}
    for path in files:
        language = _language_suffix(corpus_stem(path))
        if language and not path.name.startswith("."):
            by_language.setdefault(language, []).append(path)

    found = by_language.get(lang, [])
    if not found:
        seen = ", ".join(sorted(by_language)) or "none"
        raise BitextmineError(
            f"{directory}: no corpus in language '{lang}' (no file NAME.{lang} or NAME.{lang}.gz|xz|zst); "
            f"languages seen there: {seen}"
        )
    if name is not None:
        named = [p for p in found if name in (corpus_stem(p).stem, corpus_stem(p).name, p.name)]
        if not named:
            names = ", ".join(sorted({corpus_stem(p).stem for p in found}))
            raise BitextmineError(
                f"{directory}: no corpus '{name}' in language '{lang}'; names seen there: {names}"
            )
        exact = [p for p in named if p.name == name]
        found = exact or named
    if len({corpus_stem(p) for p in found}) > 1:
        names = ", ".join(p.name for p in found)
        raise BitextmineError(
            f"{directory}: {len(found)} corpora in language '{lang}': {names}; "
            f"choose one with --name, as in --name {corpus_stem(found[0]).stem}"
        )
    plain = [p for p in found if not _compression(p)]
    if len(found) > 1 and not plain:
        names = ", ".join(p.name for p in found)
        raise BitextmineError(
            f"{directory}: the same corpus twice: {names}; remove one, or pass its name to --name"
        )
    return plain[0] if plain else found[0]


# --- output ----------------------------------------------------------------------------------------------


@overload
def open_output(
    path: str | os.PathLike[str], mode: Literal["text"] = "text"
) -> contextlib.AbstractContextManager[TextIO]: ...
@overload
def open_output(
    path: str | os.PathLike[str], mode: Literal["binary"]
) -> contextlib.AbstractContextManager[BinaryIO]: ...
@contextlib.contextmanager
def open_output(path: str | os.PathLike[str], mode: str = "text") -> Iterator[Any]:
    """A writer for ``with``: stdout for ``-``, else a file that appears under its name only when complete.

    The file is written beside its final place and moved there at the end; an exception removes it and
    leaves an earlier file of that name as it was. ``.gz``, ``.xz`` and ``.zst`` compress (byte for byte the
    same for the same text). ``mode="text"`` writes UTF-8 with ``\\n`` line ends, ``mode="binary"`` bytes.
    What is not a regular file (/dev/null, a named pipe) is written in place.

    Raises BitextmineError for a folder that is missing or not writable, and for a full disk.
    BrokenPipeError passes through.
    """
    if mode not in ("text", "binary"):
        raise ValueError(f"mode must be 'text' or 'binary', not {mode!r}")
    if os.fspath(path) == "-":
        with _full_disk("<stdout>"):
            yield from _stdout(mode)
        return
    # Through a symbolic link, so that the link stays one.
    target = Path(os.path.realpath(path))
    in_place = target.exists() and not target.is_file()
    temporary = target if in_place else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        raw = open(temporary, "wb")
    except OSError as e:
        raise _cannot_write(path, e) from None
    try:
        with _full_disk(os.fspath(path)), raw:
            with _packed(raw, _compression(path)) as packed:
                if mode == "binary":
                    yield packed
                else:
                    text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
                    yield text
                    text.flush()
                    text.detach()
            raw.flush()
            if not in_place:
                os.fsync(raw.fileno())
        if not in_place:
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
    except BaseException:
        if not in_place:
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise


def _stdout(mode: str) -> Iterator[Any]:
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a text stream put in place of stdout, as tests do
        if mode == "binary":
            raise BitextmineError("<stdout>: cannot write bytes to this stdout")
        yield sys.stdout
        return
    if mode == "binary":
        yield buffer
    else:
        # Not sys.stdout itself: its encoding and line ends follow the locale.
        text = io.TextIOWrapper(buffer, encoding="utf-8", newline="\n")
        try:
            yield text
            text.flush()
        finally:
            with contextlib.suppress(OSError):
                text.detach()  # or closing it would close stdout
    buffer.flush()


@contextlib.contextmanager
def _packed(raw: IO[bytes], suffix: str) -> Iterator[Any]:
    if not suffix:
        yield raw
        return
    packed: Any
    if suffix == ".gz":
        import gzip

        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0)
    elif suffix == ".xz":
        packed = lzma.LZMAFile(raw, "wb")
    else:
        import zstandard

        packed = zstandard.ZstdCompressor(level=10, write_checksum=True).stream_writer(raw, closefd=False)
    try:
        with io.BufferedWriter(packed, BLOCK_BYTES) as buffered:
            yield buffered
    finally:
        packed.close()


@contextlib.contextmanager
def _full_disk(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if e.errno not in FULL_DISK:
            raise
        raise BitextmineError(
            f"{name}: cannot write: {e.strerror}; nothing was left there, free some space"
        ) from None


def _cannot_write(path: str | os.PathLike[str], e: OSError) -> BitextmineError:
    target = Path(path)
    if isinstance(e, FileNotFoundError) or (isinstance(e, NotADirectoryError)):
        return BitextmineError(f"{path}: cannot write: there is no folder {target.parent}; create it first")
    if isinstance(e, IsADirectoryError) or target.is_dir():
        return BitextmineError(f"{path}: cannot write: it is a directory; name a file")
    if isinstance(e, PermissionError):
        return BitextmineError(f"{path}: cannot write: permission denied in {target.parent}")
    return BitextmineError(f"{path}: cannot write: {e.strerror or e}")
