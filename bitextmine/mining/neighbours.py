"""Nearest neighbours of both sides, by exact search or through FAISS indexes."""

from pathlib import Path

from bitextmine.console import Progress
from bitextmine.distributed.tiles import FileRows
from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import UsageError
from bitextmine.files.journal import remove_folder
from bitextmine.mining.options import SearchWay
from bitextmine.mining.sides import Side, Sides
from bitextmine.run import Run
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.neighbours import Neighbours

# Up to so many similarities exact search takes minutes on two cores; above that, an index is built. A GPU should
# compute a hundred times as many in that time, which was not measured.
EXACT_UP_TO = 10**12
EXACT_ON_GPU = 10**14


def progress_path(sides: Sides, ending: str = "part") -> Path | None:
    """Return the place for the progress of exact search: beside the source's embedding, named after both."""
    src, tgt = (side.npy for side in sides)
    return None if src is None or tgt is None else src.with_name(f"{src.stem}-{tgt.stem}.search.{ending}")


def find_neighbours(sides: Sides, k: int, search: SearchWay, run: Run) -> tuple[Neighbours, str]:
    """Return the k nearest neighbours of both sides' rows, and the kind of search, for the signature.

    Indexes beside the embeddings are used by this process, or built if they are missing or of other vectors.
    Similarities are exact either way. Exact search resumes from the file of `progress_path`, which it leaves behind if
    it takes more than seconds.

    Raises:
        UsageError: an index or a cluster is asked for, but the lines are in memory.
    """
    checkpoint, tiles = progress_path(sides), progress_path(sides, "tiles")
    if search == SearchWay.INDEX and checkpoint is None:
        raise UsageError(
            "search: an index lies beside an embedding file; give corpora in files, or search='exact'"
        )
    n, m = (len(side.unique.rows) for side in sides)
    many = n * m > EXACT_UP_TO and n * m > exact_up_to(run.device_here)
    through = search == SearchWay.INDEX or (search == SearchWay.AUTO and many and tiles is not None)
    with run.progress(n + m * through, "search") as bar:

        def report(count: int) -> None:
            bar.update(count)
            for side in sides:
                side.check()

        if through:
            found, way = _through_indexes(sides, k, run, report)
        else:
            found, way = _exactly(sides, k, run, report, checkpoint), "exact"
    if tiles is not None:
        remove_folder(tiles, "tiles")
    return found, way


def exact_up_to(device: str) -> int:
    """Return the most similarities that exact search should compute on a device."""
    from bitextmine.device import device_name

    return EXACT_UP_TO if device_name(device) == "cpu" else EXACT_ON_GPU


def _through_indexes(sides: Sides, k: int, run: Run, progress: Progress) -> tuple[Neighbours, str]:
    from bitextmine.embeddings.index_file import open_index
    from bitextmine.search.indexed import Indexed, search_both_indexed
    from bitextmine.search.lists import scaled

    src, tgt = (
        Indexed(side.vectors, open_index(_file_rows(side).npy, run), side.unique.line_to_row)
        for side in sides
    )
    way = f"index-{'/'.join(dict.fromkeys(str(side.index.facts['factory']) for side in (src, tgt)))}"
    # Every line of the other side would be compared with every vector of a flat index: do it once, for both directions.
    if any(side.index.exact and not side.index.on_gpu for side in (src, tgt)):
        n, m = len(src.vectors), len(tgt.vectors)
        return _exactly(sides, k, run, scaled(progress, n, n + m), None), way
    return search_both_indexed(src, tgt, k, run, progress)[0], way


def _exactly(sides: Sides, k: int, run: Run, progress: Progress, checkpoint: Path | None) -> Neighbours:
    from bitextmine.distributed.tiles import search_tiles
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    saved = None if checkpoint is None else Checkpoint(checkpoint)
    if run.executor.distributed:
        options = SearchOptions(run.executor.device(run.device), run.memory)
        src, tgt = map(_file_rows, sides)
        tiles = progress_path(sides, "tiles")
        assert tiles is not None
        with run.executor.open() as workers:
            return search_tiles(workers, src, tgt, k, options, tiles, progress=progress, checkpoint=saved)
    x, y = (side.vectors for side in sides)
    memory = None if run.memory is None else max(1, run.memory - x.nbytes - y.nbytes)
    options = SearchOptions(run.device_name, memory)
    return search_both(x, y, k, options, progress=progress, checkpoint=saved)


def _file_rows(side: Side) -> FileRows:
    if not isinstance(side.matrix, VectorFile):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    lines = None if len(side.unique.rows) == len(side.matrix) else side.unique.rows
    return FileRows(side.matrix.path, side.matrix.manifest.vectors_blake2b, lines, side.vectors)
