"""A corpus in one language: opened, decoded and hashed once per command; found by its language in a folder.

``corpus.fr`` and ``corpus.fr.gz`` are in French.

Every later stage (embedding, cleaning, rescoring, output) takes the lines from here, so that a file that changes
meanwhile cannot give a wrong pair. The text is packed as UTF-8, in memory up to a limit and in a temporary file above.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import FULL_DISK
from bitextmine.files.source import Location, Source, line_digest, origin_path
from bitextmine.files.storage import AnyPath, to_path
from bitextmine.languages.codes import UNDETERMINED, same_code

# A spool of more bytes moves into a temporary file.
IN_MEMORY = 1 << 26
_BLOCK_LINES = 1 << 12


class Spool:
    """Bytes appended in order and read from anywhere: in memory, above a limit in a temporary file."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: Any = None
        self.size = 0

    def append(self, data: bytes | memoryview) -> None:
        """Add bytes at the end; BitextmineError if the temporary folder is full."""
        self.size += len(data)
        try:
            if self._file is None and self.size > IN_MEMORY:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the spool)
                self._file.write(self._memory)
                self._memory = bytearray()
            if self._file is None:
                self._memory += data
            else:
                self._file.write(data)
        except OSError as e:
            if e.errno not in FULL_DISK:
                raise
            raise BitextmineError(
                f"{tempfile.gettempdir()}: no room for {self.size:,} bytes of a corpus ({e.strerror}); free some "
                "space, or name another folder with $TMPDIR"
            ) from None

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`."""
        if self._file is None:
            return bytes(self._memory[start:stop])
        self._file.flush()
        return os.pread(self._file.fileno(), stop - start, start)

    def as_array(self, dtype: Any) -> NDArray[Any]:
        """Return all bytes as an array, mapped if they are in a file; append nothing after this."""
        if self._file is None:
            return np.frombuffer(self._memory, dtype=dtype)
        self._file.flush()
        return np.memmap(self._file, dtype=dtype, mode="r")


class Corpus:
    """The lines of a text in one language; read on first use, once.

    Args:
        source: a corpus in a file, or the lines themselves.
        language: its code (None: the suffix of the file name tells it).
        name: what messages and manifests call it (default: the file's name).
        option: the option that gives the language, for messages.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str],
        language: str | None = None,
        *,
        name: str | None = None,
        option: str = "--lang",
    ) -> None:
        self.source = Source.of(source) if isinstance(source, (str, os.PathLike)) else None
        self._sentences = None if isinstance(source, (str, os.PathLike)) else source
        self._language, self._name, self._option = language, name, option
        self._spool: Spool | None = None
        self._ends: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._sha256: str | None = None
        self._derived: dict[Any, Any] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Corpus) or self.source is None:
            return self is other
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key()) if self.source is not None else id(self)

    def _key(self) -> tuple[object, ...]:
        return self.source, self._language

    @property
    def path(self) -> AnyPath | None:
        """Return the path of the file; None for lines in memory."""
        return None if self.source is None else self.source.path

    @property
    def name(self) -> str:
        """Return the name for messages and manifests."""
        return self._name or (self.source.path.name if self.source is not None else "lines")

    @property
    def lang(self) -> str:
        """Return the code of the language; BitextmineError if a file's name does not tell it."""
        if self.source is None:
            return self._language or UNDETERMINED
        return corpus_language(self.source, self._language, self._option)

    @property
    def sha256(self) -> str:
        """Return the digest of the lines (`line_digest`)."""
        if self._sentences is None:
            self._read()
        elif self._sha256 is None:
            self._sha256 = line_digest(self._sentences)
        assert self._sha256 is not None
        return self._sha256

    def __len__(self) -> int:
        if self._sentences is not None:
            return len(self._sentences)
        self._read()
        return len(self._ends) - 1

    def lines(self, start: int = 0) -> Iterator[str]:
        """Yield the lines from number `start` on; BitextmineError if the file cannot be read or decoded."""
        if self._sentences is not None:
            yield from self._sentences[start:] if start else self._sentences
            return
        spool = self._read()
        for first in range(start, len(self), _BLOCK_LINES):
            last = min(first + _BLOCK_LINES, len(self))
            text = spool.read(int(self._ends[first]), int(self._ends[last])).decode()
            yield from text[:-1].split("\n")

    __iter__ = lines

    def take(self, numbers: NDArray[np.int64]) -> Iterator[str]:
        """Yield the lines of these numbers (from 0), in this order; IndexError if there is no such line."""
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(self):
            raise IndexError(f"{self.name} has {len(self):,} lines, asked for {int(numbers.max()) + 1:,}")
        if self._sentences is not None:
            yield from (self._sentences[i] for i in numbers.tolist())
            return
        spool = self._read()
        for first in range(0, len(numbers), _BLOCK_LINES):
            block = numbers[first : first + _BLOCK_LINES]
            for start, stop in zip(self._ends[block].tolist(), self._ends[block + 1].tolist(), strict=True):
                yield spool.read(start, stop - 1).decode()

    def origins(self) -> Corpus:
        """Return the lines of NAME.LANG.origin.tsv, which `split` writes beside a corpus: line i is of line i.

        BitextmineError if there is none, or it has another number of lines.
        """
        if self.source is None:
            raise BitextmineError(f"{self.name}: only a corpus in a file has an origin beside it")
        path = origin_path(self.source)
        if not path.exists():
            raise BitextmineError(
                f"{self.name}: no {path.name} beside it, which 'split -o' writes; leave --origin out"
            )
        beside = replace(self.source, text=str(path))
        origins = Corpus(beside, self.lang)
        if len(origins) != len(self):
            raise BitextmineError(
                f"{origins.name}: {len(origins):,} lines, but {self.name} has {len(self):,}; make both with one 'split'"
            )
        return origins

    def places(self, rows: Iterable[int] | NDArray[np.int64]) -> Iterator[str]:
        """Yield where lines are from: the URL, or else the document, and the numbers of paragraph and sentence."""
        for origin in self.origins().take(np.asarray(rows, dtype=np.int64)):
            document, url, paragraph, sentence = f"{origin}\t\t\t".split("\t")[:4]
            yield f"{url or document} {paragraph}.{sentence}"

    def derive(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` computes from the lines; later calls with the same key return the first result."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def _read(self) -> Spool:
        if self._spool is None:
            spool, digest, ends, size = Spool(), hashlib.sha256(), array("q", [0]), 0
            assert self.source is not None
            for text in self.source.text_blocks():
                raw = text.encode()
                digest.update(raw)
                spool.append(raw)
                feeds = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == ord("\n")) + (size + 1)
                ends.frombytes(feeds.astype(np.int64).tobytes())
                size += len(raw)
            self._ends = np.frombuffer(ends, dtype=np.int64)
            self._sha256, self._spool = digest.hexdigest(), spool
        return self._spool


# --- corpora by name ---


def corpus_language(path: str | os.PathLike[str], override: str | None = None, option: str = "--lang") -> str:
    """Return the language of a corpus: `override`, else the last suffix before any compression suffix.

    Raises BitextmineError, which names the `option` of the override, when the name tells no language.
    """
    if override:
        return override
    source = Source.of(path)
    if source.is_standard:
        raise BitextmineError(f"<stdin>: stdin has no name to take a language from; pass {option}")
    if source.lang is None:
        if Path(source).is_dir():
            raise BitextmineError(f"{source}: is a directory; name a text file in it")
        suffix = source.stem.suffix
        problem = f"'{suffix}' is not a language code" if suffix else "the name has no suffix"
        raise BitextmineError(
            f"{source}: no language: {problem}; name it like corpus.fr (or corpus.fr.gz)"
            + (f", or pass {option}" if option else "")
        )
    return source.lang


def find_corpus(directory: str | os.PathLike[str], lang: str, name: str | None = None) -> Location:
    """Return the one corpus of a language in a folder, without its subfolders.

    If no file has that code, a file with another code of the same language counts: fr, fra and fr-FR. `name` chooses
    among several.

    Raises:
        BitextmineError: there is none, or more than one.
    """
    directory = to_path(directory)
    by_language = _corpora(directory)
    same = [code for code in by_language if same_code(code) == same_code(lang)]
    # The very code first: a folder may hold pt-BR and pt-PT.
    corpora = by_language.get(lang) or [file for code in same for file in by_language[code]]
    if not corpora:
        seen = ", ".join(sorted(by_language)) or "none"
        raise BitextmineError(
            f"{directory}: no corpus in language '{lang}' (no file NAME.{lang}, plain or compressed); "
            f"languages seen there: {seen}"
        )
    if name is not None:
        seen = ", ".join(sorted({file.stem.stem for file in corpora}))
        corpora = [file for file in corpora if name in (file.stem.stem, file.stem.name, file.path.name)]
        if not corpora:
            raise BitextmineError(
                f"{directory}: no corpus '{name}' in language '{lang}'; names seen there: {seen}"
            )
        corpora = [file for file in corpora if file.path.name == name] or corpora
    if len(corpora) > 1:
        remedy = f"choose one with --name, as in --name {corpora[0].stem.stem}"
        if len({file.stem for file in corpora}) == 1:
            remedy = "remove what is old, or give both corpora as files"
        names = ", ".join(file.path.name for file in corpora)
        raise BitextmineError(f"{directory}: {len(corpora)} corpora in language '{lang}': {names}; {remedy}")
    return corpora[0]


def _corpora(directory: AnyPath) -> dict[str, list[Location]]:
    """Return the files of a folder whose names tell a language, by language, sorted."""
    by_language: dict[str, list[Location]] = {}
    with explained(f"{directory}: cannot list the folder", "; check --dir"):
        for path in sorted([*directory.iterdir()], key=str):
            file = Location.of(path)
            if file.lang and not path.name.startswith(".") and path.is_file():
                by_language.setdefault(file.lang, []).append(file)
    return by_language
