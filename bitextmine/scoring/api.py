"""`bitextmine.score` and `bitextmine.filter`: what the commands do, on pairs and frames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.arguments import language_code
from bitextmine.console import counted
from bitextmine.display import Shown, new_figure
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.mining.bitext import MinedPair
from bitextmine.scoring.columns.catalogue import COLUMNS, WINDOW, PairTexts, Request, column_names, pair_hash
from bitextmine.scoring.rules import Rule, RuleSet, choose_rules, make_rule

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from bitextmine.encoder import Encoder


def score(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    columns: str | Sequence[str] | None = None,
    src_lang: str = "",
    tgt_lang: str = "",
    model: str | os.PathLike[str] | Encoder = "default",
    k: int = 4,
    margin: str = "ratio",
    window: int | None = None,
    device: str = "auto",
) -> pandas.DataFrame:
    """Return the columns that the command ``score`` adds to sentence pairs, a row for each: float64, or str for texts.

    `pairs` are (source, target) tuples, pairs of a `Bitext`, or a frame with the columns src and tgt, whose index the
    result has, so that ``frame.join(score(frame))`` puts both side by side. `columns` are names, in a sequence or
    separated by commas (see ``bitextmine score --help``); default: cosine, margin, length_ratio, numbers, copy,
    quality, and lang before quality if the languages are given. `margin` is ratio, distance or absolute, over the `k`
    nearest neighbours among `window` pairs (4,096). `model` is an encoder of `load_encoder`, or its name or folder.

    Raises:
        BitextmineError: an unknown column, or a pair that is not two texts.
        UsageError: an argument of the wrong type.

    >>> frame = score([("Room 12 is free.", "La chambre 12 est libre."), ("Room 7", "Chambre 8")],
    ...               columns="numbers,length_ratio")
    >>> frame.round(2).to_dict("list")
    {'numbers': [1.0, 0.0], 'length_ratio': [1.5, 1.5]}
    """
    import pandas

    from bitextmine.encoder import as_encoder

    src_lang, tgt_lang = language_code("src_lang", src_lang), language_code("tgt_lang", tgt_lang)
    names = column_names(columns, bool(src_lang and tgt_lang))
    request = Request(names, src_lang, tgt_lang, margin, k, WINDOW if window is None else window).checked()
    src, tgt, index = _both_sides(pairs)
    tools = request.tools(as_encoder(model, device) if request.uses("encoder") else None)
    found: dict[str, list[Any]] = {name: [] for name in names}
    for start in range(0, len(src), request.window):
        part = slice(start, start + request.window)
        texts = PairTexts(src[part], tgt[part], tools)
        for name in names:
            found[name].append(texts.column(name))
    return pandas.DataFrame(
        {
            name: [text for part in parts for text in part]
            if COLUMNS[name].is_text
            else np.concatenate([np.empty(0), *parts])
            for name, parts in found.items()
        },
        index=index,
    )


@dataclass(frozen=True, repr=False)
class FilteredPairs(Shown):
    """The result of `filter`.

    Attributes:
        kept, rejected: frames of pairs with the columns of the rules; rejected has the column reason as well.
        rules: the rules in the order of testing.
    """

    kept: pandas.DataFrame
    rejected: pandas.DataFrame
    rules: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<FilteredPairs: {counted(len(self.kept), 'pair')} kept, {len(self.rejected):,} rejected>"

    def to_frame(self) -> pandas.DataFrame:
        """Return the pairs that were kept."""
        return self.kept

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of pairs rejected for each reason, in the order of testing."""
        found = self.rejected["reason"].value_counts()
        return {reason: int(found.get(reason, 0)) for reason in (*self.rules, "duplicate")}

    def plot(self) -> Figure:
        """Draw the number of pairs rejected for each reason, and kept."""
        figure, axes = new_figure()
        bars = {"kept": len(self.kept), **self.counts}
        names, values = list(bars)[::-1], list(bars.values())[::-1]
        axes.bar_label(axes.barh(names, values), padding=3)
        axes.set_xlabel("pairs")
        return figure


def filter(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    preset: str | None = None,
    rules: str | os.PathLike[str] | RuleSet | None = None,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    equal: Mapping[str, str] | None = None,
    duplicates: str | None = None,
    src_lang: str = "",
    tgt_lang: str = "",
    model: str | os.PathLike[str] | Encoder = "default",
    device: str = "auto",
) -> FilteredPairs:
    """Keep the pairs that pass every rule, as the command ``filter`` does after ``score``.

    Columns that a frame has are used; others are computed. Without languages the rule of a preset on lang is skipped.

    Args:
        pairs: as for `score`.
        preset: cheap, mild (the default, unless there are other rules), strict or none.
        rules: a TOML file of rules, or a `RuleSet`, which takes the place of a preset.
        min: rules, from a column to its least value.
        max: likewise, to its greatest value.
        equal: likewise, to its text.
        duplicates: exact, near or none (default: as the preset has it).
        src_lang: the language that the sources should be in.
        tgt_lang: that of the targets.
        model: the encoder, as for `score`.
        device: auto, cpu, cuda or cuda:N.

    Raises:
        BitextmineError: an unknown preset or column, or a pair that is not two texts.

    >>> pairs = [("Room 12 is free.", "La chambre 12 est libre."), ("Room 7 is free.", "La chambre 8 est libre.")]
    >>> found = filter(pairs, min={"numbers": 0.5})
    >>> found
    <FilteredPairs: 1 pair kept, 1 rejected>
    >>> found.rejected["reason"].tolist()
    ['numbers >= 0.5']
    """
    import pandas

    limits = {kind: (given or {}).items() for kind, given in (("min", min), ("max", max), ("equal", equal))}
    if isinstance(rules, RuleSet):
        if preset is not None:
            raise UsageError("filter: give a preset or a RuleSet, not both")
        single = [make_rule(kind, name, value) for kind, given in limits.items() for name, value in given]
        chosen = rules.changed(single, duplicates)
    else:
        chosen = choose_rules(preset, rules, limits, duplicates)
    src, tgt, index = _both_sides(pairs, "filter")
    there: Any = pairs if index is not None else pandas.DataFrame({"src": src, "tgt": tgt})
    tested = [
        rule
        for rule in chosen.rules
        if rule.column in there
        or src_lang
        or rule.column not in chosen.if_present
        or not COLUMNS[rule.column].languages
    ]
    missing = [name for name in dict.fromkeys(rule.column for rule in tested) if name not in there]
    if missing:
        found = score(
            there, columns=missing, src_lang=src_lang, tgt_lang=tgt_lang, model=model, device=device
        )
        there = there.join(found)
    reason = np.full(len(there), "", dtype=object)
    for rule in reversed(tested):  # the first that fails is the reason
        reason[~_passes(rule, there[rule.column])] = str(rule)
    if chosen.duplicates != "none":
        seen: set[int] = set()
        for at in np.flatnonzero(reason == "").tolist():
            key = pair_hash(src[at], tgt[at], chosen.duplicates)
            if key in seen:
                reason[at] = "duplicate"
            seen.add(key)
    kept = reason == ""
    rejected = there[~kept].assign(reason=reason[~kept])
    return FilteredPairs(there[kept], rejected, tuple(map(str, tested)))


def _passes(rule: Rule, column: pandas.Series) -> Any:
    if isinstance(rule.value, str):
        return (column.astype(str) == rule.value).to_numpy()
    return rule.met(column.to_numpy(dtype=np.float64))


def _both_sides(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame, name: str = "score"
) -> tuple[list[str], list[str], Any]:
    """Return sources, targets, and the index of a frame (None for other pairs)."""
    rows: list[Any]
    index = None
    frame: Any = pairs
    if hasattr(pairs, "columns"):
        if missing := {"src", "tgt"} - set(frame.columns):
            there = ", ".join(map(str, frame.columns))
            raise BitextmineError(
                f"{name}: the frame has no column {' or '.join(sorted(missing))}; it has {there}. To use those of "
                "score(), join them to the pairs: frame.join(score(frame))"
            )
        rows, index = list(zip(frame["src"], frame["tgt"], strict=True)), frame.index
    else:
        if isinstance(pairs, (str, os.PathLike)) or not isinstance(pairs, Iterable):
            raise UsageError(
                f"{name}: expected pairs or a frame, found {pairs!r}; files are for 'bitextmine {name}'"
            )
        rows = [(row.src, row.tgt) if isinstance(row, MinedPair) else row for row in pairs]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, (tuple, list)) or len(row) != 2 or not all(isinstance(x, str) for x in row):
            raise BitextmineError(f"{name}: pair {number} is {row!r}; a pair is two texts, (source, target)")
    return [src for src, _ in rows], [tgt for _, tgt in rows], index
