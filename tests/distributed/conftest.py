"""Workers in this process that answer as late as a cluster may; tests of Ray itself are in test_ray.py."""

import contextlib
from pathlib import Path
from typing import Any

from bitextmine.executor import Task, Workers

from ..encoder.conftest import make_folder, tiny_tokenizer

__all__ = ["Here", "Stopped", "make_folder", "same", "tiny_tokenizer"]


class Stopped(Exception):
    """What a test stops a run with."""


def same(found, wanted):
    for name in ("fwd_sim", "fwd_id", "bwd_sim", "bwd_id"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes(), name


class Here(Workers):
    """An executor and its workers at once.

    Args:
        rows: the most rows in a task.
        after: called with each task when it is done.
    """

    distributed = True

    def __init__(self, rows=None, after=lambda task: None):
        super().__init__(rows)
        self.after = after
        self.made: list[Any] = []

    @property
    def slots(self):
        return 4

    def open(self):
        return contextlib.nullcontext(self)

    def device(self, asked):
        return "cpu"

    def share(self, folders):
        assert all(Path(folder).is_dir() for folder in folders)

    def map(self, tasks, ahead=0):
        waiting: list[Task] = []
        for task in tasks:  # rows are those of some time ago
            waiting.append(task)
            if len(waiting) > ahead:
                yield self._done(waiting.pop(0))
        for task in waiting:
            yield self._done(task)

    def _done(self, task):
        done = next(super().map([task]))
        self.made.append(task.key)
        self.after(task)
        return done
