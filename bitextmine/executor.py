"""Where work is computed: in this process, or by the workers of a cluster.

An executor opens a set of workers. A stage cuts its work into tasks, and the workers return their results in order.
Another kind of cluster is one more class with the methods of `Executor`, and a subclass of `Workers`: in a module
`distributed.NAME`, as its `executor`, or in another package under the entry point NAME of the group
"bitextmine.executors". ``--executor NAME://ADDRESS?KEY=VALUE`` then calls ``executor(ADDRESS, KEY=VALUE)``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError

log = logging.getLogger(__name__)

# State that the functions of one module keep on a worker between tasks: an encoder, maps of files. "workers" is the
# number of workers that share the machine.
Kept = dict[str, Any]


@dataclass
class Task:
    """A function ``module:name`` of this package, called with the worker's `Kept` and picklable arguments.

    what: a description for messages, such as ``encoding lines 1 to 100``; key: an identifier of the caller's own.
    """

    function: str
    args: tuple[Any, ...]
    what: str
    key: Any = None


class Executor(Protocol):
    """A place where work is computed."""

    @property
    def distributed(self) -> bool:
        """Tell whether other processes compute, which read corpora from files."""

    def open(self) -> AbstractContextManager[Workers]:
        """Return the workers, for a ``with`` block; inside another such block, the same workers."""

    def device(self, asked: str) -> str:
        """Return the device of a worker for the device of a command; raise UsageError if it cannot have it."""


@dataclass
class Done:
    """The outcome of a task: its value or the message of its error, its seconds, and the worker that did it."""

    value: Any
    error: str | None
    seconds: float
    worker: str = "here"


class Workers:
    """The workers of an open executor; this process by itself, where a task runs when its result is asked for.

    A kind of executor overrides `map`, `slots`, and what it has to check.

    Args:
        shard_rows: the most rows in a task (None: as the size of the corpora suggests).
    """

    def __init__(self, shard_rows: int | None = None) -> None:
        self.shard_rows = shard_rows
        self.lost = 0  # workers, in this stage
        self._kept: Kept = {}
        self._work: list[tuple[str, float]] = []

    @property
    def slots(self) -> int:
        """Return the number of tasks that the workers have in hand, running and waiting."""
        return 1

    def map(self, tasks: Iterable[Task], ahead: int = 0) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result, in order; `ahead` more than `slots` may finish before the next is taken.

        Raises:
            BitextmineError: a task raised one, or its worker died again and again.
        """
        for task in tasks:
            yield task, self.value_of(run_task(self._kept, task.function, task.args))

    def run(self, task: Task) -> Any:
        """Return the result of one task, which goes before all others."""
        return next(iter(self.map([task])))[1]

    def value_of(self, done: Done) -> Any:
        """Count a finished task in the stage, and return its value or raise its error."""
        if done.error is not None:
            raise BitextmineError(done.error)
        self._work.append((done.worker, done.seconds))
        return done.value

    def share(self, folders: Iterable[Path]) -> None:
        """Raise BitextmineError unless every worker can write into the folders."""

    @contextlib.contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Log the work in the block."""
        self.lost, self._work, begin = 0, [], time.perf_counter()
        yield
        workers, seconds = {worker for worker, _ in self._work}, sum(seconds for _, seconds in self._work)
        lost = f", {counted(self.lost, 'worker')} lost" if self.lost else ""
        tasks = f"{counted(len(self._work), 'task')} by {counted(len(workers), 'worker')}{lost}"
        took = time.perf_counter() - begin
        log.info("%s: %s; %.1f s of work, %.1f s in all", title, tasks, seconds, took)


@dataclass(frozen=True)
class Local:
    """Computes in this process. Stages have a plain path for that; it runs the tasks of the others, too."""

    distributed: ClassVar[bool] = False

    @contextlib.contextmanager
    def open(self) -> Iterator[Workers]:
        """Return a worker: this process."""
        yield Workers()

    def device(self, asked: str) -> str:
        """Return the device of the command."""
        return asked


LOCAL = Local()


def find_executor(value: str | Executor) -> Executor:
    """Return an executor as it is, or the one of a text: local, NAME, NAME://ADDRESS or NAME://ADDRESS?KEY=VALUE&...

    Raises:
        UsageError: no executor has this name, or it refuses the address or a setting.
    """
    if not isinstance(value, str):
        if not hasattr(value, "distributed"):
            raise UsageError(f"expected an executor or its name, found {value!r}")
        return value
    if value == "local":
        return LOCAL
    name, _, rest = value.partition("://")
    address, _, query = rest.partition("?")
    make = _executor_class(name)
    settings: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        key, _, text = part.partition("=")
        if key not in (known := inspect.signature(make).parameters):
            others = ", ".join([*known][1:])  # the first is the address
            raise UsageError(f"executor {name!r} has no setting {key!r}; its settings are {others}")
        settings[key] = int(text) if text.isdecimal() and len(text) < 19 else text
    executor: Executor = make(address, **settings) if address else make(**settings)
    return executor


def _executor_class(name: str) -> Callable[..., Executor]:
    from importlib.metadata import entry_points

    if not re.fullmatch(r"[a-z]\w*", name):
        raise UsageError(f"expected local, ray, ray://HOST:PORT or another executor's name, found {name!r}")
    with contextlib.suppress(ModuleNotFoundError):
        made: Callable[..., Executor] | None
        made = getattr(importlib.import_module(f"bitextmine.distributed.{name}"), "executor", None)
        if made is not None:
            return made
    for entry in entry_points(group="bitextmine.executors", name=name):
        return entry.load()
    raise UsageError(f"no executor is called {name!r}: use local, ray or ray://HOST:PORT")


def run_task(kept: Kept, function: str, args: tuple[Any, ...]) -> Done:
    """Run ``module:name`` on a worker; state that another module has kept is dropped, as it takes memory."""
    begin = time.perf_counter()
    module, _, name = function.partition(":")
    if kept.get("module") != module:
        workers = kept.get("workers", 1)
        kept.clear()
        kept |= {"module": module, "workers": workers}
    value = error = None
    try:
        value = getattr(importlib.import_module(module), name)(kept, *args)
    except BitextmineError as e:
        error = str(e)
    except MemoryError as e:
        error = f"out of memory ({e})" if str(e) else "out of memory"
    return Done(value, error, time.perf_counter() - begin)
