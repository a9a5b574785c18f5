"""A Ray cluster of several nodes on this machine, whose parts can be killed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# How long Ray waits for parts of its own, which on a busy machine take long to start.
PATIENCE = {
    "agent_register_timeout_ms": "600000",
    "gcs_rpc_server_connect_timeout_s": "600",
    "gcs_server_request_timeout_seconds": "600",
    "health_check_timeout_ms": "120000",
    "raylet_start_wait_time_s": "600",
    "worker_register_timeout_seconds": "600",
}


class Nodes:
    """A head without processors, and nodes of one processor each. store: bytes of each one's object store."""

    def __init__(self, store: int) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.update({f"RAY_{name}": value for name, value in PATIENCE.items()})
        from ray.cluster_utils import Cluster

        self._store = store
        self._cluster = Cluster()
        few = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        self._start(num_cpus=0, **few)
        self.address = str(self._cluster.address)
        self.nodes: list[Any] = []

    def _start(self, **more: Any) -> Any:
        node = self._cluster.add_node(wait=False, object_store_memory=self._store, **more)
        while node.plasma_store_socket_name not in [
            known["ObjectStoreSocketName"] for known in self._cluster.global_state.node_table()
        ]:
            time.sleep(0.1)
        return node

    def add(self) -> None:
        """One more node."""
        self.nodes.append(self._start(num_cpus=1))

    def remove(self) -> None:
        """The first node goes, with all that runs there."""
        self._cluster.remove_node(self.nodes.pop(0), allow_graceful=False)

    def workers(self) -> list[int]:
        """The processes of actors on all nodes."""
        raylets = {node.all_processes["raylet"][0].process.pid for node in self.nodes}
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets and (process / "cmdline").read_bytes().startswith(b"ray::Worker"):
                    found.append(int(process.name))
        return found


@contextlib.contextmanager
def started(workers: int, store: int) -> Iterator[Nodes]:
    """So many nodes, for a ``with`` block."""
    nodes = Nodes(store)
    try:
        for _ in range(workers):
            nodes.add()
        yield nodes
    finally:
        nodes._cluster.shutdown()
