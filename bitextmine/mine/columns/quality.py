"""One number out of the other columns: how probable it is that a pair is a translation to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHTS", "quality"]

# Logistic regression of clean pairs against the noise of mine/bench_filtering.py (seven kinds of equal weight, half of
# the sentences; `mine/bench_filtering.py --fit` prints it again), rounded. How well it does on the other half, on
# other text and with other encoders stands in mine/filtering.md.
WEIGHTS = {"intercept": -22.5, "cosine": 9.5, "length": -6.0, "numbers": 12.0, "copy": -3.0, "lang": 7.0}


def quality(
    cosine: NDArray[np.float64],
    length: NDArray[np.float64],
    numbers: NDArray[np.float64],
    copy: NDArray[np.float64],
    lang: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """(n,) in 0..1 from columns (n,): 1 / (1 + exp(-z)),

        z = -22.5 + 9.5 max(cosine, 0) - 6 length + 12 numbers - 3 copy + 7 min(1, 2 lang)

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
