"""Search from coarse to fine.

In a long document a first path is found between means of neighbouring sentences, then refined with shorter and shorter
runs (Thompson and Koehn 2019). The path of windows' vectors then tells the level of the document's distances; a second
search near it also weighs the evidence of pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.costs import USUAL_LEVEL, Costs, Prices, Tick, level_of, of_steps
from bitextmine.alignment.evidence import Evidence, missed_names
from bitextmine.alignment.program import Band, Lattice, Path, cheapest, kinds
from bitextmine.alignment.windows import Floats, VectorWindows, Windows

_BLOCK = 4096
# Half the width of the band in which pieces are compared, in nodes: this, or a share of the largest step.
_NEAR, _NEAR_SHARE = 2, 3

# Fitted by maximum likelihood, see mine/alignment.md.
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

    @property
    def window_sizes(self) -> int:
        """Return the sentences in the longest window."""
        return max(1, self.max_size - 1)


class Found(NamedTuple):
    """A path, and of each of its steps the distance and the missed evidence (NaN for a sentence left out)."""

    path: Path
    distance: Floats
    missed: Floats


def find_path(
    src: Windows, tgt: Windows, settings: Settings, evidence: Evidence | None = None, tick: Tick = None
) -> Found:
    """Return the cheapest alignment of two documents, neither of them empty."""
    n, m = len(src), len(tgt)
    costs = Costs(src, tgt, kinds(settings.max_size))
    if n * m <= settings.whole:
        first = _search(costs, Band.full(n, m), settings, tick)
    else:
        coarse = _coarse(_plain(src), _plain(tgt), settings)
        first = _refine(costs, coarse, settings, settings.radius, tick)
    level = level_of(first.path, of_steps(first.path, first.lattice, first.distances))
    band = _around(first.path, n, m, max(_NEAR, settings.max_size // _NEAR_SHARE))
    distances = _columns(first.lattice.band, band, first.distances)
    if evidence is None or src.pieces is None or tgt.pieces is None:
        lattice = costs.lattice(band, distances, settings.vectors, level)
        path = cheapest(lattice)
        lost = np.zeros(len(path), dtype=np.float32)
    else:
        missed = _missed(evidence, src, tgt, costs, band)
        lattice = costs.lattice(band, distances, settings.pieces, level, missed)
        path = cheapest(lattice)
        lost = of_steps(path, lattice, missed)
    return Found(path, of_steps(path, lattice, distances), lost)


class _Search(NamedTuple):
    """The cheapest path by vectors, with its costs and distances."""

    path: Path
    lattice: Lattice
    distances: Floats


def _search(costs: Costs, band: Band, settings: Settings, tick: Tick = None) -> _Search:
    distances = costs.distances(band, tick)
    lattice = costs.lattice(band, distances, settings.vectors, USUAL_LEVEL)
    return _Search(cheapest(lattice), lattice, distances)


def _plain(side: Windows) -> VectorWindows:
    """Return the sentence vectors alone, as float16."""
    out = np.empty((len(side), side.dim), dtype=np.float16)
    for start in range(0, len(side), _BLOCK):
        stop = min(start + _BLOCK, len(side))
        out[start:stop] = side.vectors(1, start, stop)
    return VectorWindows(out, 1, side.characters)


def _coarse(src: VectorWindows, tgt: VectorWindows, settings: Settings) -> Path:
    """Return the path by steps of one to one."""
    n, m = len(src), len(tgt)
    costs = Costs(src, tgt, kinds(2))
    if n * m <= settings.dense:
        return _search(costs, Band.full(n, m), settings).path
    coarser = _coarse(src.halved(), tgt.halved(), settings)
    doubled = Path(np.minimum(2 * coarser.x, n), np.minimum(2 * coarser.y, m), coarser.cost)
    return _refine(costs, doubled, settings, 2 * settings.radius).path


def _refine(costs: Costs, coarse: Path, settings: Settings, radius: int, tick: Tick = None) -> _Search:
    """Return the best path near another one; a band whose edge the path touches is widened."""
    n, m = int(coarse.x[-1]), int(coarse.y[-1])
    while True:
        found = _search(costs, _around(coarse, n, m, radius), settings, tick)
        if not found.path.on_edge or found.lattice.band.width > max(n, m):
            return found
        coarse, radius, tick = found.path, 2 * radius, None


def _around(path: Path, n: int, m: int, radius: int) -> Band:
    """Return the band around a path.

    Where sentences are left out on both sides their order is arbitrary: the band runs straight across.
    """
    paired = (np.diff(path.x) > 0) & (np.diff(path.y) > 0)
    kept = np.zeros(len(path.x), dtype=bool)
    kept[[0, -1]] = True
    kept[:-1] |= paired
    kept[1:] |= paired
    x, y = path.x[kept], path.y[kept]
    place = np.arange(n + m + 1)
    centre = np.floor(np.interp(place, x + y, y) + 0.5).astype(np.int64)
    # Rounding may go back, or forward by two, which no path does.
    centre = np.clip(np.maximum.accumulate(centre), 0, m)
    return Band(n, m, centre - radius, 2 * radius + 1)


def _columns(wide: Band, narrow: Band, values: Floats) -> Floats:
    """Return the values of a band's nodes from those of another one; infinity where that has no such node."""
    column = (narrow.low - wide.low)[:, None] + np.arange(narrow.width)
    there = (column >= 0) & (column < wide.width)
    out: Floats = values[np.arange(len(column))[:, None], np.where(there, column, 0)]
    out[~there] = np.inf
    return out


def _missed(evidence: Evidence, src: Windows, tgt: Windows, costs: Costs, band: Band) -> Floats:
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
