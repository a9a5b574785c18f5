"""The state of a search in a file, so that an interrupted search resumes."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.files.atomic import remove_left, replacing
from bitextmine.files.journal import read_head
from bitextmine.files.output import Made, is_ours
from bitextmine.search.neighbours import TopK

log = logging.getLogger(__name__)

SAVE_SECONDS = 10.0  # between saves; a shorter search leaves no file
_SHARE = 50  # saving takes at most one part in so many of the time


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove the file of a search, unless another program made it."""
    path = Path(path)
    for left in path.parent.glob(f".{glob.escape(path.name)}*.tmp"):  # of kills while it was written
        remove_left(left)
    if is_ours(path, Made.SEARCH):
        Path(f"{path}.state").unlink(missing_ok=True)  # the numbers, as of versions before 0.4
        path.unlink(missing_ok=True)


class Checkpoint:
    """The k best of both sides so far, with the rows of x that are compared with all of y.

    `search_both` saves into it between blocks of rows, at most every ten seconds and for at most 2% of the time, and
    once more at the end if it saved before or took ten seconds. A search of the same vectors and k resumes from it,
    with any engine, block size or memory; the state of another search is discarded. The file is a line, the head of a
    journal that names the search, and the numbers; each save replaces it. Of two processes that save to one file, both
    are right. A search whose file cannot be written goes on without saving.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._off = False  # no saving, for good

    def resume(self, key: str, fwd: TopK, bwd: TopK) -> int:
        """Load the state of the search `key` into `fwd` and `bwd` (empty so far), which `save` then saves.

        Returns the number of rows of x that are done.
        """
        self._key, self._fwd, self._bwd = key, fwd, bwd
        self._since, self._cost = time.monotonic(), 0.0
        self._saved = self._load() if self.path.exists() else 0
        if self.path.exists() and not self._saved:
            if is_ours(self.path, Made.SEARCH):
                log.info("%s: of another search, or damaged: discarded", self.path)
                remove_checkpoint(self.path)
            elif self.path.exists():  # not that of another process, which has removed it now
                self._give_up("the file there is of another program")
        return self._saved

    def save(self, done: int, *, last: bool = False) -> bool:
        """Save the state after `done` rows of x if it is time to; return True if it did. `last`: that was all."""
        now = time.monotonic()
        due = now - self._since >= max(SAVE_SECONDS, _SHARE * self._cost)
        if self._off or done == self._saved or not (due or (last and self._saved)):
            return False
        parts, digest = self._parts(done), _digest()
        for part in parts:
            digest.update(part)
        identity = {"key": self._key, "rows": done, "state": digest.hexdigest()}
        try:
            with replacing(self.path) as file:
                file.write(json.dumps({"journal": 1, "job": "search", "identity": identity}).encode() + b"\n")
                file.writelines(parts)
        except OSError as e:
            self._give_up(e.strerror or e)
            return False
        self._saved, self._since = done, time.monotonic()
        self._cost = self._since - now
        return True

    def _load(self) -> int:
        head = read_head(self.path)
        if head is None or head.identity.get("key") != self._key:
            return 0
        with contextlib.suppress(OSError), self.path.open("rb") as file:  # another process may remove it
            start = len(file.readline())
            done = int(head.identity.get("rows", 0))
            parts, digest = self._parts(done), hashlib.file_digest(file, _digest).hexdigest()
            if (file.tell() - start, digest) != (sum(map(len, parts)), head.identity.get("state")):
                return 0
            file.seek(start)
            for part in parts:
                file.readinto(part)
            return done
        return 0

    def _parts(self, done: int) -> list[memoryview]:
        arrays = self._fwd.sim[:done], self._fwd.id[:done], self._bwd.sim, self._bwd.id
        return [part.reshape(-1).view(np.uint8).data for part in arrays]

    def _give_up(self, reason: object) -> None:
        self._off = True
        log.warning("%s: the search is not saved: %s", self.path, reason)


def _digest() -> Any:
    return hashlib.blake2b(digest_size=16)
