"""What a search has found so far, kept in a file, so that a run killed at any moment goes on near where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import allocate, open_locked, write_at
from bitextmine.files.ours import Made, is_ours
from bitextmine.search.topk import TopK

__all__ = ["SAVE_SECONDS", "Checkpoint"]

log = logging.getLogger(__name__)

# Searches shorter than this leave no file, longer ones save about as often; but saving may take no more than 5% of
# the time.
SAVE_SECONDS = 10.0
_SHARE = 20

_HEADER = 4096
_KIND = "bitextmine search 1"


class Checkpoint:
    """The rows of x that are compared with all of y, and the k best of both sides so far, in one file.

    Give it to search_both(); it saves after blocks of rows, begins where a file of the same search left off, and saves
    once more at the end if it saved at all or took long enough. The file then holds the whole answer: remove() it
    when what is made of the answer is safe. "The same search" means the same vectors, byte for byte, and the same k;
    the answer does not depend on method, device, block size or memory, so that any of them can go on with it. The file
    of another search is discarded, with a word in the log; one that is of no search stays, and nothing is saved.

    The file has two places for a state. A save overwrites the older one; each carries a digest of all that is in it, so
    that what a kill (or a power cut) leaves half written is not taken for a state, and the other one is still there.
    A lock, which dies with its holder, keeps two processes from the same file: the second goes on without one. So does
    a search whose file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._fd = -1
        self._off = False  # no saving, for good
        self._key = ""
        self._slot = 0
        self._saved = 0
        self._since = time.monotonic()
        self._cost = 0.0

    def resume(self, key: str, fwd: TopK, bwd: TopK | None) -> int:
        """Puts the state that the file holds for this search into fwd and bwd (empty until now); returns how many rows
        of x are done: 0 without such a file."""
        self._key, self._since, self._saved = key, time.monotonic(), 0
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
        states = []
        for slot in (0, 1):
            with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
                header = json.loads(os.pread(self._fd, _HEADER, slot * _HEADER))
                if header["kind"] == _KIND and header["key"] == key and 0 < header["done"] <= len(fwd.sim):
                    states.append((int(header["done"]), slot, str(header["digest"])))
        for done, slot, digest in sorted(states, reverse=True):
            if self._load(slot, done, fwd, bwd) == digest:
                self._slot, self._saved = 1 - slot, done
                return done
            for best in (fwd, bwd):
                if best is not None:
                    best.sim.fill(-np.inf)
                    best.id.fill(-1)
        if os.fstat(self._fd).st_size:  # else it was killed before it had anything to save
            log.info("%s: of another search (other vectors or another k), or damaged: discarded", self.path)
        self.remove()
        return 0

    def save(self, done: int, fwd: TopK, bwd: TopK | None, *, last: bool = False) -> bool:
        """Saves the state after `done` rows of x, if it is time to; the last one is due in any case once there was one
        before. Returns whether it did."""
        waited = time.monotonic() - self._since
        due = waited >= max(SAVE_SECONDS, _SHARE * self._cost) or (last and self._saved)
        if self._off or not due or done == self._saved:
            return False
        begin = time.monotonic()
        try:
            if self._fd < 0 and not self._open(create=True):
                return False
            if os.fstat(self._fd).st_size == 0:
                allocate(self._fd, 2 * (_HEADER + _size(fwd, bwd)))
            at = 2 * _HEADER + self._slot * _size(fwd, bwd)
            digest = hashlib.blake2b(digest_size=16)
            for place, data in _parts(done, fwd, bwd):
                digest.update(data)
                write_at(self._fd, data, at + place)
            header = {"kind": _KIND, "key": self._key, "done": done, "digest": digest.hexdigest()}
            write_at(self._fd, memoryview(json.dumps(header).encode().ljust(_HEADER)), self._slot * _HEADER)
            os.fsync(self._fd)
        except OSError as e:
            self._give_up(e)
            return False
        self._slot, self._saved = 1 - self._slot, done
        self._since = time.monotonic()
        self._cost = self._since - begin
        return True

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

    def _load(self, slot: int, done: int, fwd: TopK, bwd: TopK | None) -> str:
        """Reads a state; returns its digest."""
        at = 2 * _HEADER + slot * _size(fwd, bwd)
        digest = hashlib.blake2b(digest_size=16)
        for place, data in _parts(done, fwd, bwd):
            offset, rest = at + place, data
            while rest:
                count = os.preadv(self._fd, [rest], offset)
                if not count:  # cut short: the digest of what the arrays hold will not do
                    return ""
                rest, offset = rest[count:], offset + count
            digest.update(data)
        return digest.hexdigest()

    def _give_up(self, e: OSError) -> None:
        self._off = True
        log.warning(
            "%s: cannot save what the search has found so far (%s): if it is killed, it starts again",
            self.path,
            e.strerror or e,
        )
        if self._fd >= 0:  # part of a file that nobody will finish, on a disk that may be full
            self.remove()


def _size(fwd: TopK, bwd: TopK | None) -> int:
    return sum(best.sim.nbytes + best.id.nbytes for best in (fwd, bwd) if best is not None)


def _parts(done: int, fwd: TopK, bwd: TopK | None) -> Iterator[tuple[int, memoryview]]:
    """Where in a state (bytes from its start) which memory goes."""
    at = 0
    for best, rows in ((fwd, done), (bwd, None)):
        if best is not None:
            for array in (best.sim, best.id):
                if array[:rows].size:
                    yield at, array[:rows].data.cast("B")
                at += array.nbytes
