"""Shards of rows: what the driver tells a worker of them, and the worker's own view of the same rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.npy import open_vectors
from bitextmine.errors import BitextmineError
from bitextmine.executor import Kept
from bitextmine.search.rows import VectorRows

__all__ = ["FileRows", "Shard", "Side", "shard_rows_of"]

_BLOCK = 1 << 13


@dataclass(frozen=True)
class FileRows:
    """Rows of an embedding's file: `lines` (n,) int64; None: all of them. vectors: the same rows, (n, d),
    for the driver.
    """

    npy: Path
    lines: NDArray[np.int64] | None
    vectors: NDArray[Any]


@dataclass(frozen=True)
class Shard:
    """`count` rows of a file, from row `first` on or those in `lines`. digest: of their bytes."""

    npy: str
    first: int
    count: int
    lines: NDArray[np.int64] | None
    digest: str


class Side:
    """All rows of one side that are compared, on the driver. index: which of `side`, in which order; None: all."""

    def __init__(self, side: FileRows, index: NDArray[np.int64] | None, dtype: np.dtype[Any]) -> None:
        self.rows = VectorRows(side.vectors, dtype, index)
        self._npy = str(side.npy.absolute())
        self._lines = side.lines
        if index is not None:
            self._lines = index if side.lines is None else side.lines[index]
        self._shards: dict[tuple[int, int], Shard] = {}

    def shard(self, start: int, stop: int) -> Shard:
        """What a worker is told of rows start..stop."""
        found = self._shards.get((start, stop))
        if found is None:
            lines = None if self._lines is None else self._lines[start:stop]
            digest = _digest(self.rows, start, stop)
            found = self._shards[start, stop] = Shard(self._npy, start, stop - start, lines, digest)
        return found

    def forget(self, start: int, stop: int) -> None:
        """Lets go of what was told of these."""
        self._shards.pop((start, stop), None)


# --- on a worker ---


def shard_rows_of(kept: Kept, shard: Shard, side: int) -> VectorRows:
    """The rows of a shard, checked: the file has the name that the driver said, and must have the same rows. Those of
    the last call are kept, of each `side`; of others that were checked is remembered that they were.
    """
    place = (shard.npy, shard.first, shard.count, shard.digest)
    if kept.get(f"place {side}") != place:
        try:
            vectors = open_vectors(shard.npy)
        except BitextmineError as e:
            raise BitextmineError(f"{_host()}: {e}") from None
        if shard.lines is None:
            rows = VectorRows(vectors[shard.first : shard.first + shard.count], vectors.dtype)
        elif shard.lines.max(initial=-1) < len(vectors):
            rows = VectorRows(vectors, vectors.dtype, shard.lines)
        else:
            rows = VectorRows(vectors[:0], vectors.dtype)
        checked = kept.setdefault("checked", set())
        if len(rows) != shard.count or (place not in checked and _digest(rows, 0, len(rows)) != shard.digest):
            raise BitextmineError(
                f"{_host()}: {shard.npy} has other vectors there than on the machine that runs the command, or they "
                "changed meanwhile; nodes must share the folder, under the same path"
            )
        checked.add(place)
        kept[f"place {side}"], kept[f"rows {side}"] = place, rows
    found: VectorRows = kept[f"rows {side}"]
    return found


def _digest(rows: VectorRows, start: int, stop: int) -> str:
    """Of the bytes of rows start..stop."""
    digest = hashlib.blake2b(f"{rows.dtype.str} {rows.dim} {stop - start}".encode(), digest_size=16)
    for at in range(start, stop, _BLOCK):
        end = min(at + _BLOCK, stop)
        digest.update(rows.block(at, end).data.cast("B"))
        rows.release(at, end)
    return digest.hexdigest()


def _host() -> str:
    import socket

    return f"a worker on {socket.gethostname()}"
