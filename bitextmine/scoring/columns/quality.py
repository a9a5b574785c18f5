"""One number out of the other columns: how probable it is that a pair is a translation to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["COPIED", "LEAST_AROUND", "WEIGHTS", "quality", "similarity"]

# Logistic regression of clean pairs against seven kinds of noise, rounded: English with French, German, Spanish and
# Italian documentation, law and everyday sentences, and the encoder europe5. mine/bench_filtering.py fits it
# again, with and without the languages; the weight of copies is a little more than it finds without them (-15.6), or a
# copy, whose cosine is 1, would all but pass where they are not stated.
# How well it does on other sentences, in Europarl and with another encoder stands in mine/filtering.md.
WEIGHTS = {
    "intercept": -29.5,
    "similarity": 13.5,
    "length": -7.5,
    "numbers": 14.5,
    "copy": -20.0,
    "lang": 7.5,
}

# Names and technical terms are rightly copied: up to this share of the words nothing is wrong.
COPIED = 0.5

# Texts of a side that a pair must have around it before its margin says anything.
LEAST_AROUND = 64

# The cosine of a clean pair hangs on language and subject (with an earlier encoder its median was 0.56 for German
# Europarl and 0.84 for French manuals, which that knew better), its margin hardly does (1.5 and 1.9). This line turns
# one into the other where the encoder is at home.
_SLOPE, _SHIFT, _HIGHEST = 0.6, -0.1, 1.6


def similarity(cosine: NDArray[np.float64], ratio: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """max(cosine, 0, 0.6 min(ratio, 1.6) - 0.1), (n,): the cosine, or what the margin makes of it if that is more.

    A pair that stands out from its neighbourhood is a good one even if cosines are low there; one that does not may
    still have near copies around it. ratio: the ratio margin, None where too little is around.
    """
    cosine = np.maximum(cosine, 0.0)
    return cosine if ratio is None else np.maximum(cosine, _SLOPE * np.minimum(ratio, _HIGHEST) + _SHIFT)


def quality(
    similarity: NDArray[np.float64],
    length: NDArray[np.float64],
    numbers: NDArray[np.float64],
    copy: NDArray[np.float64],
    lang: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """(n,) in 0..1 from columns (n,): 1 / (1 + exp(-z)),

        z = -29.5 + 13.5 similarity - 7.5 length + 14.5 numbers - 20 max(0, copy - 0.5) + 7.5 min(1, 2 lang)

    similarity: of the function of this name; numbers, copy, lang: the columns of these names; length:
    `lengths.length_deviation`. Where the languages were not stated (lang is None), 2 lang counts as 1.
    """
    w = WEIGHTS
    language = np.ones_like(similarity) if lang is None else np.minimum(1.0, 2 * lang)
    z = (
        w["intercept"]
        + w["similarity"] * similarity
        + w["length"] * length
        + w["numbers"] * numbers
        + w["copy"] * np.maximum(0.0, copy - COPIED)
        + w["lang"] * language
    )
    return 1 / (1 + np.exp(-z))
