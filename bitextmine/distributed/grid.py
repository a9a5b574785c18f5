"""The driver's side of a search over tiles: which there are, who is told what, and how what was found is merged.

A tile is some rows of x against some rows of y. Tiles are merged in a fixed order, row by row of tiles, so that limits
that a tile is told are those of tiles before it. What a tile finds lies in a file until it is merged and saved.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.distributed.parts import Side
from bitextmine.distributed.shards import spans
from bitextmine.errors import BitextmineError
from bitextmine.executor import Stage, Task, Workers
from bitextmine.files.atomic import replacing
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.products import best_first
from bitextmine.search.topk import TopK

log = logging.getLogger(__name__)

Tile = tuple[int, int, int, int]  # rows of x, from and to, and of y


@dataclass
class Grid:
    """The tiles of a search from row `done` of x on, and the k best so far.

    Attributes:
        size: rows of x in a tile.
        across: bounds of the tiles in y.
        folder: for the files of tiles.
        name: the beginning of their names.
    """

    x: Side
    y: Side
    fwd: TopK
    bwd: TopK
    done: int
    size: int
    across: Sequence[tuple[int, int]]
    folder: Path
    name: str = ""

    def tiles(self) -> Iterator[Tile]:
        """Yield the bounds of every tile, in order: rows of x, rows of y."""
        for i0, i1 in spans(self.done, len(self.x.rows), self.size):
            for j0, j1 in self.across:
                yield i0, i1, j0, j1

    def count(self) -> int:
        """Return the number of tiles."""
        return len(list(spans(self.done, len(self.x.rows), self.size))) * len(self.across)

    def path(self, tile: Tile) -> Path:
        """Return the file for a tile's result."""
        return self.folder / "{}{}-{}.{}-{}.npz".format(self.name, *tile)

    def limits(self, tile: Tile) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the similarity that a neighbour must reach by now, for each row of x and of y in a tile."""
        i0, i1, j0, j1 = tile
        return np.array(self.fwd.limit(i0, i1)), np.array(self.bwd.limit(j0, j1))


@dataclass(frozen=True)
class TileWork:
    """Who computes the tiles of a search, and who is told of it.

    Attributes:
        workers: run the tasks.
        folder: for tiles until they are merged and saved; shared with the workers.
        progress: called with the number of rows of x finished since the last call.
        checkpoint: keeps what is merged.
    """

    workers: Workers
    folder: Path
    progress: Callable[[int], object] | None = None
    checkpoint: Checkpoint | None = None


def run_grid(
    work: TileWork,
    grid: Grid,
    tasks: Iterator[Task],
    *,
    stage: Stage,
    what: str = "search",
    merged: Callable[[int, int], object] = lambda start, stop: None,
) -> None:
    """Run tasks, and merge the tiles that they find.

    Args:
        work: runs the tasks.
        grid: the tiles.
        tasks: those of the grid's tiles, in order, with the tile as key; tasks without a key may stand between them.
        stage: its title and cost are filled in.
        what: the name of the work in the log.
        merged: called with the bounds of rows of x that are merged with all of y.
    """
    workers, progress, checkpoint = work.workers, work.progress, work.checkpoint
    total = grid.count()
    # Known beforehand: a tile may also be there because its worker died when it was written, and was not counted yet.
    finished = {tile for tile in grid.tiles() if grid.path(tile).exists()}
    if finished or grid.done:
        log.info(
            "%s: %s of %s lines and %d of the other %s are done, going on",
            what,
            f"{grid.done:,}",
            f"{len(grid.x.rows):,}",
            len(finished),
            counted(total, "tile"),
        )
    width = len(grid.y.rows)
    kept: list[Path] = []
    for task, _ in workers.map(tasks, ahead=workers.slots):
        if task.key is None:
            continue
        i0, i1, j0, j1 = tile = task.key
        path = grid.path(tile)
        try:
            found = _read_tile(path)
        except BitextmineError:
            with contextlib.suppress(OSError):
                path.unlink()
            finished.discard(tile)
            workers.run(task)
            found = _read_tile(path)
        with stage.timed("merging"):
            _merge(grid.fwd, i0, i1, found, "fwd", j0)
            _merge(grid.bwd, j0, j1, found, "bwd", i0)
        kept.append(path)
        if progress is not None:
            rows = i1 - i0
            progress(rows * j1 // width - rows * j0 // width)
        if j1 == width:
            grid.x.forget(i0, i1)
            merged(i0, i1)
            last = i1 == len(grid.x.rows)
            if checkpoint is not None and checkpoint.save(i1, last=last):
                for each in kept:
                    each.unlink(missing_ok=True)
                kept.clear()
    stage.finished = len(finished)
    stage.title = f"{what}: {counted(total, 'tile')}, {len(finished)} of them found finished"


def _merge(best: TopK, start: int, stop: int, found: dict[str, NDArray[Any]], way: str, base: int) -> None:
    """Merge a tile's result for rows start..stop of one side; `base` is the tile's first row on the other side."""
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
    """Return a tile's result; raise BitextmineError if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as e:  # zipfile, zlib and NumPy have one each
        raise BitextmineError(f"{path}: not what a worker wrote: {e}") from None


# --- on a worker ---


def seeded(best: TopK, limit: NDArray[np.float32], others: int) -> None:
    """Make a search drop everything below the limits.

    Each row gets k neighbours at its limit, with numbers behind all others, so that an equal similarity goes in front.
    """
    known = np.isfinite(limit)
    best.sim[known] = limit[known, None]
    best.id[known] = others + np.arange(best.k)


def what_reaches(way: str, best: TopK, limit: NDArray[np.float32], others: int) -> dict[str, NDArray[Any]]:
    """Return the neighbours that reach the limits, for the rows that have any.

    Returns:
        row (r,) uint32, id (r, k) int32, sim (r, k) float32, best first; missing ones (-1, -inf) come last.
    """
    there = (best.id >= 0) & (best.id < others) & (best.sim >= limit[:, None])
    rows = np.flatnonzero(there.any(axis=1))
    there, sim, ids = there[rows], best.sim[rows], best.id[rows]
    if not there.all():
        order = np.argsort(~there, axis=1, kind="stable")
        sim = np.take_along_axis(np.where(there, sim, np.float32(-np.inf)), order, axis=1)
        ids = np.take_along_axis(np.where(there, ids, -1), order, axis=1)
    return {f"{way}_row": rows.astype(np.uint32), f"{way}_id": ids.astype(np.int32), f"{way}_sim": sim}


def write_tile(path: str, found: dict[str, NDArray[Any]]) -> None:
    """Write a tile's result, complete or not at all."""
    try:
        with replacing(path) as file:
            np.savez(file, **found)  # type: ignore[arg-type]
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None
