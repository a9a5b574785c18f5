"""Files that are whole under their names, whatever stops who writes them; locks; space set aside."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from bitextmine.files import atomic
from bitextmine.files.atomic import allocate, open_locked, replacing, staging


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_has_its_name_is_nobodys_temporary(tmp_path):
    """One process renames its file while another one, which saw it before, takes that name for its own."""
    path = tmp_path / "out"
    with staging(path) as (mine, file):
        file.write(b"mine")
        mine.replace(path)
        with staging(path) as (others, _):
            assert others == mine
            path.unlink()
            mine.rename(tmp_path / "kept")
    assert names(tmp_path) == ["kept"]


KILLED = """
import os, signal, sys
from bitextmine.files.atomic import replacing
with replacing(sys.argv[1]) as first:
    first.write(b"half" * 5000)
    if sys.argv[2] == "two":
        with replacing(sys.argv[1]) as second:
            second.write(b"half" * 5000)
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("count", "left"), [("one", [".out.tmp"]), ("two", [".out.2.tmp", ".out.tmp"])])
def test_what_a_killed_process_left_the_next_one_takes_away(tmp_path, count, left):
    path = tmp_path / "out"
    code = subprocess.run([sys.executable, "-c", KILLED, path, count], check=False).returncode
    assert code == -signal.SIGKILL
    assert names(tmp_path) == left
    with replacing(path) as file:
        assert names(tmp_path) == [".out.tmp"]
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    assert names(tmp_path) == ["out"]


def no_locks(fd, how):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_without_locks_a_file_that_may_be_in_use_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".out.tmp").write_bytes(b"perhaps somebody's")
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert (tmp_path / ".out.tmp").read_bytes() == b"perhaps somebody's"
    assert names(tmp_path) == [".out.tmp", "out"]
    os.close(open_locked(tmp_path / "out"))


def test_a_file_that_was_renamed_meanwhile_is_not_the_one(tmp_path, monkeypatch):
    path, flock = tmp_path / "a", fcntl.flock
    path.write_bytes(b"old")

    def late(fd, how):  # its holder moves it away just before it lets go
        if not (tmp_path / "b").exists():
            path.rename(tmp_path / "b")
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    fd = open_locked(path)
    assert os.path.samestat(os.fstat(fd), path.stat())
    assert os.fstat(fd).st_size == 0
    os.close(fd)


@pytest.mark.parametrize("system", ["allocates", "cannot here", "never can"])
def test_space_is_set_aside(tmp_path, monkeypatch, system):
    def refused(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if system == "cannot here":
        monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    elif system == "never can":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with (tmp_path / "a").open("wb") as file:
        allocate(file.fileno(), 5000)
        assert os.fstat(file.fileno()).st_size == 5000
        with pytest.raises(OSError) as caught:
            allocate(file.fileno(), 1 << 60)
        assert caught.value.errno in atomic.FULL_DISK
