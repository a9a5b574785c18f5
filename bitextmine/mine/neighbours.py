"""The nearest neighbours of both sides: by exact search, or through FAISS indexes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from bitextmine.console import progress
from bitextmine.errors import UsageError
from bitextmine.mine.candidates import NeighboursLike
from bitextmine.mine.options import SearchWay, WorkOptions
from bitextmine.mine.sides import Side

__all__ = ["EXACT_UP_TO", "find_neighbours"]

# Up to so many similarities exact search takes minutes on two cores; above, an index is built. A GPU does a thousand
# times as many in that time.
EXACT_UP_TO = 10**12
EXACT_PER_GPU = 10**15


def find_neighbours(
    src: Side,
    tgt: Side,
    k: int,
    work: WorkOptions | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[NeighboursLike, str]:
    """The k nearest neighbours of both sides' rows, and how they were found, for the signature.

    work: of these options search, device and memory count. Through indexes, those beside the embeddings are taken, or
    built where they are missing or of other vectors, and candidates are rescored exactly. Of exact search the memory
    includes vectors that are held there.

    checkpoint: the file that exact search goes on from, if it is there, and leaves behind, if it takes more than
    seconds. Raises UsageError for an index of lines in memory.
    """
    work = work or WorkOptions()
    in_files = src.npy is not None and tgt.npy is not None
    if work.search == SearchWay.INDEX and not in_files:
        raise UsageError(
            "search: an index lies beside an embedding file; give corpora in files, or search='exact'"
        )
    pairs = len(src.unique.rows) * len(tgt.unique.rows)
    many = pairs > EXACT_UP_TO and pairs > exact_up_to(work.device)
    if work.search == SearchWay.INDEX or (work.search == SearchWay.AUTO and many and in_files):
        return _through_indexes(src, tgt, k, work.memory)
    return _exactly(src, tgt, k, work, checkpoint), "exact"


def exact_up_to(device: str) -> int:
    """How many similarities are not too many for exact search on a device, as `device_name` takes it."""
    from bitextmine.device import device_name

    name = device_name(device)
    if name == "cpu":
        return EXACT_UP_TO
    from bitextmine.search.engines.gpu import devices

    return EXACT_PER_GPU * len(devices(name))


def _through_indexes(src: Side, tgt: Side, k: int, memory: int | None) -> tuple[NeighboursLike, str]:
    from bitextmine.index.both import search_both_indexed
    from bitextmine.index.file import open_index

    assert src.npy is not None
    assert tgt.npy is not None
    indexes = [open_index(npy) for npy in (src.npy, tgt.npy)]
    kinds = dict.fromkeys(str(index.facts["factory"]) for index in indexes)
    with progress(len(src.unique.rows) + len(tgt.unique.rows), "search", "lines") as bar:
        found = search_both_indexed(
            src.vectors,
            tgt.vectors,
            indexes[0],
            indexes[1],
            k,
            x_rows=src.unique.line_to_row,
            y_rows=tgt.unique.line_to_row,
            memory=memory,
            progress=_watched(bar.update, src, tgt),
        )
    return found, f"index-{'/'.join(kinds)}"


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


def _watched(update: Callable[[int], object], src: Side, tgt: Side) -> Callable[[int], None]:
    """Tells of progress, and stops a search whose vectors are gone."""

    def told(count: int) -> None:
        update(count)
        src.check_size()
        tgt.check_size()

    return told
