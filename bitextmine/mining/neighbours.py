"""Nearest neighbours of both sides, by exact search or through FAISS indexes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import UsageError
from bitextmine.files.journal import remove_folder
from bitextmine.mining.choices import SearchWay
from bitextmine.mining.options import WorkOptions
from bitextmine.mining.sides import Side
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.neighbours import Neighbours

if TYPE_CHECKING:
    from bitextmine.distributed.shards import FileRows
    from bitextmine.indexing.both import Searcher

# Up to so many similarities exact search takes minutes on two cores; above that, an index is built. A GPU should
# compute a hundred times as many in that time, which was not measured.
EXACT_UP_TO = 10**12
EXACT_ON_GPU = 10**14


def find_neighbours(
    src: Side,
    tgt: Side,
    k: int,
    work: WorkOptions | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[Neighbours, str]:
    """Return the k nearest neighbours of both sides' rows, and the kind of search, for the signature.

    Indexes beside the embeddings are used, or built if they are missing or of other vectors. Similarities are exact
    either way.

    Args:
        src: the source.
        tgt: the target.
        k: neighbours of each row.
        work: the kind of search, and the resources; the memory of exact search includes vectors held in memory.
        checkpoint: the file that exact search resumes from, and leaves behind if it takes more than seconds.

    Raises:
        UsageError: an index or a cluster is asked for, but the lines are in memory.
    """
    work = work or WorkOptions()
    run = work.run
    in_files = src.npy is not None and tgt.npy is not None
    if work.search == SearchWay.INDEX and not in_files:
        raise UsageError(
            "search: an index lies beside an embedding file; give corpora in files, or search='exact'"
        )
    pairs = len(src.unique.rows) * len(tgt.unique.rows)
    many = pairs > EXACT_UP_TO and pairs > exact_up_to(run.device_here)
    if work.search == SearchWay.INDEX or (work.search == SearchWay.AUTO and many and in_files):
        found, way = _through_indexes(src, tgt, k, work)
    else:
        saved = None if checkpoint is None else Checkpoint(checkpoint)
        search = _on_cluster if run.executor.distributed else _exactly
        with run.progress(len(src.unique.rows), "search") as bar, saved or contextlib.nullcontext():
            found, way = search(src, tgt, k, work, _watched(bar.update, src, tgt), saved), "exact"
    if in_files:
        remove_folder(_tiles(src, tgt), "tiles")
    return found, way


def exact_up_to(device: str) -> int:
    """Return the most similarities that exact search should compute on a device."""
    from bitextmine.device import device_name

    return EXACT_UP_TO if device_name(device) == "cpu" else EXACT_ON_GPU


def _through_indexes(src: Side, tgt: Side, k: int, work: WorkOptions) -> tuple[Neighbours, str]:
    from bitextmine.indexing.both import Indexed, search_both_indexed
    from bitextmine.indexing.file import open_index

    indexes = [open_index(_npy(side), work.run) for side in (src, tgt)]
    kinds = dict.fromkeys(str(index.facts["factory"]) for index in indexes)
    rows = [side.unique.rows for side in (src, tgt)]
    with _searcher(src, tgt, work) as searcher, work.run.progress(sum(map(len, rows)), "search") as bar:
        found, _ = search_both_indexed(
            Indexed(src.vectors, indexes[0], src.unique.line_to_row),
            Indexed(tgt.vectors, indexes[1], tgt.unique.line_to_row),
            k,
            searcher=searcher,
            progress=_watched(bar.update, src, tgt),
        )
    return found, f"index-{'/'.join(kinds)}"


@contextlib.contextmanager
def _searcher(src: Side, tgt: Side, work: WorkOptions) -> Iterator[Searcher]:
    """Yield the searcher of index lists: on a cluster, or in this process."""
    from bitextmine.indexing.both import Searcher

    if not work.run.executor.distributed:
        yield Searcher(work.run)
        return
    from bitextmine.indexing.on_cluster import ClusterSearcher

    identity = {}
    for name, side in (("src", src), ("tgt", tgt)):
        assert isinstance(side.matrix, VectorFile)
        rows = hashlib.blake2b(side.unique.rows.tobytes(), digest_size=16).hexdigest()
        identity[name] = {"vectors": side.matrix.manifest.vectors_blake2b, "rows": rows}
    sides = _in_file(src), _in_file(tgt)
    with work.run.executor.open() as workers:
        yield ClusterSearcher(workers, *sides, identity, folder=_tiles(src, tgt), run=work.run)


def _exactly(
    src: Side, tgt: Side, k: int, work: WorkOptions, progress: Callable[[int], None], saved: Checkpoint | None
) -> Neighbours:
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    memory = work.run.memory
    if memory is not None:
        memory = max(1, memory - src.vectors.nbytes - tgt.vectors.nbytes)
    options = SearchOptions(work.run.device_name, memory)
    return search_both(src.vectors, tgt.vectors, k, options, progress=progress, checkpoint=saved)


def _on_cluster(
    src: Side, tgt: Side, k: int, work: WorkOptions, progress: Callable[[int], None], saved: Checkpoint | None
) -> Neighbours:
    from bitextmine.distributed.tiles import Record, search_tiles
    from bitextmine.search.options import SearchOptions

    options = SearchOptions(work.run.executor.device(work.run.device), work.run.memory)
    record = Record(_tiles(src, tgt), progress, saved)
    with work.run.executor.open() as workers:
        return search_tiles(workers, _in_file(src), _in_file(tgt), k, options, record)


def _in_file(side: Side) -> FileRows:
    """Return the rows that are mined, as workers find them."""
    from bitextmine.distributed.shards import FileRows

    lines = None if len(side.unique.rows) == len(side.matrix) else side.unique.rows
    return FileRows(_npy(side), lines, side.vectors)


def _npy(side: Side) -> Path:
    if side.npy is None:
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    return side.npy


def _tiles(src: Side, tgt: Side) -> Path:
    """Return the folder for tiles, beside the source's embedding and named after both."""
    return _npy(src).with_name(f"{_npy(src).stem}-{_npy(tgt).stem}.search.tiles")


def _watched(update: Callable[[int], object], src: Side, tgt: Side) -> Callable[[int], None]:
    """Report progress, and stop a search when its vectors have changed."""

    def told(count: int) -> None:
        update(count)
        src.check()
        tgt.check()

    return told
