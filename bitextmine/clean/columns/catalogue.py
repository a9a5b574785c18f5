"""All the columns by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.clean.columns import copied, duplicate, lengths, numbers
from bitextmine.clean.columns.quality import LEAST_AROUND, quality, similarity
from bitextmine.clean.columns.texts import Column, PairTexts, Tools

__all__ = ["COLUMNS", "default_columns", "pair_texts"]

_BASIC = ("cosine", "margin", "length_ratio", "numbers", "copy")


def _cosine(pairs: PairTexts) -> NDArray[np.float64]:
    x, y = pairs.vectors()
    return np.einsum("ij,ij->i", x, y, dtype=np.float64)


def _margin(pairs: PairTexts, kind: str | None = None) -> NDArray[np.float64]:
    from bitextmine.mine.margin import margin

    around = pairs.around()
    return margin(pairs.column("cosine"), around.src, around.tgt, kind or pairs.tools.margin)


def _lang(pairs: PairTexts) -> NDArray[np.float64]:
    tools = pairs.tools
    src = tools.languages.share(pairs.src, tools.src_lang)
    return np.minimum(src, tools.languages.share(pairs.tgt, tools.tgt_lang)).astype(np.float64)


def _quality(pairs: PairTexts) -> NDArray[np.float64]:
    tools = pairs.tools
    usual = lengths.USUAL_LENGTH
    ratio = usual.get(tools.tgt_lang, 1.0) / usual.get(tools.src_lang, 1.0)
    if not (tools.src_lang and tools.tgt_lang):
        ratio = 1.0
    enough = pairs.around().size >= LEAST_AROUND
    return quality(
        similarity(pairs.column("cosine"), _margin(pairs, "ratio") if enough else None),
        pairs.each(lambda s, t: lengths.length_deviation(s, t, ratio)),
        pairs.column("numbers"),
        pairs.column("copy"),
        pairs.column("lang") if tools.src_lang and tools.tgt_lang else None,
    )


COLUMNS = {
    column.name: column
    for column in (
        Column("cosine", _cosine, "cosine of the two sentence vectors", encoder=True),
        Column("margin", _margin, "cosine against those to the nearest neighbours", encoder=True, neighbours=True),
        Column(
            "length_ratio",
            lambda pairs: pairs.each(lengths.length_ratio),
            "characters of the longer side over those of the shorter",
        ),
        Column(
            "numbers",
            lambda pairs: pairs.each(numbers.number_agreement),
            "agreement of the numbers, 0 to 1; 1 without any",
        ),
        Column(
            "copy", lambda pairs: pairs.each(copied.copied), "words that both sides have, 0 to 1; 1 for a copy"
        ),
        Column(
            "lang",
            _lang,
            "the sides are in --src and --tgt: above 0.5 when both look so",
            languages=True,
            identifies=True,
        ),
        Column(
            "quality",
            _quality,
            "all of that in one probability, 0 to 1",
            encoder=True,
            neighbours=True,
            better_with_languages=True,
        ),
        Column(
            "shorter",
            lambda pairs: pairs.each(lambda s, t: min(lengths.lengths(s, t))),
            "characters of the shorter side",
        ),
        Column(
            "longer",
            lambda pairs: pairs.each(lambda s, t: max(lengths.lengths(s, t))),
            "characters of the longer side",
        ),
        Column(
            "letters",
            lambda pairs: pairs.each(lambda s, t: min(lengths.letters(s), lengths.letters(t))),
            "share of letters in the side that has fewer",
        ),
        Column(
            "src_lang",
            lambda pairs: pairs.tools.languages.guess(pairs.src),
            "language that the source looks like",
            is_text=True,
            identifies=True,
        ),
        Column(
            "tgt_lang",
            lambda pairs: pairs.tools.languages.guess(pairs.tgt),
            "language that the target looks like",
            is_text=True,
            identifies=True,
        ),
        Column(
            "key",
            lambda pairs: list(map(duplicate.pair_key, pairs.src, pairs.tgt)),
            "the same for near-duplicate pairs",
            is_text=True,
        ),
    )
}  # fmt: skip


def pair_texts(src: Sequence[str], tgt: Sequence[str], tools: Tools) -> PairTexts:
    """Sentence pairs that all the columns can be computed for."""
    return PairTexts(src, tgt, tools, COLUMNS)


def default_columns(languages: bool) -> tuple[str, ...]:
    """What `score` adds when it is not told; the presets of `filter` rest on these."""
    return (*_BASIC, "lang", "quality") if languages else (*_BASIC, "quality")
