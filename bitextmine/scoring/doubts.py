"""Notes on pairs that are not what the options of `score` say: other languages, swapped columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.scoring.columns.catalogue import PairTexts, Request, identifier

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

_SAMPLE = 200  # pairs examined for swapped columns
_LOW = 0.5  # of the column lang: the pair is not in the stated languages
_ENOUGH = 10  # texts that tell a language
_RARE = 0.1  # of the texts in the stated language, where it is a mistake


def doubts(name: str, request: Request, encoder: Encoder | None, pairs: PairTexts, shares: Any) -> list[str]:
    """Return notes if the encoder does not know the text, or if texts are of other languages than stated.

    Args:
        name: the input, for the notes.
        request: the columns asked for.
        encoder: None if no column needs one.
        pairs: the first ones.
        shares: their column lang; empty without it.
    """
    texts = pairs.src, pairs.tgt
    notes = []
    if encoder is not None:
        from bitextmine.encoder.familiar import knows, sampled, warn_unfamiliar

        langs = request.src_lang, request.tgt_lang
        unknown = [
            warn_unfamiliar(encoder, f"{name}: {side}", lang, sampled(lines, len(lines)))
            for side, lang, lines in zip(("source", "target"), langs, texts, strict=True)
        ]
        if any(unknown) and "quality" in request.names:
            notes.append(
                "warning: quality rejects most good pairs of languages that the encoder does not know; state these "
                "(--src, --tgt), or filter with --preset cheap, which needs no encoder"
                if all(knows(encoder, lang) for lang in langs)
                else "warning: without the encoder, quality compares only lengths, numbers, copies and languages, and "
                "is at most 0.5: a wrong translation that looks right passes"
            )
    src, tgt = (side[:_SAMPLE] for side in texts)
    if not src:
        return notes
    if len(shares) and np.median(shares[:_SAMPLE]) < _LOW:
        notes += _other_languages(request, src, tgt)
    return notes


def _other_languages(request: Request, src: Sequence[str], tgt: Sequence[str]) -> list[str]:
    """Return a note if the sides look swapped, or one for each side that looks like another language than stated."""
    other = np.minimum(identifier().share(src, request.tgt_lang), identifier().share(tgt, request.src_lang))
    share = float((other > _LOW).mean())
    if share > _LOW:
        return [
            f"warning: source and target look swapped: of the first {len(src):,} pairs {100 * share:.0f}% fit "
            f"--src {request.tgt_lang} --tgt {request.src_lang}; exchange these, or name the columns with --scol and "
            "--tcol"
        ]
    notes = []
    for option, lang, lines in (("--src", request.src_lang, src), ("--tgt", request.tgt_lang, tgt)):
        guesses = Counter(identifier().guess(lines))
        guess, count = guesses.most_common(1)[0]
        if (
            len(lines) >= _ENOUGH
            and count > _LOW * len(lines)
            and guesses[identifier().code(lang) or lang] < _RARE * len(lines)
        ):
            notes.append(
                f"warning: {option} is {lang}, but {count:,} of the first {len(lines):,} texts look like '{guess}'"
            )
    return notes
