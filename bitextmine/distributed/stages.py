"""What a stage of a command took on the cluster: said in the log, and kept in a file where one is asked for.

Manifests hold no times, as they are compared byte for byte.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bitextmine.distributed.pool import Report
from bitextmine.distributed.worker import peak_memory
from bitextmine.errors import BitextmineError

if TYPE_CHECKING:
    from bitextmine.distributed.cluster import Cluster

__all__ = ["Stage"]


class Stage:
    """A stage, from now on. name: what it does, for people."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._begin = time.perf_counter()
        self._since = datetime.now(UTC)
        cluster.pool.report()  # what was done before is not of this stage

    def finish(self, finished: int = 0, **seconds: float) -> tuple[Report, float]:
        """It is over: what the workers did, and how many seconds it took. finished: how many tasks a run before had
        finished; seconds: that the driver took for parts of it, by name.

        Raises BitextmineError where the file cannot be written.
        """
        report, took = self._cluster.pool.report(), time.perf_counter() - self._begin
        path = self._cluster.options.report
        if path is not None:
            line = {
                "stage": self._name,
                "begin": self._since.isoformat(timespec="seconds"),
                "seconds": round(took, 3),
                **{f"{name}_seconds": round(value, 3) for name, value in seconds.items()},
                "tasks": report.calls,
                "tasks_found_finished": finished,
                "tasks_again": report.again,
                "task_seconds": round(report.seconds, 3),
                "workers": report.workers,
                "workers_lost": report.lost_workers,
                "nodes": report.nodes,
                "worker_peak_bytes": report.peak,
                "driver_peak_bytes": peak_memory(),
            }
            try:
                with open(path, "a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
            except OSError as e:
                raise BitextmineError(f"{path} (--ray-report): cannot write: {e.strerror or e}") from None
        return report, took
