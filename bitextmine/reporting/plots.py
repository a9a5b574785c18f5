"""The plots of the report as one picture, drawn with matplotlib (the extra 'plots')."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.reporting.charts import density_levels, histogram, length_grid, number
from bitextmine.reporting.reasons import LENGTH_FACTOR
from bitextmine.reporting.survey import Survey

__all__ = ["draw", "need_matplotlib"]


def need_matplotlib() -> None:
    """Raises BitextmineError when matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise BitextmineError(
            "--png needs matplotlib, which is not installed; run pip install 'bitextmine[plots]', or leave --png "
            "out (the HTML report draws its own)"
        ) from None


def draw(survey: Survey, name: str, file: BinaryIO) -> None:
    """Scores and lengths side by side as a PNG, the same bytes for the same file and matplotlib. A part
    without data says so.
    """
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure

    # Not through pyplot: it would look for a screen and keep the figure.
    figure = Figure(figsize=(11, 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    # parse_math: a '$' in a file name starts no formula.
    figure.suptitle(f"{_plain(name)}: {counted(survey.rows, 'pair')}", parse_math=False)
    if survey.scores.total:
        h = histogram(survey.scores, survey.threshold)
        pale = h.edges[:-1] + h.edges[1:] < (-np.inf if h.cut is None else 2 * h.cut)
        colors = np.where(pale, "#b3c3d3", "#1f6fb2")
        left.bar(h.edges[:-1], h.counts, width=np.diff(h.edges) * 0.9, align="edge", color=colors.tolist())
        if h.cut is not None:
            left.axvline(h.cut, color="#b9430b", label=f"threshold {number(h.cut)}")
            left.legend(frameon=False)
    else:
        _nothing(left, "no scores")
    left.set(xlabel="score", ylabel="pairs")
    if len(survey.lengths):
        grid = length_grid(survey.lengths)
        shown = np.ma.masked_equal(grid.counts.T, 0)
        edges = np.arange(len(grid.counts) + 1) * grid.width
        most = int(grid.counts.max())
        blues = LinearSegmentedColormap.from_list("blues", ["#bcd3e8", "#1f6fb2", "#0b2f52"])
        mesh = right.pcolormesh(edges, edges, shown, norm=LogNorm(1, max(most, 2)), cmap=blues)
        marks = [least for least, _ in density_levels(most)]
        figure.colorbar(mesh, ax=right, label="pairs", ticks=marks, format="%d").minorticks_off()
        x = np.array([0.0, grid.size])
        for factor, dash in ((1.0, "-"), (LENGTH_FACTOR, "--"), (1 / LENGTH_FACTOR, "--")):
            right.plot(x, survey.usual_ratio * factor * (x + 10) - 10, dash, color="#b9430b", linewidth=1)
        right.set(xlim=(0, grid.size), ylim=(0, grid.size), aspect="equal")
    else:
        _nothing(right, "no pairs")
    right.set(xlabel="characters of the source", ylabel="characters of the target")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, format="png", metadata={"Software": None})


def _nothing(axes: object, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)  # type: ignore[attr-defined]
    axes.set(xticks=[], yticks=[])  # type: ignore[attr-defined]


def _plain(name: str) -> str:
    """A file name that any font can show as far as it has the letters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
