"""One number out of the other columns: how probable it is that a pair is a translation to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHTS", "quality"]

# Logistic regression of clean pairs against seven kinds of noise, rounded: English with French, German, Spanish and
# Italian documentation, law and everyday sentences, and the encoder europe5-fast. mine/bench_filtering.py fits it
# again; how well it does on other sentences, in Europarl and with another encoder stands in mine/filtering.md.
WEIGHTS = {"intercept": -27.0, "cosine": 11.5, "length": -8.0, "numbers": 14.0, "copy": -2.5, "lang": 8.0}


def quality(
    cosine: NDArray[np.float64],
    length: NDArray[np.float64],
    numbers: NDArray[np.float64],
    copy: NDArray[np.float64],
    lang: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """(n,) in 0..1 from columns (n,): 1 / (1 + exp(-z)),

        z = -27 + 11.5 max(cosine, 0) - 8 length + 14 numbers - 2.5 copy + 8 min(1, 2 lang)

    cosine, numbers, copy, lang: the columns of these names; length: `lengths.length_deviation`. Where the languages
    were not stated (lang is None), 2 lang counts as 1.
    """
    w = WEIGHTS
    language = np.ones_like(cosine) if lang is None else np.minimum(1.0, 2 * lang)
    z = (
        w["intercept"]
        + w["cosine"] * np.maximum(cosine, 0)
        + w["length"] * length
        + w["numbers"] * numbers
        + w["copy"] * copy
        + w["lang"] * language
    )
    return 1 / (1 + np.exp(-z))
