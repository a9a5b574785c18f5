"""The passes of a search through two inverted files, by the workers of an executor.

A pass is cut into tiles, some queries against some consecutive lists (those of about as many rows). Which lists a query
goes to is found once for each part of the queries, and kept in a file for the tiles of that part. Queries are routed in
the same blocks as on one machine, similarities are exact, and of equal ones the row that comes first in the lists wins,
so that a pass finds what `lists.search_lists` finds, byte for byte.
"""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress
from bitextmine.distributed import tiles
from bitextmine.distributed.tiles import FileRows, Grid, Limits, Shard, Side
from bitextmine.errors import BitextmineError
from bitextmine.executor import Kept, Shared, Task, Workers
from bitextmine.files.journal import journal_folder
from bitextmine.run import Run
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.fused import in_threads
from bitextmine.search.lists import ROUTE_ROWS, Block, Lists, Pass, Router, block_rows, by_list, number_rows
from bitextmine.search.neighbours import TopK
from bitextmine.search.options import default_arithmetic
from bitextmine.search.rows import VectorRows
from bitextmine.system import budget, processors

_HERE = "bitextmine.distributed.lists"


@dataclass(frozen=True)
class _Routing:
    """How rows are routed; kind: the arithmetic (`_arithmetic`); path: the file for the lists of some rows."""

    key: str
    centres: Shared
    probes: int
    kind: str
    path: str = ""


@dataclass(frozen=True)
class _Tile:
    """Some queries to compare with the rows of some lists.

    `first` is the number of the first list, `bounds` where each list begins in the rows `listed`, and where the last
    one ends; a neighbour must reach the `limits` of its rows; the result goes to the file `path`.
    """

    queries: Shard
    listed: Shard
    routing: _Routing
    first: int
    bounds: NDArray[np.int64]
    k: int
    memory: int | None
    limits: Limits
    path: str


class ClusterSearcher:
    """Compares rows on workers.

    `x` and `y` are the rows that are mined, in files that all workers see; `identity` is that of vectors and indexes;
    `folder` for tiles is shared with the workers, and the caller removes it.
    """

    def __init__(
        self, workers: Workers, x: FileRows, y: FileRows, identity: dict[str, Any], *, folder: Path
    ) -> None:
        self._workers, self._x, self._y = workers, x, y
        self._identity, self._folder = identity, folder.absolute()

    def lists(self, which: Pass, run: Run, progress: Progress) -> tuple[TopK, TopK | None]:
        """Return the result of one pass; the memory of `run` is that of each worker."""
        mine, other = (self._x, self._y) if which.forward else (self._y, self._x)
        workers, bounds, listed = self._workers, which.lists.bounds, which.listed
        assert listed is not None
        workers.share([self._folder.parent, mine.npy.parent, other.npy.parent])
        # The queries in their order, and the listed rows in that of their lists.
        order = which.lists.order if listed.index is None else listed.index[which.lists.order]
        x, y = Side(mine, which.queries), Side(other, VectorRows(listed.vectors, listed.dtype, order))
        n, m = len(x.rows), len(y.rows)
        fwd, bwd = TopK.empty(n, which.k), TopK.empty(m, which.k)
        if not (n and m):
            return fwd, bwd
        size = workers.shard_rows or tiles.shard_rows(max(n, m))
        workers.check_fits(size * (4 + 8) * 2 + which.centres.nbytes, f"a tile of {size:,} rows")
        key = _digest(self._identity, which)
        name = f"{'forward' if which.forward else 'backward'}-{key[:16]}."
        lists = {(int(bounds[a]), int(bounds[b])): (a, b) for a, b in _spans(bounds, size)}
        down = -(-size // ROUTE_ROWS) * ROUTE_ROWS
        with (
            journal_folder(self._folder, "tiles", {"lists": self._identity, "k": which.k}),
            Checkpoint(self._folder / f"{name}search.part") as checkpoint,
        ):
            title = "source in the target's lists" if which.forward else "target in the source's lists"
            record = tiles.Record(self._folder, progress, checkpoint)
            grid = Grid(workers, x, y, fwd, bwd, down, list(lists), record, name, f"search: {title}")
            routing = _Routing(key, workers.put(which.centres), which.probes, _arithmetic())
            tasks = _tasks(grid, which, routing, lists, run.memory)
            grid.search(key, tasks, f"search {mine.npy.stem} in the lists of {other.npy.stem}")
        number_rows(fwd, which.lists.order)
        return fwd, bwd


def _tasks(
    grid: Grid,
    which: Pass,
    routing: _Routing,
    lists: dict[tuple[int, int], tuple[int, int]],
    memory: int | None,
) -> Iterator[Task]:
    """Yield each tile after the task that routes its queries, one row of tiles ahead."""
    rows = [list(row) for _, row in itertools.groupby(grid.tiles(), key=lambda tile: tile[:2])]
    routings = [replace(routing, path=str(grid.lists_path(*row[0][:2]))) for row in rows]
    for number, row in enumerate(rows):
        i0, i1 = row[0][:2]
        for ahead in range(number + bool(number), min(number + 2, len(rows))):
            if not all(grid.path(tile).exists() for tile in rows[ahead]):
                a, b = rows[ahead][0][:2]
                what, args = f"finding lists for rows {a + 1} to {b}", (grid.x.shard(a, b), routings[ahead])
                yield Task(f"{_HERE}:route_rows", args, what)
        for tile in row:
            j0, j1 = tile[2:]
            first, last = lists[j0, j1]
            bounds = which.lists.bounds[first : last + 1] - j0
            shards = grid.x.shard(i0, i1), grid.y.shard(j0, j1)
            limits, path = grid.limits(tile), str(grid.path(tile))
            work = _Tile(*shards, routings[number], first, bounds, which.k, memory, limits, path)
            what = f"comparing rows {i0 + 1} to {i1} with lists {first + 1} to {last}"
            yield Task(f"{_HERE}:compare_lists", (work,), what, key=tile)


def _spans(bounds: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers, from and to, of consecutive lists of `size` rows or a little more together."""
    first = 0
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


def _arithmetic() -> str:
    """Return the arithmetic of products with centres, on which their last bits depend."""
    import torch

    return f"{default_arithmetic('cpu')} {torch.backends.cpu.get_cpu_capability()}"


# --- on a worker ---


def route_rows(kept: Kept, queries: Shard, routing: _Routing) -> None:
    """Write the lists of some rows, unless the file is there; BitextmineError if the driver would find others."""
    if not Path(routing.path).exists():
        _lists_of(kept, queries, routing)


def _lists_of(kept: Kept, queries: Shard, routing: _Routing) -> dict[str, NDArray[Any]]:
    """Return the lists of some rows and their counts: of the last task, from their file, or found here."""
    if kept.get("lists of") == routing.path:
        found: dict[str, NDArray[Any]] = kept["lists"]
        return found
    try:
        found = tiles.read_arrays(routing.path)
    except BitextmineError:
        here = _arithmetic()
        if here != routing.kind:
            raise BitextmineError(
                f"a worker of the cluster finds lists in {here}, and the machine that runs the command in "
                f"{routing.kind}, so that neighbours would depend on who found them; use nodes of one kind, or "
                "--search exact"
            ) from None
        if kept.get("router of") != routing.key:
            kept["router"] = Router(routing.centres.get(), routing.probes)
            kept["router of"] = routing.key
        router: Router = kept["router"]
        rows = tiles.shard_rows_of(kept, queries, 0)
        parts = [router.near(rows.block(at, at + ROUTE_ROWS)) for at in range(0, len(rows), ROUTE_ROWS)]
        lists, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        found = {"lists": lists, "counts": counts}
        tiles.write_arrays(routing.path, found)
    kept["lists of"], kept["lists"] = routing.path, found
    return found


def compare_lists(kept: Kept, tile: _Tile) -> None:
    """Write the neighbours that reach the limits, both ways, of a tile; a finished file stays as it is."""
    if Path(tile.path).exists():
        return
    bounds, limits, k, first = tile.bounds, tile.limits, tile.k, tile.first
    total = len(bounds) - 1
    rows, of = tiles.shard_rows_of(kept, tile.queries, 0), tiles.shard_rows_of(kept, tile.listed, 1)
    routed = _lists_of(kept, tile.queries, tile.routing)
    near, counts = routed["lists"], routed["counts"]
    begins = np.concatenate([[0], np.cumsum(counts)])
    parts = Lists(np.arange(len(of)), bounds, lambda i: of.block(int(bounds[i]), int(bounds[i + 1])))
    fwd, bwd = TopK.empty(len(rows), k), TopK.empty(len(of), k)
    tiles.seed(fwd, limits[0], len(of))
    # Queries are numbered from k on, behind those that stand for the ones before: these come first where all is equal.
    tiles.seed(bwd, limits[1], 0)
    threads = processors()
    memory = tile.memory or budget() // kept.get("workers", 1)
    step = block_rows(rows.dim, max(1, len(near) // max(1, len(rows))), k, threads, memory)
    with in_threads(threads) as mapped:
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            wanted = near[begins[start] : begins[stop]]
            mine = (wanted >= first) & (wanted < first + total)
            row = np.repeat(np.arange(stop - start), counts[start:stop])[mine]
            at = by_list(wanted[mine] - first, np.bincount(row, minlength=stop - start), total)
            known = TopK(fwd.sim[start:stop], fwd.id[start:stop])
            best = Block(rows.block(start, stop), k + start, parts, *at, known, bwd).search(mapped)
            fwd.sim[start:stop], fwd.id[start:stop] = best.sim, best.id
    bwd.id[...] = np.where(bwd.id >= k, bwd.id - k, -1)
    tiles.write_found(tile.path, fwd, bwd, limits)
