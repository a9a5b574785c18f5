"""The two texts that are mined: corpora in files, or lines in memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpora import corpus_language, find_corpus
from bitextmine.files.lines import LineHasher, iter_lines
from bitextmine.files.storage import Place, place
from bitextmine.files.streams import read_once

__all__ = ["FileText", "LinesText", "Text", "find_text", "text_of"]

# ISO 639-2 for a language that nobody named.
UNDETERMINED = "und"
_AT_ONCE = 1024


class Text(Protocol):
    """Lines that can be read more than once, in one language."""

    @property
    def name(self) -> str:
        """What messages and manifests call it."""

    @property
    def lang(self) -> str:
        """The code of its language. Raises BitextmineError where it cannot be told."""

    def lines(self) -> Iterator[str]:
        """Every line from the first on, without line ends."""


@dataclass(frozen=True)
class FileText:
    """A corpus in a file. language: None where the name of the file tells it; errors: invalid UTF-8, strict or
    replace; sha256: the digest of its lines, once they are embedded: from then on it must stay as it was; option: what
    tells the language, for messages."""

    path: Place
    language: str | None = None
    errors: str = "strict"
    sha256: str | None = None
    option: str = "--lang"

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def lang(self) -> str:
        return corpus_language(self.path, self.language, self.option)

    def lines(self) -> Iterator[str]:
        """Raises BitextmineError after the last one where they are not those that were embedded."""
        lines = iter_lines(self.path, self.errors)
        return lines if self.sha256 is None else self._as_embedded(lines)

    def _as_embedded(self, lines: Iterator[str]) -> Iterator[str]:
        hasher = LineHasher()
        while some := list(itertools.islice(lines, _AT_ONCE)):
            hasher.update(some)
            yield from some
        if hasher.hexdigest() != self.sha256:
            raise BitextmineError(
                f"{self.path}: the text changed after it was embedded: its lines are not those that the pairs would "
                "be of; run the same command again"
            )


@dataclass(frozen=True)
class LinesText:
    """Lines in memory."""

    name: str
    sentences: Sequence[str] = field(repr=False)
    lang: str = UNDETERMINED

    def lines(self) -> Iterator[str]:
        return iter(self.sentences)


def text_of(
    lines_or_path: Iterable[str] | str | os.PathLike[str],
    name: str,
    lang: str | None = None,
    errors: str = "strict",
) -> FileText | LinesText:
    """A path (any str or PathLike) as the corpus in that file, anything else as lines in memory.

    Raises UsageError for "-", for what is neither a path nor lines, and for lines of which one is no text.
    """
    if isinstance(lines_or_path, (str, os.PathLike)):
        if not os.fspath(lines_or_path):
            raise UsageError(f"{name}: expected lines or the path of a corpus, found ''")
        if os.fspath(lines_or_path) == "-":
            raise UsageError(f"{name}: the corpus cannot be standard input: it is read more than once")
        _check_file(lines_or_path)
        return FileText(place(lines_or_path), lang, errors, option=f"{name}_lang")
    if not isinstance(lines_or_path, Iterable):
        raise UsageError(f"{name}: expected lines or the path of a corpus, found {lines_or_path!r}")
    lines = list(lines_or_path)
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise UsageError(
                f"{name}: line {number} is {line!r}, not a text; leave such lines out, or put ''"
            )
    return LinesText(name, lines, lang or UNDETERMINED)


def find_text(
    side: str,
    lang: str | None,
    path: str | os.PathLike[str] | None,
    directory: str | os.PathLike[str] = ".",
    name: str | None = None,
    errors: str = "strict",
) -> FileText:
    """The corpus that a command line names: the file itself, or the one in that language in a folder.

    side: "source" or "target", for messages. name: which of several corpora in the folder. Raises UsageError where
    neither is given and for standard input, BitextmineError where no corpus or more than one fits.
    """
    if path is not None:
        if os.fspath(path) == "-":
            option = "--src-file" if side == "source" else "--tgt-file"
            raise UsageError(
                f"{option}: the {side} corpus cannot be standard input: it is read more than once"
            )
        _check_file(path)
        return FileText(place(path), lang, errors, option="--src" if side == "source" else "--tgt")
    if lang is None:
        raise UsageError(f"no {side} corpus: give its language or its file")
    return FileText(find_corpus(directory, lang, name), lang, errors)


def _check_file(path: str | os.PathLike[str]) -> None:
    """Raises UsageError for a pipe."""
    if read_once(path):
        raise UsageError(
            f"{path}: a pipe can be read once, and mining reads a corpus several times; name a file (.gz, .xz and .zst "
            "are unpacked on the way), or put what comes out of the pipe into one"
        )
