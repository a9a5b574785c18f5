"""From coarse to fine: where a document is long, a first way is found between means of neighbouring sentences, and made
more exact with shorter and shorter ones (Thompson and Koehn 2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bitextmine.alignment.costs import Costs, Kinds, Prices, kinds
from bitextmine.alignment.program import Band, Path, cheapest, full_band
from bitextmine.alignment.windows import VectorWindows, Windows

__all__ = ["Settings", "find_path"]

_BLOCK = 4096


@dataclass(frozen=True)
class Settings:
    """How documents are aligned.

    max_size: sentences of both sides together in one step. prices: what steps cost. radius: nodes to each side of the
    way found before that are looked at, for single sentences. whole, dense: the product of the lengths up to which
    every node is looked at, at once, and for the first way, one to one.
    """

    max_size: int = 6
    prices: Prices = field(default_factory=Prices)
    radius: int = 8
    whole: int = 1 << 14
    dense: int = 1 << 22


def find_path(
    src: Windows, tgt: Windows, settings: Settings, tick: Callable[[int], object] | None = None
) -> tuple[Path, Costs]:
    """The alignment of two documents, neither of which is empty, and the costs that it rests on. tick: is told how many
    more sentences the last and longest part of the work has done."""
    steps = kinds(settings.max_size)
    costs = Costs(src, tgt, steps, settings.prices)
    n, m = len(src), len(tgt)
    if n * m <= settings.whole:
        return cheapest(costs, steps, n, m, full_band(n, m)), costs
    coarse = _coarse(_plain(src), _plain(tgt), settings)
    return _refine(costs, steps, n, m, coarse, settings.radius, tick), costs


def _plain(side: Windows) -> VectorWindows:
    """The sentences' vectors alone, as float16."""
    out = np.empty((len(side), side.dim), dtype=np.float16)
    for start in range(0, len(side), _BLOCK):
        stop = min(start + _BLOCK, len(side))
        out[start:stop] = side.vectors(1, start, stop)
    return VectorWindows(out, 1, side.characters)


def _coarse(src: VectorWindows, tgt: VectorWindows, settings: Settings) -> Path:
    """The way between two documents by steps of one to one."""
    n, m = len(src), len(tgt)
    steps = kinds(2)
    if n * m <= settings.dense:
        return cheapest(Costs(src, tgt, steps, settings.prices), steps, n, m, full_band(n, m))
    coarser = _coarse(src.halved(), tgt.halved(), settings)
    doubled = Path(np.minimum(2 * coarser.x, n), np.minimum(2 * coarser.y, m), coarser.cost)
    return _refine(Costs(src, tgt, steps, settings.prices), steps, n, m, doubled, 2 * settings.radius)


def _refine(
    costs: Costs,
    steps: Kinds,
    n: int,
    m: int,
    coarse: Path,
    radius: int,
    tick: Callable[[int], object] | None = None,
) -> Path:
    """The best way near another one; where it runs along the edge of the band, the band is made wider."""
    while True:
        band = _around(coarse, n, m, radius)
        found = cheapest(costs, steps, n, m, band, tick=tick)
        if not found.on_edge or band.width > max(n, m):
            return found
        coarse, radius, tick = found, 2 * radius, None


def _around(path: Path, n: int, m: int, radius: int) -> Band:
    """The band around a way, which may step over several nodes. Where sentences are left out on both sides, the order
    of that says nothing: the band goes straight across."""
    paired = (np.diff(path.x) > 0) & (np.diff(path.y) > 0)
    kept = np.zeros(len(path.x), dtype=bool)
    kept[[0, -1]] = True
    kept[:-1] |= paired
    kept[1:] |= paired
    x, y = path.x[kept], path.y[kept]
    place = np.arange(n + m + 1)
    centre = np.floor(np.interp(place, x + y, y) + 0.5).astype(np.int64)
    # Rounding may step back or by two, which no way does.
    centre = np.clip(np.maximum.accumulate(centre), 0, m)
    return Band(centre - radius, 2 * radius + 1)
