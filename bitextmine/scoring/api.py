"""`bitextmine.score`: the columns that the command ``score`` adds, as a frame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.arguments import whole_number
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.mining.bitext import MinedPair
from bitextmine.mining.margin import Margin
from bitextmine.mining.options import member
from bitextmine.scoring.columns.catalogue import COLUMNS, pair_texts
from bitextmine.scoring.columns.neighbourhood import WindowNeighbourhood
from bitextmine.scoring.columns.texts import Tools
from bitextmine.scoring.score import WINDOW, wanted_columns

if TYPE_CHECKING:
    import pandas

    from bitextmine.encoder import Encoder

__all__ = ["score"]


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
    """The columns that the command ``score`` adds to sentence pairs, a row for each pair: float64, or str for texts.

    pairs: (source, target) tuples, what `mine` gives or some of its pairs, or a frame with the columns src and tgt, as
    its ``to_frame()`` has, whose index the result has, so that ``frame.join(score(frame))`` puts both side by side.

    columns: their names, in a sequence or between commas; None: cosine, margin, length_ratio, numbers, copy, quality,
    and lang before quality where the languages are given. ``bitextmine score --help`` says what each is. src_lang,
    tgt_lang: the languages that the sides should be in. margin: ratio, distance or absolute, over the `k` nearest
    neighbours among `window` pairs (4,096). model: an encoder of `load_encoder`, or what that takes.

    Raises BitextmineError for columns that there are not, and for a pair that is not two texts; UsageError, one of
    them, for an argument of the wrong type.

    >>> frame = score([("Room 12 is free.", "La chambre 12 est libre."), ("Room 7", "Chambre 8")],
    ...               columns="numbers,length_ratio")
    >>> frame.round(2).to_dict("list")
    {'numbers': [1.0, 0.0], 'length_ratio': [1.5, 1.5]}
    """
    import pandas

    from bitextmine.encoder import as_encoder

    names = wanted_columns(columns, bool(src_lang and tgt_lang))
    k, window = whole_number("k", k), whole_number("window", WINDOW if window is None else window)
    if bool(src_lang) != bool(tgt_lang):
        raise UsageError("one language alone says nothing: give src_lang and tgt_lang, or neither")
    tools = Tools(
        margin=member(Margin, margin, "margin"), src_lang=src_lang, tgt_lang=tgt_lang, device=device
    )
    needed = [COLUMNS[name] for name in names]
    tools.prepare(needed)
    src, tgt, index = _both_sides(pairs)
    if any(column.encoder for column in needed):
        tools.encoder = as_encoder(model, device)
    if any(column.neighbours for column in needed):
        tools.neighbourhood = WindowNeighbourhood(k, window)
    found: dict[str, list[Any]] = {name: [] for name in names}
    for start in range(0, len(src), window):
        part = pair_texts(src[start : start + window], tgt[start : start + window], tools)
        for name in names:
            found[name].append(part.column(name))
    return pandas.DataFrame(
        {
            name: [text for part in parts for text in part]
            if COLUMNS[name].is_text
            else np.concatenate([np.empty(0), *parts])
            for name, parts in found.items()
        },
        index=index,
    )


def _both_sides(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
) -> tuple[list[str], list[str], Any]:
    """Sources, targets, and the index of the frame that they came in (None without)."""
    rows: list[Any]
    index = None
    frame: Any = pairs
    if hasattr(pairs, "columns"):
        if missing := {"src", "tgt"} - set(frame.columns):
            there = ", ".join(map(str, frame.columns))
            raise BitextmineError(
                f"score: the frame has no column {' or '.join(sorted(missing))}; it has {there}"
            )
        rows, index = list(zip(frame["src"], frame["tgt"], strict=True)), frame.index
    else:
        if isinstance(pairs, (str, os.PathLike)) or not isinstance(pairs, Iterable):
            raise UsageError(
                f"score: expected pairs or a frame, found {pairs!r}; files are for 'bitextmine score'"
            )
        rows = [(row.src, row.tgt) if isinstance(row, MinedPair) else row for row in pairs]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, (tuple, list)) or len(row) != 2 or not all(isinstance(x, str) for x in row):
            raise BitextmineError(f"score: pair {number} is {row!r}; a pair is two texts, (source, target)")
    return [src for src, _ in rows], [tgt for _, tgt in rows], index
