"""Semantic textual similarity: the correlation of cosines with human similarity ratings of sentence pairs.

Spearman's correlation, not Pearson's (Reimers, Beyer and Gurevych 2016, "Task-oriented intrinsic evaluation of semantic
textual similarity", say why), with the 95% percentile interval of the bootstrap. Files of as many pairs are resampled
at the same places, so that means have intervals, too.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import a_path
from bitextmine.declarations import keywords
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.gold_pairs import GoldPairs, read_gold_pairs
from bitextmine.evaluation.pools import language_pairs
from bitextmine.evaluation.report import RESAMPLES, SEED, FileName, Report, cut_note, percent
from bitextmine.files.source import Source
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

# The numbers in the largest array of resamples.
BLOCK = 1 << 21


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


@dataclass(frozen=True, repr=False)
class StsReport(Report):
    """Results per file, then per direction across languages; and the mean of either, if there are several."""

    kind: ClassVar[str] = "sts evaluation"

    results: tuple[StsResult, ...]
    means: tuple[StsResult, ...]

    def to_table(self) -> str:
        """Return correlations times 100, aligned for a terminal."""
        return self._table(
            ["set", "languages", "Spearman", "low", "high", "pairs"],
            [
                [r.name or "-", r.languages or "-", *percent(r.spearman, r.low, r.high), str(r.pairs)]
                for r in (*self.results, *self.means)
            ],
            "Spearman's correlation x 100 of cosine and gold, with the bootstrap's 95% interval",
        )


@keywords
def evaluate_sts(
    files: FileName | Sequence[FileName],
    *,
    pairs: str | None = None,
    model: FileName | Encoder = "auto",
    run: Run,
) -> StsReport:
    """Measure Spearman's correlation of cosines with human similarity ratings, as ``evaluate sts`` does.

    Args:
        files: comma- or tab-separated sentence pairs with gold scores (`read_gold_pairs`), the language in the name, as
            stsb.de.csv.
        pairs: directions across languages. en-de takes the first sentences of the English file and the second ones of
            the German file of the same set, whose gold scores must be equal; "all" means to and from English, or the
            first language without it.
        model: an encoder, or the name of one.
        run: resources; or its fields, such as ``device``.

    Returns:
        A report with results and means (name, languages, spearman, low, high, pairs; from -1 to 1), ``to_frame()``,
        ``to_dict()``, ``to_table()``, signature and notes.

    Raises:
        BitextmineError: an unreadable file, a bad score, a blank sentence, files of one set that differ, or an unknown
            direction.
        UsageError: an argument of the wrong type.
    """
    sets = _sets(files, run)
    measured = sets if pairs is None else [*sets, *_across(sets, pairs)]
    from bitextmine.encoder import load_encoder

    encoder = load_encoder(choose_model(model, (rated_set.language for rated_set in sets)), run.device)
    cosines, cut = _cosines(encoder, measured, run.batch_tokens)
    columns = [(cosine, rated.gold) for cosine, rated in zip(cosines, measured, strict=True)]
    draws = redrawn(columns)
    results, means, notes = [], [], []
    for rated, column, drawn in zip(measured, columns, draws, strict=True):
        correlation = spearman(*column)
        if np.isnan(correlation):
            correlation, drawn[:] = 0.0, 0.0
            name = " ".join(filter(None, (rated.name, rated.language)))
            notes.append(f"{name}: all cosines are equal: there is no correlation, counted as 0")
        results.append(StsResult(rated.name, rated.language, correlation, *_interval(drawn), len(rated)))
    for name, part in (("within", slice(0, len(sets))), ("across", slice(len(sets), None))):
        several = results[part]
        if len(several) > 1:
            mean, low_high = (
                float(np.mean([r.spearman for r in several])),
                _interval(draws[part].mean(axis=0)),
            )
            means.append(StsResult("mean", name, mean, *low_high, sum(r.pairs for r in several)))
    return StsReport(
        tuple(results),
        tuple(means),
        signature=signature(
            task="sts",
            measure="spearman-cosine",
            pairs=sum(len(rated_set) for rated_set in sets),
            interval="bootstrap-95",
            resamples=RESAMPLES,
            seed=SEED,
            model=encoder.hash,
        ),
        notes=(*notes, *cut_note(cut, "sentence", encoder.max_pieces)),
    )


def _sets(files: FileName | Sequence[FileName], run: Run) -> list[GoldPairs]:
    if not isinstance(files, (str, os.PathLike, Sequence)):
        raise UsageError(f"files: expected the names of files, found {files!r}")
    paths = [files] if isinstance(files, (str, os.PathLike)) else files
    if not paths:
        raise UsageError("sts: no file is given")
    sources = [Source.of(a_path("files", path), run) for path in paths]
    if sum(source.is_standard for source in sources) > 1:
        raise UsageError("sts: standard input (-) can be read once only")
    return list(map(read_gold_pairs, sources))


def _across(sets: Sequence[GoldPairs], pairs: str) -> list[GoldPairs]:
    """Return the pairs of each direction and set: first sentences of one language, second ones of the other."""
    languages = list(dict.fromkeys(gold.language for gold in sets if gold.language))
    if len(languages) < 2:
        raise BitextmineError(
            f"pairs {pairs}: two languages are needed, and the file names tell "
            f"{languages[0] if languages else 'none'}; name them like stsb.en.csv and stsb.de.csv"
        )
    known: dict[tuple[str, str], GoldPairs] = {}
    for rated in sets:
        twin = known.setdefault((rated.name, rated.language), rated)
        if twin is not rated and rated.language:
            raise BitextmineError(
                f"{rated.where}: the set '{rated.name}' in '{rated.language}' is {twin.where} already; with pairs "
                "across languages there can be one only"
            )
    joined = []
    for src, tgt in language_pairs(pairs, languages, of="the files"):
        names = [rated.name for rated in sets if rated.language == src and (rated.name, tgt) in known]
        if not names:
            raise BitextmineError(
                f"pairs {src}-{tgt}: no file in '{src}' has one in '{tgt}' of the same name but for the language"
            )
        for name in names:
            first, second = known[name, src], known[name, tgt]
            _check_alike(first, second)
            joined.append(dataclasses.replace(first, second=second.second, language=f"{src}-{tgt}"))
    return joined


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
    encoder: Encoder, sets: Sequence[GoldPairs], batch_tokens: int | None
) -> tuple[list[NDArray[np.float64]], int]:
    """Return the cosines of the pairs of each set, and the number of distinct sentences that were cut."""
    row: dict[str, int] = {}
    rows = [
        [np.array([row.setdefault(line, len(row)) for line in side]) for side in (rated.first, rated.second)]
        for rated in sets
    ]
    pieces, cut, _ = encoder.tokenize(list(row))
    vectors = encoder.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float64)
    # The cosine of equal sentences must be 1 to the bit, so that they tie.
    squares = np.einsum("ij,ij->i", vectors, vectors)
    cosines = []
    for a, b in rows:
        products = np.einsum("ij,ij->i", vectors[a], vectors[b])
        length = np.sqrt(squares[a] * squares[b])
        cosines.append(np.divide(products, length, out=np.zeros(len(a)), where=length > 0))
    return cosines, cut


# --- Spearman's correlation ------------------------------------------------------------------------------------


def spearman(x: NDArray, y: NDArray) -> float:
    """Return Spearman's correlation of x (n,) and y (n,), that is Pearson's of their ranks; ties share their mean rank.

    NaN if all values of x or of y are equal.
    """
    return float(_correlations(_Column(x), _Column(y), np.ones((1, len(x)), dtype=np.int64))[0])


def redrawn(columns: Sequence[tuple[NDArray, NDArray]]) -> NDArray[np.float64]:
    """Return correlations (columns, RESAMPLES) of pairs resampled with replacement.

    Each of `columns` is x (n,) and y (n,); columns of one length are drawn at the same places. A draw of only equal
    values gives NaN.
    """
    correlations = np.empty((len(columns), RESAMPLES))
    for n in {len(x) for x, _ in columns}:
        ready = [(at, _Column(x), _Column(y)) for at, (x, y) in enumerate(columns) if len(x) == n]
        rng = np.random.default_rng(SEED)
        rows = max(1, BLOCK // n)
        for start in range(0, RESAMPLES, rows):
            stop = min(start + rows, RESAMPLES)
            times = rng.multinomial(n, np.full(n, 1 / n), size=stop - start)
            for at, x, y in ready:
                correlations[at, start:stop] = _correlations(x, y, times)
    return correlations


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


def _interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95% of correlations, those that are NaN left out."""
    defined = resampled[~np.isnan(resampled)]
    if not len(defined):
        return -1.0, 1.0
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)
