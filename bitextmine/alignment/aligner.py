"""Align two documents, given as vectors of windows.

In a long document a first path is found between means of neighbouring sentences, then refined with shorter and shorter
runs (Thompson and Koehn 2019). The path of windows' vectors then tells the level of the document's distances; a second
search near it also weighs the evidence of pieces.

The score of a link is the log odds that its sides are translations of each other, the scale of `mine`: a logistic
regression on the likeness of the link (1 - distance, see `costs`), that of the whole document, and the evidence of
pieces that the link misses. It was fitted to links found in documents aligned by hand, in made ones, and between
documents that have nothing to do with each other (mine/quality.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.anchors import through, trusted
from bitextmine.alignment.clock import by_time, fit_clock
from bitextmine.alignment.costs import USUAL_LEVEL, Costs, Prices, level_of, of_steps
from bitextmine.alignment.evidence import PieceEvidence, missed_names
from bitextmine.alignment.lattice import Band, Lattice, Path, cheapest, kinds
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import Floats, Form, Windows
from bitextmine.console import Progress, silent

LOWEST, HIGHEST = -10.0, 10.0
# Of the likeness, that of the document, the evidence missed per sentence, and the constant.
_WEIGHTS = (6.1, 8.0, -0.5, -5.1)
_BLOCK = 4096
# Half the width of the band in which pieces are compared, in nodes: this, or a share of the largest step.
_NEAR, _NEAR_SHARE = 2, 3

# Fitted by maximum likelihood, see mine/quality.md.
VECTORS = Prices(far=3.61, join=3.3, length=5.17, skip=7.07, continued=1.52, ending=1.11)
PIECES = Prices(far=2.46, join=3.49, length=4.54, skip=6.49, missed=0.43, continued=1.6, ending=1.08)


class Link(NamedTuple):
    """Lines that belong together, counted from 0, and log odds; one side of a line left out is empty."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Aligner:
    """Aligns documents by the vectors of their windows, and by their pieces and a second encoder if there are such.

    Attributes:
        max_size: the most sentences in one link, of both sides together.
        radius: half the width of the band around a coarser path, in nodes.
        whole: documents up to this product of lengths are searched without a band.
        dense: likewise for the first path, by steps of one to one.
    """

    max_size: int = 6
    evidence: PieceEvidence | None = None
    second: SecondJudge | None = None
    radius: int = 6
    whole: int = 1 << 14
    dense: int = 1 << 18

    def align(
        self,
        src: Windows,
        tgt: Windows,
        tick: Progress = silent,
        name: str = "documents",
        fixed: NDArray[np.int64] | None = None,
    ) -> list[Link]:
        """Align two documents by their windows.

        Args:
            src: the source document.
            tgt: the target document.
            tick: is called with numbers of sentences as they are done.
            name: of the documents, for errors of the second encoder.
            fixed: points (k, 3) that the alignment leads through if it can trust them, see `anchors.fixed_points`.

        Returns:
            links in order on both sides, each line in one of them, with `LOWEST` as the score of a sentence left out.
            Only a line without words that interrupts a link comes after it, on its own.

        Raises:
            BitextmineError: the second encoder fails.
        """
        n, m = len(src), len(tgt)
        if not n or not m:
            return [*(Link((i,), (), LOWEST) for i in range(n)), *(Link((), (j,), LOWEST) for j in range(m))]
        costs = Costs(src, tgt, kinds(self.max_size))
        first = self.first(costs, tick)
        if fixed is not None and trusted(fixed, first.path.x, first.path.y):
            costs.fixed = fixed
            first = self._refine(costs, through(centre_of(first.path), fixed), self.radius)
        band = around(centre_of(first.path), n, m, max(_NEAR, self.max_size // _NEAR_SHARE))
        distances = columns(first.lattice.band, band, first.distances)
        prices, missed = VECTORS, None
        if self.evidence is not None and src.pieces is not None and tgt.pieces is not None:
            prices, missed = PIECES, missed_by_steps(self.evidence, src, tgt, costs, band)
        level = level_of(first.path, of_steps(first.path, first.lattice, first.distances))
        lattice = costs.lattice(band, distances, prices, level, missed)
        if self.second is not None:
            distances = self.second.blended(lattice, distances, src, tgt, name)
            lattice = costs.lattice(band, distances, prices, level, missed)
        path = cheapest(lattice)
        lost = np.zeros(len(path), dtype=np.float32) if missed is None else of_steps(path, lattice, missed)
        scores = _log_odds(path, of_steps(path, lattice, distances), lost)
        x, y = ([tuple(range(*ends)) for ends in pairwise(way.tolist())] for way in (path.x, path.y))
        return _without_bare(list(map(Link, x, y, scores.tolist())), src.form, tgt.form)

    def first(self, costs: Costs, tick: Progress = silent) -> Search:
        """Return the cheapest path by vectors, and by times if both documents have them."""
        src, tgt = costs.sides
        n, m = len(src), len(tgt)
        if n * m <= self.whole:
            first = self._search(costs, Band.full(n, m), tick)
        else:
            coarse = self._coarse(_plain(src), _plain(tgt))
            first = self._refine(costs, centre_of(coarse), self.radius, tick)
        if src.times is not None and tgt.times is not None:
            single = np.flatnonzero((np.diff(first.path.x) == 1) & (np.diff(first.path.y) == 1))
            x, y = src.times[first.path.x[single], 0], tgt.times[first.path.y[single], 0]
            if (clock := fit_clock(x, y)) is not None:
                costs.use_times(clock)
                first = self._refine(costs, by_time(clock.of(src.times), tgt.times), self.radius)
        return first

    def _coarse(self, src: Windows, tgt: Windows) -> Path:
        """Return the path by steps of one to one."""
        n, m = len(src), len(tgt)
        costs = Costs(src, tgt, kinds(2))
        if n * m <= self.dense:
            return self._search(costs, Band.full(n, m)).path
        coarser = self._coarse(src.halved(), tgt.halved())
        doubled = Path(np.minimum(2 * coarser.x, n), np.minimum(2 * coarser.y, m))
        return self._refine(costs, centre_of(doubled), 2 * self.radius).path

    def _refine(
        self, costs: Costs, centre: NDArray[np.int64], radius: int, tick: Progress = silent
    ) -> Search:
        """Return the best path near the centre of a band, which is widened if the path touches its edge."""
        n, m = map(len, costs.sides)
        while True:
            best = self._search(costs, around(centre, n, m, radius), tick)
            if not best.path.on_edge or best.lattice.band.width > max(n, m):
                return best
            centre, radius, tick = centre_of(best.path), 2 * radius, silent

    def _search(self, costs: Costs, band: Band, tick: Progress = silent) -> Search:
        distances = costs.distances(band, tick)
        lattice = costs.lattice(band, distances, VECTORS, USUAL_LEVEL)
        return Search(cheapest(lattice), lattice, distances)


class Search(NamedTuple):
    """The cheapest path by vectors, with its costs and distances."""

    path: Path
    lattice: Lattice
    distances: Floats


def _without_bare(links: list[Link], src: Form | None, tgt: Form | None) -> list[Link]:
    """Take lines without words out of links in which their side has others: no translation holds them."""
    if src is None or tgt is None or not (src.bare.any() or tgt.bare.any()):
        return links
    out: list[Link] = []
    for link in links:
        after: list[Link] = []
        sides = [link.src, link.tgt]
        for side, form in enumerate((src, tgt)):
            words = tuple(i for i in sides[side] if not form.bare[i])
            if not all(sides) or not words:
                continue
            for i in sorted(set(sides[side]).difference(words)):
                alone = Link((i,), (), LOWEST) if side == 0 else Link((), (i,), LOWEST)
                (out if i < words[0] else after).append(alone)
            sides[side] = words
        out += [Link(sides[0], sides[1], link.score), *after]
    return out


def probability(log_odds: float) -> float:
    """Return the probability of log odds; 0 for those of a sentence left out."""
    return 0.0 if log_odds <= LOWEST else 1 / (1 + math.exp(-log_odds))


def _log_odds(path: Path, distance: Floats, missed: Floats) -> NDArray[np.float64]:
    """Return the scores (steps,) of a path's links; `LOWEST` for a sentence left out, whose distance is NaN."""
    sentences = (np.diff(path.x) + np.diff(path.y)).astype(np.float64)
    likeness = np.nan_to_num(1 - distance.astype(np.float64), nan=0.0)
    # Sentences without a partner because the other document is shorter do not count against the rest.
    shorter = 2 * min(int(path.x[-1]), int(path.y[-1]))
    whole = np.full(len(path), min(1.0, float(likeness @ sentences) / max(1, shorter)))
    lost = np.nan_to_num(missed.astype(np.float64), nan=0.0) / sentences
    odds = np.stack([likeness, whole, lost, np.ones(len(path))], axis=1) @ np.array(_WEIGHTS)
    return np.where(np.isnan(distance), LOWEST, np.clip(odds, LOWEST + 0.001, HIGHEST))


def _plain(side: Windows) -> Windows:
    """Return the sentence vectors alone, as float16."""
    out = np.empty((len(side), side.dim), dtype=np.float16)
    for start in range(0, len(side), _BLOCK):
        stop = min(start + _BLOCK, len(side))
        out[start:stop] = side.vectors(1, start, stop)
    return Windows(out, 1, side.characters)


def around(centre: NDArray[np.int64], n: int, m: int, radius: int) -> Band:
    """Return the band of that many nodes to both sides of a centre, see `centre_of`."""
    return Band(n, m, centre - radius, 2 * radius + 1)


def centre_of(path: Path) -> NDArray[np.int64]:
    """Return the centre of the band around a path: y (n + m + 1,) of each antidiagonal.

    Where sentences are left out on both sides their order is arbitrary: the band runs straight across.
    """
    n, m = int(path.x[-1]), int(path.y[-1])
    paired = (np.diff(path.x) > 0) & (np.diff(path.y) > 0)
    kept = np.zeros(len(path.x), dtype=bool)
    kept[[0, -1]] = True
    kept[:-1] |= paired
    kept[1:] |= paired
    x, y = path.x[kept], path.y[kept]
    place = np.arange(n + m + 1)
    centre = np.floor(np.interp(place, x + y, y) + 0.5).astype(np.int64)
    # Rounding may go back, or forward by two, which no path does.
    return np.clip(np.maximum.accumulate(centre), 0, m)


def columns(wide: Band, narrow: Band, values: Floats) -> Floats:
    """Return the values of a band's nodes from those of another one; infinity where that has no such node."""
    column = (narrow.low - wide.low)[:, None] + np.arange(narrow.width)
    there = (column >= 0) & (column < wide.width)
    out: Floats = values[np.arange(len(column))[:, None], np.where(there, column, 0)]
    out[~there] = np.inf
    return out


def missed_by_steps(evidence: PieceEvidence, src: Windows, tgt: Windows, costs: Costs, band: Band) -> Floats:
    """Return the evidence that each step from each node of a band misses, (n + m + 1, width, kinds)."""
    assert src.pieces is not None and tgt.pieces is not None
    x, y = band.nodes(0, len(band.low))
    row, column = np.nonzero((x >= 0) & (y >= 0) & (x < band.n) & (y < band.m))
    pairs = np.stack([x[row, column], y[row, column]], axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    sizes = max(map(max, costs.steps), default=1)
    of_src, of_tgt = evidence.missed(src.pieces, tgt.pieces, pairs[order], sizes)
    if src.form is not None and tgt.form is not None:
        more = missed_names(src.form.names, tgt.form.names, pairs[order], sizes)
        of_src, of_tgt = of_src + more[0], of_tgt + more[1]
    # The number of a node's pair; outside the band the last row, of zeros.
    number = np.full((len(band.low) + sizes, band.width), len(pairs))
    number[row[order], column[order]] = np.arange(len(pairs))
    low = np.append(band.low, np.full(sizes, band.low[-1]))
    nothing = np.zeros((1, sizes), dtype=np.float32)
    of_src, of_tgt = np.append(of_src, nothing, axis=0), np.append(of_tgt, nothing, axis=0)
    out = np.zeros((len(band.low), band.width, len(costs.steps)), dtype=np.float32)

    def beside(dx: int, dy: int) -> NDArray[np.int64]:
        """Return the number of the pair dx source and dy target sentences after each node."""
        after = np.arange(len(band.low)) + dx + dy
        there = y + dy - low[after][:, None]
        inside = (there >= 0) & (there < band.width)
        return np.where(inside, number[after[:, None], np.where(inside, there, 0)], len(pairs))

    for i in range(sizes):
        down, right = beside(i, 0), beside(0, i)
        for k, (s, t) in enumerate(costs.steps):
            if i < s:
                out[..., k] += of_src[down, t - 1]
            if i < t:
                out[..., k] += of_tgt[right, s - 1]
    return out
