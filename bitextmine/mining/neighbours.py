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
from bitextmine.mining.candidates import NeighboursLike
from bitextmine.mining.options import SearchWay, WorkOptions
from bitextmine.mining.sides import Side

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
) -> tuple[NeighboursLike, str]:
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
    in_files = src.npy is not None and tgt.npy is not None
    if work.search == SearchWay.INDEX and not in_files:
        raise UsageError(
            "search: an index lies beside an embedding file; give corpora in files, or search='exact'"
        )
    executor = work.run.executor
    if executor.distributed and not in_files:
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    pairs = len(src.unique.rows) * len(tgt.unique.rows)
    many = pairs > EXACT_UP_TO and pairs > exact_up_to(work.run.device_here)
    if work.search == SearchWay.INDEX or (work.search == SearchWay.AUTO and many and in_files):
        return _through_indexes(src, tgt, k, work)
    if executor.distributed:
        return _on_cluster(src, tgt, k, work, checkpoint), "exact"
    found = _exactly(src, tgt, k, work, checkpoint)
    if in_files:
        remove_folder(_tiles(src, tgt), "tiles")
    return found, "exact"


def exact_up_to(device: str) -> int:
    """Return the most similarities that exact search should compute on a device."""
    from bitextmine.device import device_name

    return EXACT_UP_TO if device_name(device) == "cpu" else EXACT_ON_GPU


def _through_indexes(src: Side, tgt: Side, k: int, work: WorkOptions) -> tuple[NeighboursLike, str]:
    from bitextmine.indexing.both import Indexed, search_both_indexed
    from bitextmine.indexing.file import open_index

    assert src.npy is not None
    assert tgt.npy is not None
    indexes = [open_index(npy, work.run) for npy in (src.npy, tgt.npy)]
    kinds = dict.fromkeys(str(index.facts["factory"]) for index in indexes)
    with (
        _searcher(src, tgt, work) as searcher,
        work.run.progress(len(src.unique.rows) + len(tgt.unique.rows), "search") as bar,
    ):
        found, _ = search_both_indexed(
            Indexed(src.vectors, indexes[0], src.unique.line_to_row),
            Indexed(tgt.vectors, indexes[1], tgt.unique.line_to_row),
            k,
            searcher=searcher,
            progress=_watched(bar.update, src, tgt),
        )
    remove_folder(_tiles(src, tgt), "tiles")
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
    with work.run.executor.open() as workers:
        yield ClusterSearcher(
            workers, _in_file(src), _in_file(tgt), identity, folder=_tiles(src, tgt), run=work.run
        )


def _in_file(side: Side) -> FileRows:
    """Return the rows that are mined, as workers find them."""
    from bitextmine.distributed.shards import FileRows

    assert side.npy is not None
    return FileRows(
        side.npy, None if len(side.unique.rows) == len(side.matrix) else side.unique.rows, side.vectors
    )


def _exactly(
    src: Side, tgt: Side, k: int, work: WorkOptions, checkpoint: str | os.PathLike[str] | None
) -> NeighboursLike:
    from bitextmine.device import device_name
    from bitextmine.search.checkpoint import Checkpoint
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions
    from bitextmine.search.rows import is_mapped

    memory = work.run.memory
    if memory is not None:
        memory = max(1, memory - sum(v.nbytes for v in (src.vectors, tgt.vectors) if not is_mapped(v)))
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    with work.run.progress(len(src.unique.rows), "search") as bar, saved or contextlib.nullcontext():
        return search_both(
            src.vectors,
            tgt.vectors,
            k,
            SearchOptions(device=device_name(work.run.device), memory=memory),
            progress=_watched(bar.update, src, tgt),
            checkpoint=saved,
        )


def _on_cluster(
    src: Side, tgt: Side, k: int, work: WorkOptions, checkpoint: str | os.PathLike[str] | None
) -> NeighboursLike:
    from bitextmine.distributed.tiles import search_tiles
    from bitextmine.search.checkpoint import Checkpoint
    from bitextmine.search.options import SearchOptions

    saved = None if checkpoint is None else Checkpoint(checkpoint)
    with (
        work.run.executor.open() as workers,
        work.run.progress(len(src.unique.rows), "search") as bar,
        saved or contextlib.nullcontext(),
    ):
        return search_tiles(
            workers,
            _in_file(src),
            _in_file(tgt),
            k,
            SearchOptions(work.run.executor.device(work.run.device), work.run.memory),
            folder=_tiles(src, tgt),
            progress=_watched(bar.update, src, tgt),
            checkpoint=saved,
        )


def _tiles(src: Side, tgt: Side) -> Path:
    """Return the folder for tiles, beside the source's embedding and named after both."""
    assert src.npy is not None
    assert tgt.npy is not None
    return src.npy.with_name(f"{src.npy.stem}-{tgt.npy.stem}.search.tiles")


def _watched(update: Callable[[int], object], src: Side, tgt: Side) -> Callable[[int], None]:
    """Report progress, and stop a search when its vectors have changed."""

    def told(count: int) -> None:
        update(count)
        src.check()
        tgt.check()

    return told
