"""Exact search over tiles: a shard of one side compared with a shard of the other, by workers.

The similarity matrix is cut into tiles (source shard x target shard), taken row by row. A tile's task gets, for each of
its rows, the similarity that a neighbour must reach by now, and leaves in a file what reaches it: what can still be
among the k best. The driver merges the files in the order of the tiles. As similarities are exact and ties go to the
lower number, what comes out is that of `search.exact.search_both`, byte for byte, and its checkpoint is the same file.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.distributed.models import check_store
from bitextmine.distributed.plan import shard_rows
from bitextmine.distributed.pool import Call
from bitextmine.distributed.shards import spans
from bitextmine.embeddings.npy import open_vectors
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing
from bitextmine.files.work import Work, WorkFolder
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.engines.select import open_engine
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import best_first
from bitextmine.search.rows import VectorRows, check_pair, scan_digest, unfold
from bitextmine.search.topk import TopK
from bitextmine.system import available, budget, size

if TYPE_CHECKING:
    from bitextmine.distributed.cluster import Cluster
    from bitextmine.distributed.worker import Kept

__all__ = ["FileRows", "search_tiles"]

log = logging.getLogger(__name__)

_HERE = "bitextmine.distributed.tiles"
_BLOCK = 1 << 13


@dataclass(frozen=True)
class FileRows:
    """Rows of an embedding's file: `lines` (n,) int64, ascending; None: all of them. vectors: the same rows, (n, d),
    for the driver."""

    npy: Path
    lines: NDArray[np.int64] | None
    vectors: NDArray[Any]


@dataclass(frozen=True)
class _Shard:
    """One side of a tile: `count` rows of a file, from row `first` on or those in `lines`. digest: of their bytes."""

    npy: str
    first: int
    count: int
    lines: NDArray[np.int64] | None
    digest: str


def search_tiles(
    cluster: Cluster,
    x: FileRows,
    y: FileRows,
    k: int,
    *,
    device: str = "cpu",
    memory: int | None = None,
    folder: Path,
    progress: Callable[[int], object] | None = None,
    checkpoint: Checkpoint | None = None,
    names: tuple[str, str] = ("source vectors", "target vectors"),
) -> Neighbours:
    """The k nearest neighbours of every row of x in y and of every row of y in x: what `search_both` returns.

    memory: bytes that each worker may take; the driver holds the answer, 12 bytes per row and neighbour. folder: where
    tiles are kept until they are merged, and saved with the checkpoint; nodes must share it, and the files of x and y.
    progress: called with the number of rows of x finished since the last call.

    Raises BitextmineError as `search_both` does, and with a worker's message.
    """
    options = cluster.options
    folder = folder.absolute()  # workers have another working folder
    cluster.share([folder.parent, x.npy.parent, y.npy.parent])
    dtype = check_pair(x.vectors, y.vectors, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    begin = time.perf_counter()
    (x_groups, x_digest), (y_groups, y_digest) = (
        scan_digest(x.vectors, names[0]),
        scan_digest(y.vectors, names[1]),
    )
    sides = [
        _Side(side, None if groups is None else groups.first, dtype)
        for side, groups in ((x, x_groups), (y, y_groups))
    ]
    n, m = (len(side.rows) for side in sides)
    answer = 12 * k * (n + m)
    if answer > available():
        raise BitextmineError(
            f"the {k} nearest of {n:,} and {m:,} vectors take {size(answer)} of memory on this machine, where "
            f"{size(available())} are free; run the command on a larger one"
        )
    fwd, bwd = TopK.empty(n, k), TopK.empty(m, k)
    key = f"{x_digest} {y_digest} k={k} both=True"
    done = 0
    if n and m:
        if checkpoint is not None:
            done = checkpoint.resume(key, sides[0].rows, sides[1].rows, fwd, bwd)
        if progress is not None:
            progress(done)
        if done < n:
            rows = options.rows or shard_rows(max(n, m))
            check_store(cluster, rows * (4 + 8) * 2, f"a tile of {rows:,} rows")
            work = WorkFolder(folder, Work.TILES, {"key": key})
            grid = _Grid(sides[0], sides[1], fwd, bwd, done, rows)
            search = SearchOptions(device=device, memory=memory)
            _run(cluster, grid, search, work, checkpoint, progress, begin)
            work.remove()
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, x_groups, y_groups)
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, y_groups, x_groups)
    return Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)


class _Side:
    """All rows of one side that are compared, on the driver."""

    def __init__(self, side: FileRows, index: NDArray[np.int64] | None, dtype: np.dtype[Any]) -> None:
        self.rows = VectorRows(side.vectors, dtype, index)
        self._npy = str(side.npy.absolute())
        self._lines = side.lines
        if index is not None:
            self._lines = index if side.lines is None else side.lines[index]
        self._shards: dict[tuple[int, int], _Shard] = {}

    def shard(self, start: int, stop: int) -> _Shard:
        found = self._shards.get((start, stop))
        if found is None:
            lines = None if self._lines is None else self._lines[start:stop]
            digest = _digest(self.rows, start, stop)
            found = self._shards[start, stop] = _Shard(self._npy, start, stop - start, lines, digest)
        return found

    def forget(self, start: int, stop: int) -> None:
        self._shards.pop((start, stop), None)


@dataclass
class _Grid:
    """The tiles of a search from row `done` of x on, in order, and what is found so far."""

    x: _Side
    y: _Side
    fwd: TopK
    bwd: TopK
    done: int
    size: int

    def tiles(self) -> Iterator[tuple[int, int, int, int]]:
        """The rows of x and of y, each from ... to ..., of every tile."""
        for i0, i1 in spans(self.done, len(self.x.rows), self.size):
            for j0, j1 in spans(0, len(self.y.rows), self.size):
                yield i0, i1, j0, j1

    def count(self) -> int:
        """How many tiles there are."""
        return sum(1 for _ in self.tiles())


def _run(
    cluster: Cluster,
    grid: _Grid,
    search: SearchOptions,
    work: WorkFolder,
    checkpoint: Checkpoint | None,
    progress: Callable[[int], object] | None,
    begin: float,
) -> None:
    """Has all tiles compared, and merges them."""
    total = grid.count()
    finished = sum(_path(work.path, tile).exists() for tile in grid.tiles())
    if finished or grid.done:
        log.info(
            "search: %s of %s lines and %d of the other %s are done, going on",
            f"{grid.done:,}",
            f"{len(grid.x.rows):,}",
            finished,
            counted(total, "tile"),
        )
    pool = cluster.pool
    pool.report()
    width = len(grid.y.rows)
    merging = 0.0
    kept: list[Path] = []
    calls = (_call(grid, tile, search, work.path) for tile in grid.tiles())
    made = 0
    for call, new in pool.in_order(calls, ahead=pool.slots):
        made += new
        i0, i1, j0, j1 = tile = call.key
        path = _path(work.path, tile)
        try:
            found = _read_tile(path)
        except BitextmineError:
            with contextlib.suppress(OSError):
                path.unlink()
            made += pool.again(call) - new
            found = _read_tile(path)
        since = time.perf_counter()
        _merge(grid.fwd, i0, i1, found, "fwd", j0)
        _merge(grid.bwd, j0, j1, found, "bwd", i0)
        kept.append(path)
        merging += time.perf_counter() - since
        if progress is not None:
            rows = i1 - i0
            progress(rows * j1 // width - rows * j0 // width)
        if j1 == width:
            grid.x.forget(i0, i1)
            last = i1 == len(grid.x.rows)
            if checkpoint is not None and checkpoint.save(i1, last=last):
                for each in kept:
                    each.unlink(missing_ok=True)
                kept.clear()
    seconds = time.perf_counter() - begin
    log.info(
        "search: %s, %d of them found finished; %s; %.1f s in all, %.1f s of it merging",
        counted(total, "tile"),
        total - made,
        pool.report(),
        seconds,
        merging,
    )


def _call(grid: _Grid, tile: tuple[int, int, int, int], search: SearchOptions, folder: Path) -> Call:
    i0, i1, j0, j1 = tile
    limits = np.array(grid.fwd.limit(i0, i1)), np.array(grid.bwd.limit(j0, j1))
    return Call(
        f"{_HERE}:compare",
        (grid.x.shard(i0, i1), grid.y.shard(j0, j1), grid.fwd.k, search, limits, str(_path(folder, tile))),
        f"comparing rows {i0 + 1} to {i1} with rows {j0 + 1} to {j1}",
        key=tile,
    )


def _path(folder: Path, tile: tuple[int, int, int, int]) -> Path:
    return folder / "{}-{}.{}-{}.npz".format(*tile)


def _merge(best: TopK, start: int, stop: int, found: dict[str, NDArray[Any]], way: str, base: int) -> None:
    """Puts what a tile has found for rows start..stop of one side into the best so far; `base`: the number of the
    tile's first row on the other side."""
    rows, sim = start + found[f"{way}_row"].astype(np.int64), found[f"{way}_sim"]
    if not len(rows):
        return
    local = found[f"{way}_id"].astype(np.int64)
    ids = np.where(local < 0, -1, local + base)
    fresh = best.id[rows, 0] < 0
    if fresh.all():
        best.sim[rows], best.id[rows] = sim, ids
        return
    best.sim[rows], best.id[rows] = best_first(
        np.concatenate([best.sim[rows], sim], axis=1), np.concatenate([best.id[rows], ids], axis=1), best.k
    )


def _read_tile(path: Path) -> dict[str, NDArray[Any]]:
    """What a worker has written. Raises BitextmineError where it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as e:  # zipfile, zlib and NumPy have one each
        raise BitextmineError(f"{path}: not what a worker wrote: {e}") from None


# --- on a worker ---


def compare(
    kept: Kept,
    x: _Shard,
    y: _Shard,
    k: int,
    search: SearchOptions,
    limits: tuple[NDArray[np.float32], NDArray[np.float32]],
    path: str,
) -> bool:
    """Writes the k best of each row of two shards that reach the row's limit. A file that is there already is one of
    the same tile, from a run that was killed, and is left as it is; then False is returned.

    Raises BitextmineError where the shards are not those that the driver has.
    """
    if Path(path).exists():
        return False
    from bitextmine.device import device_name

    rows = [_rows(kept, shard, number) for number, shard in enumerate((x, y))]
    device = device_name(search.device)
    memory = search.memory or budget() // max(1, _workers_here())
    best = [TopK.empty(len(side), k) for side in rows]
    if device == "cpu":  # a GPU takes no numbers of rows that it has not got
        for side, other, limit in zip(best, reversed(rows), limits, strict=True):
            _seed(side, limit, len(other))
    search = replace(search, device=device)
    engine, _ = open_engine(
        rows[0], rows[1], k, search, memory=memory, names=("source vectors", "target vectors")
    )
    for start in range(0, len(rows[0]), engine.block_rows):
        engine.block(start, min(start + engine.block_rows, len(rows[0])), best[0], best[1])
    found: dict[str, NDArray[Any]] = {}
    for way, side, other, limit in zip(("fwd", "bwd"), best, reversed(rows), limits, strict=True):
        found |= _above(way, side, limit, len(other))
    try:
        with replacing(path) as file:
            np.savez(file, **found)  # type: ignore[arg-type]
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None
    return True


def _seed(best: TopK, limit: NDArray[np.float32], others: int) -> None:
    """Lets a search drop what does not reach the limits: as if each row had so many neighbours already, of numbers
    behind all others, so that an equal similarity goes in front of theirs."""
    known = np.isfinite(limit)
    best.sim[known] = limit[known, None]
    best.id[known] = others + np.arange(best.k)


def _above(way: str, best: TopK, limit: NDArray[np.float32], others: int) -> dict[str, NDArray[Any]]:
    """What of the best reaches the limit, of the rows that have any: row (r,) uint32, id (r, k) int32, sim (r, k)
    float32, in order, missing ones (-1, -inf) last."""
    there = (best.id >= 0) & (best.id < others) & (best.sim >= limit[:, None])
    rows = np.flatnonzero(there.any(axis=1))
    there, sim, ids = there[rows], best.sim[rows], best.id[rows]
    if not there.all():
        order = np.argsort(~there, axis=1, kind="stable")
        sim = np.take_along_axis(np.where(there, sim, np.float32(-np.inf)), order, axis=1)
        ids = np.take_along_axis(np.where(there, ids, -1), order, axis=1)
    return {f"{way}_row": rows.astype(np.uint32), f"{way}_id": ids.astype(np.int32), f"{way}_sim": sim}


def _rows(kept: Kept, shard: _Shard, side: int) -> VectorRows:
    """The rows of a shard, checked: the file has the name that the driver said, and must have the same rows."""
    place = (shard.npy, shard.first, shard.count, shard.digest)
    if kept.get(f"place {side}") != place:
        try:
            vectors = open_vectors(shard.npy)
        except BitextmineError as e:
            raise BitextmineError(f"{_host()}: {e}") from None
        if shard.lines is None:
            rows = VectorRows(vectors[shard.first : shard.first + shard.count], vectors.dtype)
        elif shard.lines[-1] < len(vectors):
            rows = VectorRows(vectors, vectors.dtype, shard.lines)
        else:
            rows = VectorRows(vectors[:0], vectors.dtype)
        if len(rows) != shard.count or _digest(rows, 0, len(rows)) != shard.digest:
            raise BitextmineError(
                f"{_host()}: {shard.npy} has other vectors there than on the machine that runs the command, or they "
                "changed meanwhile; nodes must share the folder, under the same path"
            )
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


def _workers_here() -> int:
    """How many workers of this size the node has room for."""
    import ray

    context = ray.get_runtime_context()
    here, mine = context.get_node_id(), context.get_assigned_resources()
    for node in ray.nodes():
        if node["NodeID"] == here:
            return max(1, int(node["Resources"].get("CPU", 1) // max(1.0, mine.get("CPU", 1.0))))
    return 1


def _host() -> str:
    import socket

    return f"a worker on {socket.gethostname()}"
