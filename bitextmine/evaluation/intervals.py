"""95% intervals: Wilson's for a share, the bootstrap for F1."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054  # the 97.5% point of the normal distribution


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval (1927) of a share: (low, high) from 0 to 1; (0, 1) without a trial."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == trials else (middle + half) / scale
    return low, high


def bootstrap(
    groups: list[NDArray[np.int64]],
    statistic: Callable[[list[NDArray[np.int64]]], NDArray[np.float64]],
    *,
    resamples: int = 2000,
    seed: int = 1,
) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of a statistic of sums of counts.

    Items with equal counts are interchangeable, so the draw is one multinomial over the distinct ones: exact, and fast
    for any number.

    `groups` are integer matrices (items, c), the items of each resampled with replacement; `statistic` maps one matrix
    of sums (resamples, c) per group to values (resamples,).
    """
    rng = np.random.default_rng(seed)
    sums = []
    for items in groups:
        if not len(items):
            sums.append(np.zeros((resamples, items.shape[1]), dtype=np.int64))
            continue
        distinct, count = np.unique(items, axis=0, return_counts=True)
        drawn = rng.multinomial(len(items), count / len(items), size=resamples)
        sums.append(drawn @ distinct)
    low, high = np.quantile(statistic(sums), [0.025, 0.975])
    return float(low), float(high)
