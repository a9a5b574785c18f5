"""A Ray cluster for as long as a command runs: connected to, its nodes looked at, what is wrong with it told."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bitextmine.console import counted
from bitextmine.distributed.nodes import JOIN_SECONDS, TELL_SECONDS, Node, first_line
from bitextmine.distributed.options import RayOptions, check_address
from bitextmine.distributed.pool import Pool
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.system import processors
from bitextmine.version import __version__

__all__ = ["Cluster", "connected"]

log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
# What a client of gRPC says first, with settings that are empty, and the type of the frame that answers.
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
_SETTINGS = b"\x04"
_AGAIN_SECONDS = 0.5  # until a node that has just joined is asked again
_open: Cluster | None = None


class Cluster:
    """A connection to a cluster; `connected` makes it. ray: the module; folders: those that nodes must share."""

    def __init__(self, ray: Any, options: RayOptions) -> None:
        self.ray, self.options = ray, options
        self._pool: Pool | None = None
        self._folders: dict[Path, None] = {}
        self._good: set[str] = set()
        self._bad: set[str] = set()
        self._asked: dict[str, _Look] = {}
        self._asked_with: dict[str, str] = {}
        self._tokens = contextlib.ExitStack()  # as long as they are asked

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
        with _tokens(self._folders) as tokens:
            looks = [_Look(self.ray, node, tokens) for node in nodes]
            told = time.monotonic()
            while True:
                waiting = {look.node.id for look in looks if not look.done(_AGAIN_SECONDS)}
                alive = {node.id for node in self.nodes()}
                looks = [look for look in looks if look.node.id in alive]
                if not waiting & alive:
                    break
                if time.monotonic() - told >= TELL_SECONDS:
                    told = time.monotonic()
                    log.warning("waiting for %s to answer (Ctrl-C stops)", counted(len(waiting), "node"))
        for look in looks:
            if look.wrong is not None:
                raise BitextmineError(look.wrong)
            self._good.add(look.node.id)
        if not looks:
            raise BitextmineError(self._no_room())

    def newcomers(self) -> list[Node]:
        """The nodes that work can be given to: those of `share`, and of those that came since the ones that have said
        that they are fit. The log says what is wrong with others. It waits for none."""
        nodes = self.nodes()
        for node in nodes:
            if node.id not in self._good | self._bad | self._asked.keys():
                if not self._asked:
                    self._asked_with = self._tokens.enter_context(_tokens(self._folders))
                self._asked[node.id] = _Look(self.ray, node, self._asked_with)
        alive = {node.id for node in nodes}
        for number, look in list(self._asked.items()):
            if number in alive and not look.done(0):
                continue
            del self._asked[number]
            if number in alive:
                if look.wrong is not None:
                    log.warning("%s; nothing is given to it", look.wrong)
                (self._good if look.wrong is None else self._bad).add(number)
        if not self._asked:
            self._tokens.close()
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

    def close(self) -> None:
        """Stops the workers."""
        self._tokens.close()
        if self._pool is not None:
            self._pool.close()


class _Look:
    """A node that is asked about itself. wrong: what is wrong with it, None where nothing is; known when it is done.

    A node that has just joined is in the cluster's list before the others know of it, on a busy cluster for seconds:
    what is sent to it comes back as not schedulable. It is asked again, for a minute.
    """

    def __init__(self, ray: Any, node: Node, tokens: dict[str, str]) -> None:
        self.node = node
        self.wrong: str | None = None
        self._ray, self._tokens = ray, tokens
        self._begin = self._asked = time.monotonic()
        self._ref = self._ask()

    def _ask(self) -> Any:
        from ray import cloudpickle
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from bitextmine.distributed import probe

        cloudpickle.register_pickle_by_value(probe)
        there = NodeAffinitySchedulingStrategy(self.node.id, soft=False)
        look = self._ray.remote(num_cpus=0, max_retries=1)(probe.look)
        return look.options(scheduling_strategy=there).remote(self._tokens)

    def done(self, timeout: float) -> bool:
        """Whether it has answered, or will not; waits so many seconds for that."""
        if self._ref is None:
            return True
        if not self._ray.wait([self._ref], timeout=timeout)[0]:
            return False
        errors = self._ray.exceptions
        try:
            self.wrong = _wrong(self.node, self._ray.get(self._ref))
        except errors.RayError as e:
            now = time.monotonic()
            if isinstance(e, errors.TaskUnschedulableError) and now - self._begin < JOIN_SECONDS:
                time.sleep(max(0.0, min(timeout, self._asked + _AGAIN_SECONDS - now)))
                self._asked, self._ref = now, self._ask()
                return False
            self.wrong = (
                f"node {self.node.address} of the Ray cluster: no worker starts there: {first_line(e)}"
            )
        self._ref = None
        return True


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
    with contextlib.ExitStack() as around:
        if ours:
            around.enter_context(_quiet(ray))
            around.enter_context(_private_token(options))
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


@contextlib.contextmanager
def _private_token(options: RayOptions) -> Iterator[None]:
    """A cluster of our own has a token of its own. Else Ray makes one for it in ~/.ray, with which it then neither
    reaches clusters that were started without one, nor those that are named by their address."""
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    if options.address != "local" or any(name in os.environ for name in names):
        yield
        return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    try:
        yield
    finally:
        for name in names:  # Ray sets the mode itself
            os.environ.pop(name, None)


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
    address, shown = options.address, f"--ray {options.address}"
    if address == "auto" and (named := os.environ.get("RAY_ADDRESS")):
        address, shown = named, f"--ray auto (RAY_ADDRESS={named})"
        try:
            check_address(address)
        except UsageError as e:
            raise BitextmineError(f"{shown}: {e}") from None
    quiet: dict[str, Any] = {
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": logging.ERROR,
    }
    logging.getLogger("ray").setLevel(logging.ERROR)
    if address == "local":
        quiet |= {"num_cpus": processors(), "include_dashboard": False}
    elif address != "auto":
        _check_reachable(address, shown)
        _check_token(address, shown)
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as e:
        raise BitextmineError(
            f"{shown}: no Ray cluster runs here ({first_line(e)}); start one with 'ray start --head', "
            "name the head of one as HOST:PORT, or use --ray local"
        ) from None
    except Exception as e:  # Ray has no class for most
        text = str(e)
        if "ersion mismatch" in text:
            raise BitextmineError(
                f"{shown}: the cluster runs another version of Ray or Python than this program: "
                f"{' '.join(text.split())}"
            ) from None
        raise BitextmineError(f"{shown}: cannot connect: {first_line(e)}") from None


def _check_reachable(address: str, shown: str) -> None:
    """Ray itself would try for minutes, and print what it tries."""
    host, _, port = address.rpartition(":")
    try:
        there = socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS)
    except OSError as e:
        raise BitextmineError(
            f"{shown}: no such cluster: {e.strerror or e}; is 'ray start --head' running there, and the port its own "
            "(6379 as a rule)?"
        ) from None
    head = b""
    with there, contextlib.suppress(OSError):
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return
        there.sendall(_HTTP2)
        while len(head) < 4 and (more := there.recv(4 - len(head))):
            head += more
    if head[3:] != _SETTINGS:
        raise BitextmineError(
            f"{shown}: no such cluster: what answers there, if anything does, is not the head of one; is the port that "
            "of 'ray start --head' (6379 as a rule)?"
        )


def _check_token(address: str, shown: str) -> None:
    """Ray gives its token to a cluster that is named by its address only where it is told to, and without it tries for
    half a minute."""
    from ray import _raylet

    there: Any = _raylet
    tokens = getattr(there, "AuthenticationTokenLoader", None)
    if tokens is None:  # a Ray that knows none
        return
    from ray.exceptions import AuthenticationError

    wanted = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    try:
        if wanted and not tokens.instance().has_token(ignore_auth_mode=True):
            raise AuthenticationError("there is none")  # the client would end the process
        with _mute():
            there.GcsClient(address=address)
    except AuthenticationError:
        what = (
            "another token than this program has" if wanted else "a token, and RAY_AUTH_MODE=token is not set"
        )
        raise BitextmineError(
            f"{shown}: the cluster asks for {what}; set RAY_AUTH_MODE=token, and copy ~/.ray/auth_token from the head "
            "to this machine (or put what it holds into RAY_AUTH_TOKEN)"
        ) from None
    except Exception as e:
        log.debug("%s: %s", shown, e)  # to connect will fail, and says why


@contextlib.contextmanager
def _mute() -> Iterator[None]:
    """What Ray's compiled part writes to standard error is not shown."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
