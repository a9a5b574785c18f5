"""Shards of rows, their results in files; exact search over tiles, pairs of shards, by workers.

Bounds of shards depend on the corpora alone, so that any cluster finds the same ones.

The similarity matrix is cut into tiles (rows of x by rows of y), taken row by row. A tile's task gets, for each of its
rows, the similarity that a neighbour must reach by now, and leaves in a file what reaches it: what can still be among
the k best. The driver merges the files in the order of the tiles. As similarities are exact and ties go to the lower
number, the result is that of `search.exact.search_both`, byte for byte, and its checkpoint is the same file.
"""

from __future__ import annotations

import hashlib
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
from bitextmine.search.exact import fold, open_engine
from bitextmine.search.neighbours import Neighbours, TopK
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import VectorRows
from bitextmine.system import available, budget, size

log = logging.getLogger(__name__)

Tile = tuple[int, int, int, int]  # rows of x, from and to, and of y
Limits = tuple[NDArray[np.float32], NDArray[np.float32]]
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


class _Shards:
    """The distinct rows of one side, on the driver, and their shards for the workers."""

    def __init__(self, side: FileRows, rows: VectorRows) -> None:
        self.rows = rows
        self._npy = str(side.npy.absolute())
        self._lines = side.lines
        if rows.index is not None:
            self._lines = rows.index if side.lines is None else side.lines[rows.index]
        self._shards: dict[tuple[int, int], Shard] = {}

    def shard(self, start: int, stop: int) -> Shard:
        """Return the description of rows start..stop for a worker."""
        if (start, stop) not in self._shards:
            lines = None if self._lines is None else self._lines[start:stop]
            digest = _digest(self.rows, start, stop)
            self._shards[start, stop] = Shard(self._npy, start, stop - start, lines, digest)
        return self._shards[start, stop]


def _rows_of(kept: Kept, shard: Shard, side: int) -> VectorRows:
    """Return a shard's rows on a worker, checked to be the driver's; those of the last task are kept per `side`."""
    span = (shard.npy, shard.first, shard.count, shard.digest)
    if kept.get(f"span {side}") != span:
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
        if len(rows) != shard.count or (span not in checked and _digest(rows, 0, len(rows)) != shard.digest):
            raise BitextmineError(
                f"{here}: {shard.npy} has other vectors there than on the machine that runs the command, or they "
                "changed meanwhile; nodes must share the folder, under the same path"
            )
        checked.add(span)
        kept[f"span {side}"], kept[f"rows {side}"] = span, rows
    there: VectorRows = kept[f"rows {side}"]
    return there


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


def _digest(rows: VectorRows, start: int, stop: int) -> str:
    digest = hashlib.blake2b(f"{rows.dtype.str} {rows.dim} {stop - start}".encode(), digest_size=16)
    for at in range(start, stop, _BLOCK):
        end = min(at + _BLOCK, stop)
        digest.update(rows.block(at, end).data.cast("B"))
    return digest.hexdigest()


# --- tiles ---


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
    answer = 12 * k * (n + m)
    if answer > available():
        raise BitextmineError(
            f"the {k} nearest of {n:,} and {m:,} vectors take {size(answer)} of memory on this machine, where "
            f"{size(available())} are free; run the command on a larger one"
        )
    rows = workers.shard_rows or shard_rows(max(n, m))
    workers.check_fits(rows * (4 + 8) * 2, f"a tile of {rows:,} rows")
    fwd, bwd = TopK.empty(n, k), TopK.empty(m, k)
    if n and m:
        key = f"{folded.digest} k={k} both=True"
        with journal_folder(folder, "tiles", {"key": key}):
            sides = _Shards(x, folded.x), _Shards(y, folded.y)
            _Grid(workers, *sides, fwd, bwd, rows, folder, progress, checkpoint).search(key, options)
        remove_folder(folder, "tiles")
    return folded.neighbours(fwd, bwd)


@dataclass
class _Grid:
    """The tiles of a search, `size` rows by `size` rows, and the k best so far of x's rows and of y's.

    Tiles are merged in a fixed order, row by row of tiles, so that limits that a tile is told are those of tiles before
    it. The result of a tile lies in a file until it is merged and saved. `done` rows of x are compared with all of y.
    """

    workers: Workers
    x: _Shards
    y: _Shards
    fwd: TopK
    bwd: TopK
    size: int
    folder: Path
    progress: Progress
    checkpoint: Checkpoint | None
    done: int = 0

    def tiles(self) -> Iterator[Tile]:
        """Yield the bounds of every tile that is left, in order: rows of x, rows of y."""
        for rows in spans(self.done, len(self.x.rows), self.size):
            for cols in spans(0, len(self.y.rows), self.size):
                yield *rows, *cols

    def path(self, tile: Tile) -> Path:
        """Return the file for a tile's result."""
        return self.folder / "{}-{}.{}-{}.npz".format(*tile)

    def tasks(self, options: SearchOptions) -> Iterator[Task]:
        """Yield the task of each tile, with the similarities that its neighbours must reach by now."""
        for tile in self.tiles():
            i0, i1, j0, j1 = tile
            shards = self.x.shard(i0, i1), self.y.shard(j0, j1)
            limits = np.array(self.fwd.limit(i0, i1)), np.array(self.bwd.limit(j0, j1))
            args = (shards, self.fwd.k, options, limits, str(self.path(tile)))
            what = f"comparing rows {i0 + 1} to {i1} with rows {j0 + 1} to {j1}"
            yield Task("bitextmine.distributed.tiles:compare", args, what, key=tile)

    def search(self, key: str, options: SearchOptions) -> None:
        """Resume from the checkpoint, whose key is given, and merge what the tiles find."""
        checkpoint, n = self.checkpoint, len(self.x.rows)
        if checkpoint is not None:
            self.done = checkpoint.resume(key, self.fwd, self.bwd)
        self.progress(self.done)
        if self.done == n:
            return
        left = list(self.tiles())
        tiles = counted(len(left), "tile")
        # Known beforehand: a tile may also be there because its worker died when it was written, and was not counted.
        finished = sum(self.path(tile).exists() for tile in left)
        if finished or self.done:
            done = f"{self.done:,} of {n:,} lines"
            log.info("search: %s and %d of the other %s are done, going on", done, finished, tiles)
        width, kept = len(self.y.rows), list[Path]()
        with self.workers.stage(f"search: {tiles}, {finished} of them found finished"):
            for task, _ in self.workers.map(self.tasks(options), ahead=self.workers.slots):
                i0, i1, j0, j1 = task.key
                path = self.path(task.key)
                arrays = result_of(self.workers, task, path)
                _merge(self.fwd, i0, arrays, "fwd", j0)
                _merge(self.bwd, j0, arrays, "bwd", i0)
                kept.append(path)
                self.progress((i1 - i0) * j1 // width - (i1 - i0) * j0 // width)
                if j1 == width and checkpoint is not None and checkpoint.save(i1, last=i1 == n):
                    for each in kept:
                        each.unlink(missing_ok=True)
                    kept.clear()


def _merge(best: TopK, start: int, arrays: dict[str, NDArray[Any]], way: str, base: int) -> None:
    """Merge a tile's result for one side, whose rows begin at `start`; `base` is its first row on the other side."""
    rows, sim = start + arrays[f"{way}_row"].astype(np.int64), arrays[f"{way}_sim"]
    local = arrays[f"{way}_id"].astype(np.int64)
    ids = np.where(local < 0, -1, local + base)
    if (best.id[rows, 0] < 0).all():
        best.sim[rows], best.id[rows] = sim, ids
    else:
        best.add(rows, sim, ids)


# --- on a worker ---


def compare(
    kept: Kept, shards: tuple[Shard, Shard], k: int, search: SearchOptions, limits: Limits, path: str
) -> None:
    """Write the k best of each row of two shards that reach the row's limit; a finished file stays as it is."""
    if Path(path).exists():
        return
    from bitextmine.device import device_name

    x, y = (_rows_of(kept, shard, number) for number, shard in enumerate(shards))
    device = device_name(search.device)
    memory = search.memory or budget() // kept.get("workers", 1)
    fwd, bwd = TopK.empty(len(x), k), TopK.empty(len(y), k)
    if device == "cpu":  # a GPU takes no numbers of rows that it has not got
        _seed(fwd, limits[0], len(y))
        _seed(bwd, limits[1], len(x))
    engine, _ = open_engine(x, y, k, replace(search, device=device), memory)
    for start in range(0, len(x), engine.block_rows):
        engine.block(start, min(start + engine.block_rows, len(x)), fwd, bwd)
    _write_best(path, fwd, bwd, limits)


def _seed(best: TopK, limit: NDArray[np.float32], opposite: int) -> None:
    """Make a search drop everything below the limits.

    Each row gets k neighbours at its limit, with numbers behind all others, so that an equal similarity goes in front.
    """
    known = np.isfinite(limit)
    best.sim[known] = limit[known, None]
    best.id[known] = opposite + np.arange(best.k)


def _write_best(path: str, fwd: TopK, bwd: TopK, limits: Limits) -> None:
    """Write the neighbours that reach the limits, both ways, for the rows that have any: a tile's result.

    Arrays for each way: row (r,) uint32, id (r, k) int32, sim (r, k) float32, best first; missing ones (-1, -inf) come
    last.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for way, best, opposite, limit in (
        ("fwd", fwd, len(bwd.id), limits[0]),
        ("bwd", bwd, len(fwd.id), limits[1]),
    ):
        there = (best.id >= 0) & (best.id < opposite) & (best.sim >= limit[:, None])
        rows = np.flatnonzero(there.any(axis=1))
        there, sim, ids = there[rows], best.sim[rows], best.id[rows]
        if not there.all():
            order = np.argsort(~there, axis=1, kind="stable")
            sim = np.take_along_axis(np.where(there, sim, np.float32(-np.inf)), order, axis=1)
            ids = np.take_along_axis(np.where(there, ids, -1), order, axis=1)
        arrays |= {f"{way}_row": rows.astype(np.uint32), f"{way}_id": ids.astype(np.int32), f"{way}_sim": sim}
    write_arrays(path, arrays)
