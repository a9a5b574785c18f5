"""What a search has found so far, kept in a file, so that a run killed at any moment goes on near where it stopped."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from pathlib import Path

import numpy as np

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import open_locked, write_at
from bitextmine.files.ours import Made, is_ours
from bitextmine.search.records import Records
from bitextmine.search.rows import VectorRows
from bitextmine.search.topk import TopK

__all__ = ["SAVE_SECONDS", "Checkpoint"]

log = logging.getLogger(__name__)

# Searches shorter than this leave no file, longer ones save about as often; but saving may take no more than 2% of the
# time.
SAVE_SECONDS = 10.0
_SHARE = 50

# How much of what saves may write the first part of the rows can use, as a power of that part: below 1, as the first
# rows change most. With 0.4 a million rows a side, in no order, are saved after every 25th part of them or sooner.
_EARLY = 0.4

_HEADER = 512
_KIND = "bitextmine search 2"


class Checkpoint:
    """The rows of x that are compared with all of y, and the k best of both sides so far, in one file.

    Give it to search_both(); it saves after blocks of rows, begins where a file of the same search left off, and saves
    once more at the end if it saved at all or took long enough. The file then holds the whole answer: remove() it
    when what is made of the answer is safe. "The same search" means the same vectors, byte for byte, and the same k;
    the answer does not depend on method, device, block size or memory, so that any of them can go on with it. The file
    of another search is discarded, with a word in the log; one that is of no search stays, and nothing is saved.

    A save appends what is new to the file (Records). All saves together write no more than the answer takes, 12 bytes
    per row and neighbour; where they would, they become fewer. Each carries a digest of all that is in the file up to
    its end: what a kill (or a power cut) left half written is not taken for a save, and the search goes on from the one
    before. A lock, which dies with its holder, keeps two processes from the same file: the second goes on without one.
    So does a search whose file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._fd = -1
        self._off = False  # no saving, for good
        self._records: Records

    def _begin(self, key: str) -> None:
        self._header = self._digest = json.dumps({"kind": _KIND, "key": key}).encode().ljust(_HEADER)
        self._end = 0  # of what is safe in the file
        self._saved = 0
        self._since = self._asked = time.monotonic()
        self._cost = 0.0

    def resume(self, key: str, x: VectorRows, y: VectorRows, fwd: TopK, bwd: TopK | None) -> int:
        """Puts the state that the file holds for this search into fwd and bwd (empty until now); returns how many rows
        of x are done: 0 without such a file. fwd and bwd are what save() then saves."""
        self._begin(key)
        self._records = Records(x, y, fwd, bwd)
        if not self.path.exists():
            return 0
        try:
            ours = is_ours(self.path, Made.SEARCH)
        except BitextmineError:
            ours = True  # to open it will fail, too
        if not ours:
            self._off = True
            log.warning("%s: no search made this file: it stays, and nothing is saved", self.path)
            return 0
        if not self._open(create=False):
            return 0
        length = os.fstat(self._fd).st_size
        with contextlib.suppress(OSError):
            if os.pread(self._fd, _HEADER, 0) == self._header:
                self._look()
        if self._saved and self._load(fwd, bwd):
            if self._end < length:
                log.info("%s: cut short or damaged; what is whole in it is used", self.path)
            return self._saved
        if length:  # else it was killed before it had anything to save
            log.info("%s: of another search (other vectors or another k), or damaged: discarded", self.path)
        self.remove()
        self._begin(key)
        return 0

    def save(self, done: int, *, last: bool = False) -> bool:
        """Saves the state after `done` rows of x, if it is time to; the last one is due in any case once there was one
        before. Returns whether it did."""
        now = time.monotonic()
        due = now - self._asked >= SAVE_SECONDS and now - self._since >= _SHARE * self._cost
        due = due or (last and (self._saved > 0 or now - self._since >= SAVE_SECONDS))
        if self._off or not due or done == self._saved:
            return False
        self._asked = now
        if not (last or self._affordable(done)):
            return False
        try:
            if self._fd < 0 and not self._open(create=True):
                return False
            self._append(done)
        except OSError as e:
            self._give_up(e)
            return False
        self._since = self._asked = time.monotonic()
        self._cost = self._since - now
        return True

    def _affordable(self, done: int) -> bool:
        """Whether all saves will write less than the answer takes if this one is among them. What y's lists change is
        what varies: of the bytes for it the first part of x's rows may use the most, as it changes them most."""
        records = self._records
        part = done / records.rows
        room = records.answer - _HEADER - records.finished - records.longest  # for all but the last save
        used = (self._end or _HEADER) - _HEADER + records.size(self._saved, done)
        return used <= part * records.finished + part**_EARLY * room

    def _append(self, done: int) -> None:
        if not self._end:
            os.ftruncate(self._fd, 0)
            write_at(self._fd, memoryview(self._header), 0)
        end = self._end or _HEADER
        for piece in self._records.pieces(self._saved, done, self._digest):
            write_at(self._fd, memoryview(piece), end)
            end += len(piece)
        os.fsync(self._fd)
        self._end, self._digest, self._saved = end, piece, done

    def close(self) -> None:
        """Lets go of the file; what is in it stays."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def remove(self) -> None:
        """Removes the file, if there is one (and no other process holds it)."""
        if self._fd >= 0 or (not self._off and self.path.exists() and self._open(create=False)):
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, *, create: bool) -> bool:
        """Opens and locks the file."""
        try:
            self._fd = open_locked(self.path, create=create)
        except BlockingIOError:
            self._off = True
            log.info("%s: another process searches the same; this one saves nothing", self.path)
        except OSError as e:
            if create or not isinstance(e, FileNotFoundError):  # created: there is no such folder
                self._give_up(e)
        return self._fd >= 0

    def _look(self) -> None:
        """Finds out how much of the file is whole."""
        reader = _Reader(self._fd, _HEADER)
        digest, done = self._header, 0
        with contextlib.suppress(ValueError):
            while done < self._records.rows:
                done, digest = self._records.read(reader.take, done, digest, use=False)
                self._end, self._digest, self._saved = reader.at, digest, done

    def _load(self, fwd: TopK, bwd: TopK | None) -> bool:
        """Reads what is whole; returns whether it can be what a search found. If not, nothing of it stays."""
        with contextlib.suppress(OSError, ValueError):  # it was whole a moment ago
            os.ftruncate(self._fd, self._end)
            reader = _Reader(self._fd, _HEADER)
            digest, done = self._header, 0
            while done < self._saved:
                done, digest = self._records.read(reader.take, done, digest, use=True)
            if self._records.complete(done):
                return True
        for best in (fwd, bwd):
            if best is not None:
                best.sim.fill(-np.inf)
                best.id.fill(-1)
        return False

    def _give_up(self, e: OSError) -> None:
        self._off = True
        log.warning(
            "%s: cannot save what the search has found so far (%s): if it is killed, it starts again",
            self.path,
            e.strerror or e,
        )
        if self._fd >= 0:  # part of a file that nobody will finish, on a disk that may be full
            self.remove()


class _Reader:
    """Bytes of an open file, from a place on."""

    def __init__(self, fd: int, at: int) -> None:
        self._fd, self.at = fd, at

    def take(self, count: int) -> bytes:
        """The next so many; ValueError where there are fewer."""
        found = bytearray()
        while len(found) < count:
            data = os.pread(self._fd, count - len(found), self.at + len(found))
            if not data:
                raise ValueError
            found += data
        self.at += count
        return bytes(found)
