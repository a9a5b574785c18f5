"""How a command computes: device, memory, threads, batches, undecodable text, progress.

One `Run` is made at the surface (a command or a function of the API) and passed down. Nothing in it changes a result,
only its cost, except `errors`, which says what happens to invalid UTF-8.
"""

from dataclasses import dataclass
from typing import Any, TypedDict

from bitextmine.arguments import memory_bytes, one_of, take_options, whole_number
from bitextmine.console import progress
from bitextmine.device import device_name
from bitextmine.errors import UsageError
from bitextmine.executor import LOCAL, Executor
from bitextmine.system import budget, processors


@dataclass(frozen=True)
class Run:
    """The resources of a command; pass it once, from the command down.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        memory: bytes the work may take, as a number or as text such as ``2G`` (default: half of what is free).
        threads: default: one per available processor, or OMP_NUM_THREADS.
        batch_tokens: subword pieces encoded together (default: what suits the device).
        errors: invalid UTF-8 in the input: ``strict`` raises, ``replace`` puts U+FFFD.
        show_progress: show progress bars (None: only if standard error is a terminal).
        executor: computes what a cluster can compute; memory, device and threads are then each worker's.

    Raises:
        UsageError: a value has the wrong type or is out of range. A missing device is reported on first use.
    """

    device: str = "auto"
    memory: int | None = None
    threads: int | None = None
    batch_tokens: int | None = None
    errors: str = "strict"
    show_progress: bool | None = None
    executor: Executor = LOCAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", memory_bytes(self.memory))
        for name in ("threads", "batch_tokens"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(name, value))
        one_of("errors", self.errors, ("strict", "replace"))
        if not isinstance(self.device, str):
            raise UsageError(f"device: expected auto, cpu, cuda or cuda:N, found {self.device!r}")
        self.executor.device(self.device)

    @property
    def device_here(self) -> str:
        """Return the device of this process, which leaves GPUs to the workers of a cluster."""
        return "cpu" if self.executor.distributed else self.device

    @property
    def device_name(self) -> str:
        """Return the device as torch calls it; raises BitextmineError if it is missing."""
        return device_name(self.device)

    @property
    def memory_budget(self) -> int:
        """Return the bytes the work may take."""
        return budget(self.memory)

    @property
    def thread_count(self) -> int:
        """Return the number of threads to compute with."""
        return processors() if self.threads is None else self.threads

    def progress(self, total: int | None, title: str, unit: str = "lines") -> Any:
        """Return a progress bar (tqdm) on standard error; use it in a ``with`` statement and call ``update(n)``."""
        return progress(total, title, unit, show=self.show_progress)


class RunKeywords(TypedDict, total=False):
    """Keywords of functions that make a `Run`, or take one as ``run``."""

    device: str
    memory: int | str | None
    threads: int | None
    batch_tokens: int | None
    errors: str
    run: Run


def take_run(options: dict[str, Any]) -> Run:
    """Return the run that `RunKeywords` ask for, and remove them from ``options``."""
    given = {name: options.pop(name) for name in RunKeywords.__annotations__ if name in options}
    return take_options(Run, given, "run")
