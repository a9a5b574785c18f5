"""Names of files, parsed once where a user gives them: path or URL, compression, suffix, language, stream or file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from bitextmine.files.storage import AnyPath, Remote, to_path
from bitextmine.languages.codes import is_code

ORIGIN = ".origin.tsv"
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# Suffixes that fit the shape of a language code and never are one in practice.
_TEXT = {"txt", "text", "tsv", "csv", "json", "jsonl", "xml", "html", "toml", "yaml", "yml", "md", "log"}
_PAIRS = {"tab", "tmx", "xlf", "pq"}
NOT_LANGUAGES = _TEXT | _PAIRS | {"npy", "npz", "faiss", "model", "part", "tmp", "bak", "lock"}


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
