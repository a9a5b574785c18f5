"""All columns by name, and their functions; `names` describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import usual_length
from bitextmine.scoring.columns import copied, duplicate, lengths, numbers
from bitextmine.scoring.columns.quality import LEAST_AROUND, quality, similarity
from bitextmine.scoring.columns.texts import Column, PairTexts, Tools, identifier


def _cosine(pairs: PairTexts) -> NDArray[np.float64]:
    x, y = pairs.vectors()
    return np.einsum("ij,ij->i", x, y, dtype=np.float64)


def _margin(pairs: PairTexts, kind: str | None = None) -> NDArray[np.float64]:
    from bitextmine.mining.margin import margin

    around = pairs.around()
    return margin(pairs.column("cosine"), around.src, around.tgt, kind or pairs.tools.margin)


def _lang(pairs: PairTexts) -> NDArray[np.float64]:
    tools = pairs.tools
    src = identifier().share(pairs.src, tools.src_lang)
    return np.minimum(src, identifier().share(pairs.tgt, tools.tgt_lang)).astype(np.float64)


def _quality(pairs: PairTexts) -> NDArray[np.float64]:
    tools = pairs.tools
    ratio = usual_length(tools.src_lang, tools.tgt_lang) if tools.src_lang and tools.tgt_lang else 1.0
    enough = pairs.around().size >= LEAST_AROUND
    return quality(
        similarity(pairs.column("cosine"), _margin(pairs, "ratio") if enough else None),
        pairs.each(lambda s, t: lengths.length_deviation(s, t, ratio)),
        pairs.column("numbers"),
        pairs.column("copy"),
        pairs.column("lang") if tools.src_lang and tools.tgt_lang else None,
    )


def _each(compute: Callable[[str, str], float]) -> Callable[[PairTexts], NDArray[np.float64]]:
    return lambda pairs: pairs.each(compute)


_COMPUTED = (
    Column("cosine", _cosine, encoder=True),
    Column("margin", _margin, encoder=True, neighbours=True),
    Column("length_ratio", _each(lengths.length_ratio)),
    Column("numbers", _each(numbers.number_agreement)),
    Column("copy", _each(copied.copied)),
    Column("lang", _lang, languages=True, identifies=True),
    Column("quality", _quality, encoder=True, neighbours=True, better_with_languages=True),
    Column("shorter", lambda pairs: np.minimum(*pairs.lengths)),
    Column("longer", lambda pairs: np.maximum(*pairs.lengths)),
    Column("letters", _each(lambda s, t: min(lengths.letters(s), lengths.letters(t)))),
    Column("src_lang", lambda pairs: identifier().guess(pairs.src), is_text=True, identifies=True),
    Column("tgt_lang", lambda pairs: identifier().guess(pairs.tgt), is_text=True, identifies=True),
    Column("key", lambda pairs: list(map(duplicate.pair_key, pairs.src, pairs.tgt)), is_text=True),
)
COLUMNS = {column.name: column for column in _COMPUTED}


def pair_texts(src: Sequence[str], tgt: Sequence[str], tools: Tools) -> PairTexts:
    """Return sentence pairs with all columns to compute."""
    return PairTexts(src, tgt, tools, COLUMNS)
