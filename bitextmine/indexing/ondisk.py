"""Inverted lists in a file, which is read where it lies: merging shards into one, and noticing a change.

What faiss.contrib.ondisk does, without what that prints on the process's standard output; and a disk that is full is an
error of a write here, not a signal (FAISS writes through a memory map).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError


def merge_shards(index: Any, shards: Sequence[Path], file: Path) -> None:
    """Move the inverted lists of the shards into an empty trained index, in one new file.

    The file is in the format of FAISS's OnDiskInvertedLists: list by list, in a list shard by shard, codes then ids.

    Raises:
        RuntimeError: the index has no inverted lists.
        OSError: the file cannot be written.
    """
    # The indexes are kept: they own the lists.
    opened: list[Any] = [faiss.read_index(str(shard), faiss.IO_FLAG_MMAP) for shard in shards]
    parts: list[Any] = [faiss.extract_index_ivf(shard).invlists for shard in opened]
    ivf: Any = faiss.extract_index_ivf(index)
    sizes = np.array([[part.list_size(i) for part in parts] for i in range(ivf.nlist)], dtype=np.uint64).sum(
        axis=1
    )
    with file.open("wb") as out:
        for number in range(ivf.nlist):
            for part in parts:
                out.write(list_codes(part, number).data)
            for part in parts:
                out.write(list_ids(part, number).data)
        out.flush()
        os.fsync(out.fileno())
        total = out.tell()
    lists: Any = faiss.OnDiskInvertedLists(ivf.nlist, ivf.code_size, str(file))
    lists.set_all_lists_sizes(faiss.swig_ptr(sizes))
    lists.totsize = total
    lists.do_mmap()
    index.ntotal = ivf.ntotal = int(sizes.sum())
    ivf.replace_invlists(lists, True)
    lists.this.disown()


def list_ids(lists: Any, number: int) -> NDArray[np.int64]:
    """Return the ids of an inverted list, without a copy."""
    size = lists.list_size(number)
    if not size:
        return np.empty(0, np.int64)
    ids: NDArray[np.int64] = faiss.rev_swig_ptr(lists.get_ids(number), size)
    return ids


def list_codes(lists: Any, number: int) -> NDArray[np.uint8]:
    """Return the codes of an inverted list, one after the other, without a copy."""
    size = lists.list_size(number) * lists.code_size
    if not size:
        return np.empty(0, np.uint8)
    codes: NDArray[np.uint8] = faiss.rev_swig_ptr(lists.get_codes(number), size)
    return codes


class MappedLists:
    """The inverted lists of an index read from `file`, which map `lists` (perhaps the same file).

    Indexes without lists, or with lists in memory, have nothing to check.
    """

    def __init__(self, index: Any, file: Path, lists: Path) -> None:
        self._file, self._fd = file, -1
        found: Any = faiss.try_extract_index_ivf(index)
        mapped: Any = None if found is None else faiss.downcast_InvertedLists(found.invlists)
        if not isinstance(mapped, faiss.OnDiskInvertedLists) or not mapped.totsize:
            return
        try:
            self._fd = os.open(lists, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise BitextmineError(f"{lists}: cannot read: {error.strerror or error}") from None
        weakref.finalize(self, os.close, self._fd)
        self._size = os.fstat(self._fd).st_size

    def check(self) -> None:
        """Raise BitextmineError if the file was truncated or grew since it was opened; costs nothing."""
        if self._fd >= 0 and os.fstat(self._fd).st_size != self._size:
            raise BitextmineError(
                f"{self._file}: the index changed while it was in use, and the results are discarded; run the same "
                "command again"
            )
