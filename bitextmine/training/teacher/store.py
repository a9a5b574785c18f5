"""A teacher's vectors on disk, in float16: two files that only grow, the vectors and the keys of their sentences."""

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
from bitextmine.files.jsonfile import write_json

__all__ = ["FORM", "VectorStore"]

# Changes with what is stored of the same sentence.
FORM = 1
KEY = np.dtype("<u8")
NUMBER = np.dtype("<f2")


class VectorStore:
    """Vectors of ``dim`` numbers in a folder of ``parent`` that is named after ``identity``, what they were made with.

    Rows are added at the end, a block at a time, and never change: other runs may read meanwhile. A key counts once
    its vector is safe on disk, so that a killed run leaves nothing that is not whole. OSError passes through `filling`
    and `add`.
    """

    def __init__(self, parent: Path, identity: Mapping[str, Any], dim: int) -> None:
        self.dim = dim
        said = json.dumps([FORM, dim, identity], sort_keys=True)
        self.folder = parent / f"teacher-{hashlib.sha256(said.encode()).hexdigest()[:20]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "teacher.json").exists():
            write_json(
                self.folder / "teacher.json",
                {"kind": "bitextmine-teacher-vectors", "form": FORM, "dim": dim, **identity},
            )
        self._keys, self._vectors = self.folder / "keys", self.folder / "vectors"
        for path in (self._keys, self._vectors):
            path.touch()
        self._file = os.open(self._vectors, os.O_RDONLY)
        weakref.finalize(self, _close, self._file)
        self._read_keys()

    def __len__(self) -> int:
        return len(self._places)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """What `add` is called in: no other run adds meanwhile; what a killed one left unfinished is cut off."""
        with locked_folder(self.folder):
            self._read_keys()
            os.truncate(self._keys, len(self._places) * KEY.itemsize)
            os.truncate(self._vectors, len(self._places) * self.dim * NUMBER.itemsize)
            yield

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Adds m sentences: keys (m,) uint64, none of which is there; vectors (m, dim)."""
        for path, array, kind in ((self._vectors, vectors, NUMBER), (self._keys, keys, KEY)):
            with path.open("ab") as file:
                file.write(np.ascontiguousarray(array, dtype=kind).data)
                sync_file(file)
        self._index(np.concatenate([self._keys_in_order, keys.astype(KEY)]))

    def places(self, keys: np.ndarray) -> np.ndarray:
        """(n,) int64: the row of each key (n,) uint64, -1 where it has none."""
        if not len(self._places):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[at] == keys, self._places[at], -1)

    def rows(self, places: np.ndarray) -> np.ndarray:
        """(n, dim) float32: the vectors of rows (n,) int64. Raises BitextmineError where they cannot be read."""
        size = self.dim * NUMBER.itemsize
        try:
            raw = b"".join(map(os.pread, repeat(self._file), repeat(size), (places * size).tolist()))
        except OSError as e:
            raise BitextmineError(
                f"{self._vectors}: cannot read the teacher's vectors: {e.strerror}"
            ) from None
        if len(raw) != size * len(places):
            raise BitextmineError(
                f"{self._vectors}: cut short; remove {self.folder}, and the teacher makes its vectors again"
            )
        return np.frombuffer(raw, dtype=NUMBER).reshape(len(places), self.dim).astype(np.float32)

    def _read_keys(self) -> None:
        raw = self._keys.read_bytes()  # before the vectors are counted: a row that is added meanwhile has one
        whole = min(self._vectors.stat().st_size // (self.dim * NUMBER.itemsize), len(raw) // KEY.itemsize)
        self._index(np.frombuffer(raw, dtype=KEY, count=whole))

    def _index(self, keys: np.ndarray) -> None:
        self._keys_in_order = keys
        self._places = np.argsort(keys, kind="stable")
        self._sorted = keys[self._places]


def _close(file: int) -> None:
    with contextlib.suppress(OSError):
        os.close(file)
