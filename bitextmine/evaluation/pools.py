"""What retrieval is evaluated on: queries in several languages, each in its pool of sentences."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.cells import one_cell
from bitextmine.files.lines import iter_lines
from bitextmine.languages.codes import is_code
from bitextmine.mining.dedup import line_key

__all__ = ["Queries", "find_distractors", "language_pairs", "queries_of", "read_queries", "sentences_of"]

COMPRESSED = ("", ".zst", ".xz", ".bz2", ".gz")


@dataclass(frozen=True)
class Queries:
    """The same sentences in several languages: sentences[language][i] are translations of each other."""

    sentences: dict[str, list[str]]

    @property
    def languages(self) -> list[str]:
        """In the order of the file's columns."""
        return list(self.sentences)

    def __len__(self) -> int:
        return len(next(iter(self.sentences.values())))


def read_queries(path: str | os.PathLike[str], errors: str = "strict") -> Queries:
    """Read a TSV file with a header of languages and one sentence per row in each of them.

    Raises BitextmineError, naming the line, for a header of fewer than two or of repeated languages, for a
    row of another number of cells, for an empty cell, and for a file without a row.
    """
    lines = iter_lines(path, errors)
    header = next(lines, None)
    if header is None:
        raise BitextmineError(
            f"{path}: empty; expected a header of languages, then one sentence per row in each"
        )
    languages = [cell.strip() for cell in header.split("\t")]
    if len(languages) < 2 or not all(map(is_code, languages)) or len(set(languages)) < len(languages):
        raise BitextmineError(
            f"{path}: line 1: expected a header of two or more languages between tabs, like 'en<tab>fr', "
            f"found {header[:60]!r}"
        )
    columns: list[list[str]] = [[] for _ in languages]
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(languages):
            raise BitextmineError(
                f"{path}: line {number}: {counted(len(cells), 'cell')}, "
                f"but the header has {counted(len(languages), 'language')}"
            )
        for language, column, cell in zip(languages, columns, cells, strict=True):
            if not line_key(cell):
                raise BitextmineError(f"{path}: line {number}: no sentence in '{language}'")
            column.append(cell)
    if not columns[0]:
        raise BitextmineError(f"{path}: no row after the header")
    return Queries(dict(zip(languages, columns, strict=True)))


def queries_of(sentences: Mapping[str, Sequence[str]]) -> Queries:
    """Queries out of lists of sentences by language, row i of each a translation of row i of the others.

    Tabs and line breaks in a sentence become spaces. Raises BitextmineError for fewer than two languages, for what is
    no code of a language, for lists of different lengths, and for an empty sentence or one that is no text.
    """
    if len(sentences) < 2:
        raise BitextmineError(
            f"queries: {len(sentences)} language(s); there must be two or more to look up between"
        )
    columns: dict[str, list[str]] = {}
    for language, lines in sentences.items():
        if not isinstance(language, str) or not is_code(language):
            raise BitextmineError(f"queries: {language!r} is not the code of a language, such as fr or pt-BR")
        columns[language] = list(sentences_of(lines, "queries", language))
        for number, line in enumerate(columns[language], start=1):
            if not line_key(line):
                raise BitextmineError(f"queries: row {number}: no sentence in '{language}'")
    counts = {language: len(lines) for language, lines in columns.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        found = ", ".join(f"{count} in '{language}'" for language, count in counts.items())
        raise BitextmineError(f"queries: {found}; every language needs as many sentences, and at least one")
    return Queries(columns)


def sentences_of(given: Iterable[str], what: str, language: str) -> Iterator[str]:
    """The sentences that were given for a language, each on one line: tabs and line breaks become spaces.

    Raises UsageError for one text instead of many (a file's name, it may be), and, while iterating, for a sentence that
    is no text.
    """
    if isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Iterable):
        raise UsageError(f"{what}: expected a list of sentences for '{language}', found {given!r}")
    return _each_on_one_line(given, what, language)


def _each_on_one_line(given: Iterable[str], what: str, language: str) -> Iterator[str]:
    for number, line in enumerate(given, start=1):
        if not isinstance(line, str):
            raise UsageError(f"{what}: sentence {number} of '{language}' is {line!r}, not a text")
        yield one_cell(line)


def find_distractors(folder: str | os.PathLike[str], language: str) -> Path | None:
    """The file ``distractors.LANG.txt`` (or ``distractors.LANG``), plain or compressed, in a folder; None without.

    Raises BitextmineError when the folder is none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BitextmineError(f"{folder}: no such folder; it should hold distractors.LANG.txt files")
    for name, suffix in itertools.product(
        (f"distractors.{language}.txt", f"distractors.{language}"), COMPRESSED
    ):
        path = folder / (name + suffix)
        if path.is_file():
            return path
    return None


def language_pairs(
    wanted: str, languages: Sequence[str], pivot: str | None = None, of: str = "the queries"
) -> list[tuple[str, str]]:
    """``en-fr,fr-en`` -> [(en, fr), (fr, en)]; ``all``: both ways between the pivot and each other language.

    The pivot "en", which is what nobody chose, is the first language where there is no English. Without a pivot ``all``
    means every ordered pair. ``of``: whose languages these are, for messages. Raises
    BitextmineError for a language that is not there.
    """
    if not isinstance(wanted, str):
        raise UsageError(f"pairs: expected text such as 'en-fr,fr-en' or 'all', found {wanted!r}")
    if wanted == "all":
        if pivot is None:
            return list(itertools.permutations(languages, 2))
        if pivot == "en" and pivot not in languages:
            pivot = languages[0]
        if pivot not in languages:
            raise BitextmineError(f"pivot '{pivot}': no such language; there are {', '.join(languages)}")
        others = [lang for lang in languages if lang != pivot]
        return [pair for lang in others for pair in ((pivot, lang), (lang, pivot))]
    pairs = []
    for word in wanted.split(","):
        src, tgt = _split_pair(word.strip(), languages, of)
        if (src, tgt) not in pairs:
            pairs.append((src, tgt))
    return pairs


def _split_pair(word: str, languages: Sequence[str], of: str) -> tuple[str, str]:
    for src, tgt in itertools.permutations(
        languages, 2
    ):  # a language itself may hold a hyphen, as pt-BR does
        if word == f"{src}-{tgt}":
            return src, tgt
    raise BitextmineError(
        f"pairs: {word!r} is no pair of different languages of {of}; there are {', '.join(languages)}, "
        "to be written like en-fr,fr-en"
    )
