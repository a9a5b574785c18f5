"""The probability that a pair is a translation to learn from, from the other columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Logistic regression of clean pairs against seven kinds of noise, rounded: English with French, German, Spanish and
# Italian documentation, law and everyday sentences, and the encoder europe5 (mine/bench_filtering.py fits it again).
# The weight of copies is raised from the fit without languages (-15.6): a copy, whose cosine is 1, would otherwise
# almost pass if the languages are not stated. mine/filtering.md has the results on other text and with another encoder.
WEIGHTS = {
    "intercept": -29.5,
    "similarity": 13.5,
    "length": -7.5,
    "numbers": 14.5,
    "copy": -20.0,
    "lang": 7.5,
}

# Names and technical terms are rightly copied, up to this share of the words.
COPIED = 0.5

# The texts on each side that a margin needs to mean anything.
LEAST_AROUND = 64

# The cosine of a clean pair depends on language and subject (an earlier encoder: median 0.56 for German Europarl, 0.84
# for French manuals), its margin hardly does (1.5 and 1.9). This line maps margin to cosine on familiar text.
_SLOPE, _SHIFT, _HIGHEST = 0.6, -0.1, 1.6


def similarity(cosine: NDArray[np.float64], ratio: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return max(cosine, 0, 0.6 min(ratio, 1.6) - 0.1), (n,); `ratio` is the ratio margin (None: too few neighbours).

    A pair that stands out from its neighbourhood is good even if cosines are low there; one that does not may still
    have near copies around it.
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
    """Return probabilities 1 / (1 + exp(-z)), (n,), from columns (n,).

    The exponent is

        z = -29.5 + 13.5 similarity - 7.5 length + 14.5 numbers - 20 max(0, copy - 0.5) + 7.5 min(1, 2 lang)

    with `similarity` of that function and `length` of `lengths.length_deviation`. Without languages 2 lang counts as 1.
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
