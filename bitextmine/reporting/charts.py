"""Charts as SVG with labels in HTML around it, so that the marks stretch with the page and the text does not.

No script: what a mark stands for is its <title>, which browsers show on hover, and the table below the chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted, nice_step
from bitextmine.reporting.counts import ScoreCounts
from bitextmine.reporting.markup import Html, html, plain
from bitextmine.reporting.reasons import LENGTH_FACTOR

__all__ = [
    "Histogram",
    "LengthGrid",
    "density_levels",
    "histogram",
    "length_grid",
    "length_legend",
    "length_svg",
    "number",
    "score_svg",
    "share_bar",
    "thresholds",
]

# Steps are round numbers, so that there are between two fifths of these and all of them.
_BARS = 80
_CELLS = 64
_LEVELS = 6


def number(value: float) -> str:
    """A score for people: four decimals, more or an exponent where those would say nothing."""
    if value != 0 and (abs(value) < 0.001 or abs(value) >= 1e6):
        return f"{value:.4g}"
    return f"{value:.4f}"


def tick(value: float, step: float) -> str:
    """A label of an axis whose labels are `step` apart."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}" if decimals <= 6 and abs(value) < 1e9 else f"{value:.3g}"


@dataclass(frozen=True)
class Histogram:
    """edges (n + 1,), counts (n,); below, above: scores that lie outside; cut: the threshold, if it lies
    inside.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    below: int
    above: int
    cut: float | None


def histogram(scores: ScoreCounts, threshold: float | None) -> Histogram:
    """32 to 80 bins over (nearly) all scores, of which there is at least one; the threshold, if it is near, is
    an edge.
    """
    low, high = scores.quantile(0.001), scores.quantile(0.999)
    if scores.high - scores.low <= 1.5 * (high - low):
        low, high = scores.low, scores.high
    width = high - low
    if width <= 0:
        width = max(abs(low) * 0.1, 10.0**-scores.decimals * _BARS)
        low, high = low - width / 2, high + width / 2
    cut = threshold if threshold is not None and low - width / 2 <= threshold <= high + width / 2 else None
    if cut is not None:
        low, high = min(low, cut), max(high, cut)
    step = nice_step(max((high - low) / _BARS, 10.0**-scores.decimals))
    start = cut if cut is not None else 0.0
    first, last = math.floor((low - start) / step + 1e-9), math.floor((high - start) / step + 1e-9) + 1
    edges = np.array([round(start + i * step, 9) for i in range(first, last + 1)])
    counts = scores.between(edges)
    above = scores.total - int(counts.sum()) - (below := scores.total - scores.at_least(float(edges[0])))
    return Histogram(edges, counts, below, max(above, 0), cut)


def _ticks(low: float, high: float, about: int) -> tuple[list[float], float]:
    step = nice_step((high - low) / about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)], step


def _percent(share: float) -> str:
    return f"{100 * share:.2f}".rstrip("0").rstrip(".")


def _x_labels(low: float, high: float, about: int = 10) -> str:
    values, step = _ticks(low, high, about)
    # On a narrow page every other label goes (class m).
    return "".join(
        f'<span class="x{" m" if i % 2 else ""}" style="left:{_percent((v - low) / (high - low))}%">'
        f"{tick(v, step)}</span>"
        for i, v in enumerate(values)
    )


def score_svg(h: Histogram, label: str) -> Html:
    """The histogram: bars of the pairs below the threshold are pale. label: what it shows, in words."""
    low, high = float(h.edges[0]), float(h.edges[-1])
    top = max(int(h.counts.max()), 1)
    y_values, y_step = _ticks(0, top, 4)
    y_values = [v for v in y_values if v == int(v)]
    unit = 1000 / len(h.counts)
    marks = [
        f'<path class="grid" d="{"".join(f"M0 {400 * (1 - v / top):.1f}H1000" for v in y_values if v)}"/>'
    ]
    for i, count in enumerate(h.counts.tolist()):
        if not count:
            continue
        height = max(400 * count / top, 2)
        pale = h.cut is not None and h.edges[i] + h.edges[i + 1] < 2 * h.cut
        marks.append(
            f'<rect{" class=below" if pale else ""} x="{i * unit + 0.06 * unit:.2f}" y="{400 - height:.1f}" '
            f'width="{0.88 * unit:.2f}" height="{height:.1f}"><title>{number(float(h.edges[i]))} to '
            f"{number(float(h.edges[i + 1]))}: {counted(count, 'pair')}</title></rect>"
        )
    cut = ""
    if h.cut is not None:
        at = (h.cut - low) / (high - low)
        marks.append(f'<path class="cut" d="M{1000 * at:.2f} 0V400"/>')
        side = "right" if at > 0.7 else "left"
        place = _percent(1 - at if side == "right" else at)
        cut = f'<span class="cutlabel {side}" style="{side}:{place}%">threshold {number(h.cut)}</span>'
    labels = "".join(
        f'<span class="y" style="bottom:{_percent(v / top)}%">{tick(v, max(y_step, 1))}</span>'
        for v in y_values
    )
    return _plot("wide", "0 0 1000 400", label, "".join(marks), labels + cut + _x_labels(low, high))


@dataclass(frozen=True)
class LengthGrid:
    """Pairs by source and target length: counts (n, n), [source, target], cells `width` characters wide;
    beyond: pairs that do not fit.
    """

    width: int
    counts: NDArray[np.int64]
    beyond: int

    @property
    def size(self) -> int:
        """Characters along an axis."""
        return self.width * len(self.counts)


def length_grid(lengths: NDArray[np.int64]) -> LengthGrid:
    """lengths (s, 2), s > 0; the axes take in all, or all but the longest half percent."""
    most, all_of_them = (int(x) for x in np.quantile(lengths.max(axis=1), [0.995, 1.0]))
    longest = max(all_of_them if all_of_them <= 1.3 * most else most, 10)
    width = max(int(nice_step(longest / _CELLS)), 1)
    cells = longest // width + 1
    at = lengths // width
    inside = (at < cells).all(axis=1)
    counts = np.zeros((cells, cells), dtype=np.int64)
    np.add.at(counts, (at[inside, 0], at[inside, 1]), 1)
    return LengthGrid(width, counts, int((~inside).sum()))


def density_levels(most: int) -> list[tuple[int, int]]:
    """Ranges of counts, inclusive, drawn in one shade each, the palest first: about equal on a log scale."""
    cuts = sorted({max(round(most ** (i / _LEVELS)), i + 1) for i in range(_LEVELS)} | {1})
    cuts = [c for c in cuts if c <= most]
    return list(zip(cuts, [*(c - 1 for c in cuts[1:]), most], strict=True))


def length_svg(grid: LengthGrid, usual_ratio: float, label: str) -> Html:
    """The grid, darker where there are more pairs; lines: the usual ratio of lengths and its limits."""
    n = len(grid.counts)
    levels = density_levels(int(grid.counts.max()))
    marks = []
    for i, (least, most) in enumerate(levels):
        src, tgt = np.nonzero((grid.counts >= least) & (grid.counts <= most))
        d = "".join(f"M{x} {n - 1 - y}h1v1h-1z" for x, y in zip(src.tolist(), tgt.tolist(), strict=True))
        shade = _shade(i, len(levels))
        words = counted(least, "pair") if least == most else f"{least:,} to {most:,} pairs"
        marks.append(f'<path class="cell" fill-opacity="{shade}" d="{d}"><title>{words}</title></path>')
    for factor, kind in ((1.0, "usual"), (LENGTH_FACTOR, "limit"), (1 / LENGTH_FACTOR, "limit")):
        slope = usual_ratio * factor
        ends = [(x, slope * (x + 10) - 10) for x in (0.0, float(grid.size))]
        (x1, y1), (x2, y2) = ((x / grid.width, n - y / grid.width) for x, y in ends)
        marks.append(f'<path class="{kind}" d="M{x1:.2f} {y1:.2f}L{x2:.2f} {y2:.2f}"/>')
    values, step = _ticks(0, grid.size, 6)
    labels = _x_labels(0, grid.size, 6) + "".join(
        f'<span class="y" style="bottom:{_percent(v / grid.size)}%">{tick(v, step)}</span>' for v in values
    )
    return _plot("square", f"0 0 {n} {n}", label, "".join(marks), labels)


def _shade(i: int, levels: int) -> float:
    return round(0.28 + 0.72 * (i / max(levels - 1, 1)), 2) if levels > 1 else 0.7


def length_legend(grid: LengthGrid) -> Html:
    """Which shade is how many pairs."""
    levels = density_levels(int(grid.counts.max()))
    keys = [
        f'<span class="key"><svg viewBox="0 0 1 1" aria-hidden="true"><path class="cell" '
        f'fill-opacity="{_shade(i, len(levels))}" d="M0 0h1v1H0z"/></svg>'
        f"{f'{a:,}' if a == b else f'{a:,} to {b:,}'}</span>"
        for i, (a, b) in enumerate(levels)
    ]
    return html('<p class="legend">Pairs per square: {}</p>', Html(" ".join(keys)))


def _plot(kind: str, box: str, label: str, marks: str, labels: str) -> Html:
    """marks, labels: made of numbers alone, as markup; label: any text."""
    return html(
        '<div class="plot {}"><svg viewBox="{}" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg><div aria-hidden="true">{}</div></div>',
        kind,
        box,
        plain(label),
        Html(marks),
        Html(labels),
    )


def share_bar(share: float) -> Html:
    """A bar for a table cell, as wide as a share (0 to 1) of the cell."""
    return html('<i class="bar" style="width:{}%"></i>', _percent(min(max(share, 0), 1)))


def thresholds(scores: ScoreCounts, threshold: float | None) -> Sequence[float]:
    """Round thresholds that cover most of the scores, and the one in use, ascending."""
    low, high = scores.quantile(0.05), scores.quantile(0.99)
    if threshold is not None and scores.low <= threshold <= scores.high:
        low, high = min(low, threshold), max(high, threshold)
    step = nice_step(max((high - low) / 16, 10.0**-scores.decimals))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    found = {round(i * step, 9) for i in range(first, last + 1)}
    if threshold is not None:
        found.add(threshold)
    return sorted(found)
