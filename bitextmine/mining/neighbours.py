"""Nearest neighbours of both sides, by exact search or through FAISS indexes."""

import contextlib
import os
from pathlib import Path

from bitextmine.console import Progress
from bitextmine.distributed.tiles import FileRows
from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import UsageError
from bitextmine.files.journal import remove_folder
from bitextmine.mining.options import SearchWay, WorkOptions
from bitextmine.mining.sides import Side
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.neighbours import Neighbours

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

    Indexes beside the embeddings are used by this process, or built if they are missing or of other vectors.
    Similarities are exact either way. Exact search resumes from the file `checkpoint`, which it leaves behind if it
    takes more than seconds.

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
    n, m = len(src.unique.rows), len(tgt.unique.rows)
    many = n * m > EXACT_UP_TO and n * m > exact_up_to(run.device_here)
    through = work.search == SearchWay.INDEX or (work.search == SearchWay.AUTO and many and in_files)
    with run.progress(n + m * through, "search") as bar:

        def told(count: int) -> None:
            bar.update(count)
            src.check()
            tgt.check()

        if through:
            found, way = _through_indexes(src, tgt, k, work, told)
        else:
            found, way = _exactly(src, tgt, k, work, told, checkpoint), "exact"
    if in_files:
        remove_folder(_tiles(src, tgt), "tiles")
    return found, way


def exact_up_to(device: str) -> int:
    """Return the most similarities that exact search should compute on a device."""
    from bitextmine.device import device_name

    return EXACT_UP_TO if device_name(device) == "cpu" else EXACT_ON_GPU


def _through_indexes(
    src: Side, tgt: Side, k: int, work: WorkOptions, progress: Progress
) -> tuple[Neighbours, str]:
    from bitextmine.embeddings.index_file import open_index
    from bitextmine.search.indexed import Indexed, search_both_indexed
    from bitextmine.search.lists import scaled

    run = work.run
    sides = [
        Indexed(side.vectors, open_index(_npy(side), run), side.unique.line_to_row) for side in (src, tgt)
    ]
    kinds = dict.fromkeys(str(side.index.facts["factory"]) for side in sides)
    way = f"index-{'/'.join(kinds)}"
    # Every line of the other side would be compared with every vector of a flat index: do it once, for both directions.
    if any(side.index.exact and not side.index.on_gpu for side in sides):
        n, m = (len(side.vectors) for side in sides)
        return _exactly(src, tgt, k, work, scaled(progress, n, n + m), None), way
    neighbours, _ = search_both_indexed(sides[0], sides[1], k, run, progress)
    return neighbours, way


def _exactly(
    src: Side,
    tgt: Side,
    k: int,
    work: WorkOptions,
    progress: Progress,
    checkpoint: str | os.PathLike[str] | None,
) -> Neighbours:
    from bitextmine.distributed.tiles import search_tiles
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    run = work.run
    with contextlib.ExitStack() as stack:
        saved = None if checkpoint is None else stack.enter_context(Checkpoint(checkpoint))
        if run.executor.distributed:
            options = SearchOptions(run.executor.device(run.device), run.memory)
            workers = stack.enter_context(run.executor.open())
            files = _in_file(src), _in_file(tgt)
            folder = _tiles(src, tgt)
            return search_tiles(workers, *files, k, options, folder, progress=progress, checkpoint=saved)
        memory = run.memory
        if memory is not None:
            memory = max(1, memory - src.vectors.nbytes - tgt.vectors.nbytes)
        options = SearchOptions(run.device_name, memory)
        return search_both(src.vectors, tgt.vectors, k, options, progress=progress, checkpoint=saved)


def _in_file(side: Side) -> FileRows:
    """Return the rows that are mined, as workers find them."""
    if not isinstance(side.matrix, VectorFile):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    lines = None if len(side.unique.rows) == len(side.matrix) else side.unique.rows
    return FileRows(_npy(side), side.matrix.manifest.vectors_blake2b, lines, side.vectors)


def _npy(side: Side) -> Path:
    if side.npy is None:
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    return side.npy


def _tiles(src: Side, tgt: Side) -> Path:
    """Return the folder for tiles, beside the source's embedding and named after both."""
    return _npy(src).with_name(f"{_npy(src).stem}-{_npy(tgt).stem}.search.tiles")
