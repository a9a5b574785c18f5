"""Writing an embedding so that a run killed at any moment loses seconds of work, and never a wrong byte."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from bitextmine.embeddings.manifest import Manifest, manifest_path, read_manifest
from bitextmine.embeddings.npy import DTYPE, npy_header, part_path, staged_path, state_path, vectors_digest
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import FULL_DISK, allocate, locked_folder, open_locked, sync_folder, write_at
from bitextmine.files.jsonfile import plain, read_json, stage_json

__all__ = ["BeingWritten", "EmbeddingWriter", "PlaceTaken", "sweep"]

# How long written rows may wait for the disk: what a kill can cost, apart from the batch in hand.
SYNC_SECONDS = 2.0


class BeingWritten(BitextmineError):
    """Another process is writing the embedding. `holder`: which, in words."""

    def __init__(self, npy_path: Path, holder: str, elsewhere: str) -> None:
        super().__init__(
            f"{npy_path}: {holder} is writing this embedding now; wait for it, stop it, or write elsewhere with "
            f"{elsewhere}"
        )
        self.holder = holder


class PlaceTaken(Exception):
    """Another process has put something else where the embedding should go."""


class EmbeddingWriter:
    """Writes the rows of an embedding in order; a run that was killed goes on at ``resume_row``.

    ``identity`` says what the rows come from (text digest, model hash, settings, and the batch boundaries
    if they change the vectors): a part left behind is taken up only if its identity is the same, and is
    discarded otherwise. Call ``write(start, rows)`` from ``resume_row`` on, then ``finish(manifest)``.
    Closed without ``finish``, as leaving ``with`` does, the part stays for a later run.

    On disk, until the end: NPY.part (the .npy to be, of full size from the start) and NPY.part.json
    ({identity, done_rows, writer}). Two rules make a kill harmless: done_rows moves only after the rows are
    on disk, and NPY.part.json is removed before anything it vouches for changes. (Killed in the very last
    moment, a run may leave NPY.part.json behind beside the finished pair, where it means nothing: `sweep`.)

    Rows go through ``pwrite`` and not a memory map: a full disk is then an error, where a map would end the
    process with SIGBUS, and the file's pages do not count as memory of this process.

    ``still_free`` is asked while no other process can put an embedding in place, before anything is touched. elsewhere:
    the option that messages advise.

    Raises BeingWritten when another process is writing the same embedding (the lock dies with its holder, so nothing
    stale can stay), PlaceTaken when the place is not free any more, and BitextmineError when the disk cannot hold the
    whole file.
    """

    resume_row: int

    def __init__(
        self,
        npy_path: str | os.PathLike[str],
        rows: int,
        dim: int,
        identity: Mapping[str, Any],
        *,
        sync_seconds: float = SYNC_SECONDS,
        still_free: Callable[[], bool] = lambda: True,
        elsewhere: str = "--out",
    ) -> None:
        self.npy_path = Path(npy_path)
        self.part_path, self.state_path = part_path(npy_path), state_path(npy_path)
        self._staged = staged_path(npy_path)
        self.rows, self.dim = int(rows), int(dim)
        self._identity = plain({**identity, "rows": self.rows, "dim": self.dim, "dtype": DTYPE.name})
        self._header = npy_header(self.rows, self.dim)
        self._size = len(self._header) + self.rows * self.dim * DTYPE.itemsize
        self._sync_seconds = sync_seconds
        self._still_free, self._elsewhere = still_free, elsewhere
        self._synced = time.monotonic()
        self._next = self._safe = 0  # rows written, rows known to be on disk
        self._fd = self._open_part()
        try:
            done = self._done_rows()
            self.resume_row = self._next = self._safe = done or 0
            if done is None:
                self._start()
            self._save_state(self._safe)
        except OSError as e:
            if not self._safe:  # it may hold all the space there is
                self._discard()
            self._release()
            raise self._failed(e) from None
        except BaseException:
            self._release()
            raise

    @property
    def identity(self) -> dict[str, Any]:
        """What the rows come from, with their number, dimension and type; as JSON gives it back."""
        return dict(self._identity)

    @property
    def safe_rows(self) -> int:
        """How many rows are on disk, whatever happens to this process."""
        return self._safe

    def write(self, start: int, rows: np.ndarray) -> None:
        """Store float rows (b, dim) as rows ``start`` to ``start + b`` of the file, in float16.

        ``start`` is the row after the last one written. The rows are safe from a kill after ``sync_seconds``
        at most. Raises BitextmineError for NaN, for numbers too large for float16, and when the disk fails;
        ValueError for rows out of order or of another shape.
        """
        if self._fd < 0:
            raise ValueError("this EmbeddingWriter is closed")
        if start != self._next:
            raise ValueError(f"rows come in order: expected row {self._next}, got row {start}")
        if rows.ndim != 2 or rows.shape[1] != self.dim or start + len(rows) > self.rows:
            raise ValueError(
                f"rows of shape {rows.shape} do not fit ({self.rows}, {self.dim}) at row {start}"
            )
        with np.errstate(over="ignore"):  # found below
            half = np.ascontiguousarray(rows, dtype=DTYPE)
        finite = np.isfinite(half).all(axis=1)
        if not finite.all():
            bad = start + int(np.argmin(finite))
            raise BitextmineError(
                f"{self.npy_path}: the vector of line {bad + 1} has NaN, infinite or too large numbers; "
                "the model is damaged, or its vectors are not normalised"
            )
        if half.size:
            try:
                at = len(self._header) + start * self.dim * DTYPE.itemsize
                write_at(self._fd, half.data.cast("B"), at)
            except OSError as e:
                raise self._failed(e) from None
        self._next = start + len(rows)
        if time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Rows (b,) int that are written already, as float16 (b, dim); a copy."""
        if self._fd < 0:
            raise ValueError("this EmbeddingWriter is closed")
        if len(rows) and not 0 <= rows.min() <= rows.max() < self._next:
            raise ValueError(
                f"only rows 0 to {self._next - 1} are written, asked for {rows.min()} to {rows.max()}"
            )
        shape = (self.rows, self.dim)
        return np.memmap(self.part_path, DTYPE, mode="r", offset=len(self._header), shape=shape)[rows]

    def sync(self) -> None:
        """Bring the rows written so far safely to disk, and count them as done."""
        try:
            os.fsync(self._fd)
            self._save_state(self._next)
        except OSError as e:
            raise self._failed(e) from None
        self._safe = self._next
        self._synced = time.monotonic()

    def finish(self, manifest: Manifest) -> Manifest:
        """Put the complete embedding and its manifest in place; returns the manifest as written.

        Rows, dim, dtype and the digest of the vectors are filled in here.
        """
        if self._next != self.rows:
            raise ValueError(f"only {self._next} of {self.rows} rows are written")
        self.sync()
        manifest = dataclasses.replace(
            manifest,
            rows=self.rows,
            dim=self.dim,
            dtype=DTYPE.name,
            vectors_blake2b=vectors_digest(self.part_path),
        )
        try:
            with locked_folder(self.npy_path.parent):
                self._put_in_place(manifest)
        except OSError as e:
            raise self._failed(e) from None
        self._release()
        return manifest

    def _put_in_place(self, manifest: Manifest) -> None:
        final = manifest_path(self.npy_path)
        # First all that takes space, then only names. The old manifest goes before the new vectors come:
        # a kill between the two must not leave it describing vectors that it does not know.
        stage_json(self._staged, manifest.to_json())
        final.unlink(missing_ok=True)
        sync_folder(final.parent)
        self.part_path.replace(self.npy_path)
        self._staged.replace(final)
        self.state_path.unlink(missing_ok=True)
        sync_folder(final.parent)

    def _undo_half_a_finish(self) -> None:
        """Make the vectors a part again if a kill kept their manifest from coming after them."""
        if (
            not self.part_path.exists()
            and not manifest_path(self.npy_path).exists()
            and self.npy_path.exists()
            and self._staged.exists()
        ):
            with contextlib.suppress(BitextmineError):  # else they are other vectors, and stay
                if vectors_digest(self.npy_path) == read_manifest(self._staged).vectors_blake2b:
                    self.npy_path.replace(self.part_path)

    def close(self) -> None:
        """Stop without finishing: what is written stays for a later run."""
        if self._fd < 0:
            return
        try:
            if self._next > self._safe:
                self.sync()
        finally:
            self._release()

    def discard(self) -> None:
        """Stop, and leave nothing for a later run: what is written will not become an embedding."""
        if self._fd >= 0:
            self._discard()
            self._release()

    def __enter__(self) -> EmbeddingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BitextmineError:
            if error is None:  # else the first error is the one to tell
                raise

    # --- the part ---

    def _open_part(self) -> int:
        """Open the part and lock it."""
        folder = self.npy_path.parent
        try:
            # The folder, too: a part that has its final name no longer keeps the next writer out by its own lock.
            with locked_folder(folder):
                if not self._still_free():
                    raise PlaceTaken
                self._undo_half_a_finish()
                return open_locked(self.part_path)
        except BlockingIOError:
            raise BeingWritten(self.npy_path, self._holder(), self._elsewhere) from None
        except (FileNotFoundError, NotADirectoryError):
            raise BitextmineError(
                f"{self.npy_path}: cannot write: there is no folder {folder}; create it first"
            ) from None
        except OSError as e:
            raise BitextmineError(
                f"{self.npy_path}: cannot write: {e.strerror or e}; write elsewhere with {self._elsewhere}"
            ) from None

    def _holder(self) -> str:
        try:
            writer = read_json(self.state_path)["writer"]
            return f"process {writer['pid']} on {writer['host']}"
        except (BitextmineError, KeyError, TypeError):
            return "another process"

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _done_rows(self) -> int | None:
        """How many rows of this identity the part holds, or None when it is of no use."""
        try:
            state = read_json(self.state_path)
        except BitextmineError:
            return None
        done = state.get("done_rows")
        if state.get("identity") != self._identity or type(done) is not int or not 0 <= done <= self.rows:
            return None
        if os.fstat(self._fd).st_size != self._size:
            return None
        return done if os.pread(self._fd, len(self._header), 0) == self._header else None

    def _start(self) -> None:
        """A new part, with all the space it will need."""
        self.state_path.unlink(missing_ok=True)
        self._staged.unlink(missing_ok=True)
        sync_folder(self.part_path.parent)
        os.ftruncate(self._fd, 0)
        allocate(self._fd, self._size)
        write_at(self._fd, memoryview(self._header), 0)

    def _discard(self) -> None:
        for path in (self.state_path, _staged_state(self.npy_path), self.part_path):
            with contextlib.suppress(OSError):
                path.unlink()
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)  # gives the space back at once

    def _failed(self, e: OSError) -> BitextmineError:
        """What to tell about a write that failed; what is safe on disk stays there."""
        kept = (
            f"; {self._safe:,} of {self.rows:,} rows are kept, run embed again to go on" if self._safe else ""
        )
        if e.errno not in FULL_DISK:
            return BitextmineError(f"{self.npy_path}: cannot write: {e.strerror or e}{kept}")
        free = shutil.disk_usage(self.npy_path.parent).free
        return BitextmineError(
            f"{self.npy_path}: {e.strerror}: {self.rows:,} rows of {self.dim} float16 numbers need "
            f"{self._size:,} bytes, and {free:,} are free on that disk (a quota or 'ulimit -f' may allow "
            f"less); free some space, or write elsewhere with {self._elsewhere}{kept}"
        )

    def _save_state(self, done_rows: int) -> None:
        writer = {"pid": os.getpid(), "host": socket.gethostname()}
        staged = _staged_state(self.npy_path)
        stage_json(staged, {"identity": self._identity, "done_rows": done_rows, "writer": writer})
        staged.replace(self.state_path)
        sync_folder(self.state_path.parent)


def _staged_state(npy_path: str | os.PathLike[str]) -> Path:
    """The state to be, while it is written."""
    return Path(f"{state_path(npy_path)}.tmp")


def sweep(npy_path: str | os.PathLike[str]) -> None:
    """Remove what a writer killed in its very last moment left beside a finished embedding."""
    part = part_path(npy_path)
    left = [state_path(npy_path), _staged_state(npy_path), staged_path(npy_path)]
    if not any(path.exists() for path in left):
        return
    with contextlib.suppress(OSError), locked_folder(part.parent):  # may be a folder one can only read
        if not part.exists():  # else somebody writes it anew
            for path in left:
                path.unlink(missing_ok=True)
