"""Draws the curves of the result pages from the numbers that lie beside them, each for light and for dark pages.

    python mine/plots.py [--png]

    train/pool_size.tsv    ->  train/pool_size-light.svg, train/pool_size-dark.svg
    index/speed.tsv        ->  index/speed-*.svg

The same numbers and matplotlib give the same bytes. --png writes PNG files instead, to look at.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 6.25  # inches of 96 pixels: 600 of them


@dataclass(frozen=True)
class Theme:
    """Colours of a page: its text, its faint lines, and its curves."""

    name: str
    text: str
    faint: str
    curves: tuple[str, ...]


THEMES = (
    Theme("light", "#1f2328", "#d1d9e0", ("#1f6fb2", "#b9430b", "#2f7d3f", "#7a4fb5", "#8a6d00")),
    Theme("dark", "#e6edf3", "#3d444d", ("#6cb2f2", "#ff9b61", "#7fd08a", "#c3a1f5", "#e0c04c")),
)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table without its notes, the lines that begin with #."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


def curve(rows: list[dict[str, str]], x: str, y: str, **where: str) -> tuple[list[float], list[float]]:
    """Return two columns of the rows in which `where` holds."""
    chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return [float(row[x]) for row in chosen], [float(row[y]) for row in chosen]


def thousands(axes: Axes) -> None:
    """Make an axis logarithmic, with counts as 2k, 50k."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n / 1000:g}k"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def pool_size(theme: Theme) -> Figure:
    """Draw P@1 against the size of the pool, a panel per direction."""
    rows = read(ROOT / "train" / "pool_size.tsv")
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, direction in zip(panels.flat, ("en-fr", "it-en", "de-en", "es-en"), strict=True):
        for measure, dash in (("ratio-4", "-"), ("cosine", "--")):
            x, y = curve(rows, "pool", "P@1", model="europe5", direction=direction, measure=measure)
            label = f"europe5, {'ratio margin' if dash == '-' else 'cosine'}"
            axes.plot(x, y, dash, color=theme.curves[0], marker="o", markersize=2.5, label=label)
        axes.set_title(direction.replace("-", " to "))
        thousands(axes)
        axes.set_xticks([2_000, 10_000, 50_000, 200_000])
        axes.minorticks_off()
    figure.supxlabel("sentences in the pool")
    figure.supylabel("P@1, %")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def speed(theme: Theme) -> Figure:
    """Draw the processor time of exact search in both directions against the rows of a side, and the ratio."""
    rows = read(ROOT / "index" / "speed.tsv")
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for color, name in zip(theme.curves, ("faiss.knn twice", "bitextmine"), strict=False):
        left.plot(*curve(rows, "rows", f"{name}, s"), color=color, marker="o", markersize=3, label=name)
    left.set(yscale="log", ylabel="seconds of processor time")
    left.yaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s:g}"))
    left.legend(loc="upper left")
    right.plot(*curve(rows, "rows", "ratio"), color=theme.curves[1], marker="o", markersize=3)
    right.set(ylabel="times as fast", ylim=(0, None))
    for axes in (left, right):
        thousands(axes)
        axes.set(xlabel="rows of either side", xticks=[1_000, 2_000, 5_000, 10_000, 20_000])
        axes.minorticks_off()
    return figure


PLOTS: dict[str, Callable[[Theme], Figure]] = {"train/pool_size": pool_size, "index/speed": speed}


def look(theme: Theme) -> dict[str, object]:
    """Return the settings of matplotlib for a theme."""
    colors = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), theme.text)
    lines = {
        "axes.edgecolor": theme.faint,
        "grid.color": theme.faint,
        "axes.grid": True,
        "lines.linewidth": 1.6,
    }
    spines = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "axes.facecolor": "none",
    }
    sizes = {"font.size": 9, "axes.titlesize": 9, "figure.labelsize": 9, "grid.linewidth": 0.6}
    # Letters as shapes look the same everywhere; a fixed salt makes the names inside the file the same.
    return colors | lines | spines | sizes | {"svg.fonttype": "path", "svg.hashsalt": "bitextmine"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--png", action="store_true", help="PNG files, on a plain background")
    options = parser.parse_args()
    for name, draw in PLOTS.items():
        for theme in THEMES:
            with matplotlib.rc_context(look(theme)):
                figure = draw(theme)  # not through pyplot: it would look for a screen
                path = ROOT / f"{name}-{theme.name}"
                if options.png:
                    FigureCanvasAgg(figure)
                    ground = "#ffffff" if theme.name == "light" else "#0d1117"
                    figure.savefig(path.with_suffix(".png"), dpi=96, facecolor=ground)
                else:
                    figure.savefig(path.with_suffix(".svg"), transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
