"""One pass over a file of sentence pairs that keeps the content of the report."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import progress
from bitextmine.files.formats.columns import Columns, as_number
from bitextmine.files.formats.table import Block, Malformed, Table, open_table
from bitextmine.files.source import Source
from bitextmine.languages.clean import readable
from bitextmine.languages.identify import Languages, is_installed
from bitextmine.languages.scripts import count_scripts
from bitextmine.reporting.counts import Fewest, KeyCounter, Sample, ScoreCounts
from bitextmine.reporting.flags import MANY, TESTS, flag_pairs, flag_wrong_language, text_hashes
from bitextmine.scoring.columns.catalogue import SMOOTH, PairTexts, Tools

SAMPLE = 20_000
SEED = 1

_BLOCK, _BLOCK_BYTES = 1 << 13, 1 << 22
_TEXT = 400  # characters of a text that are kept
_ENDS = 5  # pairs shown from either end and from either side of the threshold
_SHOWN = 5  # pairs shown for each flag
_PER_LEVEL = 3
_LEVELS = (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01)
_TOP = 0.9  # scores above this quantile are called high
_IDENTIFIED = 2000  # texts of a side whose language is guessed
_IDENTIFIED_CHARACTERS, _GUESSABLE, _FEW = 200, 20, 10


class Pair(NamedTuple):
    """A row: its line number, score (NaN for none), texts (cut), their full lengths, and their origins, if told."""

    row: int
    score: float
    src: str
    tgt: str
    src_length: int
    tgt_length: int
    origin: tuple[str, ...] = ()


@dataclass
class Flagged:
    """The rows with one flag, the number that score high (None without scores), and examples, best first.

    With `estimated`, the numbers are those of the random sample, scaled up.
    """

    rows: int
    high: int | None
    examples: list[Pair]
    estimated: bool = False


class Repeated(NamedTuple):
    """A repeated text (or pair): its count, an example, and some of its partners."""

    times: int
    pair: Pair
    partners: list[str]


class SideLanguages(NamedTuple):
    """Shares of the scripts among letters and of guessed languages among `texts`, largest first; None: no guess."""

    scripts: list[tuple[str, float]]
    guesses: list[tuple[str, float]] | None
    texts: int


class _Drawn(NamedTuple):
    """A row of the random sample, with the hashes of its source, target and both; flagged: by itself."""

    pair: Pair
    hashes: tuple[int, int, int]
    flagged: bool


class Survey:
    """The content of the report, complete after `finish`.

    Attributes:
        table: the file.
        threshold: the score to count at.
        digest: SHA-256 of the lines of text, or of the bytes of a file in another format.
        odd_scores: how many cells of the score column have no finite number, and the first line of one.
        high: the score of the best tenth; None without scores.
        levels: names and pairs from the best to the worst score.
        usual_ratio: the median ratio of target to source length in the first block.
    """

    def __init__(self, table: Table, threshold: float | None) -> None:
        self.table, self.threshold = table, threshold
        self.rows, self.digest, self.usual_ratio = 0, "", 1.0
        self.scores, self.odd_scores = ScoreCounts(), (0, 0)
        self.high: float | None = None
        self.high_rows = 0
        self.flagged = {key: Flagged(0, None, []) for key in (*TESTS, "copy", "language")}
        self.any_flag = Flagged(0, None, [])
        self.levels: list[tuple[str, list[Pair]]] = []
        self.repeated: dict[str, list[Repeated]] = {}
        self.languages: list[SideLanguages] = []
        self.malformed = Malformed(table)
        self.sample: Sample[_Drawn] = Sample(SAMPLE, SEED)
        self.above, self.below = Fewest[Pair](_ENDS), Fewest[Pair](_ENDS)
        self._best, self._worst = Fewest[Pair](_ENDS), Fewest[Pair](_ENDS)
        self._counted = {key: (ScoreCounts(), Fewest[Pair](_SHOWN)) for key in (*TESTS, "copy")}
        self._watched = {f"{what}_repeated": _Watched() for what in ("source", "target", "pair")}

    @property
    def is_text(self) -> bool:
        """Tell if the file is tab-separated text."""
        return self.table.format.lines

    @property
    def repeats_missed(self) -> int:
        """Return the largest error of the counts of repeats."""
        return max(watched.counts.missed for watched in self._watched.values())

    def add(self, block: Block) -> None:
        """Count the rows of a block."""
        layout, bad = self.table.layout, block.bad()
        before = block.start + int(self.table.rows.header_line)
        self.malformed.add(block)
        good = np.array([row for row in range(len(block)) if row not in bad], dtype=np.int64)
        if not len(good):
            return
        lines = (good + before).tolist()
        src, tgt = block.texts(layout.src, good), block.texts(layout.tgt, good)
        score = np.full(len(good), np.nan)
        if layout.score is not None:
            score = np.array([as_number(cell) for cell in block.texts(layout.score, good)], dtype=np.float64)
            if len(odd := np.flatnonzero(~np.isfinite(score))):
                score[odd] = np.nan
                many, first = self.odd_scores
                self.odd_scores = many + len(odd), first or lines[odd[0]]
        lengths = np.array([[len(s), len(t)] for s, t in zip(src, tgt, strict=True)])

        columns = [layout.places[name] for name in ("src_origin", "tgt_origin") if name in layout.places]

        def pair(i: int) -> Pair:
            s, t = lengths[i].tolist()
            origin = tuple(block.texts(column, good[i : i + 1])[0][:_TEXT] for column in columns)
            return Pair(lines[i], float(score[i]), src[i][:_TEXT], tgt[i][:_TEXT], s, t, origin)

        self.scores.add(score[~np.isnan(score)])
        self._best.offer(-score, pair)
        self._worst.offer(score, pair)
        if self.threshold is not None:
            reached = score >= self.threshold
            self.above.offer(np.where(reached, score, np.nan), pair)
            self.below.offer(np.where(reached, np.nan, -score), pair)
        pairs = PairTexts(src, tgt, Tools())
        if self.rows == 0:
            longer = np.log((pairs.lengths[1] + SMOOTH) / (pairs.lengths[0] + SMOOTH))
            self.usual_ratio = float(np.exp(np.median(longer)))
        # Equal for texts that differ in case, digits and punctuation alone.
        hashes = [text_hashes(side) for side in (pairs.src, pairs.tgt)]
        hashes.append(hashes[0] * np.int64(0x3E3779B97F4A7C15) + hashes[1])
        flags = flag_pairs(pairs, self.usual_ratio)
        flags["copy"] = (hashes[0] == hashes[1]) & ~flags["empty"] & ~flags["no_letters"]
        # Without scores the first rows are the examples.
        order = np.where(np.isnan(score), np.inf, -score)
        for key, flag in flags.items():
            scores, best = self._counted[key]
            self.flagged[key].rows += int(flag.sum())
            scores.add(score[flag & ~np.isnan(score)])
            best.offer(np.where(flag, order, np.nan), pair)
        keys = [column.tolist() for column in hashes]
        self._count_repeats(keys, np.flatnonzero(~flags["empty"]).tolist(), pair)
        flagged = np.logical_or.reduce(list(flags.values()))
        rows = list(zip(*keys, strict=True))
        self.sample.offer(len(rows), lambda i: _Drawn(pair(i), rows[i], bool(flagged[i])))
        self.rows += len(rows)

    def _count_repeats(
        self, hashes: Sequence[list[int]], usable: list[int], pair: Callable[[int], Pair]
    ) -> None:
        src, tgt, both = hashes
        pairs = self._watched["pair_repeated"]
        first = {both[row]: row for row in reversed(usable)}
        known = pairs.counts.get(first)
        fresh = sorted(row for row, times in zip(first.values(), known, strict=True) if not times)
        pairs.add([both[row] for row in usable], usable, pair, "")
        self._watched["source_repeated"].add([src[row] for row in fresh], fresh, pair, "tgt")
        self._watched["target_repeated"].add([tgt[row] for row in fresh], fresh, pair, "src")

    def finish(self) -> None:
        """Sum up, after the last block."""
        self.malformed.finish()
        drawn = self.sample.items
        if self.scores.total:
            self.high = self.scores.quantile(_TOP)
            self.high_rows = self.scores.at_least(self.high)
        for key, (scores, best) in self._counted.items():
            self.flagged[key].high = None if self.high is None else scores.at_least(self.high)
            self.flagged[key].examples = list(best)
        flagged = np.array([d.flagged for d in drawn], dtype=bool)
        for (key, watched), column in zip(self._watched.items(), range(3), strict=True):
            many = np.array(watched.counts.get(d.hashes[column] for d in drawn)) >= MANY
            flagged |= many
            self.repeated[key] = watched.top(_SHOWN)
            self.flagged[key] = self._scaled(many)
            # The sample may miss the rare; the table knows of this many at least.
            self.flagged[key].rows = max(self.flagged[key].rows, watched.counts.total(MANY))
        if drawn:
            flagged |= self._identify()
        self.any_flag = self._scaled(flagged)
        self._choose_levels()

    def _identify(self) -> NDArray[np.bool_]:
        """Guess the languages of the sample; return its rows in the wrong one."""
        pairs = [d.pair for d in self.sample.items]
        sides = readable([pair.src for pair in pairs]), readable([pair.tgt for pair in pairs])
        self.languages = [_side_languages(side) for side in sides]
        top = [side.guesses[0] if side.guesses else ("", 0.0) for side in self.languages]
        if min(share for _, share in top) <= 0.5:
            return np.zeros(len(pairs), dtype=bool)
        wrong = flag_wrong_language(*sides, (top[0][0], top[1][0]))
        examples = sorted((pairs[i] for i in np.flatnonzero(wrong)), key=_best_first)[:_SHOWN]
        self.flagged["language"] = replace(self._scaled(wrong), examples=examples)
        return wrong

    def _scaled(self, flag: NDArray[np.bool_]) -> Flagged:
        """Scale the flagged rows of the sample up to the file."""
        drawn = self.sample.items
        scale = self.rows / max(len(drawn), 1)
        high = None
        if self.high is not None:
            is_high = np.array([d.pair.score >= self.high for d in drawn], dtype=bool)
            high = round(int((flag & is_high).sum()) * scale)
        return Flagged(round(int(flag.sum()) * scale), high, [], estimated=self.rows > len(drawn))

    def _choose_levels(self) -> None:
        """Choose pairs from the best to the worst score: the ends of the file, and sampled rows between."""
        pairs = [d.pair for d in self.sample.items]
        if not self.scores.total:
            first = sorted(pairs)
            chosen = first[:: max(len(first) // (2 * _ENDS), 1)][: 2 * _ENDS]
            self.levels = [("", chosen)] if chosen else []
            return
        ranked = sorted((p for p in pairs if p.score == p.score), key=_best_first)
        best, worst = list(self._best), list(self._worst)[::-1]
        shown = {p.row for p in [*best, *worst]}
        self.levels = [("The best", best)]
        for level in _LEVELS:
            if min(level, 1 - level) * len(ranked) < _PER_LEVEL:
                continue  # in a small file the ends say it all
            at = round((1 - level) * (len(ranked) - 1))
            window = range(max(at - 2 * _ENDS, 0), min(at + 2 * _ENDS + 1, len(ranked)))
            nearest = sorted(window, key=lambda i: abs(i - at))
            chosen = [ranked[i] for i in nearest if ranked[i].row not in shown][:_PER_LEVEL]
            shown.update(p.row for p in chosen)
            if chosen:
                part = f"{100 * min(level, 1 - level):g}%"
                end = "top" if level > 0.5 else "bottom"
                name = "Around the median" if level == 0.5 else f"Around the {end} {part}"
                self.levels.append((name, sorted(chosen, key=_best_first)))
        worst = [p for p in worst if p not in best]
        if worst:
            self.levels.append(("The worst", worst))


class _Watched:
    """Counts of keys, with an example and partners of those that occur often."""

    _EXAMPLES = 2048
    _PARTNERS = 3

    def __init__(self) -> None:
        self.counts = KeyCounter()
        self._examples: dict[int, tuple[Pair, list[str]]] = {}

    def add(self, keys: list[int], rows: list[int], pair: Callable[[int], Pair], partner: str) -> None:
        """Count the keys (n,) of some rows (n,) of a block; partner: the side to collect, if any."""
        self.counts.add(keys)
        for key, row, times in zip(keys, rows, self.counts.get(keys), strict=True):
            if times > 1:
                example = pair(row)
                _, partners = self._examples.setdefault(key, (example, []))
                if partner and len(partners) < self._PARTNERS:
                    partners.append(getattr(example, partner))
        if len(self._examples) > 2 * self._EXAMPLES:
            kept = sorted(self._ranked(), key=lambda entry: -entry[0])[: self._EXAMPLES]
            self._examples = {key: self._examples[key] for _, key in kept}

    def _ranked(self) -> list[tuple[int, int]]:
        """Return the counts and keys of the examples."""
        return list(zip(self.counts.get(self._examples), self._examples, strict=True))

    def top(self, n: int) -> list[Repeated]:
        """Return the keys that occur most often, MANY times or more; of equal counts the first in the file."""
        repeated = [Repeated(times, *self._examples[key]) for times, key in self._ranked() if times >= MANY]
        return sorted(repeated, key=lambda r: (-r.times, r.pair.row))[:n]


def survey(source: Source, *, columns: Columns | None = None, threshold: float | None = None) -> Survey:
    """Read the pairs once (``-`` is stdin) and count.

    Scores, counts at thresholds, and flags on single pairs are counted over all rows. Languages and the share of
    repeats come from a random sample of SAMPLE rows. Memory: some 150 MiB, and 8 bytes a row.

    Raises:
        BitextmineError: the file cannot be read, its columns cannot be told, or nearly no row is a pair.
    """
    table = open_table(source, replace(columns or Columns(), errors=source.errors))
    content = Survey(table, threshold)
    digest = hashlib.sha256()
    if table.rows.header_line:
        digest.update("\t".join(table.names).encode() + b"\n")
    with progress(None, "report", "rows") as bar:
        for block in table.rows.blocks(_BLOCK, _BLOCK_BYTES):
            content.add(block)
            if content.is_text:
                digest.update(b"".join(line.removesuffix(b"\r") + b"\n" for line in block.lines()))
            bar.update(len(block))
    content.finish()
    if not content.is_text:
        with source.open() as file:
            digest = hashlib.file_digest(file, "sha256")
    content.digest = digest.hexdigest()
    return content


def _side_languages(texts: Sequence[str]) -> SideLanguages:
    """Guess the scripts and languages of the first texts."""
    texts = texts[:_IDENTIFIED]
    scripts = _shares(count_scripts(texts, _IDENTIFIED_CHARACTERS))
    if not is_installed():
        return SideLanguages(scripts, None, 0)
    long = [text for text in texts if len(text.strip()) >= _GUESSABLE]
    guesses = Counter(Languages().guess(long) if len(long) >= _FEW else [])
    return SideLanguages(scripts, _shares(guesses), len(long))


def _shares(counts: Counter[str]) -> list[tuple[str, float]]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, count / counts.total()) for name, count in ranked]


def _best_first(pair: Pair) -> tuple[float, int]:
    return (-pair.score if pair.score == pair.score else 0.0, pair.row)
