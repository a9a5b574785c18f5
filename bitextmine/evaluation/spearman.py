"""Spearman's correlation, and that of resampled pairs for intervals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# The numbers in the largest array of resamples.
BLOCK = 1 << 21


def spearman(x: NDArray, y: NDArray) -> float:
    """Return Spearman's correlation of x (n,) and y (n,), that is Pearson's of their ranks; ties share their mean rank.

    NaN if all values of x or of y are equal.
    """
    return float(_correlations(_Column(x), _Column(y), np.ones((1, len(x)), dtype=np.int64))[0])


def redrawn(columns: Sequence[tuple[NDArray, NDArray]], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return correlations (columns, resamples) of pairs resampled with replacement.

    Each of `columns` is x (n,) and y (n,); columns of one length are drawn at the same places. A draw of only equal
    values gives NaN.
    """
    correlations = np.empty((len(columns), resamples))
    for n in {len(x) for x, _ in columns}:
        ready = [(at, _Column(x), _Column(y)) for at, (x, y) in enumerate(columns) if len(x) == n]
        rng = np.random.default_rng(seed)
        rows = max(1, BLOCK // n)
        for start in range(0, resamples, rows):
            stop = min(start + rows, resamples)
            times = rng.multinomial(n, np.full(n, 1 / n), size=stop - start)
            for at, x, y in ready:
                correlations[at, start:stop] = _correlations(x, y, times)
    return correlations


class _Column:
    """Values to be ranked again and again, with other numbers of copies each time."""

    def __init__(self, values: NDArray) -> None:
        self._order = np.argsort(values, kind="stable")
        _, self._starts, self._group = np.unique(values[self._order], return_index=True, return_inverse=True)
        self._place = np.empty(len(values), dtype=np.int64)
        self._place[self._order] = self._group

    def centred(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ranks (b, n) less the mean of all ranks, for times[:, i] copies of value i."""
        each = np.add.reduceat(times[:, self._order], self._starts, axis=1)
        # Copies from rank r to rank s share (r + s) / 2, and the mean of all ranks is (n + 1) / 2.
        ranks = np.cumsum(each, axis=1) - (each + len(self._place)) / 2
        return ranks[:, self._place]


def _correlations(x: _Column, y: _Column, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return correlations (b,) for times[:, i] copies of pair i."""
    a, b = x.centred(times), y.centred(times)
    weighted = a * times
    both = np.einsum("ij,ij->i", weighted, b)
    squares = np.einsum("ij,ij->i", weighted, a) * np.einsum("ij,ij,ij->i", b, b, times)
    return np.divide(both, np.sqrt(squares), out=np.full(len(both), np.nan), where=squares > 0)


def interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95% of correlations, those that are NaN left out."""
    defined = resampled[~np.isnan(resampled)]
    if not len(defined):
        return -1.0, 1.0
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)
