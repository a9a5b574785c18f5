"""Vectors that stay what they were while they are worked with: a change of their file is an error, and no wrong result.

The rows are a map of the file. Whoever writes into it changes them, and whoever truncates it ends every process that
reads them, by SIGBUS. Here the compiled module puts zeros in the place of what is gone (held.c), and `Held.check` tells
afterwards that the file is not what it was. Without the module, vectors that fit are read into memory.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine import compiled
from bitextmine.embeddings.manifest import Manifest
from bitextmine.embeddings.npy import file_digest, vectors_layout
from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError

__all__ = ["Held", "library", "watch"]

_WATCHING = threading.Lock()


def library() -> ctypes.CDLL | None:
    """The library, None where it cannot be had (`compiled.library`)."""
    return compiled.library("embeddings")


def watch(mapped: NDArray[np.uint8], owner: object) -> int:
    """Puts zeros in the place of what is gone from a map of a file, whose bytes are `mapped`, as long as its `owner`
    lives: what gives the map back when it goes. Returns the number to ask `held_torn` with; -1 where it is not watched,
    for want of the library or of room."""
    found = library()
    if found is None:
        return -1
    with _WATCHING:
        place: int = found.held_watch(mapped, len(mapped))
    if place >= 0:  # until just before the map is given back, and its addresses may be another's
        weakref.finalize(owner, found.held_release, place)
    return place


class Held:
    """An embedding in use. `vectors`: float16 (rows, dim), a read-only map of the file, or, without the compiled module
    and up to `in_memory` bytes, a copy; `manifest`: what they are of.

    Raises BitextmineError as `open_embedding` does.
    """

    vectors: np.ndarray
    manifest: Manifest

    def __init__(
        self, npy_path: str | os.PathLike[str], *, rows: int | None = None, in_memory: int = 0
    ) -> None:
        self.path = Path(npy_path)
        while True:
            # The file that is mapped, whatever gets its name later.
            self._fd = _opened(self.path)
            vectors, self.manifest = open_embedding(self.path, rows=rows)
            if os.path.samestat(os.fstat(self._fd), self.path.stat()):
                break
            os.close(self._fd)
        weakref.finalize(self, os.close, self._fd)
        _, self._offset = vectors_layout(self.path)
        self._size = self._offset + vectors.nbytes
        self._digest = self.manifest.vectors_blake2b or file_digest(self._fd, self._offset)
        self._place = -1
        self._library = library() if vectors.size else None
        if self._library is not None:
            held = vectors._mmap  # type: ignore[attr-defined]
            self._place = watch(np.frombuffer(held, dtype=np.uint8), held)
        elif vectors.nbytes <= in_memory:
            vectors = np.array(vectors)
        self.vectors = vectors

    def check_size(self) -> None:
        """Raises BitextmineError where the file was truncated, or could not be read, since it was opened; costs
        nothing."""
        torn = self._place >= 0 and self._library is not None and self._library.held_torn(self._place)
        if torn or os.fstat(self._fd).st_size != self._size:
            raise self._changed()

    def check(self) -> None:
        """Raises BitextmineError where the vectors in the file are not those of its manifest any more; reads them
        all."""
        self.check_size()
        try:
            same = file_digest(self._fd, self._offset) == self._digest
        except OSError as e:
            raise BitextmineError(f"{self.path}: cannot read: {e.strerror or e}") from None
        if not same:
            raise self._changed()

    def _changed(self) -> BitextmineError:
        return BitextmineError(
            f"{self.path}: the vectors changed while they were in use; what was made of them is thrown away: run the "
            "same command again"
        )


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        vectors_layout(path)  # says what is wrong
        raise
