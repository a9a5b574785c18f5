"""The nodes of a cluster, and what a pool of workers asks of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bitextmine.distributed.options import RayOptions

__all__ = ["JOIN_SECONDS", "TELL_SECONDS", "Members", "Node", "first_line"]

# A node that the cluster lists may refuse work for so long: others learn of it later than the list does.
JOIN_SECONDS = 60.0
TELL_SECONDS = 30.0  # between words about what is waited for


@dataclass(frozen=True)
class Node:
    """A node of the cluster. workers: how many it has room for; store: bytes of its object store."""

    id: str
    address: str
    workers: int
    store: int


class Members(Protocol):
    """A cluster as a pool of workers sees it. ray: the module."""

    ray: Any
    options: RayOptions

    def nodes(self) -> Sequence[Node]:
        """The nodes that are alive and have room for a worker."""

    def newcomers(self) -> Sequence[Node]:
        """Those of them that the cluster lets work."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something; its name where it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
