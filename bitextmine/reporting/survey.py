"""One pass over a file of sentence pairs that keeps what the report shows, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import progress
from bitextmine.files.layout import Columns, Layout
from bitextmine.reporting.counts import Fewest, KeyCounter, Sample, ScoreCounts
from bitextmine.reporting.language import LanguageSurvey, survey_language, wrong_language
from bitextmine.reporting.reader import PairReader, ReadPairs
from bitextmine.reporting.reasons import LETTERS, MANY, judge, log_length_ratio, text_key, text_keys

__all__ = ["Flagged", "Pair", "Repeated", "Survey", "survey"]

SAMPLE = 20_000
SEED = 1

_TEXT = 400  # characters of a text that are kept
_ENDS = 5  # pairs shown from either end and from either side of the threshold
_SHOWN = 5  # pairs shown for each reason
_PER_LEVEL = 3
_LEVELS = (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01)
_TOP = 0.9  # scores above this quantile are called high


class Pair(NamedTuple):
    """A row: its number in the file (from 1), score (nan for none), texts (cut), and their full lengths."""

    row: int
    score: float
    src: str
    tgt: str
    src_length: int
    tgt_length: int


class _Drawn(NamedTuple):
    """A row of the random sample, with the keys of its texts for a look at how often they occur; flagged:
    whether a reason was found on the row alone.
    """

    pair: Pair
    src_key: int
    tgt_key: int
    pair_key: int
    flagged: bool


@dataclass
class Flagged:
    """The rows that one reason fits: how many, how many of them score high (None without scores), examples
    with the highest scores first. estimated: counted on the random sample and scaled up.
    """

    rows: int
    high: int | None
    examples: list[Pair]
    estimated: bool = False


@dataclass(frozen=True)
class Repeated:
    """A text (or pair) that occurs again and again: how often, an example, and partners it has."""

    times: int
    pair: Pair
    partners: tuple[str, ...] = ()


@dataclass
class Survey:
    """What the report shows.

    rows: those read, without lines that lack a column. scores: of the rows that have one. high: the score from
    which a row counts as high, None without scores; high_rows: how many those are. levels: (name, pairs)
    from the best to the worst score. near: pairs just above and just below the threshold, nearest first.
    lengths (s, 2): characters of source and target of the sampled rows. usual_ratio: median target over
    source length. repeats_missed: how much too low the counts of repeats may be.
    """

    file: PairReader
    layout: Layout | None
    rows: int
    scores: ScoreCounts
    threshold: float | None
    high: float | None = None
    high_rows: int = 0
    flagged: dict[str, Flagged] = field(default_factory=dict)
    any_flag: Flagged = field(default_factory=lambda: Flagged(0, None, []))
    levels: list[tuple[str, list[Pair]]] = field(default_factory=list)
    near: tuple[list[Pair], list[Pair]] = field(default_factory=lambda: ([], []))
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    sampled: int = 0
    usual_ratio: float = 1.0
    repeated: dict[str, list[Repeated]] = field(default_factory=dict)
    repeats_missed: int = 0
    languages: tuple[LanguageSurvey, LanguageSurvey] | None = None


def survey(
    path: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    threshold: float | None = None,
    errors: str = "strict",
) -> Survey:
    """Read the pairs once (``-`` is stdin) and count.

    What is shown of all rows (scores, counts at thresholds, reasons found on single rows) is counted over all
    of them; lengths, languages, and how many rows are repeats are of a random sample of SAMPLE rows, the same
    in every run. Memory is bounded: about 150 MiB however many rows there are. Raises BitextmineError for a
    file that cannot be read and when its columns cannot be told.
    """
    file = PairReader(path, columns or Columns(), errors)
    work = _Pass(threshold)
    with progress(None, "report", "rows") as bar:
        for block in file.blocks():
            work.add(block)
            bar.update(len(block.row))
    return work.finish(file)


class _Pass:
    def __init__(self, threshold: float | None) -> None:
        self.threshold = threshold
        self.rows = 0
        self.scores = ScoreCounts()
        self.sample: Sample[_Drawn] = Sample(SAMPLE, SEED)
        self.best: Fewest[Pair] = Fewest(_ENDS)
        self.worst: Fewest[Pair] = Fewest(_ENDS)
        self.above: Fewest[Pair] = Fewest(_ENDS)
        self.below: Fewest[Pair] = Fewest(_ENDS)
        self.usual_ratio = 0.0
        self.flag_rows: dict[str, int] = {}
        self.flag_scores: dict[str, ScoreCounts] = {}
        self.flag_best: dict[str, Fewest[Pair]] = {}
        self.pairs = _Watched()
        self.sources = _Watched()  # source texts, by how many different targets they have
        self.targets = _Watched()

    def add(self, block: ReadPairs) -> None:
        n = len(block.row)
        src_length = np.fromiter(map(len, block.src), dtype=np.int64, count=n)
        tgt_length = np.fromiter(map(len, block.tgt), dtype=np.int64, count=n)

        def pair(i: int) -> Pair:
            return Pair(
                block.row[i],
                float(block.score[i]),
                block.src[i][:_TEXT],
                block.tgt[i][:_TEXT],
                int(src_length[i]),
                int(tgt_length[i]),
            )

        finite = block.score[~np.isnan(block.score)]
        self.scores.add(finite)
        self.best.offer(-block.score, pair)
        self.worst.offer(block.score, pair)
        if self.threshold is not None:
            reached = block.score >= self.threshold
            self.above.offer(np.where(reached, block.score, np.nan), pair)
            self.below.offer(np.where(reached, np.nan, -block.score), pair)

        ratio = log_length_ratio(src_length, tgt_length)
        if self.rows == 0:
            self.usual_ratio = float(np.median(ratio))
        src_key, tgt_key = [text_key(s) for s in block.src], [text_key(t) for t in block.tgt]
        flags = judge(block.src, block.tgt, src_key, tgt_key, ratio, self.usual_ratio)
        some = np.logical_or.reduce(list(flags.values()))
        # Without scores the first rows are the examples.
        order = np.where(np.isnan(block.score), np.inf, -block.score)
        for key, flag in flags.items():
            self._flag(key, flag, block.score, order, pair)
        src_hash, tgt_hash = text_keys(src_key), text_keys(tgt_key)
        pair_hash = src_hash * np.int64(0x3E3779B97F4A7C15) + tgt_hash
        self._count_repeats(src_hash, tgt_hash, pair_hash, ~flags["empty"], pair)
        self.sample.offer(
            n, lambda i: _Drawn(pair(i), int(src_hash[i]), int(tgt_hash[i]), int(pair_hash[i]), bool(some[i]))
        )
        self.rows += n

    def _flag(
        self,
        key: str,
        flag: NDArray[np.bool_],
        score: NDArray[np.float64],
        order: NDArray[np.float64],
        pair: Callable[[int], Pair],
    ) -> None:
        if key not in self.flag_rows:
            self.flag_rows[key] = 0
            self.flag_scores[key] = ScoreCounts()
            self.flag_best[key] = Fewest(_SHOWN)
        self.flag_rows[key] += int(flag.sum())
        self.flag_scores[key].add(score[flag & ~np.isnan(score)])
        self.flag_best[key].offer(np.where(flag, order, np.nan), pair)

    def _count_repeats(
        self,
        src: NDArray[np.int64],
        tgt: NDArray[np.int64],
        both: NDArray[np.int64],
        usable: NDArray[np.bool_],
        pair: Callable[[int], Pair],
    ) -> None:
        which = np.flatnonzero(usable)
        if not len(which):
            return
        _, first = np.unique(both[which], return_index=True)
        fresh = which[np.sort(first)]
        fresh = fresh[self.pairs.counts.get(both[fresh]) == 0]  # pairs that did not occur before
        self.pairs.add(both[which], which, pair, "")
        self.sources.add(src[fresh], fresh, pair, "tgt")
        self.targets.add(tgt[fresh], fresh, pair, "src")

    def finish(self, file: PairReader) -> Survey:
        drawn = self.sample.items
        result = Survey(
            file=file,
            layout=file.layout,
            rows=self.rows,
            scores=self.scores,
            threshold=self.threshold,
            near=(list(self.above), list(self.below)),
            lengths=np.array([(d.pair.src_length, d.pair.tgt_length) for d in drawn], dtype=np.int64).reshape(
                -1, 2
            ),
            sampled=len(drawn),
            usual_ratio=float(np.exp(self.usual_ratio)),
            repeats_missed=max(w.counts.missed for w in (self.pairs, self.sources, self.targets)),
        )
        if self.scores.total:
            result.high = self.scores.quantile(_TOP)
            result.high_rows = self.scores.at_least(result.high)
        for key, rows in self.flag_rows.items():
            result.flagged[key] = Flagged(
                rows,
                None if result.high is None else self.flag_scores[key].at_least(result.high),
                list(self.flag_best[key]),
            )
        some = np.array([d.flagged for d in drawn], dtype=bool)
        for key, watched, hashes in (
            ("pair_repeated", self.pairs, [d.pair_key for d in drawn]),
            ("target_repeated", self.targets, [d.tgt_key for d in drawn]),
            ("source_repeated", self.sources, [d.src_key for d in drawn]),
        ):
            many = watched.counts.get(np.array(hashes, dtype=np.int64)) >= MANY
            some |= many
            result.repeated[key] = watched.top(_SHOWN)
            result.flagged[key] = self._scaled(many, result.high)
            # The sample may miss what is rare; the table knows of so many at least.
            result.flagged[key].rows = max(result.flagged[key].rows, watched.times())
        if drawn:
            sides = [d.pair.src for d in drawn], [d.pair.tgt for d in drawn]
            result.languages = (survey_language(sides[0]), survey_language(sides[1]))
            wrong = [
                found
                for texts, language in zip(sides, result.languages, strict=True)
                if (found := wrong_language(texts, language, LETTERS)) is not None
            ]
            if wrong:
                flag = np.logical_or.reduce(wrong)
                some |= flag
                result.flagged["language"] = self._scaled(flag, result.high)
                ranked = sorted(
                    (d.pair for d, bad in zip(drawn, flag.tolist(), strict=True) if bad),
                    key=lambda p: (-p.score if p.score == p.score else 0.0, p.row),
                )
                result.flagged["language"].examples.extend(ranked[:_SHOWN])
        result.any_flag = self._scaled(some, result.high)
        result.levels = self._levels()
        return result

    def _scaled(self, flag: NDArray[np.bool_], high: float | None) -> Flagged:
        """How many rows there are like the flagged ones of the sample, its rows in order."""
        drawn = self.sample.items
        scale = self.rows / max(len(drawn), 1)
        high_rows = None
        if high is not None:
            is_high = np.array([d.pair.score >= high for d in drawn], dtype=bool)
            high_rows = round(int((flag & is_high).sum()) * scale)
        return Flagged(round(int(flag.sum()) * scale), high_rows, [], estimated=self.rows > len(drawn))

    def _levels(self) -> list[tuple[str, list[Pair]]]:
        """Pairs from the best to the worst score: the ends of the file, and sampled rows between."""
        ranked = sorted(
            (d.pair for d in self.sample.items if d.pair.score == d.pair.score),
            key=lambda p: (-p.score, p.row),
        )
        if not self.scores.total:
            first = sorted((d.pair for d in self.sample.items), key=lambda p: p.row)
            step = max(len(first) // (2 * _ENDS), 1)
            return [("some", first[::step][: 2 * _ENDS])] if first else []
        levels = [("best", list(self.best))]
        worst = list(self.worst)[::-1]
        shown = {p.row for p in [*self.best, *worst]}
        for level in _LEVELS:
            if min(level, 1 - level) * len(ranked) < _PER_LEVEL:
                continue  # in a small file the ends say it all
            at = round((1 - level) * (len(ranked) - 1))
            window = range(max(at - 2 * _ENDS, 0), min(at + 2 * _ENDS + 1, len(ranked)))
            nearest = sorted(window, key=lambda i: abs(i - at))
            chosen = [ranked[i] for i in nearest if ranked[i].row not in shown][:_PER_LEVEL]
            shown.update(p.row for p in chosen)
            if chosen:
                levels.append((f"{100 * level:g}%", sorted(chosen, key=lambda p: (-p.score, p.row))))
        best = {p.row for p in self.best}
        worst = [p for p in worst if p.row not in best]
        if worst:
            levels.append(("worst", worst))
        return levels


class _Watched:
    """Counts of keys, with an example of those that occur often."""

    _EXAMPLES = 2048
    _PARTNERS = 3

    def __init__(self) -> None:
        self.counts = KeyCounter()
        self.examples: dict[int, tuple[Pair, list[str]]] = {}

    def add(
        self, keys: NDArray[np.int64], which: NDArray[np.int64], pair: Callable[[int], Pair], partner: str
    ) -> None:
        """Count keys (n,), that belong to the rows `which` (n,) of a block; partner: src or tgt, or nothing."""
        if not len(keys):
            return
        found = self.counts.add(keys)
        for i in np.flatnonzero(found > 1):
            key = int(keys[i])
            entry = self.examples.get(key)
            if entry is None:
                entry = self.examples[key] = (pair(int(which[i])), [])
            if partner and len(entry[1]) < self._PARTNERS:
                entry[1].append(getattr(pair(int(which[i])), partner))
        if len(self.examples) > 2 * self._EXAMPLES:
            self._prune()

    def _prune(self) -> None:
        keys = np.fromiter(self.examples, dtype=np.int64)
        counts = self.counts.get(keys)
        kept = np.argsort(-counts, kind="stable")[: self._EXAMPLES]
        wanted = set(keys[kept].tolist())
        self.examples = {key: entry for key, entry in self.examples.items() if key in wanted}

    def times(self) -> int:
        """How often all the keys together occur that occur MANY times or more."""
        _, counts = self.counts.repeated()
        return int(counts[counts >= MANY].sum())

    def top(self, n: int) -> list[Repeated]:
        """The keys that occur most often, MANY times or more; of equal ones the first in the file."""
        keys = np.fromiter(self.examples, dtype=np.int64)
        counts = self.counts.get(keys)
        entries = zip(counts.tolist(), self.examples.values(), strict=True)
        ranked = sorted(entries, key=lambda item: (-item[0], item[1][0].row))
        return [
            Repeated(times, pair, tuple(partners)) for times, (pair, partners) in ranked[:n] if times >= MANY
        ]
