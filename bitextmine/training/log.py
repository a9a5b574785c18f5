"""The log of a training, log.jsonl, and its plot (matplotlib, the extra 'plots')."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitextmine.files.atomic import replacing

log = logging.getLogger(__name__)

NO_LOSSES = {"step", "learning_rate", "embedding_learning_rate", "pairs_per_second"}


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
    """Plot a log's losses and P@1 as a PNG; return False if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        missing = "matplotlib is not installed (pip install 'bitextmine[plots]')"
        log.info("no plot of the training: %s; the figures are in %s", missing, log_path)
        return False
    losses: dict[str, list[tuple[int, float]]] = {}
    scores: dict[str, list[tuple[int, float]]] = {}
    for entry in read_log(log_path):
        numbers = {name: value for name, value in entry.items() if isinstance(value, (int, float))}
        for curves, found in ((losses, numbers), (scores, entry.get("p_at_1", {}))):
            for name in found.keys() - NO_LOSSES:
                curves.setdefault(name, []).append((entry["step"], found[name]))
    figure = Figure(figsize=(11, 4.4), dpi=120, layout="constrained")  # pyplot would look for a screen
    FigureCanvasAgg(figure)
    drawn = (losses, "loss"), (scores, "P@1 on held-out pairs, %")
    for axes, (curves, label) in zip(figure.subplots(1, 2), drawn, strict=True):
        for name, points in sorted(curves.items()):
            axes.plot(*zip(*points, strict=True), label=name)
        axes.set(xlabel="step", ylabel=label)
        axes.grid(alpha=0.3)
        if 0 < len(curves) <= 12:
            axes.legend(frameon=False, fontsize="small")
    with picture.open("wb") as file:
        figure.savefig(file, format="png", metadata={"Software": None})
    return True
