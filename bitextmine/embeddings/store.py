"""Finished embeddings: open them, compare them with their text and model, describe them.

Vectors and manifest appear complete or not at all (`bitextmine.embeddings.writer`). They belong to the text, model and
settings whose digests are in the manifest, whatever their time stamps.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.manifest import Manifest, manifest_path, read_manifest
from bitextmine.embeddings.npy import (
    DTYPE,
    journal_path,
    open_vectors,
    part_path,
    vectors_digest,
    vectors_layout,
)
from bitextmine.embeddings.writer import JOB
from bitextmine.errors import BitextmineError
from bitextmine.files.journal import last_record, read_head
from bitextmine.files.ours import check_vectors_place
from bitextmine.files.streams import check_writable


class VectorFile:
    """The rows of an embedding in use, float16 (rows, dim), read with ``pread``: index it like a matrix.

    A change of the file while it is open is an error and never a wrong result: call `check` at the end.

    Raises:
        BitextmineError: as for `open_embedding`.
    """

    nbytes = 0  # in memory

    def __init__(self, npy_path: str | os.PathLike[str]) -> None:
        self.path = Path(npy_path)
        self.shape, self._offset = vectors_layout(self.path)
        self.dtype, self.ndim = DTYPE, 2
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        self._stat = os.fstat(self._fd)
        _, self.manifest = open_embedding(self.path)
        self.check()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float16]:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self._read(start, stop)[::step]
        if not len(rows):
            return np.empty((0, self.shape[1]), DTYPE)
        first, last = int(rows.min()), int(rows.max()) + 1
        if last - first <= 4 * len(rows):
            return self._read(first, last)[rows - first]
        return np.concatenate([self._read(row, row + 1) for row in rows.tolist()])

    def check(self) -> None:
        """Raise BitextmineError if the file is not the one that was opened."""
        try:
            for now in (os.fstat(self._fd), self.path.stat()):
                if any(
                    getattr(now, key) != getattr(self._stat, key)
                    for key in ("st_ino", "st_size", "st_mtime_ns")
                ):
                    raise self._changed()
        except OSError:
            raise self._changed() from None

    def _read(self, start: int, stop: int) -> NDArray[np.float16]:
        width = self.shape[1] * DTYPE.itemsize
        out = np.empty((max(0, stop - start), self.shape[1]), DTYPE)
        view, at = out.data.cast("B") if out.size else memoryview(b""), self._offset + start * width
        while len(view):
            count = os.preadv(self._fd, [view[: 1 << 30]], at)
            if not count:
                raise self._changed()
            view, at = view[count:], at + count
        return out

    def _changed(self) -> BitextmineError:
        return BitextmineError(
            f"{self.path}: the vectors changed while they were in use; run the same command again"
        )


def open_embedding(
    npy_path: str | os.PathLike[str], *, rows: int | None = None, dim: int | None = None
) -> tuple[NDArray[np.float16], Manifest]:
    """Open a finished embedding: its vectors, float16 (rows, dim) as a read-only map, and its manifest.

    Args:
        npy_path: the vectors.
        rows: lines of the text they should belong to.
        dim: numbers in a row that the model makes.

    Raises:
        BitextmineError: the ``.npy`` is missing, truncated or foreign, its manifest is missing or damaged, or the
            numbers disagree.
    """
    vectors = open_vectors(npy_path)
    where = manifest_path(npy_path)
    manifest = read_manifest(where)
    if (manifest.rows, manifest.dim) != vectors.shape:
        raise BitextmineError(
            f"{npy_path}: {vectors.shape[0]:,} rows of {vectors.shape[1]} numbers, but {where.name} says "
            f"{manifest.rows:,} rows of {manifest.dim}; the two do not belong together, run embed again"
        )
    if manifest.dtype != DTYPE.name:
        raise BitextmineError(
            f"{where}: says {manifest.dtype}, but {npy_path} is {DTYPE.name}; run embed again"
        )
    if rows is not None:
        check_rows(npy_path, manifest, rows)
    if dim is not None and dim != manifest.dim:
        raise BitextmineError(
            f"{npy_path}: vectors of {manifest.dim} numbers, but {dim} are wanted; "
            f"it was made by another model ('{manifest.model}'), run embed again with the same model for both"
        )
    return vectors, manifest


def check_place(npy_path: str | os.PathLike[str], dim: int) -> None:
    """Raise BitextmineError if an embedding with vectors of `dim` numbers cannot go to its place.

    Files of other programs are not written over, and the folder must be writable.
    """
    place = Path(npy_path)
    if not place.exists():
        check_writable(part_path(place))
    where = place, manifest_path(place), part_path(place), journal_path(place)
    check_vectors_place(*where, dim, "name another place (embed --out)")


def check_rows(npy_path: str | os.PathLike[str], manifest: Manifest, rows: int) -> None:
    """Raise BitextmineError if an embedding has not one row for each line of its text."""
    if rows != manifest.rows:
        raise BitextmineError(
            f"{npy_path}: {manifest.rows:,} rows, but the text has {rows:,} lines; "
            "the text changed, run embed again"
        )


def check_fresh(npy_path: str | os.PathLike[str], text_sha256: str, model_hash: str) -> str | None:
    """Return None if the embedding is of this text and model, else the reason in words."""
    if not Path(npy_path).exists():
        return "not embedded yet"
    try:
        _, manifest = open_embedding(npy_path)
    except BitextmineError as e:
        return f"unusable: {e}"
    if manifest.text_sha256 != text_sha256:
        return "the text changed"
    if manifest.vectors_blake2b and vectors_digest(npy_path) != manifest.vectors_blake2b:
        return "its vectors do not match its manifest"
    if manifest.model_hash != model_hash:
        return f"made by another model ('{manifest.model}' {manifest.model_hash}, not {model_hash})"
    return None


def describe_embedding(npy_path: str | os.PathLike[str]) -> dict[str, str]:
    """Return facts about an embedding, finished or not, by name, in the order to show them.

    Raises:
        BitextmineError: it cannot be used (`open_embedding`).
    """
    path = Path(npy_path)
    head = read_head(journal_path(path))
    if not path.exists() and head is not None and head.job == JOB:
        done = (last_record(journal_path(path)) or {}).get("rows", 0)
        return {
            "what": "unfinished embedding; run embed again to resume",
            "rows": f"{done} of {head.identity.get('rows', 0)}",
            **dict(_facts(head.identity)),
        }
    vectors, manifest = open_embedding(path)
    return {
        "what": "embedding: row i is line i of the text",
        "rows": f"{manifest.rows}",
        "dim": f"{manifest.dim}",
        "numbers": f"{manifest.dtype}, {vectors.nbytes:,} bytes",
        **dict(_facts(manifest.to_json())),
    }


def _facts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the other entries of a manifest or an identity, the known ones first."""
    names = {
        "lang": "language",
        "corpus": "text",
        "text_sha256": "text sha256",
        "model": "model",
        "model_hash": "model hash",
        "settings": "settings",
        "vectors_blake2b": "vectors blake2b",
        "version": "made by",
    }
    for key in [*names, *sorted(content.keys() - names.keys() - {"rows", "dim", "dtype", "kind"})]:
        value = content.get(key)
        if value in (None, "", {}):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in sorted(value.items()))
        yield names.get(key, key), f"bitextmine {value}" if key == "version" else str(value)
