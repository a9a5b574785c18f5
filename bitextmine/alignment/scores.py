"""Scores of links: log odds that the two sides are translations of each other, the scale of `mine`.

They are a logistic regression on the likeness of the link (1 - distance, see `costs`), that of the whole document, and
the evidence of pieces that the link misses. It was fitted to links found in documents aligned
by hand, in made ones, and between documents that have nothing to do with each other (mine/alignment.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.program import Path
from bitextmine.alignment.windows import Floats

LOWEST, HIGHEST = -10.0, 10.0
# Of the likeness, that of the document, the evidence missed per sentence, and the constant.
_WEIGHTS = (6.1, 8.0, -0.5, -5.1)


def probability(log_odds: float) -> float:
    """Return the probability of log odds; 0 for those of a sentence left out."""
    return 0.0 if log_odds <= LOWEST else 1 / (1 + math.exp(-log_odds))


def log_odds(path: Path, distance: Floats, missed: Floats) -> NDArray[np.float64]:
    """Return the scores (steps,) of a path's links; `LOWEST` for a sentence left out.

    distance, missed: of each step, NaN for a sentence left out.
    """
    linked = ~np.isnan(distance)
    found = features(path, distance, missed) @ np.array(_WEIGHTS)
    return np.where(linked, np.clip(found, LOWEST + 0.001, HIGHEST), LOWEST)


def features(path: Path, distance: Floats, missed: Floats) -> NDArray[np.float64]:
    """Return the features (steps, 4) of the regression."""
    sentences = (np.diff(path.x) + np.diff(path.y)).astype(np.float64)
    likeness = np.nan_to_num(1 - distance.astype(np.float64), nan=0.0)
    # Sentences without a partner because the other document is shorter do not count against the rest.
    shorter = 2 * min(int(path.x[-1]), int(path.y[-1]))
    whole = np.full(len(path), min(1.0, float(likeness @ sentences) / max(1, shorter)))
    lost = np.nan_to_num(missed.astype(np.float64), nan=0.0) / sentences
    return np.stack([likeness, whole, lost, np.ones(len(path))], axis=1)
