"""Shards of rows: bounds, the driver's description, the worker's view of the same rows, and the files of results.

Bounds depend on the corpora alone, so that any cluster finds the same ones.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import BitextmineError
from bitextmine.executor import Kept, Task, Workers
from bitextmine.files.atomic import replacing
from bitextmine.search.rows import VectorRows

_BLOCK = 1 << 13


def shard_rows(rows: int, least: int = 1 << 16) -> int:
    """Return the size of a shard: a 64th of the rows, from `least` to 4 million, a multiple of 1,024."""
    wanted = min(max(-(-rows // 64), least), 1 << 22)
    return -(-wanted // 1024) * 1024


def spans(start: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of shards from `start` to `rows`, which end at multiples of `size`."""
    while start < rows:
        stop = min((start // size + 1) * size, rows)
        yield start, stop
        start = stop


@dataclass(frozen=True)
class FileRows:
    """Rows of an embedding's file: their numbers `lines` (n,) int64 (None: all rows).

    `vectors` are the same rows (n, d), for the driver.
    """

    npy: Path
    lines: NDArray[np.int64] | None
    vectors: NDArray[Any]


@dataclass(frozen=True)
class Shard:
    """Rows of a file for a worker: `count` from `first` on, or those in `lines`; `digest` is that of their bytes."""

    npy: str
    first: int
    count: int
    lines: NDArray[np.int64] | None
    digest: str


class Side:
    """All rows of one side that are compared, on the driver: distinct rows of a file."""

    def __init__(self, side: FileRows, rows: VectorRows) -> None:
        self.rows = rows
        self._npy = str(side.npy.absolute())
        self._lines = side.lines
        if rows.index is not None:
            self._lines = rows.index if side.lines is None else side.lines[rows.index]
        self._shards: dict[tuple[int, int], Shard] = {}

    def shard(self, start: int, stop: int) -> Shard:
        """Return the description of rows start..stop for a worker."""
        found = self._shards.get((start, stop))
        if found is None:
            lines = None if self._lines is None else self._lines[start:stop]
            digest = _digest(self.rows, start, stop)
            found = self._shards[start, stop] = Shard(self._npy, start, stop - start, lines, digest)
        return found


def shard_rows_of(kept: Kept, shard: Shard, side: int) -> VectorRows:
    """Return a shard's rows on a worker, checked to be the driver's; those of the last task are kept per `side`."""
    place = (shard.npy, shard.first, shard.count, shard.digest)
    if kept.get(f"place {side}") != place:
        here = f"a worker on {socket.gethostname()}"
        try:
            vectors: Any = VectorFile(shard.npy)
        except BitextmineError as e:
            raise BitextmineError(f"{here}: {e}") from None
        if shard.lines is None:
            rows = VectorRows(vectors[shard.first : shard.first + shard.count], vectors.dtype)
        elif shard.lines.max(initial=-1) < len(vectors):
            rows = VectorRows(vectors, vectors.dtype, shard.lines)
        else:
            rows = VectorRows(vectors[:0], vectors.dtype)
        checked = kept.setdefault("checked", set())
        if len(rows) != shard.count or (place not in checked and _digest(rows, 0, len(rows)) != shard.digest):
            raise BitextmineError(
                f"{here}: {shard.npy} has other vectors there than on the machine that runs the command, or they "
                "changed meanwhile; nodes must share the folder, under the same path"
            )
        checked.add(place)
        kept[f"place {side}"], kept[f"rows {side}"] = place, rows
    found: VectorRows = kept[f"rows {side}"]
    return found


def result_of(workers: Workers, task: Task, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays that a finished task left in a file; one that is missing or damaged is made again."""
    try:
        return read_arrays(path)
    except BitextmineError:
        path.unlink(missing_ok=True)
        workers.run(task)
        return read_arrays(path)


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return the arrays that a worker wrote; raise BitextmineError if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as e:  # zipfile, zlib and NumPy have one each
        raise BitextmineError(
            f"{path}: not what a worker wrote: {e}; nodes must share the folder, under the same path"
        ) from None


def write_arrays(path: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to a file, complete or not at all."""
    try:
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None


def _digest(rows: VectorRows, start: int, stop: int) -> str:
    digest = hashlib.blake2b(f"{rows.dtype.str} {rows.dim} {stop - start}".encode(), digest_size=16)
    for at in range(start, stop, _BLOCK):
        end = min(at + _BLOCK, stop)
        digest.update(rows.block(at, end).data.cast("B"))
    return digest.hexdigest()
