"""`bitextmine.score`: the columns of the command ``score`` as a frame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.arguments import language_code
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.mining.bitext import MinedPair
from bitextmine.scoring.columns.catalogue import COLUMNS, pair_texts
from bitextmine.scoring.request import WINDOW, Request, column_names

if TYPE_CHECKING:
    import pandas

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
        texts = pair_texts(src[part], tgt[part], tools)
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


def _both_sides(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
) -> tuple[list[str], list[str], Any]:
    """Return sources, targets, and the index of a frame (None for other pairs)."""
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
