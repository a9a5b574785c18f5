"""How many processors there are for this process."""

from __future__ import annotations

import os

__all__ = ["processors"]


def processors() -> int:
    """How many threads to use: OMP_NUM_THREADS if set, else the processors this process may run on."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
