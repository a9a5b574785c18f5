"""Shards of rows, their results in files; exact search over tiles, pairs of shards, by workers.

Bounds of shards depend on the corpora alone, so that any cluster finds the same ones.

The similarity matrix is cut into tiles (rows of x by rows of y). A worker leaves the neighbours within a tile in a
file, and the driver merges the files row by row of tiles. As similarities are exact and ties go to the lower number,
the result is that of `search.exact.search_both`, byte for byte, and its checkpoint is the same file.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, counted, silent
from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import BitextmineError, explained
from bitextmine.executor import Kept, Task, Workers
from bitextmine.files.atomic import replacing
from bitextmine.files.journal import journal_folder, remove_folder
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.exact import fold, search_both
from bitextmine.search.neighbours import Neighbours, TopK
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import VectorRows
from bitextmine.system import budget

log = logging.getLogger(__name__)

Tile = tuple[int, int, int, int]  # rows of x, from and to, and of y


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


def result_of(workers: Workers, task: Task, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays that a finished task left in a file; one that is missing or damaged is made again."""
    try:
        return _read_arrays(path)
    except BitextmineError:
        path.unlink(missing_ok=True)
        workers.run(task)
        return _read_arrays(path)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as e:  # zipfile, zlib and NumPy have one each
        raise BitextmineError(
            f"{path}: not what a worker wrote: {e}; nodes must share the folder, under the same path"
        ) from None


def write_arrays(path: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to a file, complete or not at all."""
    with explained(f"{path}: cannot write"), replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


# --- tiles ---


@dataclass(frozen=True)
class FileRows:
    """Rows of an embedding's file: their numbers `lines` (n,) int64 (None: all rows).

    `vectors` are the same rows (n, d), for the driver; `digest` is that of all rows, from the manifest.
    """

    npy: Path
    digest: str
    lines: NDArray[np.int64] | None
    vectors: NDArray[Any]

    def shard(self, rows: VectorRows, start: int, stop: int) -> FileRows:
        """Return some of the distinct rows for a worker, without their vectors."""
        lines = np.arange(start, stop) if rows.index is None else rows.index[start:stop]
        lines = lines if self.lines is None else self.lines[lines]
        return FileRows(self.npy.absolute(), self.digest, lines, self.vectors[:0])


def search_tiles(
    workers: Workers,
    x: FileRows,
    y: FileRows,
    k: int,
    options: SearchOptions,
    folder: Path,
    *,
    progress: Progress = silent,
    checkpoint: Checkpoint | None = None,
) -> Neighbours:
    """Return the k nearest neighbours in both directions, as `search_both` does.

    Both sides are in files that the workers see. `options` are those of each worker; the driver holds the answer, 12
    bytes per row and neighbour. `checkpoint` keeps what is merged, `folder` the tiles until then, shared with the
    workers. `progress` is called with the number of rows of x finished since the last call.
    """
    folder = folder.absolute()  # workers have another working folder
    workers.share([folder.parent, x.npy.parent, y.npy.parent])
    folded = fold(x.vectors, y.vectors, k, options.names)
    n, m = len(folded.x), len(folded.y)
    fwd, bwd = TopK.empty(n, k), TopK.empty(m, k)
    key = f"{folded.digest} k={k} both=True"
    with journal_folder(folder, "tiles", {"key": key}):
        done = 0 if checkpoint is None else checkpoint.resume(key, fwd, bwd)
        progress(done)
        size = workers.shard_rows or shard_rows(max(n, m))
        tiles = [(*rows, *cols) for rows in spans(done, n, size) for cols in spans(0, m, size)]
        paths = {tile: folder / "{}-{}.{}-{}.npz".format(*tile) for tile in tiles}
        # Known beforehand: a tile may also be there because its worker died when it was written, and was not counted.
        finished = sum(path.exists() for path in paths.values())
        if finished or done:
            lines = f"{done:,} of {n:,} lines"
            log.info(
                "search: %s and %d of the other %s are done", lines, finished, counted(len(tiles), "tile")
            )

        def task(tile: Tile) -> Task:
            i0, i1, j0, j1 = tile
            shards = x.shard(folded.x, i0, i1), y.shard(folded.y, j0, j1)
            what = f"comparing rows {i0 + 1} to {i1} with rows {j0 + 1} to {j1}"
            return Task(f"{__name__}:compare", (*shards, k, options, str(paths[tile])), what, key=tile)

        merged: list[Path] = []
        with workers.stage(f"search: {counted(len(tiles), 'tile')}, {finished} of them found finished"):
            for made, _ in workers.map(map(task, tiles), ahead=workers.slots):
                i0, i1, j0, j1 = made.key
                part = result_of(workers, made, paths[made.key])
                fwd.add(slice(i0, i1), part["fwd_sim"], np.where(part["fwd_id"] < 0, -1, part["fwd_id"] + j0))
                bwd.add(slice(j0, j1), part["bwd_sim"], np.where(part["bwd_id"] < 0, -1, part["bwd_id"] + i0))
                merged.append(paths[made.key])
                progress((i1 - i0) * j1 // m - (i1 - i0) * j0 // m)
                if j1 == m and (checkpoint is None or checkpoint.save(i1, last=i1 == n)):
                    while merged:
                        merged.pop().unlink(missing_ok=True)
    remove_folder(folder, "tiles")
    return folded.neighbours(fwd, bwd)


def compare(kept: Kept, x: FileRows, y: FileRows, k: int, search: SearchOptions, path: str) -> None:
    """Write the k best of each row of two shards to a file, on a worker; a finished file stays as it is."""
    if Path(path).exists():
        return
    from bitextmine.device import device_name

    memory = search.memory or budget() // kept.get("workers", 1)
    here = replace(search, device=device_name(search.device), memory=memory)
    write_arrays(path, vars(search_both(_vectors(x), _vectors(y), k, here)))


def _vectors(shard: FileRows) -> NDArray[np.float16]:
    """Return a shard's vectors on a worker; BitextmineError if they are not those of the driver's file."""
    file, lines = VectorFile(shard.npy), shard.lines
    assert lines is not None
    if file.manifest.vectors_blake2b != shard.digest or lines.max(initial=-1) >= len(file):
        raise BitextmineError(
            f"{shard.npy}: holds other vectors on the node {socket.gethostname()} than on the machine that runs the "
            "command, or they changed meanwhile; nodes must share the folder, under the same path"
        )
    return file[lines]
