"""Corpora: one sentence per line, UTF-8, plain or compressed, ``-`` for stdin; and their names.

A line ends at a line feed and nowhere else, so that line *i* here is line *i* for ``wc``, ``sed`` and
``paste``: U+2028, U+0085, form feeds and bare carriage returns stay inside their line.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bitextmine.errors import BitextmineError, InvalidUtf8
from bitextmine.files.streams import compression, display_name, open_output, read_blocks, strip_compression
from bitextmine.languages.codes import is_code

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
NOT_LANGUAGES = {
    "txt",
    "text",
    "tsv",
    "csv",
    "json",
    "jsonl",
    "xml",
    "html",
    "toml",
    "yaml",
    "yml",
    "md",
    "log",
}
NOT_LANGUAGES |= {"npy", "npz", "faiss", "model", "part", "tmp", "bak", "lock"}


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
    return _lines(path, errors)


def _lines(path: str | os.PathLike[str], errors: str) -> Iterator[str]:
    name = display_name(path)
    done = 0
    parts: list[bytes] = []  # the bytes since the last newline; a list, or a huge line costs quadratic time
    for block in read_blocks(path):
        cut = block.rfind(b"\n")
        if cut < 0:
            parts.append(block)
            continue
        parts.append(block[:cut])
        text = _decode(b"".join(parts), errors, name, done)
        lines = text.split("\n")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        parts = [block[cut + 1 :]] if cut + 1 < len(block) else []
        done += len(lines)
        yield from lines
    if parts and (text := _decode(b"".join(parts), errors, name, done)):
        yield text.removesuffix("\r")


def _decode(raw: bytes, errors: str, name: str, lines_before: int) -> str:
    """Decode whole lines at once (a newline byte is never part of another UTF-8 character)."""
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
    """All the lines of a corpus, as `iter_lines` yields them."""
    return list(iter_lines(path, errors))


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
    return strip_compression(path)


def corpus_language(path: str | os.PathLike[str], override: str | None = None) -> str:
    """The language of a corpus: ``override`` if given, else the last suffix before any compression suffix.

    Raises BitextmineError when the name tells no language.
    """
    if override:
        return override
    if os.fspath(path) == "-":
        raise BitextmineError("<stdin>: stdin has no name to take a language from; pass --lang")
    stem = corpus_stem(path)
    language = _language_suffix(stem)
    if language is None:
        found = f"'{stem.suffix}' is not a language code" if stem.suffix else "the name has no suffix"
        raise BitextmineError(
            f"{path}: no language: {found}; name it like corpus.fr (or corpus.fr.gz), or pass --lang"
        )
    return language


def _language_suffix(stem: Path) -> str | None:
    suffix = stem.suffix[1:]
    if not is_code(suffix) or suffix.lower() in NOT_LANGUAGES:
        return None
    return suffix


def find_corpus(directory: str | os.PathLike[str], lang: str, name: str | None = None) -> Path:
    """The one corpus of a language in a folder (its subfolders are not searched).

    ``name`` picks one of several: ``corpus`` for ``corpus.fr``, or the whole file name. Of a file and its
    compressed copy the first in plain text is taken. Raises BitextmineError when none fits or several do, and
    when such a copy holds another text, or is damaged.
    """
    directory = Path(directory)
    by_language = _corpora(directory)
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
            seen = ", ".join(sorted({corpus_stem(p).stem for p in found}))
            raise BitextmineError(
                f"{directory}: no corpus '{name}' in language '{lang}'; names seen there: {seen}"
            )
        found = [p for p in named if p.name == name] or named
    names = ", ".join(p.name for p in found)
    if len({corpus_stem(p) for p in found}) > 1:
        raise BitextmineError(
            f"{directory}: {len(found)} corpora in language '{lang}': {names}; "
            f"choose one with --name, as in --name {corpus_stem(found[0]).stem}"
        )
    if len(found) > 1 and not _same_bytes(found):
        raise BitextmineError(
            f"{directory}: {names} are one corpus by their names, but hold different texts; remove what is old, or "
            "name the file itself, with --src-file or --tgt-file"
        )
    return min(found, key=lambda p: bool(compression(p)))


def _same_bytes(paths: Iterable[Path]) -> bool:
    """Whether files hold the same text, once decompressed; no for one that is damaged."""
    digests = set()
    for path in paths:
        digest = hashlib.sha256()
        try:
            for block in read_blocks(path):
                digest.update(block)
        except BitextmineError:
            return False
        digests.add(digest.digest())
    return len(digests) == 1


def _corpora(directory: Path) -> dict[str, list[Path]]:
    """The files of a folder whose names tell a language, by language, sorted."""
    by_language: dict[str, list[Path]] = {}
    try:
        for path in sorted(directory.iterdir()):
            language = _language_suffix(corpus_stem(path))
            if language and not path.name.startswith(".") and path.is_file():
                by_language.setdefault(language, []).append(path)
    except OSError as e:
        raise BitextmineError(
            f"{directory}: cannot list the folder: {e.strerror or e}; check --dir"
        ) from None
    return by_language
