"""`bitextmine.score` and `bitextmine.filter`: what the commands do, on pairs and frames."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bitextmine.arguments import a_path
from bitextmine.console import counted
from bitextmine.declarations import keywords
from bitextmine.display import Shown
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.languages.codes import language_code
from bitextmine.mining.bitext import MinedPair
from bitextmine.run import Run
from bitextmine.scoring.columns.catalogue import COLUMNS
from bitextmine.scoring.compute import PairRows
from bitextmine.scoring.judge import Sieve, applicable
from bitextmine.scoring.options import FilterOptions, ScoreOptions
from bitextmine.scoring.rules import RuleSet, choose_rules
from bitextmine.scoring.score import open_scorer, request_of

if TYPE_CHECKING:
    import pandas

    from bitextmine.encoder import Encoder

Stated = TypeVar("Stated", ScoreOptions, FilterOptions)


@keywords
def score(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    options: ScoreOptions,
    run: Run,
) -> pandas.DataFrame:
    """Return the columns that the command ``score`` adds to sentence pairs, a row for each: float64, or str for texts.

    `pairs` are (source, target) tuples, pairs of a `Bitext`, or a frame with the columns src and tgt, whose index the
    result has, so that ``frame.join(score(frame))`` puts both side by side.

    Keywords are fields of `ScoreOptions` and `Run`, or these objects as ``options`` and ``run``. ``columns`` are
    names, in a sequence or separated by commas (see ``bitextmine score --help``); default: cosine, margin,
    length_ratio, numbers, copy, quality, and lang before quality if ``src_lang`` and ``tgt_lang`` are given.
    ``margin`` is ratio, distance or absolute, over the ``k`` nearest neighbours among ``window`` pairs (4,096).
    ``model`` is an encoder of `load_encoder`, or its name or folder.

    Raises:
        BitextmineError: an unknown column, or a pair that is not two texts.
        UsageError: an argument of the wrong type.

    >>> frame = score([("Room 12 is free.", "La chambre 12 est libre."), ("Room 7", "Chambre 8")],
    ...               columns="numbers,length_ratio")
    >>> frame.round(2).to_dict("list")
    {'numbers': [1.0, 0.0], 'length_ratio': [1.5, 1.5]}
    """
    import pandas

    scoring = _stated(options, src_lang, tgt_lang)
    request, _notes = request_of(scoring, run.batch_tokens)
    frame = _frame_of(pairs, "score")
    rows = _rows_of(frame[["src", "tgt"]])
    scorer = open_scorer(request, scoring, (scoring.src, scoring.tgt), run.device)
    parts: dict[str, list[Any]] = {name: [] for name in request.names}
    for _block, added in scorer.scored(rows.blocks(request.window), rows.layout, run):
        for column in added:
            parts[column.name].append(column.values)
    return pandas.DataFrame(
        {
            name: list(itertools.chain.from_iterable(values))
            if COLUMNS[name].is_text
            else np.concatenate([np.empty(0), *values])
            for name, values in parts.items()
        },
        index=frame.index,
    )


def _stated(options: Stated, src_lang: str | None, tgt_lang: str | None) -> Stated:
    src, tgt = language_code("src_lang", src_lang), language_code("tgt_lang", tgt_lang)
    return replace(options, src=src or options.src, tgt=tgt or options.tgt)


@dataclass(frozen=True, repr=False)
class FilteredPairs(Shown):
    """The result of `filter`.

    Attributes:
        kept, rejected: frames of pairs with the columns of the rules; rejected has the column reason as well.
        rules: the rules in the order of testing.
        counts: the number of pairs rejected for each reason, in the order of testing.
    """

    kept: pandas.DataFrame
    rejected: pandas.DataFrame
    rules: tuple[str, ...]
    counts: dict[str, int]

    def __repr__(self) -> str:
        return f"<FilteredPairs: {counted(len(self.kept), 'pair')} kept, {len(self.rejected):,} rejected>"

    def to_frame(self) -> pandas.DataFrame:
        """Return the pairs that were kept."""
        return self.kept


@keywords
def filter(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    preset: str | None = None,
    rules: str | os.PathLike[str] | RuleSet | None = None,
    model: str | os.PathLike[str] | Encoder = "auto",
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    equal: Mapping[str, str] | None = None,
    duplicates: str | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    options: FilterOptions,
    run: Run,
) -> FilteredPairs:
    """Keep the pairs that pass every rule, as the command ``filter`` does after ``score``.

    Columns that a frame has are used; others are computed. Without languages the rule of a preset on lang is skipped.

    Args:
        pairs: as for `score`.
        preset: cheap, mild (the default, unless there are other rules), strict or none.
        rules: a TOML file of further rules, or a `RuleSet`.
        model: the encoder, as for `score`.
        min: further rules, from a column to its least value.
        max: from a column to its largest value.
        equal: from a column to its text.
        duplicates: exact, near or none (default: as the preset has it).
        src_lang: the language that the sources should be in.
        tgt_lang: that of the targets.
        options: languages and examples; or its fields as keywords.
        run: resources; or its fields, such as ``device``.

    Raises:
        BitextmineError: an unknown preset or column, or a pair that is not two texts.

    >>> pairs = [("Room 12 is free.", "La chambre 12 est libre."), ("Room 7 is free.", "La chambre 8 est libre.")]
    >>> found = filter(pairs, min={"numbers": 0.5})
    >>> found
    <FilteredPairs: 1 pair kept, 1 rejected>
    >>> found.rejected["reason"].tolist()
    ['numbers >= 0.5']
    """
    limits = {kind: _limits(kind, value) for kind, value in (("min", min), ("max", max), ("equal", equal))}
    how = _stated(options, src_lang, tgt_lang)
    own = rules if rules is None or isinstance(rules, RuleSet) else a_path("rules", rules)
    chosen = choose_rules(preset, own, limits, duplicates)
    frame: Any = _frame_of(pairs, "filter")
    applied, _notes = applicable(chosen, frame.columns, bool(how.src))
    missing = {rule.column for rule in applied if rule.column in COLUMNS}.difference(frame.columns)
    if missing:
        names = [name for name in COLUMNS if name in missing]
        frame = frame.join(
            score(frame, columns=names, src_lang=how.src, tgt_lang=how.tgt, model=model, run=run)
        )
    rows = _rows_of(frame)
    sieve = Sieve(chosen, rows, "filter", replace(how, columns=None), run.memory)
    verdicts = [verdict for _block, verdict in sieve.sifted(rows.blocks(), run)]
    reasons = np.concatenate([np.empty(0, dtype=np.int64), *verdicts])
    kept = reasons < 0
    rejected = frame[~kept].assign(reason=[sieve.reasons[reason] for reason in reasons[~kept]])
    return FilteredPairs(frame[kept], rejected, tuple(map(str, sieve.rules)), sieve.counts())


def _limits(kind: str, given: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping | None):
        example = {"numbers": 0.5} if kind != "equal" else {"domain": "news"}
        raise UsageError(
            f"{kind}: expected a dictionary from columns to values, as {example}, found {given!r}"
        )
    return (given or {}).items()


def _frame_of(pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame, name: str) -> pandas.DataFrame:
    """Return pairs as a frame with the columns src and tgt, a frame as it is; `name` is the function, for errors."""
    import pandas

    frame: Any = pairs
    if hasattr(pairs, "columns"):
        if missing := {"src", "tgt"} - set(frame.columns):
            there = ", ".join(map(str, frame.columns))
            raise BitextmineError(
                f"{name}: the frame has no column {' or '.join(sorted(missing))}; it has {there}. To use those of "
                "score(), join them to the pairs: frame.join(score(frame))"
            )
        rows: list[Any] = list(zip(frame["src"], frame["tgt"], strict=True))
    elif isinstance(pairs, (str, os.PathLike)) or not isinstance(pairs, Iterable):
        raise UsageError(
            f"{name}: expected pairs or a frame, found {pairs!r}; files are for 'bitextmine {name}'"
        )
    else:
        rows = [(row.src, row.tgt) if isinstance(row, MinedPair) else row for row in pairs]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, (tuple, list)) or len(row) != 2 or not all(isinstance(x, str) for x in row):
            raise BitextmineError(f"{name}: pair {number} is {row!r}; a pair is two texts, (source, target)")
    return frame if hasattr(pairs, "columns") else pandas.DataFrame(rows, columns=["src", "tgt"])


def _rows_of(frame: Any) -> PairRows:
    values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return PairRows([str(name) for name in frame.columns], values)
