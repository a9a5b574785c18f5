"""All columns by name, and their functions; `names` describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import usual_length
from bitextmine.scoring.columns import copied, duplicate, lengths, numbers
from bitextmine.scoring.columns.evidence import NAMES, evidence, looped, tokens_of
from bitextmine.scoring.columns.quality import COPIED, LEAST_AROUND, similarity
from bitextmine.scoring.columns.texts import Column, PairTexts, Tools, identifier

_LEAST_CUT = 40  # characters of a text whose halves have identifiable languages


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


def _half_lang(pairs: PairTexts) -> NDArray[np.float64]:
    """Return how far each half of both sides is in its own language and not in the other's, the least of four."""
    least = np.ones(len(pairs))
    tools = pairs.tools
    for texts, own, other in (
        (pairs.src, tools.src_lang, tools.tgt_lang),
        (pairs.tgt, tools.tgt_lang, tools.src_lang),
    ):
        halves = [_halves(text) for text in texts]
        for part in (0, 1):
            least = np.minimum(least, identifier().against([half[part] for half in halves], own, other))
    return least


def _halves(text: str) -> tuple[str, str]:
    """Return a text cut at the space nearest to its middle; a short one twice."""
    middle = text.find(" ", len(text) // 2)
    return (text, text) if len(text) < _LEAST_CUT else (text[:middle], text[middle:])


def _length(pairs: PairTexts) -> NDArray[np.float64]:
    """Return the logarithm of target over source length, against what is usual for the languages or in the block."""
    usual = usual_length(pairs.tools.src_lang, pairs.tools.tgt_lang)
    src, tgt = pairs.lengths
    if usual is None:
        enough = len(pairs) >= LEAST_AROUND
        usual = float(np.median(tgt / np.maximum(src, 1))) if enough else 1.0
    return np.log((tgt + lengths.SMOOTH) / (src * usual + lengths.SMOOTH))


def quality_inputs(pairs: PairTexts) -> NDArray[np.float64]:
    """Return INPUTS (n, m) of sentence pairs."""
    tools, ones = pairs.tools, np.ones(len(pairs))
    stated = bool(tools.src_lang and tools.tgt_lang)
    ratio = _margin(pairs, "ratio") if pairs.around().size >= LEAST_AROUND else None
    length = np.clip(_length(pairs), -2, 2)
    found = [
        similarity(pairs.column("cosine"), ratio),
        0 * ones if ratio is None else np.log(np.clip(ratio, 0.2, 4)),
        ones if ratio is None else 0 * ones,
        np.abs(length),
        length,
        pairs.column("numbers"),
        np.maximum(0, pairs.column("copy") - COPIED),
        np.minimum(1, 2 * pairs.column("lang")) if stated else ones,
        np.minimum(1, 2 * _half_lang(pairs)) if stated else ones,
        ones * stated,
    ]
    signs = [
        evidence(s, t, tools.src_lang, tools.tgt_lang) for s, t in zip(pairs.src, pairs.tgt, strict=True)
    ]
    return np.concatenate([np.stack(found, axis=1), np.array(signs).reshape(len(pairs), len(NAMES))], axis=1)


def _quality(pairs: PairTexts) -> NDArray[np.float64]:
    quality = pairs.tools.quality
    return quality.probabilities(quality_inputs(pairs), piece_inputs(pairs) if quality.by_pieces else None)


def piece_inputs(pairs: PairTexts) -> NDArray[np.float64]:
    """Return PIECE_INPUTS (n, m) of sentence pairs."""
    tools = pairs.tools
    sides = list(pairs.src), list(pairs.tgt)
    return tools.quality.piece_inputs(*sides, pairs.column("cosine"), (tools.src_lang, tools.tgt_lang))


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
    Column("loops", _each(lambda s, t: max(looped(tokens_of(s)), looped(tokens_of(t))))),
    Column("letters", _each(lambda s, t: min(lengths.letters(s), lengths.letters(t)))),
    Column("src_lang", lambda pairs: identifier().guess(pairs.src), is_text=True, identifies=True),
    Column("tgt_lang", lambda pairs: identifier().guess(pairs.tgt), is_text=True, identifies=True),
    Column("key", lambda pairs: list(map(duplicate.pair_key, pairs.src, pairs.tgt)), is_text=True),
)
COLUMNS = {column.name: column for column in _COMPUTED}


def pair_texts(src: Sequence[str], tgt: Sequence[str], tools: Tools) -> PairTexts:
    """Return sentence pairs with all columns to compute."""
    return PairTexts(src, tgt, tools, COLUMNS)
