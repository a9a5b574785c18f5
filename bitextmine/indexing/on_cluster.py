"""The passes of a search through two inverted files, by the workers of an executor.

A pass is cut into tiles, some queries against some consecutive lists (those of about as many rows). Which lists a query
goes to is found once for each part of the queries, and kept in a file for the tiles of that part. Queries are routed in
the same blocks as on one machine, similarities are exact, and of equal ones the row that comes first in the lists wins,
so that a pass finds what `lists.search_lists` finds, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.distributed.grid import Grid, Tile, run_grid, seeded, what_reaches, write_tile
from bitextmine.distributed.parts import FileRows, Shard, Side, shard_rows_of
from bitextmine.distributed.shards import shard_rows
from bitextmine.distributed.tiles import TileWork, search_tiles
from bitextmine.errors import BitextmineError
from bitextmine.executor import Kept, Shared, Task, Workers
from bitextmine.files.journal import journal_folder
from bitextmine.indexing.clusters import ROUTE_ROWS, Router, by_list
from bitextmine.indexing.lists import Block, Lists, Pass, block_rows, in_threads, number_rows, search_block
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.search.topk import TopK
from bitextmine.system import budget, processors

_HERE = "bitextmine.indexing.on_cluster"


@dataclass(frozen=True)
class _Routing:
    """How rows are routed; kind: the arithmetic (`_arithmetic`); path: the file for the lists of some rows."""

    key: str
    centres: Shared
    probes: int
    kind: str
    path: str


class ClusterSearcher:
    """Compares rows with lists on workers, for `both.search_both_indexed`.

    Args:
        workers: compute the tiles.
        x: rows that are mined, in a file that all workers see.
        y: the other side.
        identity: of the vectors and indexes.
        folder: for tiles, shared with the workers; the caller removes it at the end.
        memory: bytes that each worker may take.
    """

    def __init__(
        self,
        workers: Workers,
        x: FileRows,
        y: FileRows,
        identity: dict[str, Any],
        *,
        folder: Path,
        memory: int | None = None,
    ) -> None:
        self._workers, self._x, self._y = workers, x, y
        self._identity, self._folder, self._memory = identity, folder.absolute(), memory

    def exact(self, k: int, progress: Callable[[int], object] | None) -> Neighbours:
        """Return the result of `search_both`, for indexes that compare with everything."""
        work = TileWork(self._workers, self._folder, progress)
        return search_tiles(work, self._x, self._y, k, SearchOptions(memory=self._memory))

    def lists(self, which: Pass, progress: Callable[[int], object] | None) -> tuple[TopK, TopK | None]:
        """Return the result of one pass."""
        files = (self._x, self._y) if which.forward else (self._y, self._x)
        self._workers.share([self._folder.parent, *(side.npy.parent for side in files)])
        x, y = _sides(which, *files)
        n, m = len(x.rows), len(y.rows)
        fwd, bwd = TopK.empty(n, which.k), TopK.empty(m, which.k)
        if not (n and m):
            return fwd, bwd
        name = "source in the target's lists" if which.forward else "target in the source's lists"
        size = self._workers.shard_rows or shard_rows(max(n, m))
        self._workers.check_fits(size * (4 + 8) * 2 + which.centres.nbytes, f"a tile of {size:,} rows")
        key = _digest(self._identity, which)
        prefix = f"{'forward' if which.forward else 'backward'}-{key[:16]}."
        spans = list(_spans(which.lists, size))
        across = [(int(which.lists.bounds[a]), int(which.lists.bounds[b])) for a, b in spans]
        with (
            journal_folder(self._folder, "tiles", {"lists": self._identity, "k": which.k}),
            Checkpoint(self._folder / f"{prefix}search.part") as checkpoint,
        ):
            done = checkpoint.resume(key, fwd, bwd)
            if progress is not None and done:
                progress(done)
            if done < n:
                down = -(-size // ROUTE_ROWS) * ROUTE_ROWS
                grid = Grid(x, y, fwd, bwd, done, down, across, self._folder, prefix)
                centres = self._workers.put(which.centres)
                routing = _Routing(key, centres, which.probes, _arithmetic(), "")
                tasks = self._tasks(grid, which, routing, dict(zip(across, spans, strict=True)))
                files_names = f"{files[0].npy.stem} in the lists of {files[1].npy.stem}"
                with self._workers.stage(f"search {files_names}") as stage:
                    run_grid(
                        TileWork(self._workers, self._folder, progress, checkpoint),
                        grid,
                        tasks,
                        stage=stage,
                        what=f"search: {name}",
                        merged=lambda start, stop: _routes(grid, start, stop).unlink(missing_ok=True),
                    )
        number_rows(fwd, which.lists.order)
        return fwd, bwd

    def _tasks(
        self, grid: Grid, which: Pass, routing: _Routing, lists: dict[tuple[int, int], tuple[int, int]]
    ) -> Iterator[Task]:
        """Yield each tile after the task that routes its queries, one row of tiles ahead."""
        ahead: list[list[Tile]] = []
        for tile in grid.tiles():
            if not ahead or ahead[-1][0][:2] != tile[:2]:
                if len(ahead) == 2:
                    yield from self._row(grid, which, routing, lists, ahead.pop(0))
                ahead.append([])
                yield from self._route(grid, routing, tile)
            ahead[-1].append(tile)
        for row in ahead:
            yield from self._row(grid, which, routing, lists, row)

    def _route(self, grid: Grid, routing: _Routing, tile: Tile) -> Iterator[Task]:
        i0, i1 = tile[:2]
        if all(grid.path((i0, i1, *span)).exists() for span in grid.across):
            return
        here = _routed(routing, _routes(grid, i0, i1))
        yield Task(
            f"{_HERE}:route_rows", (grid.x.shard(i0, i1), here), f"finding lists for rows {i0 + 1} to {i1}"
        )

    def _row(
        self,
        grid: Grid,
        which: Pass,
        routing: _Routing,
        lists: dict[tuple[int, int], tuple[int, int]],
        tiles: list[Tile],
    ) -> Iterator[Task]:
        for tile in tiles:
            i0, i1, j0, j1 = tile
            first, last = lists[j0, j1]
            bounds = which.lists.bounds[first : last + 1] - j0
            here = _routed(routing, _routes(grid, i0, i1))
            yield Task(
                f"{_HERE}:compare_lists",
                (
                    grid.x.shard(i0, i1),
                    grid.y.shard(j0, j1),
                    here,
                    (first, bounds),
                    which.k,
                    self._memory,
                    grid.limits(tile),
                    str(grid.path(tile)),
                ),
                f"comparing rows {i0 + 1} to {i1} with lists {first + 1} to {last}",
                key=tile,
            )


def _sides(which: Pass, queries: FileRows, listed: FileRows) -> tuple[Side, Side]:
    """Return the queries in their order, and the listed rows in that of their lists."""
    assert which.listed is not None
    first, order = which.listed.index, which.lists.order
    dtype = which.queries.dtype
    return Side(queries, which.queries.index, dtype), Side(
        listed, order if first is None else first[order], dtype
    )


def _spans(lists: Lists, size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of consecutive lists of `size` rows or a little more together."""
    first, bounds = 0, lists.bounds
    while first < len(bounds) - 1:
        last = int(np.searchsorted(bounds, bounds[first] + size))
        last = max(first + 1, min(last, len(bounds) - 1))
        if bounds[last] > bounds[first]:
            yield first, last
        first = last


def _digest(identity: dict[str, Any], which: Pass) -> str:
    """Return the digest of everything that a pass depends on but the vectors, which the identity covers."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((identity, which.forward, which.probes, which.k, len(which.queries))).encode())
    parts = [which.lists.order, which.lists.bounds, which.centres, which.queries.index]
    parts.append(None if which.listed is None else which.listed.index)
    for part in filter(lambda part: part is not None, parts):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def _routes(grid: Grid, start: int, stop: int) -> Path:
    """Return the file with the lists of the rows start..stop."""
    return grid.folder / f"{grid.name}{start}-{stop}.lists.npz"


def _routed(routing: _Routing, path: Path) -> _Routing:
    return _Routing(routing.key, routing.centres, routing.probes, routing.kind, str(path))


def _arithmetic() -> str:
    """Return the arithmetic of products with centres, on which their last bits depend."""
    import torch

    from bitextmine.search.options import default_arithmetic

    return f"{default_arithmetic('cpu')} {torch.backends.cpu.get_cpu_capability()}"


# --- on a worker ---


def route_rows(kept: Kept, queries: Shard, routing: _Routing) -> None:
    """Write the lists of some rows, unless the file is there.

    Raises:
        BitextmineError: this machine would route otherwise than the driver's.
    """
    if not Path(routing.path).exists():
        _route(kept, queries, routing)


def _route(kept: Kept, queries: Shard, routing: _Routing) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    here = _arithmetic()
    if here != routing.kind:
        raise BitextmineError(
            f"a worker of the cluster finds lists in {here}, and the machine that runs the command in "
            f"{routing.kind}, so that neighbours would depend on who found them; use nodes of one kind, or "
            "--search exact"
        )
    if kept.get("router of") != routing.key:
        kept["router"] = Router(_centres(routing), routing.probes)
        kept["router of"] = routing.key
    router: Router = kept["router"]
    rows = shard_rows_of(kept, queries, 0)
    found = [router.near(rows.block(at, at + ROUTE_ROWS)) for at in range(0, len(rows), ROUTE_ROWS)]
    lists, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    write_tile(routing.path, {"lists": lists, "counts": counts})
    kept["lists of"], kept["lists"] = routing.path, (lists, counts)
    return lists, counts


def _centres(routing: _Routing) -> NDArray[np.float32]:
    found: NDArray[np.float32] = routing.centres.get()
    return found


def _lists_of(kept: Kept, queries: Shard, routing: _Routing) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the lists of some rows: of the last task, from their file, or found here."""
    if kept.get("lists of") != routing.path:
        try:
            with np.load(routing.path, allow_pickle=False) as file:
                kept["lists of"], kept["lists"] = routing.path, (file["lists"], file["counts"])
        except Exception:  # not there yet, or damaged: zipfile, zlib and NumPy have one each
            return _route(kept, queries, routing)
    found: tuple[NDArray[np.int32], NDArray[np.int64]] = kept["lists"]
    if len(found[1]) != queries.count:
        return _route(kept, queries, routing)
    return found


def compare_lists(
    kept: Kept,
    queries: Shard,
    listed: Shard,
    routing: _Routing,
    lists: tuple[int, NDArray[np.int64]],
    k: int,
    memory: int | None,
    limits: tuple[NDArray[np.float32], NDArray[np.float32]],
    path: str,
) -> None:
    """Write the neighbours that reach the limits, both ways, of some queries and the rows of some lists.

    A finished file stays as it is. `lists` are the number of the first list and the bounds of each.
    """
    if Path(path).exists():
        return
    first, bounds = lists
    total = len(bounds) - 1
    rows, of = shard_rows_of(kept, queries, 0), shard_rows_of(kept, listed, 1)
    near, counts = _lists_of(kept, queries, routing)
    begins = np.concatenate([[0], np.cumsum(counts)])
    parts = Lists(np.arange(len(of)), bounds, lambda i: of.block(int(bounds[i]), int(bounds[i + 1])))
    fwd, bwd = TopK.empty(len(rows), k), TopK.empty(len(of), k)
    seeded(fwd, limits[0], len(of))
    # Queries are numbered from k on, behind those that stand for the ones before: these come first where all is equal.
    seeded(bwd, limits[1], 0)
    threads = processors()
    memory = memory or budget() // kept.get("workers", 1)
    step = block_rows(rows.dim, max(1, len(near) // max(1, len(rows))), k, threads, memory)
    with in_threads(threads) as mapped:
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            wanted = near[begins[start] : begins[stop]]
            mine = (wanted >= first) & (wanted < first + total)
            row = np.repeat(np.arange(stop - start), counts[start:stop])[mine]
            routed = by_list(wanted[mine] - first, np.bincount(row, minlength=stop - start), total)
            known = TopK(fwd.sim[start:stop], fwd.id[start:stop])
            block = Block(rows.block(start, stop), k + start, parts, *routed, known, bwd)
            fwd.sim[start:stop], fwd.id[start:stop] = search_block(block, mapped)
    bwd.id[...] = np.where(bwd.id >= k, bwd.id - k, -1)
    found = what_reaches("fwd", fwd, limits[0], len(of)) | what_reaches("bwd", bwd, limits[1], len(rows))
    write_tile(path, found)
