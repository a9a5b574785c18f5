"""The lists of an index in a mapped file: a change while the index is in use is an error."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import faiss

from bitextmine.errors import BitextmineError

__all__ = ["MappedLists"]


class MappedLists:
    """The inverted lists of an index read from `file`, which map `lists` (perhaps the same file).

    Indexes without lists, or with lists in memory, have nothing to check.
    """

    def __init__(self, index: Any, file: Path, lists: Path) -> None:
        self._file = file
        self._fd = -1
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
        """Raise BitextmineError if the file was truncated or could not be read since it was opened; costs nothing."""
        if self._fd < 0:
            return
        if os.fstat(self._fd).st_size != self._size:
            raise BitextmineError(
                f"{self._file}: the index changed while it was in use; what was found through it is thrown away: run "
                "the same command again"
            )
