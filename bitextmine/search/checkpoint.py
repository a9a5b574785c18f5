"""The state of a search in a file, so that an interrupted search resumes."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import remove_left, replacing
from bitextmine.files.journal import Journal, JournalBusyError
from bitextmine.files.output import Made, is_ours
from bitextmine.search.neighbours import TopK

log = logging.getLogger(__name__)

SAVE_SECONDS = 10.0  # between saves; a shorter search leaves no file
_SHARE = 50  # saving takes at most one part in so many of the time


def state_path(path: str | os.PathLike[str]) -> Path:
    """Return the file of the state of a search whose journal is `path`."""
    return Path(f"{path}.state")


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove the files of a search, unless another program made them."""
    if is_ours(Path(path), Made.SEARCH):
        state = state_path(path)
        state.unlink(missing_ok=True)
        remove_left(state.with_name(f".{state.name}.tmp"))  # of a kill while it was written
        Path(path).unlink(missing_ok=True)


class Checkpoint:
    """The k best of both sides so far, with the rows of x that are compared with all of y.

    `search_both` saves into it between blocks of rows, at most every ten seconds and for at most 2% of the time, and
    once more at the end if it saved before or took ten seconds. A search of the same vectors and k resumes from it,
    with any engine, block size or memory; the state of another search is discarded. Each save replaces the file of the
    state. A record of the journal (`path`) names its digest before that, so that a kill in between leaves the state of
    the record before. A second process with the same journal searches without saving, and so does a search whose files
    cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._key = ""
        self._journal: Journal | None = None
        self._off = False  # no saving, for good

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock; the files stay."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def resume(self, key: str, fwd: TopK, bwd: TopK) -> int:
        """Load the state of the search `key` into `fwd` and `bwd` (empty so far), which `save` then saves.

        Returns the number of rows of x that are done.
        """
        self._key, self._fwd, self._bwd = key, fwd, bwd
        self._saved = 0
        self._since, self._cost = time.monotonic(), 0.0
        if self.path.exists() and (journal := self._open()) is not None:
            self._saved = self._load({record["state"]: record["rows"] for record in journal})
            if not self._saved:
                log.info("%s: of another search, or damaged: discarded", self.path)
                remove_checkpoint(self.path)
                self.__exit__()
        return self._saved

    def save(self, done: int, *, last: bool = False) -> bool:
        """Save the state after `done` rows of x if it is time to; return True if it did. `last`: that was all."""
        now = time.monotonic()
        due = now - self._since >= max(SAVE_SECONDS, _SHARE * self._cost)
        if self._off or done == self._saved or not (due or (last and self._saved)):
            return False
        if (journal := self._open()) is None:
            return False
        digest = _digest()
        try:
            with replacing(state_path(self.path)) as file:
                for part in self._parts(done):
                    data = part.reshape(-1).view(np.uint8).data
                    digest.update(data)
                    file.write(data)
                journal.append({"rows": done, "state": digest.hexdigest()}, sync=True)
        except OSError as e:
            self._give_up(e.strerror or e)
            return False
        self._saved, self._since = done, time.monotonic()
        self._cost = self._since - now
        return True

    def _open(self) -> Journal | None:
        """Return the journal, which is locked; None if that cannot be."""
        if self._journal is None:
            try:
                self._journal = Journal(self.path, "search", {"key": self._key}).__enter__()
            except JournalBusyError:
                self._off = True
                log.info("%s: another process runs the same search; this one saves nothing", self.path)
            except BitextmineError as e:
                self._give_up(e)
        return self._journal

    def _load(self, rows_of: dict[str, int]) -> int:
        """Read the state if a record names its digest; return its rows."""
        with contextlib.suppress(OSError), open(state_path(self.path), "rb") as file:
            done = rows_of.get(hashlib.file_digest(file, _digest).hexdigest(), 0)
            parts = list(self._parts(done))
            if done and os.fstat(file.fileno()).st_size == sum(part.nbytes for part in parts):
                file.seek(0)
                for part in parts:
                    file.readinto(part.reshape(-1).view(np.uint8).data)
                return done
        return 0

    def _parts(self, done: int) -> Iterator[NDArray[Any]]:
        yield from (self._fwd.sim[:done], self._fwd.id[:done], self._bwd.sim, self._bwd.id)

    def _give_up(self, reason: object) -> None:
        self._off = True
        log.warning("%s: the search is not saved: %s", self.path, reason)


def _digest() -> Any:
    return hashlib.blake2b(digest_size=16)
