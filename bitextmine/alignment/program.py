"""The dynamic program: the cheapest monotone path from the beginning of two documents to their ends.

A node (x, y) lies between sentences, after x of the source and y of the target. A step takes some of both, or leaves
one out. Nodes are visited by antidiagonals a = x + y, whose nodes are independent of each other, and only within a band
of constant width: time and memory grow with the documents' length and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.costs import Costs, Kinds
from bitextmine.alignment.windows import Floats
from bitextmine.compiled import library

_NONE = 255
# Costs in a block of antidiagonals, about half of which the band needs; and the fewest antidiagonals that make matrix
# products worth their call.
_CELLS = 1 << 21
_BLAS_WORTH = 48


@dataclass(frozen=True)
class Band:
    """The nodes to visit: on antidiagonal a those of y from low[a] to low[a] + width - 1.

    low: (n + m + 1,) int64; grows by 0 or 1 from one antidiagonal to the next.
    """

    low: NDArray[np.int64]
    width: int


@dataclass(frozen=True)
class Path:
    """An alignment as steps: step i goes from (x[i], y[i]) to (x[i + 1], y[i + 1]).

    Attributes:
        x, y: (steps + 1,) int64, from 0 to the documents' lengths.
        cost: (steps,) float64.
        on_edge: the path touches the edge of the band inside the documents; a wider band may have a better one.
    """

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    cost: NDArray[np.float64]
    on_edge: bool = False

    def __len__(self) -> int:
        return len(self.cost)


def full_band(n: int, m: int) -> Band:
    """Return the band of all nodes of two documents of n and m sentences."""
    return Band(np.zeros(n + m + 1, dtype=np.int64), m + 1)


def cheapest(
    costs: Costs,
    steps: Kinds,
    n: int,
    m: int,
    band: Band,
    *,
    compiled: bool = True,
    tick: Callable[[int], object] | None = None,
) -> Path:
    """Return the path of least cost within a band, which must hold (0, 0) and (n, m).

    Ties go to the path with the earlier kind of step at its end, and so on backwards. Without the compiled module NumPy
    gives the same bits. `tick` is called with numbers of finished antidiagonals.
    """
    total = np.empty((n + m + 1, band.width))
    back = np.empty((n + m + 1, band.width), dtype=np.uint8)
    native = library("alignment") if compiled else None
    low, skip = np.ascontiguousarray(band.low, dtype=np.int64), np.array([costs.skip])
    far_x, far_y = int(steps.x.max(initial=1)), int(steps.y.max(initial=1))
    rows = max(_BLAS_WORTH, _fit(band.width))
    for first in range(0, n + m + 1, rows):
        last = min(first + rows, n + m + 1)
        # The block of costs covers the sentences at which a step to one of these nodes may start.
        ys = band.low[first], band.low[last - 1] + band.width
        y0, y1 = max(0, int(ys[0]) - far_y), min(m, int(ys[1]))
        most = np.arange(first, last) - band.low[first:last]
        x0, x1 = max(0, int(most.min()) - band.width + 1 - far_x), min(n, int(most.max()) + 1)
        cost = costs.block(x0, max(x0, x1), y0, max(y0, y1))
        if native is None:
            _advance(total, back, band, first, last, n, m, cost, x0, y0, steps, costs.skip)
        else:
            shape = np.array([band.width, first, last, n, m, *cost.shape, x0, y0], dtype=np.int64)
            native.dp_advance(total, back, low, cost, steps.x, steps.y, skip, shape)
        if tick is not None:
            tick(last - first)
    return _trace(total, back, band, n, m, steps)


def _fit(width: int) -> int:
    """Return the number of antidiagonals in a block of about _CELLS costs per kind, at most twice the band's width."""
    return int(max(1, min(2 * width, _CELLS // max(1, width))))


def _advance(
    total: NDArray[np.float64],
    back: NDArray[np.uint8],
    band: Band,
    first: int,
    last: int,
    n: int,
    m: int,
    cost: Floats,
    x0: int,
    y0: int,
    steps: Kinds,
    skip: float,
) -> None:
    """Fill antidiagonals first..last - 1; the reference for dp_advance in dp.c."""
    moves = [*zip(steps.x.tolist(), steps.y.tolist(), strict=True), (1, 0), (0, 1)]
    for a in range(first, last):
        low = int(band.low[a])
        total[a], back[a] = np.inf, _NONE
        for k, (s, t) in enumerate(moves):
            before = a - s - t
            if before < 0:
                continue
            # The range of y that such a step can reach from a node of the band.
            begin = max(low, t, a - n, int(band.low[before]) + t)
            end = min(low + band.width, m + 1, a - s + 1, int(band.low[before]) + band.width + t)
            if begin >= end:
                continue
            y = np.arange(begin, end)
            price = cost[k, a - y - s - x0, y - t - y0].astype(np.float64) if k < len(steps) else skip
            column = begin - t - int(band.low[before])
            found = total[before, column : column + len(y)] + price
            nodes = slice(begin - low, end - low)
            better = found < total[a, nodes]
            total[a, nodes][better] = found[better]
            back[a, nodes][better] = k
        if a == 0:
            total[0, -low], back[0, -low] = 0, _NONE


def _trace(
    total: NDArray[np.float64], back: NDArray[np.uint8], band: Band, n: int, m: int, steps: Kinds
) -> Path:
    moves = [*zip(steps.x.tolist(), steps.y.tolist(), strict=True), (1, 0), (0, 1)]
    low, width = band.low, band.width
    x, y = n, m
    xs, ys, sums = [x], [y], []
    on_edge = False
    while x or y:
        a = x + y
        column = y - int(low[a])
        sums.append(total[a, column])
        on_edge = on_edge or (column == 0 and y > 0 and x < n) or (column == width - 1 and x > 0 and y < m)
        s, t = moves[back[a, column]]
        x, y = x - s, y - t
        xs.append(x)
        ys.append(y)
    sums.append(0.0)
    return Path(
        np.array(xs[::-1], dtype=np.int64), np.array(ys[::-1], dtype=np.int64), np.diff(sums[::-1]), on_edge
    )
