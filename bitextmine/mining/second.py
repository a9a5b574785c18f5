"""A second opinion: a larger encoder judges the candidates of a small one that are in doubt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A candidate stands out from its ends' best so many candidates, itself among them: the runner-up is the one to beat.
RIVALS = 2


def margins(
    cosine: NDArray[np.float64], src: NDArray[np.int64], tgt: NDArray[np.int64], rivals: int = RIVALS
) -> NDArray[np.float64]:
    """Return the distance margins (p,) of candidates, over the best candidates of their own ends.

    The margin of the pair (s, t) is its cosine less the average of two means: of the `rivals` highest cosines among the
    candidates of s, and among those of t.

    Args:
        cosine: of each candidate.
        src: its source row.
        tgt: its target row.
        rivals: the candidates of a row that count.
    """
    return cosine - (_best_mean(cosine, src, rivals) + _best_mean(cosine, tgt, rivals)) / 2


def _best_mean(score: NDArray[np.float64], rows: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the mean (p,) of the highest scores among the candidates of each candidate's row."""
    order = np.lexsort((-score, rows))
    _, begin, inverse, size = np.unique(
        rows[order], return_index=True, return_counts=True, return_inverse=True
    )
    rank = np.arange(len(rows)) - begin[inverse]
    total = np.bincount(inverse, np.where(rank < count, score[order], 0.0))
    mean = np.empty(len(score))
    mean[order] = (total / np.minimum(size, count))[inverse]
    return mean
