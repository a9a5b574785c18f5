"""The log of a run, log.jsonl: a line every so many steps, with the means over the steps since the one before."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bitextmine.training.staging import staged_files

__all__ = ["Tally", "cut_log"]


class Tally:
    """Means over the steps since the last entry of the log."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        """state: what `state` gave, to go on from; the rate then counts from here."""
        self.sums: dict[str, float] = dict(state["sums"]) if state else {}
        self.steps = int(state["steps"]) if state else 0
        self.pairs = 0
        self.started = time.monotonic()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, so that a run that goes on from it logs the same losses."""
        return {"sums": self.sums, "steps": self.steps}

    def add(self, losses: dict[str, float], pairs: int) -> None:
        """Counts a step: its loss, the loss' parts, and how many pairs it had."""
        self.steps += 1
        self.pairs += pairs
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """The mean of each loss, and how many pairs a second were trained on."""
        rate = self.pairs / max(1e-9, time.monotonic() - self.started)
        return {name: value / self.steps for name, value in self.sums.items()} | {
            "pairs_per_second": round(rate, 1)
        }


def cut_log(path: Path, step: int) -> None:
    """Drops what a killed run logged after ``step``, that of the checkpoint it is taken up from. OSError passes
    through."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            break
    with staged_files([path]) as (file,):
        file.write("".join(f"{line}\n" for line in kept).encode())
