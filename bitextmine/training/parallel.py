"""Training by several processes, one per GPU, as torchrun starts them.

Every process draws the whole step's batch and encodes its share of the pairs. A loss over sentences is computed by each
process for its own share; a loss over the batch is computed by all of them, from the gathered vectors, and divided by
their number. The sums of losses and gradients are then those of a single process, except for the order of additions and
for dropout, which differs between processes.
"""

import contextlib
import dataclasses
import datetime
import importlib
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from bitextmine.device import pick_device
from bitextmine.errors import UsageError

# The others wait while the first process tokenises the corpora.
LONGEST_WAIT = datetime.timedelta(days=2)


@dataclasses.dataclass(frozen=True)
class World:
    """The processes of a run: this one's rank, their number, and this one's device."""

    rank: int = 0
    size: int = 1
    device: torch.device = dataclasses.field(default_factory=lambda: torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Return True in the process that writes the files and the messages."""
        return self.rank == 0

    def share(self, n: int, rank: int | None = None) -> slice:
        """Return the rows, of n, of a process (None: this one): contiguous, with sizes that differ by at most 1."""
        rank = self.rank if rank is None else rank
        return slice(n * rank // self.size, n * (rank + 1) // self.size)

    def gather(self, rows: Tensor, n: int) -> Tensor:
        """Return the rows of all processes in order, (n, d), with a gradient for this process's ``rows`` (m, d).

        Every process must compute the same loss from them, divided by ``size``.
        """
        if self.size == 1:
            return rows
        out: Tensor = _Gather.apply(rows, n, self)  # type: ignore[no-untyped-call]
        return out

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, with the same bits in each of them."""
        if self.size > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def tell(self, value: Any) -> Any:
        """Return the first process's value (anything that pickles) in every process; waits for all."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def wait(self) -> None:
        """Wait until every process is here."""
        self.tell(None)
        self.add_up([torch.zeros(())])


ALONE = World()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, n: int, world: World) -> Tensor:
        ctx.own, ctx.size = world.share(n), world.size
        most = -(-n // world.size)
        padded = rows.new_zeros(most, rows.shape[1])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(world.size)]
        dist.all_gather(parts, padded)
        shares = [world.share(n, rank) for rank in range(world.size)]
        return torch.cat([part[: s.stop - s.start] for part, s in zip(parts, shares, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        # The sum over the processes, whose gradients are the same.
        return grads[0][ctx.own] * ctx.size, None, None


@contextlib.contextmanager
def join_world(device: str = "auto") -> Iterator[World]:
    """Yield the processes that torchrun started together with this one; without torchrun this one alone.

    With several GPUs, the devices "auto" and "cuda" give each process on a machine its own; UsageError for a single
    one.
    """
    size = int(os.environ.get("WORLD_SIZE", "1")) if dist.is_torchelastic_launched() else 1
    if size == 1:
        yield World(device=pick_device(device))
        return
    own = pick_device(device)
    neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if own.type == "cuda" and own.index is not None and neighbours > 1:
        raise UsageError(
            f"device {device!r}: torchrun starts {neighbours} processes on this machine, and each needs a GPU of its "
            "own; use cuda or auto"
        )
    if str(own) == "cuda":
        own = pick_device(f"cuda:{os.environ['LOCAL_RANK']}")
        torch.cuda.set_device(own)
    # Optimizers import it. Imported later, it would keep the group in its default arguments: gloo's threads would
    # outlive the group and could abort the process at its end.
    importlib.import_module("torch.distributed.nn.functional")

    # gloo for tensors in main memory: scores, losses, waiting.
    backend = "cpu:gloo,cuda:nccl" if own.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=LONGEST_WAIT)
    world = World(dist.get_rank(), dist.get_world_size(), own)
    logger = logging.getLogger("bitextmine")
    level = logger.level
    if not world.first:
        logger.setLevel(logging.ERROR)
    try:
        yield world
    finally:
        logger.setLevel(level)
    # Not after an error: the others may be in the middle of a sum, and torchrun ends them with this process.
    dist.destroy_process_group()
