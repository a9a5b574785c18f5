"""The sentences of retrieval: queries in several languages, distractors, and directions between languages."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.source import COMPRESSION_SUFFIXES, Source
from bitextmine.languages.codes import is_code
from bitextmine.mining.dedup import line_key

# The same sentences in several languages: row i of each list translates row i of the others.
Queries = dict[str, list[str]]


def read_queries(path: str | os.PathLike[str]) -> Queries:
    """Read a TSV file with a header of languages and one sentence per row in each; BitextmineError names a bad row."""
    lines = Source.of(path).lines()
    header = next(lines, "")
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
                f"{path}: line {number}: {counted(len(cells), 'cell')}, but the header has "
                f"{counted(len(languages), 'language')}"
            )
        for language, column, cell in zip(languages, columns, cells, strict=True):
            if not line_key(cell):
                raise BitextmineError(f"{path}: line {number}: no sentence in '{language}'")
            column.append(cell)
    if not columns[0]:
        raise BitextmineError(f"{path}: no row after the header")
    return dict(zip(languages, columns, strict=True))


def queries_of(sentences: Mapping[str, Sequence[str]]) -> Queries:
    """Return queries from lists of sentences by language; raise as `read_queries`, UsageError for no text."""
    if len(sentences) < 2:
        raise BitextmineError(f"queries: {len(sentences)} language(s); two or more are needed")
    columns: Queries = {}
    for language, lines in sentences.items():
        if not isinstance(language, str) or not is_code(language):
            raise BitextmineError(f"queries: {language!r} is not a language code, such as fr or pt-BR")
        columns[language] = list(sentences_of(lines, "queries", language))
        for number, line in enumerate(columns[language], start=1):
            if not line_key(line):
                raise BitextmineError(f"queries: row {number}: no sentence in '{language}'")
    counts = {language: len(lines) for language, lines in columns.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        sizes = ", ".join(f"{count} in '{language}'" for language, count in counts.items())
        raise BitextmineError(f"queries: {sizes}; every language needs as many sentences, and at least one")
    return columns


def sentences_of(given: Iterable[str], argument: str, language: str) -> Iterator[str]:
    """Yield the sentences given for a language, each on one line; UsageError for a file name, or for no text."""
    if isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Iterable):
        raise UsageError(f"{argument}: expected a list of sentences for '{language}', found {given!r}")
    for number, line in enumerate(given, start=1):
        if not isinstance(line, str):
            raise UsageError(f"{argument}: sentence {number} of '{language}' is {line!r}, not a text")
        yield one_cell(line)


def find_distractors(folder: str | os.PathLike[str], language: str) -> Path | None:
    """Return ``distractors.LANG.txt`` or ``distractors.LANG`` in a folder, plain or compressed; None if missing."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BitextmineError(f"{folder}: not a folder; it should hold distractors.LANG.txt files")
    names = (f"distractors.{language}.txt", f"distractors.{language}")
    paths = (folder / (name + suffix) for name in names for suffix in ("", *COMPRESSION_SUFFIXES))
    return next((path for path in paths if path.is_file()), None)


def language_pairs(wanted: str, languages: Sequence[str], of: str = "the queries") -> list[tuple[str, str]]:
    """Return directions: ``en-fr,fr-en`` -> [(en, fr), (fr, en)]; ``all``: to and from English, or the first language.

    `of` names the owner of the languages in messages.
    """
    if not isinstance(wanted, str):
        raise UsageError(f"pairs: expected text such as 'en-fr,fr-en' or 'all', found {wanted!r}")
    if wanted == "all":
        pivot = "en" if "en" in languages else languages[0]
        rest = [lang for lang in languages if lang != pivot]
        return [pair for lang in rest for pair in ((pivot, lang), (lang, pivot))]
    every = itertools.permutations(languages, 2)
    known = {f"{src}-{tgt}": (src, tgt) for src, tgt in every}  # a language may hold a hyphen, as pt-BR does
    words = list(dict.fromkeys(word.strip() for word in wanted.split(",")))
    if unknown := [word for word in words if word not in known]:
        raise BitextmineError(
            f"pairs: {unknown[0]!r} is no pair of different languages of {of}; there are {', '.join(languages)}, "
            "to be written like en-fr,fr-en"
        )
    return [known[word] for word in words]
