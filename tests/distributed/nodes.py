"""A Ray cluster of several nodes on this machine, whose parts can be killed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

# How long Ray waits for parts of its own, which on a busy machine take long to start.
PATIENCE = {
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_gcs_rpc_server_connect_timeout_s": "600",
    "RAY_gcs_server_request_timeout_seconds": "600",
    "RAY_health_check_timeout_ms": "120000",
    "RAY_raylet_start_wait_time_s": "600",
    "RAY_worker_register_timeout_seconds": "600",
}


class Nodes:
    """A head without processors, and nodes of one processor each. store: bytes of each one's object store."""

    def __init__(self, store: int) -> None:
        from ray.cluster_utils import Cluster

        # Only what is needed: of a node whose processes start slowly Ray thinks that it is dead.
        few = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        self._store = store
        self._cluster = Cluster()
        self._start(num_cpus=0, **few)
        self.address = str(self._cluster.address)
        self.nodes: list[Any] = []

    def _start(self, **more: Any) -> Any:
        """Start a node and wait until the cluster lists it.

        A node gives up if its agent takes more than 15 seconds to start, as on a busy machine; then another is started.
        """
        for left in reversed(range(5)):
            try:
                # else Ray waits half a minute, and leaves it to itself
                node = self._cluster.add_node(wait=False, object_store_memory=self._store, **more)
            except Exception as e:  # Ray has no other class for it
                if not left or "timed out" not in str(e).lower():
                    raise
                continue
            while node.plasma_store_socket_name not in [
                known["ObjectStoreSocketName"] for known in self._cluster.global_state.node_table()
            ]:
                if node.all_processes["raylet"][0].process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return node
            self._cluster.remove_node(node, allow_graceful=False)
        raise RuntimeError("five nodes died as they started")

    def add(self, **more: Any) -> Any:
        """Add a node; ``more`` are further arguments of Ray's `Cluster.add_node`."""
        node = self._start(num_cpus=1, **more)
        self.nodes.append(node)
        return node

    def remove(self, node: Any = None) -> None:
        """Remove a node (default: the first) with all its processes."""
        node = self.nodes[0] if node is None else node
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def workers(self, idle: bool = False) -> list[int]:
        """Return the processes on all nodes that run a task of this package, or (`idle`) that could."""
        wanted = b"ray::" if idle else b"ray::bitextmine"
        raylets = {node.all_processes["raylet"][0].process.pid for node in self.nodes}
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets and (process / "cmdline").read_bytes().startswith(wanted):
                    found.append(int(process.name))
        return found

    def close(self) -> None:
        """Stops all of them."""
        self._cluster.shutdown()


def _patient(get_node: Callable[..., Any]) -> Callable[..., Any]:
    """Ray asks for half a minute whether a node is there, whatever it is told; a minute here, at each turn."""

    def get(*args: Any) -> Any:
        for _ in range(120):
            try:
                return get_node(*args)
            except RuntimeError:
                time.sleep(0.5)
        return get_node(*args)

    return get


@contextlib.contextmanager
def started(workers: int, store: int) -> Iterator[Nodes]:
    """So many nodes, for a ``with`` block. What is started in it is as patient as they are."""
    with mock.patch.dict(os.environ, {"RAY_USAGE_STATS_ENABLED": "0", **PATIENCE}):
        os.environ.pop("RAY_ADDRESS", None)
        from ray._private import services

        with mock.patch.object(services, "get_node", _patient(services.get_node)):
            nodes = Nodes(store)
            try:
                for _ in range(workers):
                    nodes.add()
                yield nodes
            finally:
                nodes.close()
