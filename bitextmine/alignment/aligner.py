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
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.clock import by_time, fit_clock
from bitextmine.alignment.costs import USUAL_LEVEL, Costs, Prices, level_of, of_steps
from bitextmine.alignment.evidence import PieceEvidence, missed_names
from bitextmine.alignment.program import Band, Lattice, Path, cheapest, kinds
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import Floats, Form, Windows
from bitextmine.console import Progress, silent

Points = NDArray[np.int64]

LOWEST, HIGHEST = -10.0, 10.0
# Of the likeness, that of the document, the evidence missed per sentence, and the constant.
_WEIGHTS = (6.1, 8.0, -0.5, -5.1)
# The mean probability of unrelated documents' links is far below.
_UNRELATED = 0.3
_BLOCK = 4096
# Half the width of the band in which pieces are compared, in nodes: this, or a share of the largest step.
_NEAR, _NEAR_SHARE = 2, 3

# Fitted by maximum likelihood, see mine/quality.md.
VECTORS = Prices(far=3.61, join=3.3, length=5.17, skip=7.07, continued=1.52, ending=1.11)
PIECES = Prices(far=2.46, join=3.49, length=4.54, skip=6.49, missed=0.43, continued=1.6, ending=1.08)


@dataclass(frozen=True)
class Settings:
    """Parameters of an alignment.

    Attributes:
        max_size: the most sentences in one step, of both sides together.
        vectors, pieces: prices without and with the evidence of pieces.
        radius: half the width of the band around a coarser path, in nodes.
        whole: documents up to this product of lengths are searched without a band.
        dense: likewise for the first path, by steps of one to one.
    """

    max_size: int = 6
    vectors: Prices = VECTORS
    pieces: Prices = PIECES
    radius: int = 6
    whole: int = 1 << 14
    dense: int = 1 << 18


class Link(NamedTuple):
    """Lines that belong together, counted from 0; one side of a line left out is empty. score: see `Alignment`."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Alignment:
    """An alignment of two documents: every line is in one link, in order on both sides.

    Only a line without words that interrupts a link comes after it, on its own.

    Attributes:
        links: with log odds as scores, `LOWEST` for a sentence left out.
    """

    links: list[Link]

    @property
    def mean_score(self) -> float:
        """Return the mean probability of the sentences; one that is left out counts 0."""
        sizes = [len(link.src) + len(link.tgt) for link in self.links]
        likely = sum(n * probability(link.score) for n, link in zip(sizes, self.links, strict=True))
        return likely / max(1, sum(sizes))

    @property
    def doubtful(self) -> bool:
        """Return True if the documents hardly look like translations of each other."""
        return self.mean_score < _UNRELATED


@dataclass(frozen=True)
class Aligner:
    """Aligns documents by the vectors of their windows, and by their pieces and a second encoder if there are such."""

    settings: Settings = field(default_factory=Settings)
    evidence: PieceEvidence | None = None
    second: SecondJudge | None = None

    def align(
        self,
        src: Windows,
        tgt: Windows,
        fixed: Points | None = None,
        tick: Progress = silent,
        name: str = "documents",
    ) -> Alignment:
        """Align two documents by their windows.

        Args:
            src: the source document.
            tgt: the target document.
            fixed: the points that the alignment leads through, see `anchors.fixed_points`.
            tick: is called with numbers of sentences as they are done.
            name: of the documents, for errors of the second encoder.

        Raises:
            BitextmineError: the second encoder fails.
        """
        n, m = len(src), len(tgt)
        if not n or not m:
            return Alignment(
                [*(Link((i,), (), LOWEST) for i in range(n)), *(Link((), (j,), LOWEST) for j in range(m))]
            )
        best = self._find(src, tgt, fixed, tick, name)
        x, y = (
            [tuple(range(*ends)) for ends in pairwise(way.tolist())] for way in (best.path.x, best.path.y)
        )
        links = list(map(Link, x, y, _log_odds(best).tolist()))
        return Alignment(_without_bare(links, src.form, tgt.form))

    def _find(
        self, src: Windows, tgt: Windows, fixed: Points | None, tick: Progress, name: str
    ) -> AlignedPath:
        """Return the cheapest alignment of two documents, neither of them empty."""
        n, m, settings = len(src), len(tgt), self.settings
        costs = Costs(src, tgt, kinds(settings.max_size))
        if n * m <= settings.whole:
            first = _search(costs, Band.full(n, m), settings, tick)
        else:
            coarse = _coarse(_plain(src), _plain(tgt), settings)
            first = _refine(costs, _centre(coarse), settings, settings.radius, tick)
        centre = None
        if src.times is not None and tgt.times is not None:
            single = np.flatnonzero((np.diff(first.path.x) == 1) & (np.diff(first.path.y) == 1))
            x, y = src.times[first.path.x[single], 0], tgt.times[first.path.y[single], 0]
            if (clock := fit_clock(x, y)) is not None:
                costs.use_times(clock)
                centre = by_time(clock.of(src.times), tgt.times)
        if fixed is not None and len(fixed):
            costs.fix(fixed)
            centre = _through(_centre(first.path) if centre is None else centre, fixed)
        if centre is not None:
            first = _refine(costs, centre, settings, settings.radius)
        level = level_of(first.path, of_steps(first.path, first.lattice, first.distances))
        band = _around(_centre(first.path), n, m, max(_NEAR, settings.max_size // _NEAR_SHARE))
        distances = _columns(first.lattice.band, band, first.distances)
        prices, missed = settings.vectors, None
        if self.evidence is not None and src.pieces is not None and tgt.pieces is not None:
            prices, missed = settings.pieces, _missed(self.evidence, src, tgt, costs, band)
        lattice = costs.lattice(band, distances, prices, level, missed)
        if self.second is not None:
            distances = self.second.blended(lattice, distances, src, tgt, name)
            lattice = costs.lattice(band, distances, prices, level, missed)
        path = cheapest(lattice)
        lost = np.zeros(len(path), dtype=np.float32) if missed is None else of_steps(path, lattice, missed)
        return AlignedPath(path, of_steps(path, lattice, distances), lost)


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


def _log_odds(best: AlignedPath) -> NDArray[np.float64]:
    """Return the scores (steps,) of a path's links; `LOWEST` for a sentence left out."""
    path = best.path
    sentences = (np.diff(path.x) + np.diff(path.y)).astype(np.float64)
    likeness = np.nan_to_num(1 - best.distance.astype(np.float64), nan=0.0)
    # Sentences without a partner because the other document is shorter do not count against the rest.
    shorter = 2 * min(int(path.x[-1]), int(path.y[-1]))
    whole = np.full(len(path), min(1.0, float(likeness @ sentences) / max(1, shorter)))
    lost = np.nan_to_num(best.missed.astype(np.float64), nan=0.0) / sentences
    odds = np.stack([likeness, whole, lost, np.ones(len(path))], axis=1) @ np.array(_WEIGHTS)
    return np.where(np.isnan(best.distance), LOWEST, np.clip(odds, LOWEST + 0.001, HIGHEST))


# --- from coarse to fine ---


class AlignedPath(NamedTuple):
    """A path, and of each of its steps the distance and the missed evidence (NaN for a sentence left out)."""

    path: Path
    distance: Floats
    missed: Floats


class _Search(NamedTuple):
    """The cheapest path by vectors, with its costs and distances."""

    path: Path
    lattice: Lattice
    distances: Floats


def _search(costs: Costs, band: Band, settings: Settings, tick: Progress = silent) -> _Search:
    distances = costs.distances(band, tick)
    lattice = costs.lattice(band, distances, settings.vectors, USUAL_LEVEL)
    return _Search(cheapest(lattice), lattice, distances)


def _plain(side: Windows) -> Windows:
    """Return the sentence vectors alone, as float16."""
    out = np.empty((len(side), side.dim), dtype=np.float16)
    for start in range(0, len(side), _BLOCK):
        stop = min(start + _BLOCK, len(side))
        out[start:stop] = side.vectors(1, start, stop)
    return Windows(out, 1, side.characters)


def _coarse(src: Windows, tgt: Windows, settings: Settings) -> Path:
    """Return the path by steps of one to one."""
    n, m = len(src), len(tgt)
    costs = Costs(src, tgt, kinds(2))
    if n * m <= settings.dense:
        return _search(costs, Band.full(n, m), settings).path
    coarser = _coarse(src.halved(), tgt.halved(), settings)
    doubled = Path(np.minimum(2 * coarser.x, n), np.minimum(2 * coarser.y, m))
    return _refine(costs, _centre(doubled), settings, 2 * settings.radius).path


def _refine(
    costs: Costs, centre: NDArray[np.int64], settings: Settings, radius: int, tick: Progress = silent
) -> _Search:
    """Return the best path near the centre of a band, which is widened if the path touches its edge."""
    m = int(centre[-1])
    n = len(centre) - 1 - m
    while True:
        best = _search(costs, _around(centre, n, m, radius), settings, tick)
        if not best.path.on_edge or best.lattice.band.width > max(n, m):
            return best
        centre, radius, tick = _centre(best.path), 2 * radius, silent


def _around(centre: NDArray[np.int64], n: int, m: int, radius: int) -> Band:
    return Band(n, m, centre - radius, 2 * radius + 1)


def _centre(path: Path) -> NDArray[np.int64]:
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


def _through(centre: NDArray[np.int64], points: Points) -> NDArray[np.int64]:
    """Return the centre of a band that leads through fixed points: between two of them it stays in their rectangle."""
    m = int(centre[-1])
    n = len(centre) - 1 - m
    x, y = np.concatenate([[(0, 0)], points[:, :2], [(n, m)]]).T
    place = np.arange(n + m + 1)
    part = np.clip(np.searchsorted(x + y, place, side="right") - 1, 0, len(x) - 2)
    low = np.maximum(y[part], place - x[part + 1])
    return np.clip(centre, low, np.minimum(y[part + 1], place - x[part]))


def _columns(wide: Band, narrow: Band, values: Floats) -> Floats:
    """Return the values of a band's nodes from those of another one; infinity where that has no such node."""
    column = (narrow.low - wide.low)[:, None] + np.arange(narrow.width)
    there = (column >= 0) & (column < wide.width)
    out: Floats = values[np.arange(len(column))[:, None], np.where(there, column, 0)]
    out[~there] = np.inf
    return out


def _missed(evidence: PieceEvidence, src: Windows, tgt: Windows, costs: Costs, band: Band) -> Floats:
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
