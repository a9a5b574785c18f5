"""The nearest neighbours of both sides: by exact search, or through FAISS indexes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.console import progress
from bitextmine.errors import UsageError
from bitextmine.files.journal import remove_folder
from bitextmine.mining.candidates import NeighboursLike
from bitextmine.mining.options import SearchWay, WorkOptions
from bitextmine.mining.sides import Side

if TYPE_CHECKING:
    from bitextmine.distributed.parts import FileRows
    from bitextmine.indexing.both import Searcher

__all__ = ["EXACT_UP_TO", "find_neighbours"]

# Up to so many similarities exact search takes minutes on two cores; above, an index is built. A GPU should compute a
# hundred times as many in that time, which was not measured.
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
    """The k nearest neighbours of both sides' rows, and how they were found, for the signature.

    work: of these options search, device, memory and the executor count. Through indexes, those beside the
    embeddings are taken, or built, here, where they are missing or of other vectors, and similarities are exact. Of
    exact search the memory includes vectors that are held there.

    checkpoint: the file that exact search goes on from, if it is there, and leaves behind, if it takes more than
    seconds. Raises UsageError for an index of lines in memory, and for a cluster that is to search lines in memory.
    """
    work = work or WorkOptions()
    in_files = src.npy is not None and tgt.npy is not None
    if work.search == SearchWay.INDEX and not in_files:
        raise UsageError(
            "search: an index lies beside an embedding file; give corpora in files, or search='exact'"
        )
    if work.executor.distributed and not in_files:
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    pairs = len(src.unique.rows) * len(tgt.unique.rows)
    many = pairs > EXACT_UP_TO and pairs > exact_up_to(work.device_here)
    if work.search == SearchWay.INDEX or (work.search == SearchWay.AUTO and many and in_files):
        return _through_indexes(src, tgt, k, work)
    if work.executor.distributed:
        return _on_cluster(src, tgt, k, work, checkpoint), "exact"
    found = _exactly(src, tgt, k, work, checkpoint)
    if in_files:
        remove_folder(_tiles(src, tgt), "tiles")
    return found, "exact"


def exact_up_to(device: str) -> int:
    """How many similarities are not too many for exact search on a device, as `device_name` takes it."""
    from bitextmine.device import device_name

    return EXACT_UP_TO if device_name(device) == "cpu" else EXACT_ON_GPU


def _through_indexes(src: Side, tgt: Side, k: int, work: WorkOptions) -> tuple[NeighboursLike, str]:
    from bitextmine.indexing.both import search_both_indexed
    from bitextmine.indexing.file import open_index

    assert src.npy is not None
    assert tgt.npy is not None
    indexes = [open_index(npy) for npy in (src.npy, tgt.npy)]
    kinds = dict.fromkeys(str(index.facts["factory"]) for index in indexes)
    with (
        _searcher(src, tgt, work) as searcher,
        progress(len(src.unique.rows) + len(tgt.unique.rows), "search", "lines") as bar,
    ):
        found = search_both_indexed(
            src.vectors,
            tgt.vectors,
            indexes[0],
            indexes[1],
            k,
            x_rows=src.unique.line_to_row,
            y_rows=tgt.unique.line_to_row,
            memory=work.memory,
            progress=_watched(bar.update, src, tgt),
            searcher=searcher,
        )
    remove_folder(_tiles(src, tgt), "tiles")
    return found, f"index-{'/'.join(kinds)}"


@contextlib.contextmanager
def _searcher(src: Side, tgt: Side, work: WorkOptions) -> Iterator[Searcher | None]:
    """Who compares rows with lists: the workers of a cluster; None without one."""
    if not work.executor.distributed:
        yield None
        return
    from bitextmine.indexing.on_cluster import ClusterSearcher

    identity = {}
    for name, side in (("src", src), ("tgt", tgt)):
        assert side.held is not None
        rows = hashlib.blake2b(side.unique.rows.tobytes(), digest_size=16).hexdigest()
        identity[name] = {"vectors": side.held.manifest.vectors_blake2b, "rows": rows}
    with work.executor.open() as workers:
        yield ClusterSearcher(
            workers, _in_file(src), _in_file(tgt), identity, folder=_tiles(src, tgt), memory=work.memory
        )


def _in_file(side: Side) -> FileRows:
    """The rows that are mined, as workers find them."""
    from bitextmine.distributed.parts import FileRows

    assert side.npy is not None
    return FileRows(side.npy, None if side.vectors is side.matrix else side.unique.rows, side.vectors)


def _exactly(
    src: Side, tgt: Side, k: int, work: WorkOptions, checkpoint: str | os.PathLike[str] | None
) -> NeighboursLike:
    from bitextmine.device import device_name
    from bitextmine.search.checkpoint import Checkpoint
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions
    from bitextmine.search.pages import is_mapped

    memory = work.memory
    if memory is not None:
        memory = max(1, memory - sum(v.nbytes for v in (src.vectors, tgt.vectors) if not is_mapped(v)))
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    with progress(len(src.unique.rows), "search", "lines") as bar, saved or contextlib.nullcontext():
        return search_both(
            src.vectors,
            tgt.vectors,
            k,
            SearchOptions(device=device_name(work.device), memory=memory),
            progress=_watched(bar.update, src, tgt),
            checkpoint=saved,
        )


def _on_cluster(
    src: Side, tgt: Side, k: int, work: WorkOptions, checkpoint: str | os.PathLike[str] | None
) -> NeighboursLike:
    from bitextmine.distributed.tiles import search_tiles
    from bitextmine.search.checkpoint import Checkpoint

    saved = None if checkpoint is None else Checkpoint(checkpoint)
    with (
        work.executor.open() as workers,
        progress(len(src.unique.rows), "search", "lines") as bar,
        saved or contextlib.nullcontext(),
    ):
        return search_tiles(
            workers,
            _in_file(src),
            _in_file(tgt),
            k,
            device=work.executor.device(work.device),
            memory=work.memory,
            folder=_tiles(src, tgt),
            progress=_watched(bar.update, src, tgt),
            checkpoint=saved,
        )


def _tiles(src: Side, tgt: Side) -> Path:
    """Where tiles wait to be merged: beside the source's embedding, named after both."""
    assert src.npy is not None
    assert tgt.npy is not None
    return src.npy.with_name(f"{src.npy.stem}-{tgt.npy.stem}.search.tiles")


def _watched(update: Callable[[int], object], src: Side, tgt: Side) -> Callable[[int], None]:
    """Tells of progress, and stops a search whose vectors are gone."""

    def told(count: int) -> None:
        update(count)
        src.check_size()
        tgt.check_size()

    return told
