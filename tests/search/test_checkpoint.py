from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from bitextmine.search import checkpoint
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.options import SearchOptions

from . import oracle
from .test_exact import PLAIN, arrays, assert_same, each_method


@pytest.fixture(autouse=True)
def always_time_to_save(monkeypatch):
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 0)


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "search.part"


def sides(seed=1, n=300, m=200):
    rng = np.random.default_rng(seed)
    return oracle.corpus(rng, n, 24, 0.2, 0.1), oracle.corpus(rng, m, 24, 0.2, 0.1)


class Killed(BaseException):
    pass


def killed_after(blocks: int, x, y, k, file, **options) -> None:
    """A search that ends after so many blocks, as if it were killed: nothing is tidied up."""
    left = blocks

    def stop(_rows: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    with pytest.raises(Killed), Checkpoint(file) as saved:
        search_both(x, y, k, SearchOptions(**options), progress=stop, checkpoint=saved)


def done_rows(x, y, k, file, **options) -> tuple[int, tuple[np.ndarray, ...]]:
    """How many rows a search finds done, and what it ends with."""
    seen: list[int] = []
    with Checkpoint(file) as saved:
        found = search_both(x, y, k, SearchOptions(**options), progress=seen.append, checkpoint=saved)
        saved.remove()
    assert sum(seen) == len(x)
    assert not file.exists()
    return seen[0], arrays(found)


@each_method
def test_goes_on_where_it_was_killed(file, method):
    x, y = sides()
    options = {**method, "block_rows": 40}
    killed_after(3, x, y, 4, file, **options)
    done, found = done_rows(x, y, 4, file, **options)
    assert done > 100
    assert_same(found, oracle.both(x, y, 4))


def test_goes_on_by_other_means(file):
    """The state does not depend on block size, method or memory, so that any of them can take it up."""
    x, y = sides()
    killed_after(2, x, y, 4, file, **PLAIN, block_rows=50)
    with Checkpoint(file) as saved:
        found = search_both(x, y, 4, SearchOptions(block_rows=33), checkpoint=saved)
    assert_same(arrays(found), oracle.both(x, y, 4))


def test_killed_again_and_again(file):
    x, y = sides()
    for blocks in (1, 2, 1, 3):
        killed_after(blocks + (blocks > 1), x, y, 4, file, block_rows=30)
    assert_same(done_rows(x, y, 4, file, block_rows=30)[1], oracle.both(x, y, 4))


def test_one_direction(file):
    x, y = sides()
    with Checkpoint(file) as saved:
        want = search_one(x, y, 3, SearchOptions(block_rows=64), checkpoint=saved)
    with Checkpoint(file) as saved:
        got = search_one(x, y, 3, SearchOptions(block_rows=64), checkpoint=saved)
        saved.remove()
    assert_same((*got, *want), (*want, *want))


def test_a_finished_search_is_read_back(file):
    x, y = sides()
    with Checkpoint(file) as saved:
        search_both(x, y, 4, checkpoint=saved)
    assert file.exists()
    done, found = done_rows(x, y, 4, file)
    assert done == len(x)
    assert_same(found, oracle.both(x, y, 4))


@pytest.mark.parametrize("change", ["k", "x", "y", "order"])
def test_of_another_search_it_is_discarded(file, change, caplog):
    x, y = sides()
    killed_after(3, x, y, 4, file, block_rows=50)
    k = 5 if change == "k" else 4
    if change in ("x", "y"):
        side = x if change == "x" else y
        side[17, 3] += np.float16(0.25)
    if change == "order":
        x = x[::-1].copy()
    with caplog.at_level(logging.INFO):
        done, found = done_rows(x, y, k, file, block_rows=50)
    assert "of another search" in caplog.text
    assert done < 100
    assert_same(found, oracle.both(x, y, k))


def test_a_short_search_leaves_no_file(file, monkeypatch):
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 1e9)
    x, y = sides()
    with Checkpoint(file) as saved:
        search_both(x, y, 4, SearchOptions(block_rows=10), checkpoint=saved)
    assert not file.exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "one state", "both headers", "empty"])
def test_damage_is_noticed(file, damage):
    """Of two states one is always whole, whatever a kill does to the other; if neither is, all is done again."""
    x, y = sides()
    killed_after(4, x, y, 4, file, block_rows=50)
    content = bytearray(file.read_bytes())
    half = 8192 + (len(content) - 8192) // 2
    if damage == "cut":
        del content[half + 100 :]
    elif damage == "flipped":
        content[8192::1000] = bytes(b ^ 1 for b in content[8192::1000])
    elif damage == "one state":
        content[half::500] = bytes(b ^ 1 for b in content[half::500])
    elif damage == "both headers":
        content[:8192] = bytes(8192)
    else:
        content.clear()
    file.write_bytes(bytes(content))
    done, found = done_rows(x, y, 4, file, block_rows=50)
    assert (done >= 150) == (damage in ("one state", "cut"))
    assert_same(found, oracle.both(x, y, 4))


def test_a_folder_that_is_not_there(tmp_path, caplog):
    x, y = sides()
    with Checkpoint(tmp_path / "none" / "search.part") as saved:
        found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=saved)
        saved.remove()
    assert caplog.text.count("cannot save") == 1
    assert_same(arrays(found), oracle.both(x, y, 4))


def test_a_full_disk(file, monkeypatch, caplog):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    x, y = sides()
    with Checkpoint(file) as saved:
        found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=saved)
    assert "No space left" in caplog.text
    assert not file.exists()
    assert_same(arrays(found), oracle.both(x, y, 4))


def test_two_processes_do_not_share_a_file(file, caplog):
    x, y = sides()
    killed_after(2, x, y, 4, file, block_rows=50)
    with Checkpoint(file) as first, caplog.at_level(logging.INFO):
        search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=first)
        with Checkpoint(file) as second:
            found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=second)
            second.remove()
        assert "another process" in caplog.text
        assert file.exists()
    assert_same(arrays(found), oracle.both(x, y, 4))


SEARCH = """
    import os, signal, sys
    import numpy as np
    from bitextmine.search import checkpoint
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    checkpoint.SAVE_SECONDS, checkpoint._SHARE = 0.0, 0
    left, write = int(sys.argv[1]), os.pwrite

    def die(fd, data, offset):
        global left
        left -= 1
        if not left:
            write(fd, data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data, offset)

    os.pwrite = die
    x, y = np.load("x.npy", mmap_mode="r"), np.load("y.npy", mmap_mode="r")
    with checkpoint.Checkpoint("search.part") as saved:
        found = search_both(x, y, 4, SearchOptions(block_rows=40, threads=1), checkpoint=saved)
        np.savez("found.npz", *(found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id))
        saved.remove()
"""


def test_killed_while_it_saves(tmp_path):
    """kill -9 in the middle of every write there is, one after the other."""
    x, y = sides()
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    script = tmp_path / "search.py"
    script.write_text(textwrap.dedent(SEARCH))
    for count in (1, 2, 3, 4, 6, 10, 5, 7):  # a save is five writes; the counts begin anew in each process
        code = subprocess.run([sys.executable, script, str(count)], cwd=tmp_path, check=False).returncode
        assert code == -signal.SIGKILL
        assert not (tmp_path / "found.npz").exists()
    subprocess.run([sys.executable, script, "0"], cwd=tmp_path, check=True)
    with np.load(tmp_path / "found.npz") as found:
        assert_same([found[name] for name in found.files], oracle.both(x, y, 4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.npz", "search.py", "x.npy", "y.npy"]
