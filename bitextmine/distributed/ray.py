"""A Ray cluster as executor, ``--executor ray``; the only module that imports Ray.

Work runs as plain Ray tasks, which Ray places where processors are free, also on nodes that join later. Ray reuses the
processes, so that state such as an encoder stays from one task to the next (with GPUs it starts a process for each
task, which frees their memory). A task is submitted again here when its worker dies: Ray would do that silently, and
without end where memory runs out.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from bitextmine.declarations import Kind, Opt, Options
from bitextmine.errors import BitextmineError, MissingPackage, UsageError
from bitextmine.executor import Done, Task, Workers
from bitextmine.version import __version__

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(\d{1,5})")
_QUEUED = 2  # tasks for each worker: one that runs, one that waits
_TRIES = 5  # a task that has cost so many workers is given up
_LOOK_SECONDS = 2.0  # between looks at the list of nodes
_WARN_SECONDS = 30.0  # between warnings of a wait
_CONNECT_SECONDS = 10.0

_open: dict[Ray, RayWorkers] = {}


def check_address(address: Any) -> str:
    """Return what can be the address of a cluster; raise UsageError for anything else."""
    named = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if address != "auto" and not (named and 0 < int(named[2]) < 1 << 16):
        raise UsageError(
            f"expected auto or HOST:PORT of a cluster's head (6379 as a rule), found {address!r}"
        )
    return str(address)


@dataclass(frozen=True)
class Ray(Options):
    """A Ray cluster and the share of it that each worker gets. No field changes a byte of the result.

    Attributes:
        address: ``auto`` (the cluster of this machine, or ``$RAY_ADDRESS``), or ``HOST:PORT`` of a cluster's head.
        cpus: processors of a worker.
        gpus: GPUs of a worker.
        rows: the most lines in a shard (None: by the size of the corpora).
    """

    address: Annotated[str, Kind("auto|HOST:PORT", check_address)] = "auto"
    cpus: Annotated[int, Opt(ge=1)] = 1
    gpus: Annotated[int, Opt(ge=0)] = 0
    rows: Annotated[int | None, Opt(ge=1)] = None
    distributed: ClassVar[bool] = True

    def device(self, asked: str) -> str:
        """Return a worker's device; raise UsageError if `asked` and the GPUs of a worker disagree."""
        if asked not in ("auto", "cuda" if self.gpus else "cpu"):
            raise UsageError(
                f"--device {asked}: a worker of a Ray cluster has the GPUs that --executor 'ray://...?gpus=N' gives it "
                f"({self.gpus}), and Ray says which; leave out --device"
            )
        return asked if self.gpus else "cpu"

    @contextlib.contextmanager
    def open(self) -> Iterator[RayWorkers]:
        """Connect to the cluster, or raise BitextmineError; inside another such block, return that one's workers."""
        if (workers := _open.get(self)) is not None:
            yield workers
            return
        ray = _import_ray()
        ours = not ray.is_initialized()  # else the calling program has connected
        with contextlib.ExitStack() as stack:
            if ours:
                stack.enter_context(_quiet())
                _connect(ray, self.address)
                stack.callback(ray.shutdown)
            workers = _open[self] = RayWorkers(ray, self)
            stack.callback(_open.pop, self)
            yield workers


executor = Ray


@dataclass
class _Sent:
    """A submitted task; lost: workers that died of it."""

    task: Task
    lost: int = 0
    done: Done | None = None


class RayWorkers(Workers):
    """Tasks on a cluster."""

    def __init__(self, ray: Any, options: Ray) -> None:
        super().__init__(options.rows)
        self._ray, self._options = ray, options
        # Made once: the processes keep state with the function.
        remote = ray.remote(num_cpus=options.cpus, num_gpus=options.gpus, max_retries=0)
        self._run = remote(_remote_function())
        self._folders: set[str] = set()
        self._room = self._count_room()
        self._looked = self._warned = time.monotonic()
        if not self._room:
            wanted = f"cpus={options.cpus}" + (f", gpus={options.gpus}" if options.gpus else "")
            raise BitextmineError(f"the Ray cluster has no node with room for a worker ({wanted})")

    @property
    def slots(self) -> int:
        """Return the number of tasks that the workers have in hand, running and waiting."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._room, self._looked = self._count_room(), time.monotonic()
            if self._room:
                self._warned = self._looked
            elif self._looked - self._warned >= _WARN_SECONDS:
                log.warning("no node has room: waiting for one to join the Ray cluster (Ctrl-C stops)")
                self._warned = self._looked
        return _QUEUED * max(1, self._room)

    def map(self, tasks: Iterable[Task], ahead: int = 0) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result, in order.

        No more than `slots` tasks have their arguments in the object store; `ahead` more may be finished, waiting for
        their turn. Those that nobody waits for any more end with the connection. They are not cancelled: `ray.cancel`
        of a task that is just being finished aborts this process.
        """
        left, errors = iter(tasks), self._ray.exceptions
        order: deque[_Sent] = deque()
        running: dict[Any, _Sent] = {}
        try:
            while True:
                room = min(self.slots - len(running), self.slots + ahead - len(order))
                for task in itertools.islice(left, max(0, room)):
                    order.append(_Sent(task))
                    running[self._submit(task)] = order[-1]
                if not order:
                    return
                if (done := order[0].done) is not None:
                    yield order.popleft().task, self.value_of(done)
                    continue
                refs = list(running)
                if self._ray.wait(refs, num_returns=1, timeout=1.0)[0]:
                    for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                        self._take(running, ref)
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            raise BitextmineError(
                "the object store of the Ray cluster is full; start Ray with a larger one (ray start "
                "--object-store-memory BYTES), or use smaller shards (rows=N in --executor)"
            ) from None

    def share(self, folders: Iterable[Path]) -> None:
        """Have workers check that they see these folders and can write there."""
        self._folders.update(str(folder.absolute()) for folder in folders)

    def _count_room(self) -> int:
        room, gpus = 0, self._options.gpus
        for node in self._ray.nodes():
            has = node["Resources"] if node["Alive"] else {}
            here = int(has.get("CPU", 0)) // self._options.cpus
            room += min(here, int(has.get("GPU", 0)) // gpus) if gpus else here
        return room

    def _submit(self, task: Task) -> Any:
        remote = self._run.options(name="bitextmine", scheduling_strategy="SPREAD").remote
        packed = pickle.dumps((task.function, task.args), protocol=5)
        return remote(__version__, self._options.cpus, sorted(self._folders), packed)

    def _take(self, running: dict[Any, _Sent], ref: Any) -> None:
        errors, sent = self._ray.exceptions, running.pop(ref)
        try:
            answer = self._ray.get(ref)
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            raise
        except errors.RayTaskError as e:
            raise e.as_instanceof_cause() from None
        except errors.RayError as e:
            self._lose(sent, _first_line(e))
            running[self._submit(sent.task)] = sent
        else:
            if isinstance(answer, str):
                raise BitextmineError(answer)
            sent.done = answer

    def _lose(self, sent: _Sent, reason: str) -> None:
        sent.lost += 1
        self.lost += 1
        if sent.lost >= _TRIES:
            raise BitextmineError(
                f"{sent.task.what}: tried {sent.lost} times, and each time the worker was lost ({reason}); if it ran "
                "out of memory, smaller shards (rows=N in --executor) or fewer workers on a node (cpus=N) need less"
            )
        log.warning("%s: the worker is lost (%s); trying again", sent.task.what, reason)


def _remote_function() -> Callable[..., Any]:
    """Return the function that runs on nodes; Ray sends local functions by value, so it imports nothing up here."""
    kept: dict[str, Any] = {}

    def run(version: str, cpus: int, folders: list[str], packed: bytes) -> Any:
        """Return the `Done` of a task, packed, of a driver of this version, or what keeps the node from doing any.

        `folders` have to be there.
        """
        import os
        import pickle
        import socket
        import sys
        from pathlib import Path

        import ray

        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(cpus)  # before NumPy and torch read it
        context = ray.get_runtime_context()
        where = f"the node {socket.gethostname()} of the Ray cluster"
        try:
            from bitextmine.version import __version__ as here
        except Exception as e:  # whatever keeps it from being imported
            here = f"none that {sys.executable} can import ({type(e).__name__}: {e})"
        if here != version:
            return (
                f"{where} has bitextmine {here}, and this is {version}; install the same version on all nodes"
            )
        for folder in folders:
            if not Path(folder).is_dir():
                return (
                    f"{where} does not see this machine's folder {folder}; put the corpora on storage that all nodes "
                    "share, under the same path, or the vectors into a folder there with --cache"
                )
            if not os.access(folder, os.W_OK):
                return f"{where} cannot write into {folder}; all nodes write their results there"
        from bitextmine.executor import run_task

        if "workers" not in kept:
            node = next(each for each in ray.nodes() if each["NodeID"] == context.get_node_id())
            kept["workers"] = max(1, int(node["Resources"].get("CPU", 1) // cpus))
        done = run_task(kept, *pickle.loads(packed))
        done.worker = context.get_worker_id()
        return done

    return run


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray's threads off standard output, where they report lost nodes: it may carry data."""
    out = sys.stdout

    class Ours:
        def write(self, text: str) -> int:
            if threading.current_thread().name.startswith("ray_"):
                log.debug("Ray: %s", text)
                return len(text)
            return out.write(text)

        def __getattr__(self, name: str) -> Any:
            return getattr(out, name)

    sys.stdout = Ours()
    try:
        yield
    finally:
        sys.stdout = out


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a warning of a future change
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingPackage("--executor ray needs Ray, which is not installed", "ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    shown = f"--executor ray://{address}"
    if address == "auto" and (named := os.environ.get("RAY_ADDRESS")):
        address, shown = named, f"--executor ray (RAY_ADDRESS={named})"
        try:
            check_address(address)
        except UsageError as e:
            raise BitextmineError(f"{shown}: {e}") from None
    options: dict[str, Any] = {
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": logging.ERROR,
    }
    logging.getLogger("ray").setLevel(logging.ERROR)
    if address != "auto":
        _check_reachable(address, shown)
    try:
        ray.init(address=address, **options)
    except ConnectionError as e:
        raise BitextmineError(
            f"{shown}: no Ray cluster runs here ({_first_line(e)}); start one with 'ray start --head', "
            "or name the head of one as ray://HOST:PORT"
        ) from None
    except Exception as e:  # Ray has no class for most
        raise BitextmineError(
            f"{shown}: cannot connect: {' '.join(str(e).split())} (all need the same version of Ray and Python; a "
            "cluster with a token needs RAY_AUTH_MODE=token, and the token in RAY_AUTH_TOKEN or ~/.ray/auth_token)"
        ) from None


def _check_reachable(address: str, shown: str) -> None:
    """Raise BitextmineError at once; Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as e:
        raise BitextmineError(
            f"{shown}: no such cluster: {e.strerror or e}; is 'ray start --head' running there, and the port its own "
            "(6379 as a rule)?"
        ) from None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
