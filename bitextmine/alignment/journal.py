"""What is done already, for a run that is killed: a file beside the output, a line of JSON per finished document."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import open_locked

__all__ = ["Journal"]

_BEGINNING = b'{"key": '


class Journal:
    """Entries that survive a kill, in order; use it in a ``with`` statement, which locks it.

    key: what the entries depend on. A journal of another key is begun anew, and one whose last line was being written
    goes on after the line before. An entry has at least "digest", of the document that it was made from.
    """

    def __init__(self, path: str | os.PathLike[str], key: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._key = json.dumps({"key": key}, sort_keys=True).encode() + b"\n"
        self._digests: list[str] = []
        self._starts: list[int] = []

    def __enter__(self) -> Journal:
        try:
            self._file = os.fdopen(open_locked(self.path), "r+b")
        except BlockingIOError:
            raise BitextmineError(
                f"{self.path}: another run is writing this output; wait for it, or name another file"
            ) from None
        except OSError as e:
            raise BitextmineError(f"{self.path}: cannot write: {e.strerror or e}; check the folder") from None
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._digests)

    def _read(self) -> None:
        self._file.seek(0)
        end = len(self._key)
        first = self._file.readline()
        if first == self._key:
            for line in self._file:
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                    self._digests.append(entry["digest"])
                except (ValueError, KeyError, TypeError):
                    break
                self._starts.append(end)
                end += len(line)
            self._file.truncate(end)
        else:
            if not _BEGINNING.startswith(first[: len(_BEGINNING)]):
                raise BitextmineError(
                    f"{self.path}: a run keeps there what it has done, and this file is of no run; move it away"
                )
            self._file.seek(0)
            self._file.truncate()
            self._file.write(self._key)
            self._file.flush()

    def digest(self, place: int) -> str:
        """Of the document that entry ``place`` was made from; empty if there is no such entry."""
        return self._digests[place] if place < len(self._digests) else ""

    def entry(self, place: int) -> dict[str, Any]:
        """An entry."""
        self._file.seek(self._starts[place])
        entry: dict[str, Any] = json.loads(self._file.readline())
        return entry

    def cut(self, length: int) -> None:
        """Forget the entries from one on."""
        if length < len(self):
            self._file.truncate(self._starts[length])
            del self._starts[length:], self._digests[length:]

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, and hand it to the system."""
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(json.dumps(entry, ensure_ascii=True).encode() + b"\n")
        self._file.flush()
        self._starts.append(start)
        self._digests.append(entry["digest"])

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries, in order."""
        for place in range(len(self)):
            yield self.entry(place)

    def remove(self) -> None:
        """The work is done."""
        with contextlib.suppress(OSError):
            self.path.unlink()
