"""Files of sentence pairs with human similarity ratings."""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.layout import as_number
from bitextmine.files.lines import iter_lines
from bitextmine.files.streams import display_name, strip_compression
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
NOT_LANGUAGES = {"csv", "tsv", "txt", "sts", "dev", "tst", "val", "trn"}


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


def read_gold_pairs(path: str | os.PathLike[str], errors: str = "strict") -> GoldPairs:
    """Read a file of sentence pairs with gold scores, comma- or tab-separated as its first line is.

    Columns are named by a header, or are sentence1, sentence2, score (or score, sentence1, sentence2), or those of the
    STS benchmark. Comma-separated cells may be quoted, tab-separated ones are literal. BitextmineError: a row of
    another shape, a score that is no finite number, a blank sentence, or fewer than three pairs.
    """
    where = display_name(path)
    rows = _rows(iter_lines(path, errors), where)
    number, cells = next(rows, (0, []))
    if not cells:
        raise BitextmineError(f"{where}: empty; {FORMATS}")
    columns, exact, is_header = _columns(cells, f"{where}: line {number}")
    if not is_header:
        rows = itertools.chain([(number, cells)], rows)
    width = len(cells)
    first, second, gold, lines = [], [], [], []
    for number, cells in rows:
        at = f"{where}: line {number}"
        if len(cells) != width if exact else len(cells) <= max(columns):
            wanted = f"{width}" if exact else f"{max(columns) + 1} or more"
            raise BitextmineError(f"{at}: {counted(len(cells), 'cell')}, not {wanted}; {FORMATS}")
        one, two, score = (cells[column] for column in columns)
        first.append(_sentence(one, at))
        second.append(_sentence(two, at))
        gold.append(_number(score, at))
        lines.append(number)
    name, language = _name(path)
    return _checked(GoldPairs(where, name, language, first, second, np.array(gold), lines))


def gold_pairs_of(pairs: Iterable[Sequence[Any]], language: str) -> GoldPairs:
    """Return pairs from rows (sentence1, sentence2, score); raise as `read_gold_pairs`, UsageError for a bad row."""
    if isinstance(pairs, (str, bytes, os.PathLike, Mapping)) or not isinstance(pairs, Iterable):
        raise UsageError(
            f"sts: expected rows (sentence1, sentence2, score) for {language!r}, found {pairs!r}"
        )
    first, second, gold = [], [], []
    for number, row in enumerate(pairs, start=1):
        at = f"{language}: row {number}"
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence) or len(row) != 3:
            raise UsageError(f"{at}: expected (sentence1, sentence2, score), found {row!r}")
        if not isinstance(row[0], str) or not isinstance(row[1], str):
            raise UsageError(f"{at}: expected two texts and a score, found {row!r}")
        first.append(_sentence(row[0], at))
        second.append(_sentence(row[1], at))
        gold.append(_number(row[2], at))
    lines = list(range(1, len(first) + 1))
    return _checked(GoldPairs(language, "", language, first, second, np.array(gold), lines))


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
        next((names.index(name) for name in known if name in names), None) for known in (FIRST, SECOND, SCORE)
    ]
    if named[0] is not None and named[1] is not None and named[2] is not None:
        return (named[0], named[1], named[2]), True, True
    if len(cells) == 3:
        first = math.isfinite(as_number(cells[0])) and not math.isfinite(as_number(cells[2]))
        return ((1, 2, 0) if first else (0, 1, 2)), True, False
    if len(cells) > max(BENCHMARK):
        return BENCHMARK, False, False
    raise BitextmineError(f"{at}: {counted(len(cells), 'cell')}; {FORMATS}")


def _number(given: Any, at: str) -> float:
    try:
        found = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise BitextmineError(f"{at}: the gold score {given!r} is not a finite number")
    return found


def _sentence(text: str, at: str) -> str:
    if not text.strip():
        raise BitextmineError(f"{at}: a sentence is blank")
    return text


def _checked(pairs: GoldPairs) -> GoldPairs:
    if len(pairs) < FEWEST:
        raise BitextmineError(
            f"{pairs.where}: {len(pairs)} sentence pairs; a correlation needs {FEWEST} or more"
        )
    if (pairs.gold == pairs.gold[0]).all():
        raise BitextmineError(
            f"{pairs.where}: every gold score is {pairs.gold[0]:g}: there is nothing to correlate with"
        )
    return pairs


def _name(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the name and the language of a set from a file's name.

    stsb.de.dev.csv and stsb-de-dev.csv are German, and sts17.en-de.tsv has English first and German second sentences.
    """
    if os.fspath(path) == "-":
        return "-", ""
    stem = strip_compression(path).name
    stem = re.sub(r"(?i)(?<=.)\.(csv|tsv|txt)$", "", stem)
    dotted = stem.split(".")
    for at in range(len(dotted) - 1, 0, -1):
        part = dotted[at]
        if part not in NOT_LANGUAGES and (
            is_short_code(part) or re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", part)
        ):
            return ".".join(dotted[:at] + dotted[at + 1 :]), part
    between = list(re.finditer(r"(?<=[-_])[a-z]{2}(-[a-z]{2})?(?=[-_.]|$)", stem))
    if not between:
        return stem, ""
    last = between[-1]
    return stem[: last.start()].rstrip("-_") + stem[last.end() :], last[0]
