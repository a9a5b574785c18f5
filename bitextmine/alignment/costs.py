"""Costs of aligning a run of sentences with another, or of leaving a sentence out.

cost(x, y) = (1 - cos(x, y)) |x| |y| / mean of 1 - cos(x, y') and 1 - cos(x', y) over other sentences x', y'

(Thompson and Koehn 2019, "Vecalign: improved sentence alignment in linear time and space"). |x| is the number of
sentences: without it one long step would always be cheaper than several short ones. Unrelated runs cost about |x| |y|.
The mean is over all sentences of the other document, through their mean vector; the paper samples a few. Two prices are
added: one per joined sentence, and one for different lengths in characters (Gale and Church 1993, "A program for
aligning sentences in bilingual corpora"), scaled so that the two documents are equally long. Leaving a sentence out
costs a share of the cost of random pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.windows import Floats, Windows

_BLOCK = 4096
# Characters added to each length, because a word more or less says little about a short sentence; and the squared
# difference of logarithms (a ratio of e) beyond which a length is simply wrong.
_SLACK = 30
_FAR_OFF = 1.0
_SAMPLE = 200  # sentences of each side in random pairs
# In documents of a few sentences many random pairs are true ones; in others random pairs cost about 1.
_PART, _FEW = 1.5, 8
_LEAST_RANDOM = 0.8
_LEAST = 1e-3  # the mean distance in a document that repeats one sentence is below this


@dataclass(frozen=True)
class Prices:
    """Parameters of the costs, tuned on documents made from laws and news (mine/alignment.md).

    Attributes:
        percentile, share: leaving a sentence out costs `share` of this percentile (0 to 1) of random pairs' costs.
        join: price of each sentence of a step beyond the first of its side.
        knot: price of each sentence beyond the first of both sides; a long sentence that fits would draw its neighbours
            in.
        length: weight of the squared difference of the lengths' logarithms.
        seed: random seed of the random pairs.
    """

    percentile: float = 0.5
    share: float = 0.6
    join: float = 0.08
    knot: float = 0.2
    length: float = 0.8
    seed: int = 1


@dataclass(frozen=True)
class Kinds:
    """Steps that pair sentences: step k takes x[k] source and y[k] target sentences (int64)."""

    x: NDArray[np.int64]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)


def kinds(largest: int) -> Kinds:
    """Return all steps of up to `largest` sentences of both sides together (2: one to one alone), small ones first."""
    found = sorted(
        ((s, t) for s in range(1, largest) for t in range(1, largest) if s + t <= largest),
        key=lambda step: (sum(step), abs(step[0] - step[1]), step),
    )
    steps = np.array(found, dtype=np.int64).reshape(-1, 2)
    return Kinds(np.ascontiguousarray(steps[:, 0]), np.ascontiguousarray(steps[:, 1]))


def _log_ratio(x_ends: NDArray[np.int64], y_ends: NDArray[np.int64]) -> float:
    """Return the log ratio of source to target lengths in characters.

    If one side has over _PART times the sentences of the other, and neither has fewer than _FEW, mean sentences are
    compared: one document then must be a translation of a part of the other.
    """
    n, m = max(1, len(x_ends) - 1), max(1, len(y_ends) - 1)
    ratio = float(np.log((x_ends[-1] + 1) / (y_ends[-1] + 1)))
    if min(n, m) >= _FEW and max(n, m) > _PART * min(n, m):
        ratio -= float(np.log(n / m))
    return ratio


class Costs:
    """Costs of the steps between two documents.

    Attributes:
        skip: the cost of leaving one sentence out.
    """

    def __init__(self, src: Windows, tgt: Windows, steps: Kinds, prices: Prices) -> None:
        self._src, self._tgt, self._steps = src, tgt, steps
        self._src_mean, self._tgt_mean = _mean(src), _mean(tgt)
        self._src_far = [
            _far(src, size, self._tgt_mean) for size in range(1, int(steps.x.max(initial=1)) + 1)
        ]
        self._tgt_far = [
            _far(tgt, size, self._src_mean) for size in range(1, int(steps.y.max(initial=1)) + 1)
        ]
        self._prices = prices
        self._lengths: tuple[NDArray[np.int64], NDArray[np.int64], float] | None = None
        if src.characters is not None and tgt.characters is not None and prices.length:
            x_ends, y_ends = (
                np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(characters)])
                for characters in (src.characters, tgt.characters)
            )
            self._lengths = x_ends, y_ends, _log_ratio(x_ends, y_ends)
        usual = float(np.quantile(self._random(), prices.percentile))
        self.skip = prices.share * max(_LEAST_RANDOM, usual)

    def _random(self) -> NDArray[np.float64]:
        """Return the costs of all pairs of some source and some target sentences, drawn without replacement."""
        draw = np.random.default_rng(self._prices.seed)
        rows, columns = _drawn(len(self._src), draw), _drawn(len(self._tgt), draw)
        products = _picked(self._src, rows) @ _picked(self._tgt, columns).T
        far = (self._src_far[0][rows, None] + self._tgt_far[0][None, columns]) / 2
        return ((1 - products) / far).astype(np.float64)

    def _length_cost(self, x0: int, rows: int, s: int, y0: int, columns: int, t: int) -> Floats:
        """Return the prices (rows, columns) of different lengths, of windows of s and of t sentences."""
        assert self._lengths is not None
        src, tgt, ratio = self._lengths
        x = np.log(src[x0 + s : x0 + s + rows] - src[x0 : x0 + rows] + _SLACK) - ratio
        y = np.log(tgt[y0 + t : y0 + t + columns] - tgt[y0 : y0 + columns] + _SLACK)
        off = (x[:, None] - y[None, :]).astype(np.float32)
        off *= off
        return np.minimum(off, np.float32(_FAR_OFF)) * np.float32(self._prices.length)

    def likeness(self, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the score (steps,) of each step of a path through the nodes (x[i], y[i]).

        The score is 1 - cost / (|x| |y|), without the prices of joins and lengths: 1 for the same direction, about 0
        for random pairs, NaN for a sentence left out.
        """
        sizes = np.stack([np.diff(x), np.diff(y)])
        out = np.full(sizes.shape[1], np.nan)
        for start in range(0, sizes.shape[1], _BLOCK):
            part = slice(start, start + _BLOCK)
            for s, t in np.unique(sizes[:, part], axis=1).T.tolist():
                if not s or not t:
                    continue
                at = start + np.flatnonzero((sizes[0, part] == s) & (sizes[1, part] == t))
                rows, columns = x[at], y[at]
                products = np.einsum(
                    "ij,ij->i",
                    self._src.vectors(s, rows[0], rows[-1] + 1)[rows - rows[0]],
                    self._tgt.vectors(t, columns[0], columns[-1] + 1)[columns - columns[0]],
                )
                far = self._src_far[s - 1][rows] + self._tgt_far[t - 1][columns]
                out[at] = 1 - 2 * (1 - products) / far
        return out

    def block(self, x0: int, x1: int, y0: int, y1: int) -> Floats:
        """Return the costs of the steps that start at sentences x0..x1-1 and y0..y1-1.

        Returns:
            (kinds, x1 - x0, y1 - y0) float32; infinity for steps that reach beyond the end.
        """
        n, m = len(self._src), len(self._tgt)
        out = np.full((len(self._steps), x1 - x0, y1 - y0), np.inf, dtype=np.float32)
        xs = [self._src.vectors(s, x0, max(x0, min(x1, n - s + 1))) for s in range(1, len(self._src_far) + 1)]
        ys = [self._tgt.vectors(t, y0, max(y0, min(y1, m - t + 1))) for t in range(1, len(self._tgt_far) + 1)]
        for k, (s, t) in enumerate(zip(self._steps.x.tolist(), self._steps.y.tolist(), strict=True)):
            x, y = xs[s - 1], ys[t - 1]
            part = x @ y.T
            np.subtract(1, part, out=part)
            part *= np.float32(2 * s * t)
            part /= (
                self._src_far[s - 1][x0 : x0 + len(x), None] + self._tgt_far[t - 1][None, y0 : y0 + len(y)]
            )
            part += np.float32(self._prices.join * (s + t - 2) + self._prices.knot * (min(s, t) - 1))
            if self._lengths is not None:
                part += self._length_cost(x0, len(x), s, y0, len(y), t)
            out[k, : len(x), : len(y)] = part
        return out


def _drawn(count: int, draw: np.random.Generator) -> NDArray[np.int64]:
    if count <= _SAMPLE:
        return np.arange(count)
    return np.sort(draw.choice(count, _SAMPLE, replace=False))


def _picked(side: Windows, rows: NDArray[np.int64]) -> Floats:
    if len(rows) == len(side):
        return side.vectors(1, 0, len(side))
    return np.concatenate([side.vectors(1, row, row + 1) for row in rows.tolist()])


def _mean(side: Windows) -> Floats:
    """Return the mean vector of the sentences."""
    total = np.zeros(side.dim)
    for start in range(0, len(side), _BLOCK):
        total += side.vectors(1, start, min(start + _BLOCK, len(side))).sum(axis=0, dtype=np.float64)
    return (total / max(1, len(side))).astype(np.float32)


def _far(side: Windows, size: int, mean: Floats) -> Floats:
    """Return the mean of 1 - cosine of each window to the other document's sentences."""
    count = max(0, len(side) - size + 1)
    out = np.empty(count, dtype=np.float32)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        out[start:stop] = 1 - side.vectors(size, start, stop) @ mean
    return np.maximum(out, _LEAST)
