"""Inverted lists of several shards in one file, which is read where it lies.

What faiss.contrib.ondisk does, without what that prints on the process's standard output; and a disk that is full is an
error of a write here, not a signal (FAISS writes through a memory map).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

__all__ = ["list_codes", "list_ids", "merge_shards"]


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
