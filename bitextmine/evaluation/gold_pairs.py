"""Sentence pairs with human similarity ratings, in files as benchmarks are published."""

import csv
import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import finite
from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.files.source import NOT_LANGUAGES, Source
from bitextmine.languages.codes import is_short_code

# Names of columns in the headers of GLUE, sentence-transformers and SICK.
FIRST = ("sentence1", "sentence_1", "sentence_a", "text1")
SECOND = ("sentence2", "sentence_2", "sentence_b", "text2")
SCORE = ("score", "similarity_score", "similarity", "relatedness_score", "label")

# genre, file, year, number, score, sentence1, sentence2, and perhaps sources: the STS benchmark as it is published
BENCHMARK = (5, 6, 4)
FORMATS = "a row is sentence1, sentence2, score (or the score first), the seven columns of the STS benchmark, or has a "
FORMATS += "header with sentence1, sentence2, score"

FEWEST = 3
# Parts of the names of benchmarks that have the form of a language code.
PARTS = {"sts", "dev", "tst", "val", "trn"}


@dataclass(frozen=True)
class GoldPairs:
    """Sentence pairs with human similarity ratings `gold` (n,) float64, and the line of each.

    `where` is the file, for messages; `name` that of the set, the file's without language and suffix; `language` "" if
    unknown, "en-de" if the sides differ.
    """

    where: str
    name: str
    language: str
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.first)


def read_gold_pairs(path: str | os.PathLike[str]) -> GoldPairs:
    """Read a file of sentence pairs with gold scores, comma- or tab-separated as its first line is.

    Columns are named by a header, or are sentence1, sentence2, score (or score, sentence1, sentence2), or those of the
    STS benchmark. Comma-separated cells may be quoted, tab-separated ones are literal. BitextmineError: a row of
    another shape, a score that is no finite number, a blank sentence, or fewer than three pairs.
    """
    source = Source.of(path)
    where = str(source)
    first, second, gold, lines = [], [], [], []
    for number, (sentence1, sentence2, score) in _pairs(_rows(source.lines(), where), where):
        at = f"{where}: line {number}"
        if not sentence1.strip() or not sentence2.strip():
            raise BitextmineError(f"{at}: a sentence is blank")
        if math.isnan(value := finite(score)):
            raise BitextmineError(f"{at}: the gold score {score!r} is not a finite number")
        first.append(sentence1)
        second.append(sentence2)
        gold.append(value)
        lines.append(number)
    if len(gold) < FEWEST:
        raise BitextmineError(f"{where}: {len(gold)} sentence pairs; a correlation needs {FEWEST} or more")
    if len(set(gold)) == 1:
        raise BitextmineError(f"{where}: every gold score is {gold[0]:g}: there is nothing to correlate with")
    return GoldPairs(where, *_name(source), first, second, np.array(gold), lines)


def _pairs(rows: Iterator[tuple[int, list[str]]], where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of each row of a file, and its two sentences and score."""
    number, cells = next(rows, (0, []))
    if not cells:
        raise BitextmineError(f"{where}: empty; {FORMATS}")
    columns, exact, is_header = _columns(cells, f"{where}: line {number}")
    if not is_header:
        rows = itertools.chain([(number, cells)], rows)
    width = len(cells)
    for number, cells in rows:
        if len(cells) != width if exact else len(cells) <= max(columns):
            wanted = f"{width}" if exact else f"{max(columns) + 1} or more"
            raise BitextmineError(
                f"{where}: line {number}: {counted(len(cells), 'cell')}, not {wanted}; {FORMATS}"
            )
        yield number, [cells[column] for column in columns]


def _rows(lines: Iterator[str], where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line (from 1) on which each row ends, and its cells."""
    before: list[str] = []
    for line in lines:
        before.append(line)
        if line.strip():
            break
    numbered = enumerate(itertools.chain(before, lines), start=1)
    if before and before[-1].count("\t") >= 2:
        yield from ((number, text.split("\t")) for number, text in numbered if text.strip())
        return
    reader = csv.reader((f"{text}\n" for _, text in numbered), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))
    except csv.Error as e:
        at = f"{where}: line {reader.line_num}"
        raise BitextmineError(f"{at}: not a row of comma-separated cells: {e}") from None


def _columns(cells: Sequence[str], at: str) -> tuple[tuple[int, int, int], bool, bool]:
    """Return the columns of sentences and score, and flags: all rows have as many cells; this is a header."""
    names = [cell.strip().lower() for cell in cells]
    named = [
        next((names.index(name) for name in variants if name in names), None)
        for variants in (FIRST, SECOND, SCORE)
    ]
    if named[0] is not None and named[1] is not None and named[2] is not None:
        return (named[0], named[1], named[2]), True, True
    if len(cells) == 3:
        first = not math.isnan(finite(cells[0])) and math.isnan(finite(cells[2]))
        return ((1, 2, 0) if first else (0, 1, 2)), True, False
    if len(cells) > max(BENCHMARK):
        return BENCHMARK, False, False
    raise BitextmineError(f"{at}: {counted(len(cells), 'cell')}; {FORMATS}")


def _name(source: Source) -> tuple[str, str]:
    """Return the name and the language of a set from a file's name.

    stsb.de.dev.csv and stsb-de-dev.csv are German, and sts17.en-de.tsv has English first and German second sentences.
    """
    if source.is_standard:
        return "-", ""
    stem = re.sub(r"(?i)(?<=.)\.(csv|tsv|txt)$", "", source.stem.name)
    dotted = stem.split(".")
    for at in range(len(dotted) - 1, 0, -1):
        part = dotted[at]
        is_code = is_short_code(part) or re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", part)
        if is_code and part not in NOT_LANGUAGES | PARTS:
            return ".".join(dotted[:at] + dotted[at + 1 :]), part
    between = list(re.finditer(r"(?<=[-_])[a-z]{2}(-[a-z]{2})?(?=[-_.]|$)", stem))
    if not between:
        return stem, ""
    last = between[-1]
    return stem[: last.start()].rstrip("-_") + stem[last.end() :], last[0]
