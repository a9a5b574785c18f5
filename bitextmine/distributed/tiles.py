"""Exact search over tiles: a shard of one side compared with a shard of the other, by workers.

The similarity matrix is cut into tiles (source shard x target shard), taken row by row. A tile's task gets, for each of
its rows, the similarity that a neighbour must reach by now, and leaves in a file what reaches it: what can still be
among the k best. The driver merges the files in the order of the tiles. As similarities are exact and ties go to the
lower number, what comes out is that of `search.exact.search_both`, byte for byte, and its checkpoint is the same file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.distributed.grid import Grid, Tile, TileWork, run_grid, seeded, what_reaches, write_tile
from bitextmine.distributed.parts import FileRows, Shard, Side, shard_rows_of
from bitextmine.distributed.shards import shard_rows, spans
from bitextmine.errors import BitextmineError
from bitextmine.executor import Kept, Task
from bitextmine.files.journal import journal_folder, remove_folder
from bitextmine.search.engines.select import open_engine
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import check_pair, scan_digest, unfold
from bitextmine.search.topk import TopK
from bitextmine.system import available, budget, size

__all__ = ["FileRows", "TileWork", "search_tiles"]

_HERE = "bitextmine.distributed.tiles"


def search_tiles(work: TileWork, x: FileRows, y: FileRows, k: int, options: SearchOptions) -> Neighbours:
    """Return the k nearest neighbours in both directions, as `search_both` does.

    Args:
        work: computes the tiles, saves and reports.
        x: one side, in a file that the workers see.
        y: the other.
        k: neighbours per row.
        options: those of each worker; the driver holds the answer, 12 bytes per row and neighbour.
    """
    workers, progress, checkpoint = work.workers, work.progress, work.checkpoint
    folder = work.folder.absolute()  # workers have another working folder
    workers.share([folder.parent, x.npy.parent, y.npy.parent])
    names = options.names
    dtype = check_pair(x.vectors, y.vectors, *names)
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    (x_groups, x_digest), (y_groups, y_digest) = (
        scan_digest(x.vectors, names[0]),
        scan_digest(y.vectors, names[1]),
    )
    sides = [
        Side(side, None if groups is None else groups.first, dtype)
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
            done = checkpoint.resume(key, fwd, bwd)
        if progress is not None:
            progress(done)
        if done < n:
            rows = workers.shard_rows or shard_rows(max(n, m))
            workers.check_fits(rows * (4 + 8) * 2, f"a tile of {rows:,} rows")
            across = list(spans(0, m, rows))
            grid = Grid(sides[0], sides[1], fwd, bwd, done, rows, across, folder)
            tasks = (_task(grid, tile, options) for tile in grid.tiles())
            with (
                journal_folder(folder, "tiles", {"key": key}),
                workers.stage(f"search {x.npy.stem} {y.npy.stem}") as stage,
            ):
                run_grid(work, grid, tasks, stage=stage)
            remove_folder(folder, "tiles")
    fwd_sim, fwd_id = unfold(fwd.sim, fwd.id, x_groups, y_groups)
    bwd_sim, bwd_id = unfold(bwd.sim, bwd.id, y_groups, x_groups)
    return Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)


def _task(grid: Grid, tile: Tile, search: SearchOptions) -> Task:
    i0, i1, j0, j1 = tile
    return Task(
        f"{_HERE}:compare",
        (
            (grid.x.shard(i0, i1), grid.y.shard(j0, j1)),
            grid.fwd.k,
            search,
            grid.limits(tile),
            str(grid.path(tile)),
        ),
        f"comparing rows {i0 + 1} to {i1} with rows {j0 + 1} to {j1}",
        key=tile,
    )


# --- on a worker ---


def compare(
    kept: Kept,
    shards: tuple[Shard, Shard],
    k: int,
    search: SearchOptions,
    limits: tuple[NDArray[np.float32], NDArray[np.float32]],
    path: str,
) -> None:
    """Write the k best of each row of two shards that reach the row's limit; a finished file stays as it is."""
    if Path(path).exists():
        return
    from bitextmine.device import device_name

    rows = [shard_rows_of(kept, shard, number) for number, shard in enumerate(shards)]
    device = device_name(search.device)
    memory = search.memory or budget() // kept.get("workers", 1)
    best = [TopK.empty(len(side), k) for side in rows]
    if device == "cpu":  # a GPU takes no numbers of rows that it has not got
        for side, other, limit in zip(best, reversed(rows), limits, strict=True):
            seeded(side, limit, len(other))
    search = replace(search, device=device)
    engine, _ = open_engine(rows[0], rows[1], k, search, memory)
    for start in range(0, len(rows[0]), engine.block_rows):
        engine.block(start, min(start + engine.block_rows, len(rows[0])), best[0], best[1])
    found: dict[str, NDArray[Any]] = {}
    for way, side, other, limit in zip(("fwd", "bwd"), best, reversed(rows), limits, strict=True):
        found |= what_reaches(way, side, limit, len(other))
    write_tile(path, found)
