"""Record the progress of resumable work: one file format for every command that a kill may interrupt.

A journal is a text file beside the output. Its first line names the job and the inputs it depends on (the identity);
each further line is a record, a JSON object behind its CRC-32. Records are appended when a piece of work is safe, so an
interrupted run resumes after the last complete record. Payloads that are too large for a record (vectors, checkpoints)
lie in files of their own, and the record that names one carries its size or digest. A search keeps no records: the
numbers of its one state follow the first line (`search.checkpoint`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import open_locked, write_at

_MAGIC = b'{"journal": 1, '
_LONGEST_HEAD = 1 << 20
_IN_FOLDER = "journal"


class JournalBusyError(BitextmineError):
    """Another process holds the journal."""


class JournalHead(NamedTuple):
    """The first line of a journal: the job and the identity of its inputs."""

    job: str
    identity: dict[str, Any]


def read_head(path: str | os.PathLike[str]) -> JournalHead | None:
    """Return the head of a journal, or None if the file is missing or is no journal."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(path, "rb") as file:
        line = file.readline(_LONGEST_HEAD)
        if line.startswith(_MAGIC):
            head = json.loads(line)
            return JournalHead(str(head["job"]), dict(head["identity"]))
    return None


def last_record(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the last whole record of a journal that another process may be writing; None if there is none."""
    record = None
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.readline(_LONGEST_HEAD)
        for line in file:
            if not _is_whole(line):
                break
            record = json.loads(line[9:])
    return record


class Journal:
    """Append-only records of one job; use it in a ``with`` statement, which locks the file.

    A torn last line is cut off. A file that is no journal of this job (such as ``"embed"``) is refused, unless
    `overwrite`. The identity is everything the records depend on, as JSON values; a journal of another one is started
    afresh.
    """

    def __init__(
        self, path: str | os.PathLike[str], job: str, identity: Mapping[str, Any], *, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        self.job, self._overwrite = job, overwrite
        head = {"journal": 1, "job": job, "identity": identity}
        self._head = json.dumps(head, allow_nan=False).encode() + b"\n"
        self._starts: list[int] = []
        self._end = 0
        self._fd = -1

    def __enter__(self) -> Journal:
        """Open, lock and read the journal.

        Raises:
            JournalBusyError: another process holds it.
            BitextmineError: the file cannot be written, or is not a journal of this job.
        """
        try:
            self._fd = open_locked(self.path)
        except BlockingIOError:
            raise JournalBusyError(
                f"{self.path}: another process is writing this output; wait for it, or name another file"
            ) from None
        except OSError as e:
            raise BitextmineError(f"{self.path}: cannot write: {e.strerror or e}; check the folder") from None
        try:
            self._read()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock; the file stays."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return a record by number; negative numbers count from the last one."""
        index = range(len(self))[index]
        stop = self._starts[index + 1] if index + 1 < len(self) else self._end
        line = os.pread(self._fd, stop - self._starts[index], self._starts[index])
        record: dict[str, Any] = json.loads(line[9:])
        return record

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    def append(self, record: Mapping[str, Any], *, sync: bool = False) -> None:
        """Add a record; with `sync`, force it to disk. OSError passes through."""
        body = json.dumps(record, allow_nan=False).encode()
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        write_at(self._fd, memoryview(line), self._end)
        if sync:
            os.fsync(self._fd)
        self._starts.append(self._end)
        self._end += len(line)

    def truncate(self, length: int) -> None:
        """Drop the records from number `length` on."""
        if length < len(self):
            self._end = self._starts[length]
            os.ftruncate(self._fd, self._end)
            del self._starts[length:]

    def remove(self) -> None:
        """Delete the file: the work is complete."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.close()

    def _read(self) -> None:
        size = os.fstat(self._fd).st_size
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            first = file.readline(_LONGEST_HEAD)
            if first != self._head:
                self._start_afresh(first, size)
                return
            self._end = len(first)
            for line in file:
                if not _is_whole(line):
                    break
                self._starts.append(self._end)
                self._end += len(line)
        os.ftruncate(self._fd, self._end)

    def _start_afresh(self, first: bytes, size: int) -> None:
        """Write a new head over a journal of the same job, over a torn head, or into an empty file."""
        torn = not first.endswith(b"\n") and self._head.startswith(first)
        if size and not torn and first[: len(_MAGIC)].strip(b"\x00") != b"" and not self._overwrite:
            head = read_head(self.path)
            if head is None or head.job != self.job:
                raise BitextmineError(
                    f"{self.path}: this name is needed to record progress, and the file there is not a journal of "
                    f"{self.job}; move it away"
                )
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, self._head, 0)
        self._end = len(self._head)


def _is_whole(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and line[8:9] == b" " and int(line[:8], 16) == zlib.crc32(line[9:-1])
    except ValueError:
        return False


# --- folders of finished parts, with a journal that says of which work ---


@contextlib.contextmanager
def journal_folder(path: Path, job: str, identity: Mapping[str, Any]) -> Iterator[Journal]:
    """Make or reopen a folder for the finished parts of a job, and lock its journal; the caller removes it at the end.

    Parts of another identity are removed.

    Raises:
        JournalBusyError: another process works there.
        BitextmineError: the folder holds something else, or cannot be made.
    """
    head = read_head(path / _IN_FOLDER)
    ours = head is not None and head.job == job
    if not ours and path.is_dir():
        ours = all(file.name == _IN_FOLDER for file in path.iterdir())
    if not ours and os.path.lexists(path):
        raise BitextmineError(f"{path}: expected a folder of unfinished work; move it away")
    with explained(f"{path}: cannot make this folder"):
        path.mkdir(exist_ok=True)
    with Journal(path / _IN_FOLDER, job, identity) as journal:
        if head is None or head.identity != json.loads(json.dumps(identity)):
            for file in path.iterdir():
                if file.name != _IN_FOLDER:
                    file.unlink()
        yield journal


def remove_folder(path: Path, job: str) -> None:
    """Remove the folder of an unfinished job; any other stays."""
    head = read_head(path / _IN_FOLDER)
    if head is not None and head.job == job:
        shutil.rmtree(path, ignore_errors=True)
