"""Search from coarse to fine (Thompson and Koehn 2019).

In a long document a first path is found between means of neighbouring sentences, then refined with shorter and shorter
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bitextmine.alignment.costs import Costs, Kinds, Prices, kinds
from bitextmine.alignment.program import Band, Path, cheapest, full_band
from bitextmine.alignment.windows import VectorWindows, Windows

_BLOCK = 4096


@dataclass(frozen=True)
class Settings:
    """Parameters of an alignment.

    Attributes:
        max_size: the most sentences in one step, of both sides together.
        prices: the costs of steps.
        radius: half the width of the band around a coarser path, in nodes.
        whole: documents up to this product of lengths are searched without a band.
        dense: likewise for the first path, by steps of one to one.
    """

    max_size: int = 6
    prices: Prices = field(default_factory=Prices)
    radius: int = 8
    whole: int = 1 << 14
    dense: int = 1 << 22

    @property
    def window_sizes(self) -> int:
        """The sentences in the longest window."""
        return max(1, self.max_size - 1)


Tick = Callable[[int], object] | None  # called with the number of sentences done


def find_path(src: Windows, tgt: Windows, settings: Settings, tick: Tick = None) -> tuple[Path, Costs]:
    """Return the cheapest alignment of two documents, neither of them empty, and its costs."""
    steps = kinds(settings.max_size)
    costs = Costs(src, tgt, steps, settings.prices)
    n, m = len(src), len(tgt)
    if n * m <= settings.whole:
        return cheapest(costs, steps, n, m, full_band(n, m)), costs
    coarse = _coarse(_plain(src), _plain(tgt), settings)
    return _refine(costs, steps, n, m, coarse, settings.radius, tick), costs


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
    steps = kinds(2)
    if n * m <= settings.dense:
        return cheapest(Costs(src, tgt, steps, settings.prices), steps, n, m, full_band(n, m))
    coarser = _coarse(src.halved(), tgt.halved(), settings)
    doubled = Path(np.minimum(2 * coarser.x, n), np.minimum(2 * coarser.y, m), coarser.cost)
    return _refine(Costs(src, tgt, steps, settings.prices), steps, n, m, doubled, 2 * settings.radius)


def _refine(costs: Costs, steps: Kinds, n: int, m: int, coarse: Path, radius: int, tick: Tick = None) -> Path:
    """Return the best path near another one; a band whose edge the path touches is widened."""
    while True:
        band = _around(coarse, n, m, radius)
        found = cheapest(costs, steps, n, m, band, tick=tick)
        if not found.on_edge or band.width > max(n, m):
            return found
        coarse, radius, tick = found, 2 * radius, None


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
    return Band(centre - radius, 2 * radius + 1)
