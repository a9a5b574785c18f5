"""A Ray cluster for as long as a command runs: connected to, its nodes looked at, what is wrong with it told."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bitextmine.distributed.nodes import Node, first_line
from bitextmine.distributed.options import RayOptions
from bitextmine.distributed.pool import Pool
from bitextmine.errors import BitextmineError
from bitextmine.system import processors
from bitextmine.version import __version__

__all__ = ["Cluster", "connected"]

log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
_open: Cluster | None = None


class Cluster:
    """A connection to a cluster; `connected` makes it. ray: the module; folders: those that nodes must share."""

    def __init__(self, ray: Any, options: RayOptions) -> None:
        self.ray, self.options = ray, options
        self._pool: Pool | None = None
        self._folders: dict[Path, None] = {}
        self._good: set[str] = set()
        self._bad: set[str] = set()

    @property
    def pool(self) -> Pool:
        """The workers; made when they are first asked for, after `share`."""
        if self._pool is None:
            self._pool = Pool(self)
        return self._pool

    def nodes(self) -> list[Node]:
        """The nodes that are alive and have room for a worker."""
        cpus, gpus = self.options.cpus, self.options.gpus
        found = []
        for node in self.ray.nodes():
            has = node["Resources"]
            room = int(has.get("CPU", 0)) // cpus
            if gpus:
                room = min(room, int(has.get("GPU", 0)) // gpus)
            if node["Alive"] and room:
                store = int(has.get("object_store_memory", 0))
                found.append(Node(node["NodeID"], node["NodeManagerAddress"], room, store))
        return found

    def share(self, folders: Iterable[Path]) -> None:
        """Checks that every node has this package in this version, and sees the same folders.

        Raises BitextmineError that names the node and what is wrong there, and where no node has room for a worker.
        """
        wanted = dict.fromkeys(folder.absolute() for folder in folders)
        if self._good and not wanted.keys() - self._folders.keys():
            return
        self._folders |= wanted
        nodes = self.nodes()
        if not nodes:
            raise BitextmineError(self._no_room())
        for node, wrong in self._looked_at(nodes):
            if wrong is not None:
                raise BitextmineError(wrong)
            self._good.add(node.id)

    def newcomers(self) -> list[Node]:
        """The nodes that work can be given to: those of `share`, and of those that came since the ones that are fit.
        The log says what is wrong with others."""
        nodes = self.nodes()
        unknown = [node for node in nodes if node.id not in self._good | self._bad]
        for node, wrong in self._looked_at(unknown):
            if wrong is not None:
                log.warning("%s; nothing is given to it", wrong)
            (self._good if wrong is None else self._bad).add(node.id)
        return [node for node in nodes if node.id in self._good]

    def _no_room(self) -> str:
        alive = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        most = [max((int(has.get(name, 0)) for has in alive), default=0) for name in ("CPU", "GPU")]
        wanted = f"--ray-cpus {self.options.cpus}"
        if self.options.gpus:
            wanted += f", --ray-gpus {self.options.gpus}"
        return (
            f"the Ray cluster has no node with room for a worker ({wanted}): {len(alive)} node(s), of which none has "
            f"more than {most[0]} CPUs and {most[1]} GPUs"
        )

    def _looked_at(self, nodes: list[Node]) -> Iterator[tuple[Node, str | None]]:
        """Each node with what is wrong with it, None where nothing is."""
        if not nodes:
            return
        from ray import cloudpickle
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from bitextmine.distributed import probe

        cloudpickle.register_pickle_by_value(probe)
        look = self.ray.remote(num_cpus=0, max_retries=1)(probe.look)
        with _tokens(self._folders) as tokens:
            asked = [
                look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote(
                    tokens
                )
                for node in nodes
            ]
            for node, ref in zip(nodes, asked, strict=True):
                try:
                    yield node, _wrong(node, self.ray.get(ref))
                except self.ray.exceptions.RayError as e:
                    yield (
                        node,
                        f"node {node.address} of the Ray cluster: no worker starts there: {first_line(e)}",
                    )

    def close(self) -> None:
        """Stops the workers."""
        if self._pool is not None:
            self._pool.close()


def _wrong(node: Node, facts: dict[str, Any]) -> str | None:
    where = f"node {node.address} ({facts['host']}) of the Ray cluster"
    if facts["version"] is None:
        return (
            f"{where}: bitextmine cannot be imported by {facts['python']} ({facts['trouble']}); install bitextmine "
            f"{__version__} there"
        )
    if facts["version"] != __version__:
        return (
            f"{where}: has bitextmine {facts['version']}, and this is {__version__}; install the same version on all "
            "nodes"
        )
    for folder in facts["unseen"]:
        return (
            f"{where}: does not see this machine's folder {folder}; put the corpora on storage that all nodes share, "
            "under the same path, or the vectors into a folder there with --cache"
        )
    for folder in facts["readonly"]:
        return f"{where}: cannot write into {folder}; all nodes write there what they have finished"
    return None


@contextlib.contextmanager
def _tokens(folders: Iterable[Path]) -> Iterator[dict[str, str]]:
    """A file of a name that nobody guesses in each folder: whoever sees it sees the same folder."""
    name = f".bitextmine-{os.getpid()}-{secrets.token_hex(8)}.token"
    made: list[Path] = []
    try:
        for folder in folders:
            try:
                (folder / name).touch()
            except OSError as e:
                raise BitextmineError(f"{folder}: cannot write: {e.strerror or e}") from None
            made.append(folder / name)
        yield {str(path.parent): name for path in made}
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def connected(options: RayOptions) -> Iterator[Cluster]:
    """The cluster, for a ``with`` block; inside another such block that one's.

    Raises BitextmineError where Ray is not installed, where there is no such cluster, and where its Ray or Python is of
    another version than this one's.
    """
    global _open
    if _open is not None and _open.options == options:
        yield _open
        return
    ray = _ray()
    ours = not ray.is_initialized()  # else the program that calls this has connected
    with _quiet(ray) if ours else contextlib.nullcontext():
        if ours:
            _connect(ray, options)
        cluster = Cluster(ray, options)
        before, _open = _open, cluster
        try:
            yield cluster
        finally:
            _open = before
            with contextlib.suppress(Exception):  # a cluster that is gone
                cluster.close()
            if ours:
                ray.shutdown()


@contextlib.contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Ray prints what happens to nodes on standard output, whatever it is told, and pairs may go there."""
    worker = ray._private.worker
    name = "print_to_stdstream"
    before = getattr(worker, name, None)
    if before is None:  # another version of Ray
        yield
        return
    setattr(worker, name, lambda data, *more, **named: log.debug("Ray: %s", data))
    try:
        yield
    finally:
        setattr(worker, name, before)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of what is to change
    try:
        import ray
    except ModuleNotFoundError:
        raise BitextmineError(
            "--ray needs Ray, which is not installed: pip install 'bitextmine[ray]'"
        ) from None
    return ray


def _connect(ray: Any, options: RayOptions) -> None:
    address = options.address
    quiet: dict[str, Any] = {
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": logging.ERROR,
    }
    logging.getLogger("ray").setLevel(logging.ERROR)
    if address == "local":
        quiet |= {"num_cpus": max(processors(), options.cpus), "include_dashboard": False}
    elif address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address not in ("auto", "local"):
        host, _, port = address.rpartition(":")
        _check_reachable(host.strip("[]"), port, address)
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as e:
        raise BitextmineError(
            f"--ray {options.address}: no Ray cluster runs here ({first_line(e)}); start one with 'ray start --head', "
            "name the head of one as HOST:PORT, or use --ray local"
        ) from None
    except (RuntimeError, ValueError, TimeoutError) as e:
        text = str(e)
        if "ersion mismatch" in text:
            raise BitextmineError(
                f"--ray {options.address}: the cluster runs another version of Ray or Python than this program: "
                f"{' '.join(text.split())}"
            ) from None
        raise BitextmineError(f"--ray {options.address}: cannot connect: {first_line(e)}") from None


def _check_reachable(host: str, port: str, address: str) -> None:
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as e:
        raise BitextmineError(
            f"--ray {address}: no such cluster: {getattr(e, 'strerror', None) or e}; is 'ray start --head' running "
            "there, and the port its own (6379 as a rule)?"
        ) from None
