"""Write an embedding so that a run killed at any moment loses seconds of work, and never leaves a wrong byte."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings import store
from bitextmine.embeddings.store import Manifest
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import (
    FULL_DISK,
    allocate,
    cannot_write,
    put_in_place,
    staging,
    sync_file,
    sync_folder,
    write_at,
)
from bitextmine.files.journal import Journal, JournalBusyError
from bitextmine.files.json_toml import json_bytes, plain
from bitextmine.files.output import Destination
from bitextmine.system import size

# The longest time that written rows wait for the disk: the most a kill can cost, apart from the current batch.
SYNC_SECONDS = 2.0


class EmbeddingWriter:
    """Write the rows of an embedding in order; an interrupted run resumes at ``resume_row``.

    Call ``write(start, rows)`` from ``resume_row`` on, then ``finish(manifest)``. Closed without ``finish``, as by
    leaving ``with``, the part stays for a later run.

    Until the end, NPY.part holds the .npy at its full size, and the `Journal` NPY.part.journal the number of rows that
    are safe on disk. Two rules make a kill harmless: a record is written after its rows are on disk, and the journal is
    cleared before anything it vouches for changes. Rows go through ``pwrite``: with a memory map a full disk ends the
    process with SIGBUS, and the pages of the file count as memory of this process. If NPY is a link, it stays one, and
    the vectors and their part lie where it leads.

    A part of another `identity`, which is the origin of the rows (text digest, model hash, settings), is discarded.
    `overwrite` writes over a file of another program that has the journal's name.

    Raises:
        JournalBusyError: another process is writing the same embedding.
        BitextmineError: the disk cannot hold the whole file, or the name is that of a device or a pipe.
    """

    resume_row: int
    _next: int

    def __init__(
        self,
        npy_path: str | os.PathLike[str],
        rows: int,
        dim: int,
        identity: Mapping[str, Any],
        *,
        overwrite: bool = False,
    ) -> None:
        self.npy_path = Path(npy_path)
        self._target = Path(os.path.realpath(npy_path))  # through a link, which stays one
        self.part_path = store.part_path(self._target)
        self.rows, self.dim = int(rows), int(dim)
        self.identity = plain({**identity, "rows": self.rows, "dim": self.dim, "dtype": store.DTYPE.name})
        self._header = store.npy_header(self.rows, self.dim)
        self._size = len(self._header) + self.rows * self.dim * store.DTYPE.itemsize
        self._synced = time.monotonic()
        self.safe_rows = 0  # rows known to be on disk
        self._fd = -1
        Destination.of(self.npy_path).check(stream=False)
        try:
            self._journal = Journal(
                store.journal_path(npy_path), store.JOB, self.identity, overwrite=overwrite
            ).__enter__()
        except JournalBusyError:
            raise JournalBusyError(
                f"{self.npy_path}: another process is writing this embedding now; wait for it, stop it, or write "
                "elsewhere with --out or --cache"
            ) from None
        except OSError as e:
            raise self._failed(e) from None
        try:
            self._resume()
        except OSError as e:
            if not self.safe_rows:  # the part may hold all the space there is
                self.discard()
            self._release()
            raise self._failed(e) from None
        except BaseException:
            self._release()
            raise

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Store float rows (b, dim) as rows ``start``, the one after the last one written, and so on, in float16.

        Raises:
            BitextmineError: a number is NaN or too large for float16, or the disk fails.
            ValueError: the rows are out of order or have another shape.
        """
        if start != self._next or rows.shape[1:] != (self.dim,) or start + len(rows) > self.rows:
            raise ValueError(
                f"rows of shape {rows.shape} at {start} do not follow row {self._next} of {self.rows}, {self.dim}"
            )
        half, bad = store.halves(rows)
        if bad is not None:
            raise BitextmineError(
                f"{self.npy_path}: the vector of line {start + bad + 1} has NaN, infinite or too large numbers; "
                "the model is damaged, or its vectors are not normalised"
            )
        if half.size:
            try:
                at = len(self._header) + start * self.dim * store.DTYPE.itemsize
                write_at(self._fd, half.data.cast("B"), at)
            except OSError as e:
                raise self._failed(e) from None
        self._next = start + len(rows)
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """Return a copy of rows (b,) that are written already, as float16 (b, dim)."""
        out = np.empty((len(rows), self.dim), store.DTYPE)
        for row, at in zip(out, rows.tolist(), strict=True):
            os.preadv(self._fd, [row.data.cast("B")], len(self._header) + at * row.nbytes)
        return out

    def sync(self) -> None:
        """Bring the rows written so far to disk and record them."""
        try:
            os.fsync(self._fd)
            if self._next > self.safe_rows:
                self._journal.append({"rows": self._next}, sync=True)
        except OSError as e:
            raise self._failed(e) from None
        self.safe_rows = self._next
        self._synced = time.monotonic()

    def finish(self, manifest: Manifest) -> Manifest:
        """Put the complete embedding in place, and return its manifest with rows, dim, dtype and digest filled in."""
        if self._next != self.rows:
            raise ValueError(f"only {self._next} of {self.rows} rows are written")
        self.sync()
        digest = store.vectors_digest(self.part_path)
        manifest = dataclasses.replace(manifest, rows=self.rows, dim=self.dim, vectors_blake2b=digest)
        final = store.manifest_path(self.npy_path)
        try:
            # First whatever takes space, then only names. The old vectors go before the new manifest comes: a kill must
            # not leave it beside vectors that it does not describe.
            with staging(Path(f"{store.part_path(self.npy_path)}.manifest")) as (staged, file):
                file.write(json_bytes(manifest.to_json()))
                sync_file(file)
                self._target.unlink(missing_ok=True)
                sync_folder(self._target.parent)
                staged.replace(final)
                sync_folder(final.parent)
                put_in_place(self.part_path, self._target)
            self._journal.remove()
        except OSError as e:
            raise self._failed(e) from None
        self._release()
        return manifest

    def close(self) -> None:
        """Stop without finishing: the rows written stay for a later run."""
        if self._fd < 0:
            return
        try:
            if self._next > self.safe_rows:
                self.sync()
        finally:
            self._release()

    def discard(self) -> None:
        """Stop, and leave nothing for a later run."""
        self._journal.remove()
        with contextlib.suppress(OSError):
            self.part_path.unlink()
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)  # gives the space back at once
        self._release()

    def __enter__(self) -> EmbeddingWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except BitextmineError:
            if error is None:  # else the first error is the one to tell
                raise

    def _resume(self) -> None:
        """Open the part and continue after its safe rows, or start it afresh."""
        self._fd = os.open(self.part_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        done = int(self._journal[-1]["rows"]) if len(self._journal) else 0
        if (
            not 0 < done <= self.rows
            or os.fstat(self._fd).st_size != self._size
            or os.pread(self._fd, len(self._header), 0) != self._header
        ):
            done = 0
            self._journal.truncate(0)
            self._journal.append({"rows": 0}, sync=True)  # on disk before the part changes
            os.ftruncate(self._fd, 0)
            allocate(self._fd, self._size)
            write_at(self._fd, memoryview(self._header), 0)
        self.resume_row = self._next = self.safe_rows = done

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        self._journal.close()

    def _failed(self, e: OSError) -> BitextmineError:
        error = f"{cannot_write(e, self.npy_path, 'write elsewhere with --out or --cache')}"
        if e.errno in FULL_DISK:
            free = shutil.disk_usage(self._target.parent).free
            error += f" (the vectors take {size(self._size)}, {size(free)} are free)"
        if self.safe_rows:
            error += f"; {self.safe_rows:,} of {self.rows:,} rows are kept"
        return BitextmineError(error)
