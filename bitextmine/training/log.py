"""The log of a training, log.jsonl, and its plot (matplotlib, the extra 'plots')."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitextmine.files.atomic import replacing

log = logging.getLogger(__name__)

COLORS = ("#1f6fb2", "#b9430b", "#3f8f4f", "#7a4fa3", "#8a6d1d", "#c2438a", "#4a4a4a")
NO_LOSSES = ("step", "learning_rate", "embedding_learning_rate", "pairs_per_second")


class Tally:
    """Means over the steps since the last entry of the log."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        """Continue from a `state`, if given; the rate counts from now."""
        self.sums: dict[str, float] = dict(state["sums"]) if state else {}
        self.steps = int(state["steps"]) if state else 0
        self.pairs = 0
        self.started = time.monotonic()

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint keeps, so that a resumed run logs the same losses."""
        return {"sums": self.sums, "steps": self.steps}

    def add(self, losses: Mapping[str, float], pairs: int) -> None:
        """Count a step: its loss, the parts of the loss, and its pairs."""
        self.steps += 1
        self.pairs += pairs
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """Return the mean of each loss, and the pairs per second."""
        rate = self.pairs / max(1e-9, time.monotonic() - self.started)
        means = {name: value / self.steps for name, value in self.sums.items()}
        return means | {"pairs_per_second": round(rate, 1)}


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log.jsonl up to the first that is not complete."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError):
            break
        entries.append(entry)
    return entries


def cut_log(path: Path, step: int) -> None:
    """Drop entries that a killed run logged after its checkpoint of ``step``. OSError passes through."""
    if path.exists():
        kept = [entry for entry in read_log(path) if entry["step"] <= step]
        with replacing(path) as file:
            file.write("".join(f"{json.dumps(entry)}\n" for entry in kept).encode())


def plot_log(log_path: Path, picture: Path) -> bool:
    """Plot a log's losses, learning rate and P@1 as a PNG; return False if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        missing = "matplotlib is not installed (pip install 'bitextmine[plots]')"
        log.info("no plot of the training: %s; the figures are in %s", missing, log_path)
        return False
    entries = read_log(log_path)
    figure = Figure(figsize=(11, 4.4), dpi=120)  # pyplot would look for a screen
    figure.subplots_adjust(left=0.06, right=0.98, bottom=0.12, top=0.96, wspace=0.25)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    last = entries[-1] if entries else {}
    names = [
        name for name, value in last.items() if isinstance(value, (int, float)) and name not in NO_LOSSES
    ]
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
        right.plot(*zip(*points, strict=True), marker="o", ms=3, lw=2 if name == "mean" else 1, label=name)
    right.set(xlabel="step", ylabel="P@1 on held-out pairs, %")
    for axes, some in ((left, names), (right, scores)):
        axes.grid(alpha=0.3)
        if 0 < len(some) <= 12:
            axes.legend(frameon=False, fontsize="small")
    with picture.open("wb") as file:
        figure.savefig(file, format="png", metadata={"Software": None})
    return True


def _curve(entries: Sequence[Mapping[str, Any]], name: str) -> tuple[list[int], list[float]]:
    points = [(entry["step"], entry[name]) for entry in entries if name in entry]
    return [step for step, _ in points], [value for _, value in points]
