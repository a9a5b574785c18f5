"""Costs of linking a run of sentences with another, or of leaving a sentence out.

The distance of two runs x and y is that of Vecalign (Thompson and Koehn 2019, "Vecalign: improved sentence alignment in
linear time and space"), with means over all sentences of the other document, through their mean vector, where the paper
samples a few:

    d(x, y) = (1 - cos(x, y)) / mean of 1 - cos(x, y') and 1 - cos(x', y) over other sentences x', y'

It is about 1 for unrelated runs. A link of s and t sentences costs

    (far d / level + length l + apart o) (s + t) / 2 + join (s + t - 2) - continued c + ending m + missed e

where level is the median d of the document's own links, which are close in a law and loose in a novel; l the squared
difference of the logarithms of the lengths in characters (Gale and Church 1993, "A program for aligning sentences in
bilingual corpora"), scaled so that the two documents are equally long; o, for subtitles, the share of the time of its
two sides that they do not have in common (`clock`); c the number of its sentences, but for the first
of each side, that look like the rest of a sentence (`Form`); m is 1 if its sides end with marks of different kinds; and
e the evidence that the link misses (`evidence`). Leaving a sentence out costs `skip`. With these costs as negative log
potentials an alignment is a conditional random field; the prices are its maximum likelihood on documents aligned by
hand (mine/quality.md).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.clock import Clock, Times, apart, spans
from bitextmine.alignment.lattice import Band, Lattice, Path, Step
from bitextmine.alignment.windows import Floats, Windows
from bitextmine.console import Progress, silent

_BLOCK = 4096
# Characters added to each length, because a word more or less says little about a short sentence; and the squared
# difference of logarithms (a ratio of e) beyond which a length is simply wrong.
_SLACK = 30
_FAR_OFF = 1.0
# In documents of a few sentences lengths say nothing about their ratio.
_PART, _FEW = 1.5, 8
_LEAST = 1e-3  # the mean distance in a document that repeats one sentence is below this
# In a document of a few sentences, many of those compared are translations: so many random ones, at the usual
# distance, are added to the mean.
_RANDOM, _RANDOM_COUNT = 0.9, 4
# Levels of documents seen, from laws to novels; and the one assumed before the first path.
_LOWEST, _HIGHEST = 0.12, 0.5
USUAL_LEVEL = 0.35
# Documents that share fewer of the marks at ends do not use the same ones, as in a script without full stops.
_SHARED_MARKS = 0.7
# The most that a distance costs where times are compared: subtitles are translated freely, and one-word lines have
# vectors that say little.
_FREE = np.float32(9)
_FIXED = np.float32(1 << 14)  # for a fixed point: more than any path costs that keeps to it
# Products of a block of antidiagonals, about half of which the band needs; and the fewest antidiagonals that make
# matrix products worth their call.
_CELLS = 1 << 21
_BLAS_WORTH = 48


@dataclass(frozen=True)
class Prices:
    """Parameters of the costs, in nats; see the module.

    Attributes:
        far: of the distance, as a multiple of the document's level.
        join: of each sentence of a link beyond the first of its side.
        length: of the squared difference of the lengths' logarithms.
        missed: of missed evidence, in mean weights of pieces.
        continued: deducted for each sentence that continues the one before it.
        ending: of a link whose sides end with marks of different kinds.
        apart: of the share of their time that the sides of a link of subtitles do not have in common.
        skip: of a sentence left out.
    """

    far: float
    join: float
    length: float
    skip: float
    missed: float = 0.0
    continued: float = 0.0
    ending: float = 0.0
    apart: float = 7.0


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
        fixed: points (k, 3) that no link crosses; see `anchors.fixed_points`.
    """

    fixed: NDArray[np.int64] | None = None

    def __init__(self, src: Windows, tgt: Windows, steps: list[Step]) -> None:
        self.sides, self.steps = (src, tgt), steps
        means = _mean(tgt), _mean(src)
        opposite = _different(tgt), _different(src)
        self._largest = largest = [max((step[side] for step in steps), default=1) for side in (0, 1)]
        self._far = [
            [_far(side, size, mean, count) for size in range(1, most + 1)]
            for side, most, mean, count in zip(self.sides, largest, means, opposite, strict=True)
        ]
        self._spans: list[list[tuple[Times, Times]]] | None = None
        self._lengths: list[list[Floats]] | None = None
        if src.characters is not None and tgt.characters is not None:
            ends = [np.append(0, np.cumsum(c)) for c in (src.characters, tgt.characters)]
            shifts = (_log_ratio(ends[0], ends[1]), 0.0)
            self._lengths = [
                [
                    (np.log(end[size:] - end[:-size] + _SLACK) - shift).astype(np.float32)
                    for size in range(1, min(most, len(end) - 1) + 1)
                ]
                for end, most, shift in zip(ends, largest, shifts, strict=True)
            ]
        self._continued = [_continued(side, most) for side, most in zip(self.sides, largest, strict=True)]
        self._endings = _endings(src, tgt)

    def use_times(self, clock: Clock) -> None:
        """Compare the times of both sides too, those of the source by the target's clock."""
        src, tgt = (side.times for side in self.sides)
        assert src is not None and tgt is not None
        times = clock.of(src), tgt
        self._spans = [spans(side, most) for side, most in zip(times, self._largest, strict=True)]

    def distances(self, band: Band, tick: Progress = silent) -> Floats:
        """Return the distance of the two runs of each step from each node of a band.

        Returns:
            (n + m + 1, width, kinds) float32; infinity for steps that reach beyond the end.
        """
        out = np.full((len(band.low), band.width, len(self.steps)), np.inf, dtype=np.float32)
        rows = max(_BLAS_WORTH, min(2 * band.width, _CELLS // band.width))
        for first in range(0, len(band.low), rows):
            last = min(first + rows, len(band.low))
            sides = [self._starting(side, nodes) for side, nodes in enumerate(band.nodes(first, last))]
            for k, (s, t) in enumerate(self.steps):
                (x, i, x_far, x_beyond), (y, j, y_far, y_beyond) = sides[0][s - 1], sides[1][t - 1]
                if len(x) and len(y):
                    part = 1 - (x @ y.T)[i, j]
                    part /= x_far + y_far
                    part[x_beyond | y_beyond] = np.inf
                    out[first:last, :, k] = 2 * part
            tick(last - first)
        return out

    def _starting(self, side: int, nodes: NDArray[np.int64]) -> list[tuple[Floats, NDArray, Floats, NDArray]]:
        """Return the windows of each size that start at the nodes of one side.

        The vectors of a block of windows; and for each node the place of its window in the block, the mean distance of
        that window to the other document, and True if it reaches beyond the end.
        """
        windows = self.sides[side]
        begin, end = max(0, int(nodes.min())), min(len(windows), int(nodes.max()) + 1)
        links = []
        for size, far in enumerate(self._far[side], 1):
            last = len(windows) - size
            vectors = windows.vectors(size, begin, max(begin, min(end, last + 1)))
            start = np.clip(nodes, begin, begin + max(0, len(vectors) - 1))
            links.append(
                (vectors, start - begin, far[start] if len(vectors) else far, (nodes < 0) | (nodes > last))
            )
        return links

    def lattice(
        self, band: Band, distances: Floats, prices: Prices, level: float, missed: Floats | None = None
    ) -> Lattice:
        """Return the band with the costs of its steps, whose distances and missed evidence are given."""
        cost = distances * np.float32(prices.far / level)
        if self._spans is not None:
            beyond = np.isinf(cost)
            np.minimum(cost, _FREE, out=cost)
            cost[beyond] = np.inf
        x, y = band.nodes(0, len(band.low))
        logs = [
            [length[np.clip(node, 0, len(length) - 1)] for length in lengths]
            for node, lengths in zip((x, y), self._lengths or ([], []), strict=True)
        ]
        for k, (s, t) in enumerate(self.steps):
            if self._lengths is not None and s <= band.n and t <= band.m:
                off = logs[0][s - 1] - logs[1][t - 1]
                cost[..., k] += np.minimum(off * off, _FAR_OFF) * np.float32(prices.length)
            if self._spans is not None and s <= band.n and t <= band.m:
                shown = [
                    (begin[place], end[place])
                    for (begin, end), node in ((self._spans[0][s - 1], x), (self._spans[1][t - 1], y))
                    for place in [np.clip(node, 0, len(begin) - 1)]
                ]
                cost[..., k] += apart(*shown) * np.float32(prices.apart)
            cost[..., k] *= np.float32((s + t) / 2)
            cost[..., k] += np.float32(prices.join * (s + t - 2))
            if prices.continued:
                for counts, node, size in zip(self._continued, (x, y), (s, t), strict=True):
                    if counts is not None and size > 1:
                        more = counts[size - 1][np.clip(node, 0, counts.shape[1] - 1)]
                        cost[..., k] -= more * np.float32(prices.continued)
            if prices.ending and self._endings is not None:
                last = zip(self._endings, (x + s - 1, y + t - 1), strict=True)
                src, tgt = (marks[np.clip(node, 0, len(marks) - 1)] for marks, node in last)
                cost[..., k] += np.float32(prices.ending) * (src != tgt)
        if missed is not None:
            cost += missed * np.float32(prices.missed)
        if self.fixed is not None:
            self._bind(self.fixed, band, cost)
        return Lattice(band, self.steps, cost, prices.skip)

    def _bind(self, fixed: NDArray[np.int64], band: Band, cost: Floats) -> None:
        """Charge links that cross fixed points, and deduct as much from those that begin at lines that correspond."""
        x, y = band.nodes(0, len(band.low))
        part = [
            np.searchsorted(points, np.arange(max(1, len(side))), side="right")
            for points, side in zip(fixed.T[:2], self.sides, strict=True)
        ]
        of = [
            [side[np.clip(node + i, 0, len(side) - 1)] for i in range(max(self._largest))]
            for side, node in zip(part, (x, y), strict=True)
        ]
        for k, (s, t) in enumerate(self.steps):
            crosses = (of[0][0] != of[1][0]) | (of[0][0] != of[0][s - 1]) | (of[1][0] != of[1][t - 1])
            cost[..., k] += crosses * _FIXED
        lines = fixed[fixed[:, 2] == 1, :2]
        row = lines.sum(axis=1)
        column = lines[:, 1] - band.low[row]
        there = (column >= 0) & (column < band.width)
        cost[row[there], column[there]] -= _FIXED


def of_steps(path: Path, lattice: Lattice, values: Floats) -> Floats:
    """Return the values (steps,) of a path's steps from those of all steps; NaN for a sentence left out."""
    place = {move: k for k, move in enumerate(lattice.moves()[:-2])}
    moves = zip(np.diff(path.x).tolist(), np.diff(path.y).tolist(), strict=True)
    kind = np.array([place.get(move, -1) for move in moves], dtype=np.int64)
    row = (path.x + path.y)[:-1]
    costs = (
        values[row, path.y[:-1] - lattice.band.low[row], kind] if len(lattice.steps) else np.zeros(len(kind))
    )
    return np.where(kind < 0, np.float32(np.nan), costs)


def level_of(path: Path, distances: Floats) -> float:
    """Return the median distance of a path's links, by sentences; `USUAL_LEVEL` without links.

    distances: of its steps, NaN for a sentence left out.
    """
    linked = np.flatnonzero(~np.isnan(distances))
    if not len(linked):
        return USUAL_LEVEL
    order = linked[np.argsort(distances[linked], kind="stable")]
    weight = np.cumsum(np.diff(path.x)[order] + np.diff(path.y)[order])
    median = distances[order[np.searchsorted(weight, weight[-1] / 2)]]
    return float(np.clip(median, _LOWEST, _HIGHEST))


def _continued(side: Windows, most: int) -> Floats | None:
    """Return the sentences of each window that continue the one before it, the first aside: a row for each size.

    None if there are none.
    """
    if side.form is None or not side.form.continued.any():
        return None
    before = np.cumsum(np.append(side.form.continued, np.zeros(most)), dtype=np.float32)
    first = np.arange(len(side))
    return np.stack([before[first + size] - before[first] for size in range(most)])


def _endings(src: Windows, tgt: Windows) -> tuple[NDArray[np.int8], NDArray[np.int8]] | None:
    """Return the kinds of marks at the ends of sentences; None if the documents use them differently."""
    if src.form is None or tgt.form is None or not len(src) or not len(tgt):
        return None
    marks = src.form.ending, tgt.form.ending
    shares = [np.bincount(kinds, minlength=3) / len(kinds) for kinds in marks]
    return marks if np.minimum(*shares).sum() >= _SHARED_MARKS else None


def _different(side: Windows) -> int:
    return len(side) if side.firsts is None else len(side.firsts)


def _mean(side: Windows) -> Floats:
    """Return the mean vector of the sentences, of the different ones if most are repeated."""
    if side.firsts is not None:
        vectors = np.stack([side.vectors(1, i, i + 1)[0] for i in side.firsts.tolist()])
        return (vectors.sum(axis=0, dtype=np.float64) / len(vectors)).astype(np.float32)
    total = np.zeros(side.dim)
    for start in range(0, len(side), _BLOCK):
        total += side.vectors(1, start, min(start + _BLOCK, len(side))).sum(axis=0, dtype=np.float64)
    return (total / max(1, len(side))).astype(np.float32)


def _far(side: Windows, size: int, mean: Floats, opposite: int) -> Floats:
    """Return the mean of 1 - cosine of each window to the other document's sentences, of which it says how many."""
    count = max(0, len(side) - size + 1)
    out = np.empty(count, dtype=np.float32)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        out[start:stop] = 1 - side.vectors(size, start, stop) @ mean
    return np.maximum((out * opposite + _RANDOM * _RANDOM_COUNT) / (opposite + _RANDOM_COUNT), _LEAST)
