"""A teacher's vectors on disk, in float16: a file that only grows, and a journal of the keys of its rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import weakref
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import locked_folder, sync_file
from bitextmine.files.journal import Journal

NUMBER = np.dtype("<f2")


class VectorStore:
    """Vectors of ``dim`` numbers, in a folder of ``parent`` that is named after ``identity``, the way they were made.

    Blocks of rows are appended and never change. A block counts once the journal has its keys, which it gets when the
    vectors are safe on disk. OSError passes through `filling` and `add`.
    """

    def __init__(self, parent: Path, identity: Mapping[str, Any], dim: int) -> None:
        self.dim = dim
        self.identity = {"dim": dim, **identity}
        name = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:20]
        self.folder = parent / f"teacher-{name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._vectors = self.folder / "vectors"
        self._journal: Journal | None = None
        self._file = os.open(self._vectors, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        weakref.finalize(self, os.close, self._file)
        self._index(np.zeros(0, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self._keys)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Read the keys, and allow `add` in the block; waits while another run fills the store."""
        with (
            locked_folder(self.folder),
            Journal(self.folder / "journal", "teacher", self.identity) as self._journal,
        ):
            size, whole, keys = self.dim * NUMBER.itemsize, 0, [np.zeros(0, dtype=np.uint64)]
            there = os.fstat(self._file).st_size // size
            for number, record in enumerate(self._journal):
                if whole + len(record["keys"]) > there:  # lost with the power
                    self._journal.truncate(number)
                    break
                keys.append(np.array(record["keys"], dtype=np.uint64))
                whole += len(keys[-1])
            os.ftruncate(self._file, whole * size)
            self._index(np.concatenate(keys))
            yield

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Append m rows: keys (m,) uint64, all of them new; vectors (m, dim)."""
        assert self._journal is not None
        with self._vectors.open("ab") as file:
            file.write(np.ascontiguousarray(vectors, dtype=NUMBER).data)
            sync_file(file)
        self._journal.append({"keys": keys.tolist()}, sync=True)
        self._index(np.concatenate([self._keys, keys]))

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of each key, (n,) int64, -1 for unknown keys (n,) uint64."""
        if not len(self):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[at] == keys, self._places[at], -1)

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Return the vectors (n, dim) float32 of rows (n,) int64; BitextmineError if they cannot be read."""
        size = self.dim * NUMBER.itemsize
        try:
            raw = b"".join(map(os.pread, repeat(self._file), repeat(size), (places * size).tolist()))
        except OSError as e:
            raise BitextmineError(
                f"{self._vectors}: cannot read the teacher's vectors: {e.strerror}"
            ) from None
        if len(raw) != size * len(places):
            raise BitextmineError(
                f"{self._vectors}: cut short; remove {self.folder} to compute the vectors again"
            )
        return np.frombuffer(raw, dtype=NUMBER).reshape(len(places), self.dim).astype(np.float32)

    def _index(self, keys: np.ndarray) -> None:
        self._keys = keys
        self._places = np.argsort(keys, kind="stable")
        self._sorted = keys[self._places]
