"""The actor: a long-lived process on a node, which runs functions of this package by their name."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

from bitextmine.errors import BitextmineError

__all__ = ["Done", "Kept", "Worker"]

# What the functions of a stage keep between calls: an encoder, maps of files.
Kept = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """What a call came to. value: what the function returned; error: the message of a BitextmineError instead.
    seconds: how long it took; peak: the most memory that the worker has held, in bytes."""

    value: Any
    error: str | None
    seconds: float
    peak: int


class Worker:
    """Runs one call at a time. cpus: threads that it may use."""

    def __init__(self, cpus: int) -> None:
        # Before NumPy and torch are loaded, which read it then.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(cpus)
        self._kept: Kept = {}
        self._stage = ""

    def pid(self) -> int:
        """The process that it is; a first call, which tells that the worker is there."""
        return os.getpid()

    def run(self, function: str, *args: Any) -> Done:
        """Calls "module:function" with what the functions of that module have kept and the arguments."""
        begin = time.perf_counter()
        module, _, name = function.partition(":")
        if module != self._stage:  # what another stage has kept takes memory
            self._kept, self._stage = {}, module
        value = error = None
        try:
            value = getattr(importlib.import_module(module), name)(self._kept, *args)
        except BitextmineError as e:
            error = str(e)
        except MemoryError as e:
            error = f"out of memory ({e})" if str(e) else "out of memory"
        return Done(value, error, time.perf_counter() - begin, peak_memory())


def peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
