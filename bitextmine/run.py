"""How a command computes: device, memory, threads, batches, undecodable text, progress, executor.

One `Run` is made at the surface (a command or a function of the API) and passed down.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from bitextmine.arguments import matching
from bitextmine.console import progress
from bitextmine.declarations import Kind, Opt, Options, Size
from bitextmine.device import device_name
from bitextmine.executor import LOCAL, Executor, find_executor
from bitextmine.system import budget, processors

LONGEST_LINE = 10 << 20  # bytes
Device = Annotated[
    str, Kind("auto|cpu|cuda|cuda:N", matching(r"auto|cpu|cuda(:\d{1,4})?", "auto, cpu, cuda or cuda:N"))
]


@dataclass(frozen=True)
class Run(Options):
    """The resources of a command; pass it once, from the command down.

    `device`, `threads`, `show_progress`, `executor` and the memory of a search change the cost of a result alone.
    Three fields can change a result: `errors`; `batch_tokens`, on which the last bits of the vectors of an encoder with
    layers depend; and `memory` in `filter`, which forgets pairs when the table of seen ones is full (a note says so).

    Sizes are numbers of bytes or text such as ``2G``. A device that is missing is reported on first use. With an
    executor, memory, device and threads are each worker's. Progress bars show if standard error is a terminal, unless
    `show_progress` says otherwise.
    """

    device: Annotated[Device, Opt("--device", "Device to compute on.")] = "auto"
    memory: Annotated[
        Size | None, Opt("--memory", "Memory limit, e.g. 500M or 2G.", default="half of the free memory")
    ] = None
    threads: Annotated[int | None, Opt("--jobs", "Threads to compute with.", ge=1, default="one per CPU")] = (
        None
    )
    executor: Annotated[
        Executor,
        Kind("local|ray|ray://HOST:PORT", find_executor, "Executor | str"),
        Opt(
            "--executor",
            "Compute in this process (local), on the Ray cluster of this machine (ray) or of a head node. "
            "Worker settings follow: 'ray://HOST:PORT?cpus=2&gpus=1'; "
            "rows=N: lines per shard.",
            default="local",
        ),
    ] = LOCAL
    batch_tokens: Annotated[
        int | None,
        Opt(
            "--batch-tokens",
            "Subword pieces per batch; fewer need less memory.",
            ge=1,
            default="fits the device",
        ),
    ] = None
    errors: Annotated[
        Literal["strict", "replace"],
        Opt("--errors", "Invalid UTF-8: stop and report the line, or read it as U+FFFD."),
    ] = "strict"
    max_line: Annotated[
        Size, Opt("--max-line", "Longest line to read; a longer one is an error.", default="10M")
    ] = LONGEST_LINE
    show_progress: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
