"""Keep files right whatever stops a process: complete or absent, locked, with their space set aside.

OSError passes through: the caller knows what to say. Locks are advisory (flock) and last as long as a file is open, so
nothing stale can stay; on a file system without them work goes on.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from bitextmine.errors import BitextmineError

# What a write fails with for want of room: on the disk, in the quota, under the limit of `ulimit -f`.
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# What it fails with in a folder that takes no files: by its permissions, or on a read-only file system.
REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
ELSEWHERE = "name another place"


def cannot_write(error: OSError, path: str | os.PathLike[str], remedy: str = ELSEWHERE) -> BitextmineError:
    """Return the error for a file that cannot be made or written; `remedy` is for a folder that takes no files."""
    folder, reason = Path(path).parent, str(error.strerror or error)
    if error.errno in FULL_DISK:
        reason += "; free some space and run the same command again to go on"
    elif isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.is_dir():
        reason = f"there is no folder {folder}; create it first"
    elif isinstance(error, IsADirectoryError):
        reason = "it is a directory; name a file"
    elif error.errno in REFUSED or isinstance(error, FileNotFoundError):
        missing = isinstance(error, FileNotFoundError)
        reason = f"{'no file can be made' if missing else reason.lower()} in {folder}; {remedy}"
    return BitextmineError(f"{path}: cannot write: {reason}")


# --- files that are whole under their names ---


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary file, `staging`, that gets the name `path` when the block ends and its bytes are on disk.

    An exception leaves an earlier file of that name as it was. The permissions of an earlier file are kept.
    """
    path = Path(path)
    with staging(path) as (temporary, file):
        yield file
        sync_file(file)
        _check_regular(path)
        with contextlib.suppress(FileNotFoundError):  # also where another process removes it now
            shutil.copymode(path, temporary)
        temporary.replace(path)
        sync_folder(path.parent)


def _check_regular(path: Path) -> None:
    """Raise OSError for a device or a named pipe, which no file may replace."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise FileExistsError(errno.EEXIST, "it is no regular file", str(path))


@contextlib.contextmanager
def staging(path: str | os.PathLike[str]) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield a new binary file beside `path`, ``.NAME.tmp``, and its name; it is removed at the end, unless renamed.

    A killed process leaves its file behind; the next one to write `path` removes it. Processes that write the same
    `path` at once have a file each (``.NAME.2.tmp`` and so on): a lock tells which of them are alive.
    """
    temporary, fd = _claim(Path(path))
    file = open(fd, "wb")  # noqa: SIM115 (closed below)
    try:
        yield temporary, file
    finally:
        with contextlib.suppress(OSError):
            if _is_at(fd, temporary):
                temporary.unlink()
        with contextlib.suppress(OSError):  # what is not on disk yet was not meant to stay
            file.close()


def _claim(path: Path) -> tuple[Path, int]:
    """Create and lock a file; return its name and descriptor."""
    numbers = itertools.chain([""], (f".{number}" for number in itertools.count(2)))
    names = (path.with_name(f".{path.name}{number}.tmp") for number in numbers)
    for name in names:
        if os.path.lexists(name):
            remove_left(name)
        # Between two of these calls another process may take the file for one left behind.
        try:
            fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        if _flock(fd) is not False and _is_at(fd, name):
            break
        os.close(fd)
    with contextlib.suppress(OSError):
        for left in itertools.takewhile(os.path.lexists, names):
            remove_left(left)
    return name, fd


def remove_left(name: Path) -> None:
    """Remove the file that a killed process left of `staging`, unless a process has it locked.

    Without locks nobody can tell, and it stays; so does a folder.
    """
    with contextlib.suppress(OSError):
        fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if _flock(fd) and _is_at(fd, name):
                name.unlink()
        finally:
            os.close(fd)


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a complete file that another library wrote, once its bytes are on disk; for a folder that is locked.

    A link stays, and the file that it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    _check_regular(path)
    with temporary.open("rb") as file:
        sync_file(file)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_file(file: IO[bytes]) -> None:
    """Bring what was written to an open file to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


# --- locks ---


def open_locked(path: str | os.PathLike[str]) -> int:
    """Open the file that has a name now to read and write, lock it, and return its descriptor; closing ends the lock.

    Raises:
        BlockingIOError: another process holds it.
    """
    path = Path(path)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if _flock(fd) is False:
            os.close(fd)
            raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it", str(path))
        if _is_at(fd, path):
            return fd
        os.close(fd)


def wait_for_lock(path: str | os.PathLike[str]) -> None:
    """Wait while another process holds a file; return at once if there is no such file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _flock(fd, wait=True)
    finally:
        os.close(fd)


def _flock(fd: int, *, wait: bool = False) -> bool | None:
    """Return True when the lock is taken, False when another process has it, None where there are no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as e:
        return False if e.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Return True if an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


# --- space ---


def allocate(fd: int, size: int) -> None:
    """Make an open file `size` bytes long, its space set aside where the file system can; OSError without the space."""
    try:
        os.posix_fallocate(fd, 0, size)
        return
    except AttributeError:  # macOS
        pass
    except OSError as e:
        if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
    disk = os.fstatvfs(fd)
    if disk.f_bavail * disk.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(fd, size)


def write_at(fd: int, data: memoryview, offset: int) -> None:
    """Write all of `data` at an offset of an open file, unbuffered: a full disk shows at once."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written
