"""A picture of a training run: its losses, P@1 and learning rate over the steps (matplotlib, the extra 'plots')."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["plot_log", "read_log"]

log = logging.getLogger(__name__)

COLORS = ("#1f6fb2", "#b9430b", "#3f8f4f", "#7a4fa3", "#8a6d1d", "#c2438a", "#4a4a4a")


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log.jsonl, as far as they are whole."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError):
            break
        entries.append(entry)
    return entries


def plot_log(log_path: Path, picture: Path) -> bool:
    """Draws a run's log.jsonl as a PNG; without matplotlib says so in a line and returns False."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        log.info(
            "no plot of the training: matplotlib is not installed (pip install 'bitextmine[plots]'); the figures are "
            "in %s",
            log_path,
        )
        return False
    entries = read_log(log_path)
    # Not through pyplot: it would look for a screen and keep the figure.
    figure = Figure(figsize=(11, 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    names = [name for name in _numbers(entries[-1]) if name not in NO_LOSSES] if entries else []
    # With one objective of weight 1 the sum is that objective.
    if len(names) == 2 and all(entry.get(names[0]) == entry.get(names[1]) for entry in entries):
        names = names[1:]
    for name, color in zip(names, COLORS, strict=False):
        left.plot(*_curve(entries, name), label=name, color=color, lw=1.2)
    left.set(xlabel="step", ylabel="loss")
    rate = left.twinx()
    rate.plot(*_curve(entries, "learning_rate"), color="#b0b0b0", lw=1, ls=":", label="learning rate")
    rate.set(ylabel="learning rate of the layers (dotted)", ylim=(0, None))
    scores: dict[str, list[tuple[int, float]]] = {}
    for entry in entries:
        for name, value in entry.get("p_at_1", {}).items():
            scores.setdefault(name, []).append((entry["step"], value))
    if len(scores) == 2:  # one corpus, which is the mean
        scores.pop("mean", None)
    for name, points in scores.items():
        mean = name == "mean"
        right.plot(*zip(*points, strict=True), marker="o", ms=3, lw=2 if mean else 1, label=name)
    right.set(xlabel="step", ylabel="P@1 on held-out pairs, %")
    for axes, some in ((left, names), (right, scores)):
        axes.grid(alpha=0.3)
        if 0 < len(some) <= 12:
            axes.legend(frameon=False, fontsize="small")
    with picture.open("wb") as file:
        figure.savefig(file, format="png", metadata={"Software": None})
    return True


NO_LOSSES = ("step", "learning_rate", "embedding_learning_rate", "pairs_per_second")


def _numbers(entry: Mapping[str, Any]) -> list[str]:
    return [name for name, value in entry.items() if isinstance(value, (int, float))]


def _curve(entries: Sequence[Mapping[str, Any]], name: str) -> tuple[list[int], list[float]]:
    points = [(entry["step"], entry[name]) for entry in entries if name in entry]
    return [step for step, _ in points], [value for _, value in points]
