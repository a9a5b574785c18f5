"""One pass over a file of sentence pairs that keeps the content of the report."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import progress
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.table import Block, Malformed, Rows, open_table
from bitextmine.files.source import Source
from bitextmine.scoring.columns.catalogue import PairTexts, Tools, log_lengths
from bitextmine.scoring.compute import good_rows
from bitextmine.scoring.judge import Fewest

T = TypeVar("T")

SAMPLE = 2000
SEED = 1
LENGTH_FACTOR = 2.0
SHORT, BOTH_SHORT = 8, 20  # characters

_BLOCK, _BLOCK_BYTES = 1 << 13, 1 << 22
_TEXT = 400  # characters of a text that are kept
_ENDS = 5  # pairs shown from either end and from either side of the threshold
_SHOWN = 5  # pairs shown for each reason for doubt
_PER_LEVEL = 3
_LEVELS = (0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)
_LETTER = re.compile("[A-Za-z]|[^\x00-\x7f]")


class Pair(NamedTuple):
    """A row: its line number, score (NaN for none), texts (cut), their full lengths, and their origins, if told."""

    row: int
    score: float
    src: str
    tgt: str
    src_length: int
    tgt_length: int
    origin: tuple[str, ...] = ()


class Sample(Generic[T]):
    """A uniform random sample of at most `size` items of a stream (reservoir sampling), the same in every run."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seen = 0
        self.items: list[T] = []
        self._random = np.random.default_rng(seed)

    def offer(self, n: int, make: Callable[[int], T]) -> None:
        """Offer the next n items; make(i) makes the i-th one if it is drawn."""
        first = min(n, max(self.size - self.seen, 0))
        self.items += map(make, range(first))
        if first < n:
            ranks = np.arange(self.seen + first, self.seen + n)
            slots = np.floor(self._random.random(len(ranks)) * (ranks + 1)).astype(np.int64)
            for j in np.flatnonzero(slots < self.size).tolist():
                self.items[int(slots[j])] = make(first + j)
        self.seen += n


class Scores:
    """All finite scores of a file, 8 bytes a score."""

    def __init__(self) -> None:
        self._parts = [np.empty(0)]

    def add(self, scores: NDArray[np.float64]) -> None:
        """Add scores (n,)."""
        self._parts.append(scores)

    @property
    def values(self) -> NDArray[np.float64]:
        """Return the scores, ascending."""
        if len(self._parts) > 1:
            self._parts = [np.sort(np.concatenate(self._parts))]
        return self._parts[0]

    def at_least(self, threshold: float) -> int:
        """Return how many scores reach the threshold."""
        return len(self.values) - int(np.searchsorted(self.values, threshold))

    def quantile(self, share: float) -> float:
        """Return the score that a share (0 to 1) of the scores do not exceed; NaN without scores."""
        if not len(self.values):
            return math.nan
        return float(np.quantile(self.values, share, method="inverted_cdf"))


# Reasons to doubt a pair whatever its score: they take the columns of n pairs and the usual ratio of target to source
# length, and return bool (n,). report.html.j2 explains them.
Test = Callable[[PairTexts, float], NDArray[np.bool_]]


def _lettered(pairs: PairTexts) -> NDArray[np.bool_]:
    """Return the pairs (n,) whose column letters is above 0, without counting."""
    return pairs.each(lambda s, t: bool(_LETTER.search(s) and _LETTER.search(t))) > 0


def _length(pairs: PairTexts, usual: float) -> NDArray[np.bool_]:
    return (np.abs(log_lengths(pairs, usual)) > math.log(LENGTH_FACTOR)) & (pairs.column("shorter") > 0)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.casefold()))


TESTS: dict[str, Test] = {
    "empty": lambda pairs, usual: pairs.column("shorter") == 0,
    "no_letters": lambda pairs, usual: ~_lettered(pairs) & (pairs.column("shorter") > 0),
    "copy": lambda pairs, usual: (
        pairs.each(lambda s, t: _letters(s) == _letters(t) != "").astype(bool) & _lettered(pairs)
    ),
    "short": lambda pairs, usual: (
        (pairs.column("shorter") < SHORT) & (pairs.column("longer") < BOTH_SHORT) & _lettered(pairs)
    ),
    "length": _length,
    "digits": lambda pairs, usual: pairs.column("numbers") < 0.5,
}


class Survey:
    """The content of the report, complete after the last block.

    Attributes:
        table: the file.
        threshold: the score to count at.
        odd_scores: how many cells of the score column have no finite number, and the first line of one.
        usual_ratio: the median ratio of target to source length in the first block.
        doubts: how many rows each of TESTS flags, and those that score highest.
        doubted: the rows with a flag.
    """

    def __init__(self, table: Rows, threshold: float | None) -> None:
        self.table, self.threshold = table, threshold
        self.rows, self.doubted, self.usual_ratio = 0, 0, 1.0
        self._tools = Tools()
        self.scores, self.odd_scores = Scores(), (0, 0)
        self.doubts = {key: (0, Fewest[Pair](_SHOWN)) for key in TESTS}
        self.malformed = Malformed(table)
        self.sample: Sample[Pair] = Sample(SAMPLE, SEED)
        self.above, self.below = Fewest[Pair](_ENDS), Fewest[Pair](_ENDS)
        self._best, self._worst = Fewest[Pair](_ENDS), Fewest[Pair](_ENDS)

    def add(self, block: Block) -> None:
        """Count the rows of a block."""
        layout, good = self.table.layout, good_rows(block)
        self.malformed.add(block)
        if not len(good):
            return
        lines = (good + block.start + int(self.table.header_line)).tolist()
        src, tgt = block.texts(layout.src, good), block.texts(layout.tgt, good)
        score = np.full(len(good), np.nan)
        if layout.score is not None:
            score = block.numbers(layout.score, good)
            if len(odd := np.flatnonzero(~np.isfinite(score))):
                score[odd] = np.nan
                self.odd_scores = self.odd_scores[0] + len(odd), self.odd_scores[1] or lines[odd[0]]
        columns = [layout.places[name] for name in ("src_origin", "tgt_origin") if name in layout.places]

        def pair(i: int) -> Pair:
            origin = tuple(block.texts(column, good[i : i + 1])[0][:_TEXT] for column in columns)
            texts = src[i][:_TEXT], tgt[i][:_TEXT]
            return Pair(lines[i], float(score[i]), *texts, len(src[i]), len(tgt[i]), origin)

        self.scores.add(score[~np.isnan(score)])
        self._best.offer(-score, pair)
        self._worst.offer(score, pair)
        if self.threshold is not None:
            reached = score >= self.threshold
            self.above.offer(np.where(reached, score, np.nan), pair)
            self.below.offer(np.where(reached, np.nan, -score), pair)
        pairs = PairTexts(src, tgt, self._tools)
        if self.rows == 0:
            self.usual_ratio = float(np.exp(np.median(log_lengths(pairs))))
        # Without scores the first rows are the examples.
        order = np.where(np.isnan(score), np.inf, -score)
        doubted = np.zeros(len(good), dtype=bool)
        for key, test in TESTS.items():
            flag = test(pairs, self.usual_ratio)
            count, best = self.doubts[key]
            best.offer(np.where(flag, order, np.nan), pair)
            self.doubts[key] = count + int(flag.sum()), best
            doubted |= flag
        self.doubted += int(doubted.sum())
        self.sample.offer(len(good), pair)
        self.rows += len(good)

    def levels(self) -> list[tuple[str, list[Pair]]]:
        """Return names and pairs from the best to the worst score: the ends of the file, and sampled rows between."""
        if not len(self.scores.values):
            first = sorted(self.sample.items)
            return [("", first[:: max(len(first) // (2 * _ENDS), 1)][: 2 * _ENDS])] if first else []
        ranked = sorted((p for p in self.sample.items if p.score == p.score), key=lambda p: (-p.score, p.row))
        best = self._best.items
        worst = [pair for pair in reversed(self._worst.items) if pair not in best]
        shown = {pair.row for pair in [*best, *worst]}
        levels = [("The best", best)]
        for level in _LEVELS:
            part = min(level, 1 - level)
            if part * len(ranked) < _PER_LEVEL:
                continue  # in a small file the ends say it all
            at = max(round((1 - level) * len(ranked)) - 1, 0)
            chosen = [pair for pair in ranked[at : at + 2 * _ENDS] if pair.row not in shown][:_PER_LEVEL]
            shown.update(pair.row for pair in chosen)
            end = "top" if level > 0.5 else "bottom"
            levels.append(
                ("Around the median" if level == 0.5 else f"Around the {end} {100 * part:g}%", chosen)
            )
        return [*levels, ("The worst", worst)]


def survey(source: Source, *, columns: Columns | None = None, threshold: float | None = None) -> Survey:
    """Read the pairs once (``-`` is stdin) and count.

    Memory: some 150 MiB, and 8 bytes a row.

    Raises:
        BitextmineError: the file cannot be read, its columns cannot be told, or nearly no row is a pair.
    """
    table = open_table(source, replace(columns or Columns(), errors=source.errors))
    content = Survey(table, threshold)
    with progress(None, "report", "rows") as bar:
        for block in table.blocks(_BLOCK, _BLOCK_BYTES):
            content.add(block)
            bar.update(len(block))
    content.malformed.finish()
    return content
