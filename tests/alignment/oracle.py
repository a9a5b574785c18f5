"""Sentence alignment in a few slow lines: costs from their definition, and every node of the dynamic program."""

from __future__ import annotations

import numpy as np

from bitextmine.alignment.costs import Prices
from bitextmine.alignment.windows import Windows

Step = tuple[int, int, int, int]


def window(side: Windows, size: int, start: int) -> np.ndarray:
    return side.vectors(size, start, start + 1)[0].astype(np.float64)


def mean_far(x: np.ndarray, others: Windows) -> float:
    every = others.vectors(1, 0, len(others)).astype(np.float64)
    return max(1e-3, float(np.mean([1 - x @ y for y in every])))


def cost(src: Windows, tgt: Windows, step: Step, prices: Prices) -> float:
    """Of aligning sentences i .. i + s - 1 with j .. j + t - 1."""
    i, s, j, t = step
    x, y = window(src, s, i), window(tgt, t, j)
    value = (1 - x @ y) * s * t / ((mean_far(x, tgt) + mean_far(y, src)) / 2)
    value += prices.join * (s + t - 2) + prices.knot * (min(s, t) - 1)
    if src.characters is not None and tgt.characters is not None and prices.length:
        ratio = (src.characters.sum() + 1) / (tgt.characters.sum() + 1)
        lengths = src.characters[i : i + s].sum() + 30, tgt.characters[j : j + t].sum() + 30
        value += prices.length * min(1.0, np.log(lengths[0] / lengths[1] / ratio) ** 2)
    return float(value)


def skip(src: Windows, tgt: Windows, prices: Prices) -> float:
    alone = Prices(join=0, knot=0, length=0)
    random = [
        cost(src, tgt, (i, 1, j, 1), alone) for i in range(len(src)) for j in range(len(tgt))
    ]  # as many as there are: few
    return prices.share * max(0.8, float(np.quantile(random, prices.percentile)))


def total(src: Windows, tgt: Windows, steps: list[Step], prices: Prices) -> float:
    """The cost of an alignment."""
    price = skip(src, tgt, prices)
    return sum(cost(src, tgt, step, prices) if step[1] and step[3] else price for step in steps)


def least(src: Windows, tgt: Windows, largest: int, prices: Prices) -> float:
    """The cost of the best alignment there is."""
    price = skip(src, tgt, prices)
    n, m = len(src), len(tgt)
    best = np.full((n + 1, m + 1), np.inf)
    best[0, 0] = 0
    for i in range(n + 1):
        for j in range(m + 1):
            if i:
                best[i, j] = min(best[i, j], best[i - 1, j] + price)
            if j:
                best[i, j] = min(best[i, j], best[i, j - 1] + price)
            for s in range(1, min(largest, i + 1)):
                for t in range(1, min(largest - s, j) + 1):
                    found = best[i - s, j - t] + cost(src, tgt, (i - s, s, j - t, t), prices)
                    best[i, j] = min(best[i, j], found)
    return float(best[n, m])
