"""The dynamic program: the cheapest monotone path from the beginning of two documents to their ends.

A node (x, y) lies between sentences, after x of the source and y of the target. A step takes some of both, or leaves
one out. Nodes are visited by antidiagonals a = x + y, whose nodes are independent of each other, and only within a band
of constant width: time and memory grow with the documents' length and not with its square.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.compiled import library

_NONE = 255


Step = tuple[int, int]  # the source and target sentences that it takes


def kinds(largest: int) -> list[Step]:
    """Return the kinds of steps that pair up to `largest` sentences of both sides together, small ones first."""
    return sorted(
        ((s, t) for s in range(1, largest) for t in range(1, largest) if s + t <= largest),
        key=lambda step: (sum(step), abs(step[0] - step[1]), step),
    )


@dataclass(frozen=True)
class Band:
    """The nodes to visit between documents of n and m sentences.

    Attributes:
        low: (n + m + 1,) int64; the nodes of antidiagonal a have y from low[a] to low[a] + width - 1, some of them
            outside the documents. Grows by 0 or 1 from one antidiagonal to the next.
    """

    n: int
    m: int
    low: NDArray[np.int64]
    width: int

    @classmethod
    def full(cls, n: int, m: int) -> Band:
        """Return the band of all nodes."""
        return cls(n, m, np.clip(np.arange(n + m + 1) - n, 0, m), min(n, m) + 1)

    def nodes(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return x and y, (last - first, width) int64, of antidiagonals first .. last - 1."""
        y = self.low[first:last, None] + np.arange(self.width)
        return np.arange(first, last)[:, None] - y, y


@dataclass(frozen=True)
class Lattice:
    """A band with the costs of its steps.

    Attributes:
        cost: (n + m + 1, width, kinds) float32, of the steps from each node; infinity for those beyond the end.
        skip: the cost of leaving one sentence out.
    """

    band: Band
    steps: list[Step]
    cost: NDArray[np.float32]
    skip: float

    def moves(self) -> list[Step]:
        """Return all kinds of steps, those that leave a sentence out last."""
        return [*self.steps, (1, 0), (0, 1)]


@dataclass(frozen=True)
class Path:
    """An alignment as steps: step i goes from (x[i], y[i]) to (x[i + 1], y[i + 1]).

    Attributes:
        x, y: (steps + 1,) int64, from 0 to the documents' lengths.
        on_edge: the path touches the edge of the band inside the documents; a wider band may have a better one.
    """

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    on_edge: bool = False

    def __len__(self) -> int:
        return len(self.x) - 1


def cheapest(lattice: Lattice, *, compiled: bool = True) -> Path:
    """Return the path of least cost within a band, which must hold (0, 0) and (n, m).

    Ties go to the path with the earlier kind of step at its end, and so on backwards. Without the compiled module NumPy
    gives the same bits.
    """
    band, steps = lattice.band, lattice.steps
    total = np.empty((len(band.low), band.width))
    back = np.empty((len(band.low), band.width), dtype=np.uint8)
    native = library("alignment") if compiled else None
    if native is None:
        _advance(lattice, total, back)
    else:
        shape = np.array([band.width, band.n, band.m, len(steps)], dtype=np.int64)
        low, cost = np.ascontiguousarray(band.low, dtype=np.int64), np.ascontiguousarray(lattice.cost)
        x, y = np.array(steps, dtype=np.int64).reshape(-1, 2).T.copy()
        native.dp_advance(total, back, low, cost, x, y, np.array([lattice.skip]), shape)
    return _trace(lattice, back)


def _advance(lattice: Lattice, total: NDArray[np.float64], back: NDArray[np.uint8]) -> None:
    """Fill all antidiagonals; the reference for dp_advance in dp.c."""
    band = lattice.band
    for a in range(len(band.low)):
        low = int(band.low[a])
        total[a], back[a] = np.inf, _NONE
        for k, (s, t) in enumerate(lattice.moves()):
            before = a - s - t
            if before < 0:
                continue
            # The range of y that such a step can reach from a node of the band.
            begin = max(low, t, a - band.n, int(band.low[before]) + t)
            end = min(low + band.width, band.m + 1, a - s + 1, int(band.low[before]) + band.width + t)
            if begin >= end:
                continue
            column = begin - t - int(band.low[before])
            nodes = slice(column, column + end - begin)
            price = (
                lattice.cost[before, nodes, k].astype(np.float64) if k < len(lattice.steps) else lattice.skip
            )
            candidate = total[before, nodes] + price
            here = slice(begin - low, end - low)
            better = candidate < total[a, here]
            total[a, here][better] = candidate[better]
            back[a, here][better] = k
        if a == 0:
            total[0, -low], back[0, -low] = 0, _NONE


def marginals(lattice: Lattice) -> NDArray[np.float64]:
    """Return the probability (n + m + 1, width, kinds) of each step that pairs sentences, if costs are -log potentials.

    By the forward-backward algorithm: a path is as likely as exp(-cost), relative to all paths within the band.
    """
    band, moves = lattice.band, lattice.moves()
    ahead = np.full((len(band.low), band.width), -np.inf)
    behind, through = ahead.copy(), np.full((*ahead.shape, len(moves)), -np.inf)
    x, y = band.nodes(0, len(band.low))
    inside = (x >= 0) & (y >= 0) & (x <= band.n) & (y <= band.m)
    # The arcs that leave an antidiagonal, of each kind: the antidiagonal and columns that they reach, and their price.
    arcs: list[list[tuple[int, int, NDArray, NDArray, NDArray]]] = [[] for _ in band.low]
    for a in range(len(band.low)):
        for k, (s, t) in enumerate(moves):
            after = a + s + t
            if after < len(band.low):
                column = np.arange(band.width) + int(band.low[a] - band.low[after]) + t
                own = np.flatnonzero((column >= 0) & (column < band.width) & inside[a])
                own = own[inside[after, column[own]]]
                price = lattice.cost[a, own, k] if k < len(lattice.steps) else np.full(len(own), lattice.skip)
                arcs[a].append((k, after, own, column[own], price))
    ahead[0, -band.low[0]] = behind[-1, band.m - band.low[-1]] = 0
    for a, leaving in enumerate(arcs):
        for _, after, own, column, price in leaving:
            ahead[after, column] = np.logaddexp(ahead[after, column], ahead[a, own] - price)
    for a, leaving in reversed(list(enumerate(arcs))):
        for k, after, own, column, price in leaving:
            through[a, own, k] = behind[after, column] - price
            behind[a, own] = np.logaddexp(behind[a, own], through[a, own, k])
    out: NDArray[np.float64] = np.exp(ahead[..., None] + through - behind[0, -band.low[0]])
    return out[..., : len(lattice.steps)]


def _trace(lattice: Lattice, back: NDArray[np.uint8]) -> Path:
    moves, band = lattice.moves(), lattice.band
    x, y = band.n, band.m
    xs, ys = [x], [y]
    on_edge = False
    while x or y:
        a = x + y
        column = y - int(band.low[a])
        on_edge = on_edge or (column == 0 and y > 0 and x < band.n)
        on_edge = on_edge or (column == band.width - 1 and x > 0 and y < band.m)
        s, t = moves[back[a, column]]
        x, y = x - s, y - t
        xs.append(x)
        ys.append(y)
    return Path(np.array(xs[::-1], dtype=np.int64), np.array(ys[::-1], dtype=np.int64), on_edge)
