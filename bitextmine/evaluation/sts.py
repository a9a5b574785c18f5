"""Semantic textual similarity: the correlation of cosines with human similarity ratings of sentence pairs.

Spearman's correlation, not Pearson's (Reimers, Beyer and Gurevych 2016, "Task-oriented intrinsic evaluation of semantic
textual similarity", say why), with the 95% percentile interval of the bootstrap. Files of as many pairs are resampled
at the same places, so that means have intervals, too.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import a_path, finite, whole_number
from bitextmine.console import counted
from bitextmine.declarations import keywords
from bitextmine.display import Shown
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.pools import language_pairs
from bitextmine.evaluation.report import FileName, Report, cut_note, percent
from bitextmine.files.source import Source
from bitextmine.languages.codes import is_code, is_short_code
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


@dataclass(frozen=True)
class StsResult:
    """Spearman's correlation on one set of pairs, from -1 to 1, with its 95% interval.

    `name` is that of the set, or "mean"; `languages` en, or en-de for first and second sentences of two languages, ""
    if unknown; for a mean "within" or "across".
    """

    name: str
    languages: str
    spearman: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class StsReport(Report, Shown):
    """Results per file, then per direction across languages; and the mean of either, if there are several."""

    kind: ClassVar[str] = "sts evaluation"

    results: tuple[StsResult, ...]
    means: tuple[StsResult, ...]

    def __repr__(self) -> str:
        return f"<StsReport: {counted(len(self.results), 'result')}, {self.signature}>"

    def to_table(self, tabs: bool = False) -> str:
        """Return correlations times 100: aligned for a terminal, or tab-separated without remarks."""
        return self._table(
            tabs,
            ["set", "languages", "Spearman", "low", "high", "pairs"],
            [
                [r.name or "-", r.languages or "-", *percent(r.spearman, r.low, r.high), str(r.pairs)]
                for r in (*self.results, *self.means)
            ],
            "Spearman's correlation x 100 of cosine and gold, with the bootstrap's 95% interval",
        )


@keywords
def evaluate_sts(
    files: FileName | Sequence[FileName] | Mapping[str, Iterable[Sequence[Any]]],
    *,
    pairs: str | None = None,
    pivot: str | None = "en",
    model: FileName | Encoder = "auto",
    resamples: int = 2000,
    seed: int = 1,
    run: Run,
) -> StsReport:
    """Measure Spearman's correlation of cosines with human similarity ratings, as ``evaluate sts`` does.

    `files` are comma- or tab-separated sentence pairs with gold scores (`read_gold_pairs`), the language in the name,
    as stsb.de.csv; or for each language rows (sentence1, sentence2, score). `pairs` are directions across languages:
    en-de takes the first sentences of the English file and the second ones of the German file of the same set, whose
    gold scores must be equal; "all" means to and from `pivot` (the first language for "en" if there is no English).
    Further keywords are those of `bitextmine.run.Run`.

    Returns:
        A report with results and means (name, languages, spearman, low, high, pairs; from -1 to 1), ``to_frame()``,
        ``to_dict()``, ``to_table()``, signature and notes.

    Raises:
        BitextmineError: an unreadable file, a bad score, a blank sentence, files of one set that differ, or an unknown
            direction.
        UsageError: an argument of the wrong type.

    >>> rows = [("A dog barks.", "A dog is barking.", 4.8), ("A dog barks.", "The train is late.", 0.1)]
    >>> rows.append(("He eats bread.", "He eats meat.", 2.2))
    >>> evaluate_sts({"en": rows}).to_frame()[["languages", "spearman", "pairs"]].to_dict("list")
    {'languages': ['en'], 'spearman': [1.0], 'pairs': [3]}
    """
    resamples, seed = whole_number("resamples", resamples), whole_number("seed", seed, 0)
    sets = _sets(files, run)
    measured = [(one, one.first, one.second, one.language) for one in sets]
    if pairs is not None:
        measured += _across(sets, pairs, pivot)
    from bitextmine.encoder import as_encoder

    encoder = as_encoder(choose_model(model, (one.language for one in sets)), run.device)
    sides = [(first, second) for _, first, second, _ in measured]
    cosines, cut = _cosines(encoder, sides, run.batch_tokens)
    columns = [(found, one.gold) for found, (one, *_) in zip(cosines, measured, strict=True)]
    draws = redrawn(columns, resamples, seed)
    results: list[StsResult] = []
    notes = []
    for (one, _, _, languages), column, drawn in zip(measured, columns, draws, strict=True):
        found = spearman(*column)
        if np.isnan(found):
            found, drawn[:] = 0.0, 0.0
            name = " ".join(filter(None, (one.name, languages)))
            notes.append(f"{name}: all cosines are equal: there is no correlation, counted as 0")
        results.append(StsResult(one.name, languages, found, *_interval(drawn), len(one)))
    means = []
    for name, part in (("within", slice(0, len(sets))), ("across", slice(len(sets), None))):
        several = results[part]
        if len(several) > 1:
            mean = float(np.mean([r.spearman for r in several]))
            interval = _interval(np.mean(draws[part], axis=0))
            means.append(StsResult("mean", name, mean, *interval, sum(r.pairs for r in several)))
    return StsReport(
        tuple(results),
        tuple(means),
        signature=signature(
            task="sts",
            measure="spearman-cosine",
            pairs=sum(len(one) for one in sets),
            interval="bootstrap-95",
            resamples=resamples,
            seed=seed,
            model=encoder.hash,
        ),
        notes=(*notes, *cut_note(cut, "sentence", encoder.max_pieces)),
    )


def _sets(
    files: FileName | Sequence[FileName] | Mapping[str, Iterable[Sequence[Any]]], run: Run
) -> list[GoldPairs]:
    if isinstance(files, Mapping):
        wrong = next((key for key in files if not isinstance(key, str) or not is_code(key)), None)
        if wrong is not None:
            raise UsageError(f"sts: {wrong!r} is not a language code, such as fr or pt-BR")
        found = [gold_pairs_of(rows, language) for language, rows in files.items()]
    elif isinstance(files, (str, os.PathLike)):
        found = [read_gold_pairs(Source.of(a_path("files", files), run))]
    elif isinstance(files, Sequence):
        if sum(isinstance(path, str) and path == "-" for path in files) > 1:
            raise UsageError("sts: standard input (-) can be read once only")
        found = [read_gold_pairs(Source.of(a_path("files", path), run)) for path in files]
    else:
        raise UsageError(f"files: expected files, or rows by language, found {files!r}")
    if not found:
        raise UsageError("sts: no file is given")
    return found


def _across(
    sets: Sequence[GoldPairs], pairs: str, pivot: str | None
) -> list[tuple[GoldPairs, list[str], list[str], str]]:
    """Return for each direction and set: its gold, first sentences, second sentences, and the direction."""
    languages = list(dict.fromkeys(one.language for one in sets if one.language))
    if len(languages) < 2:
        raise BitextmineError(
            f"pairs {pairs}: two languages are needed, and the file names tell "
            f"{languages[0] if languages else 'none'}; name them like stsb.en.csv and stsb.de.csv"
        )
    by_place: dict[tuple[str, str], GoldPairs] = {}
    for one in sets:
        twin = by_place.setdefault((one.name, one.language), one)
        if twin is not one and one.language:
            raise BitextmineError(
                f"{one.where}: the set '{one.name}' in '{one.language}' is {twin.where} already; with pairs across "
                "languages there can be one only"
            )
    found = []
    for src, tgt in language_pairs(pairs, languages, pivot, of="the files"):
        names = [one.name for one in sets if one.language == src and (one.name, tgt) in by_place]
        if not names:
            raise BitextmineError(
                f"pairs {src}-{tgt}: no file in '{src}' has one in '{tgt}' of the same name but for the language"
            )
        for name in names:
            first, second = by_place[name, src], by_place[name, tgt]
            _check_alike(first, second)
            found.append((first, first.first, second.second, f"{src}-{tgt}"))
    return found


def _check_alike(a: GoldPairs, b: GoldPairs) -> None:
    if len(a) != len(b):
        raise BitextmineError(
            f"{a.where} has {len(a):,} pairs, {b.where} has {len(b):,}: they are not the same in two languages"
        )
    other = np.flatnonzero(a.gold != b.gold)
    if len(other):
        i = int(other[0])
        raise BitextmineError(
            f"{b.where}: line {b.lines[i]}: the gold score is {b.gold[i]:g}, but {a.gold[i]:g} in {a.where}, line "
            f"{a.lines[i]}: these are not the same pairs in two languages"
        )


def _cosines(
    encoder: Encoder, sides: Sequence[tuple[list[str], list[str]]], batch_tokens: int | None
) -> tuple[list[NDArray[np.float64]], int]:
    """Return the cosines of row i with row i for each pair of sides, and the number of distinct sentences cut."""
    row: dict[str, int] = {}
    places = [
        [np.array([row.setdefault(line, len(row)) for line in side]) for side in both] for both in sides
    ]
    pieces, cut, _ = encoder.tokenize(list(row))
    vectors = encoder.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float64)
    # The cosine of equal sentences must be 1 to the bit, so that they tie.
    squares = np.einsum("ij,ij->i", vectors, vectors)
    found = []
    for a, b in places:
        products = np.einsum("ij,ij->i", vectors[a], vectors[b])
        length = np.sqrt(squares[a] * squares[b])
        found.append(np.divide(products, length, out=np.zeros(len(a)), where=length > 0))
    return found, cut


def _interval(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95% of correlations, without NaN."""
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return -1.0, 1.0
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


# --- files of pairs ---

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


def read_gold_pairs(path: str | os.PathLike[str]) -> GoldPairs:
    """Read a file of sentence pairs with gold scores, comma- or tab-separated as its first line is.

    Columns are named by a header, or are sentence1, sentence2, score (or score, sentence1, sentence2), or those of the
    STS benchmark. Comma-separated cells may be quoted, tab-separated ones are literal. BitextmineError: a row of
    another shape, a score that is no finite number, a blank sentence, or fewer than three pairs.
    """
    source = Source.of(path)
    where = str(source)
    return _gold_pairs((where, *_name(source)), _pairs(_rows(source.lines(), where), where), "line")


def gold_pairs_of(pairs: Iterable[Sequence[Any]], language: str) -> GoldPairs:
    """Return pairs from rows (sentence1, sentence2, score); raise as `read_gold_pairs`, UsageError for a bad row."""
    if isinstance(pairs, (str, bytes, os.PathLike, Mapping)) or not isinstance(pairs, Iterable):
        raise UsageError(
            f"sts: expected rows (sentence1, sentence2, score) for {language!r}, found {pairs!r}"
        )

    def checked() -> Iterator[tuple[int, Sequence[Any]]]:
        for number, row in enumerate(pairs, start=1):
            at = f"{language}: row {number}"
            if isinstance(row, (str, bytes)) or not isinstance(row, Sequence) or len(row) != 3:
                raise UsageError(f"{at}: expected (sentence1, sentence2, score), found {row!r}")
            if not isinstance(row[0], str) or not isinstance(row[1], str):
                raise UsageError(f"{at}: expected two texts and a score, found {row!r}")
            yield number, row

    return _gold_pairs((language, "", language), checked(), "row")


def _gold_pairs(
    names: tuple[str, str, str], rows: Iterable[tuple[int, Sequence[Any]]], noun: str
) -> GoldPairs:
    """Return the pairs of numbered rows (sentence1, sentence2, score); names: the first three fields."""
    where = names[0]
    first, second, gold, lines = [], [], [], []
    for number, (one, two, score) in rows:
        at = f"{where}: {noun} {number}"
        if not one.strip() or not two.strip():
            raise BitextmineError(f"{at}: a sentence is blank")
        if math.isnan(value := finite(score)):
            raise BitextmineError(f"{at}: the gold score {score!r} is not a finite number")
        first.append(one)
        second.append(two)
        gold.append(value)
        lines.append(number)
    if len(gold) < FEWEST:
        raise BitextmineError(f"{where}: {len(gold)} sentence pairs; a correlation needs {FEWEST} or more")
    if len(set(gold)) == 1:
        raise BitextmineError(f"{where}: every gold score is {gold[0]:g}: there is nothing to correlate with")
    return GoldPairs(*names, first, second, np.array(gold), lines)


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
        next((names.index(name) for name in known if name in names), None) for known in (FIRST, SECOND, SCORE)
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
    stem = source.stem.name
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


# --- correlations ---

# The numbers in the largest array of resamples.
BLOCK = 1 << 21


def spearman(x: NDArray, y: NDArray) -> float:
    """Return Spearman's correlation of x (n,) and y (n,), that is Pearson's of their ranks; ties share their mean rank.

    NaN if all values of x or of y are equal.
    """
    return float(_correlations(_Column(x), _Column(y), np.ones((1, len(x)), dtype=np.int64))[0])


def redrawn(columns: Sequence[tuple[NDArray, NDArray]], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return correlations (columns, resamples) of pairs resampled with replacement.

    Each of `columns` is x (n,) and y (n,); columns of one length are drawn at the same places. A draw of only equal
    values gives NaN.
    """
    found = np.empty((len(columns), resamples))
    for n in {len(x) for x, _ in columns}:
        ready = [(at, _Column(x), _Column(y)) for at, (x, y) in enumerate(columns) if len(x) == n]
        rng = np.random.default_rng(seed)
        rows = max(1, BLOCK // n)
        for start in range(0, resamples, rows):
            stop = min(start + rows, resamples)
            times = rng.multinomial(n, np.full(n, 1 / n), size=stop - start)
            for at, x, y in ready:
                found[at, start:stop] = _correlations(x, y, times)
    return found


class _Column:
    """Values to be ranked again and again, with other numbers of copies each time."""

    def __init__(self, values: NDArray) -> None:
        self._order = np.argsort(values, kind="stable")
        _, self._starts, self._group = np.unique(values[self._order], return_index=True, return_inverse=True)
        self._place = np.empty(len(values), dtype=np.int64)
        self._place[self._order] = self._group

    def centred(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ranks (b, n) less the mean of all ranks, for times[:, i] copies of value i."""
        each = np.add.reduceat(times[:, self._order], self._starts, axis=1)
        # Copies from rank r to rank s share (r + s) / 2, and the mean of all ranks is (n + 1) / 2.
        ranks = np.cumsum(each, axis=1) - (each + len(self._place)) / 2
        return ranks[:, self._place]


def _correlations(x: _Column, y: _Column, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return correlations (b,) for times[:, i] copies of pair i."""
    a, b = x.centred(times), y.centred(times)
    weighted = a * times
    both = np.einsum("ij,ij->i", weighted, b)
    squares = np.einsum("ij,ij->i", weighted, a) * np.einsum("ij,ij,ij->i", b, b, times)
    return np.divide(both, np.sqrt(squares), out=np.full(len(both), np.nan), where=squares > 0)
