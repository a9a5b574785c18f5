"""Which Ray cluster to use, and what each worker gets of it. Nothing of Ray is imported here."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from bitextmine.arguments import a_path, whole_number
from bitextmine.errors import UsageError
from bitextmine.files.streams import check_writable
from bitextmine.files.urls import is_remote

__all__ = ["RayOptions", "ray_options"]

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(\d{1,5})")


@dataclass(frozen=True)
class RayOptions:
    """address: "auto" (the cluster that this node belongs to, or $RAY_ADDRESS), "local" (one started on this machine
    for the command), or HOST:PORT of a cluster's head. cpus, gpus: of each worker. rows: most lines in a shard, None:
    by the size of the corpora (`shards.shard_rows`). report: a file of this machine that gets a line of JSON for each
    stage (`stages.Stage`). None of it changes a byte of the result.

    Raises UsageError for a value of the wrong type or out of range.
    """

    address: str = "auto"
    cpus: int = 1
    gpus: int = 0
    rows: int | None = None
    report: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_address(self.address)
        object.__setattr__(self, "cpus", whole_number("ray_cpus", self.cpus))
        object.__setattr__(self, "gpus", whole_number("ray_gpus", self.gpus, 0))
        if self.rows is not None:
            object.__setattr__(self, "rows", whole_number("ray_rows", self.rows))
        if self.report is not None:
            a_path("ray_report", self.report)
            if is_remote(self.report):
                raise UsageError(
                    f"ray_report {self.report}: lines are added to a file of this machine; no URL"
                )
            check_writable(self.report)

    def device(self, asked: str) -> str:
        """The device of a worker, where --device says auto, cpu, cuda or cuda:N. Raises UsageError where that and the
        GPUs of a worker do not go together."""
        if asked.startswith("cuda") and not self.gpus:
            raise UsageError(
                f"--device {asked} with --ray: give each worker a GPU with --ray-gpus 1, and leave out --device"
            )
        if asked.startswith("cuda:"):
            raise UsageError(
                f"--device {asked} with --ray: Ray says which GPU a worker gets; leave out --device"
            )
        if asked == "cpu" and self.gpus:
            raise UsageError("--device cpu with --ray-gpus: leave out one of the two")
        return asked if self.gpus else "cpu"


def check_address(address: str) -> None:
    """Raises UsageError for what cannot be the address of a cluster."""
    if isinstance(address, str) and address.startswith("ray://"):
        raise UsageError(
            f"ray {address!r}: that is Ray Client's address; run the command on a node of the cluster with --ray auto, "
            "or name the head as HOST:PORT (6379 is its usual port)"
        )
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    port_is_one = found is not None and 0 < int(found[2]) < 1 << 16
    if address not in ("auto", "local") and not port_is_one:
        raise UsageError(f"ray: expected auto, local or HOST:PORT of a cluster's head, found {address!r}")


def ray_options(
    ray: str | None,
    ray_cpus: int = 1,
    ray_gpus: int = 0,
    ray_rows: int | None = None,
    ray_report: str | os.PathLike[str] | None = None,
) -> RayOptions | None:
    """The options as commands have them; None without --ray. Raises UsageError for the others without it."""
    if ray is not None:
        return RayOptions(ray, ray_cpus, ray_gpus, ray_rows, ray_report)
    given = {
        "ray_cpus": ray_cpus != 1,
        "ray_gpus": ray_gpus != 0,
        "ray_rows": ray_rows is not None,
        "ray_report": ray_report is not None,
    }
    for name, was in given.items():
        if was:
            raise UsageError(f"{name} (--{name.replace('_', '-')}) is for --ray, which is not given")
    return None
