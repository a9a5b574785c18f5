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

from bitextmine.search import checkpoint, records
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import pair_products
from bitextmine.search.rows import VectorRows
from bitextmine.search.topk import TopK

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


def distinct(seed=1, n=300, m=200, d=24):
    """Rows of which none is another one's copy, so that all of them are compared."""
    rng = np.random.default_rng(seed)
    return oracle.vectors(rng, n, d), oracle.vectors(rng, m, d)


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


def saves(x, y, k, file, **options) -> list[int]:
    """Searches, leaves the file as it is after three blocks, and returns how long it was after each save."""
    ends = []

    def saved_once(_rows: int) -> None:
        ends.append(file.stat().st_size)
        if len(ends) == 3:
            raise Killed

    with pytest.raises(Killed), Checkpoint(file) as saved:
        search_both(x, y, k, SearchOptions(**options), progress=saved_once, checkpoint=saved)
    return ends


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        ("cut", 100),
        ("cut to the byte", 100),
        ("flipped", 0),
        ("first save", 0),
        ("second save", 50),
        ("last save", 100),
        ("last byte", 100),
        ("saves swapped", 0),
        ("header", 0),
        ("no header", 0),
        ("empty", 0),
        ("zeros behind", 150),
        ("another save behind", 150),
    ],
)
def test_damage_is_noticed(file, damage, kept, caplog):
    """The search goes on from the last save that is whole, with all before it; if none is, all is done again."""
    x, y = distinct()
    one, two, three = saves(x, y, 4, file, block_rows=50)
    content = bytearray(file.read_bytes())
    assert len(content) == three
    if damage == "cut":
        del content[(two + three) // 2 :]
    elif damage == "cut to the byte":
        del content[-1:]
    elif damage == "flipped":
        content[512::100] = bytes(b ^ 1 for b in content[512::100])
    elif damage == "first save":
        content[(512 + one) // 2] ^= 1
    elif damage == "second save":
        content[(one + two) // 2] ^= 1
    elif damage == "last save":
        content[(two + three) // 2] ^= 1
    elif damage == "last byte":
        content[-1] ^= 1
    elif damage == "saves swapped":
        content[512:two] = content[one:two] + content[512:one]
    elif damage == "header":
        content[100] ^= 1
    elif damage == "no header":
        content[:512] = bytes(512)
    elif damage == "zeros behind":
        content += bytes(4096)
    elif damage == "another save behind":
        content += content[two:three]
    else:
        content.clear()
    file.write_bytes(bytes(content))
    with caplog.at_level(logging.INFO):
        done, found = done_rows(x, y, 4, file, block_rows=50)
    assert done == (kept or 50)  # the first that is told: what was saved, or a block
    assert ("damaged" in caplog.text) == (damage != "empty")
    assert ("lines are done" in caplog.text) == (kept > 0)
    assert_same(found, oracle.both(x, y, 4))


@pytest.mark.parametrize("byte", range(16))
def test_any_byte_that_is_wrong(file, byte):
    x, y = distinct(n=60, m=50)
    killed_after(3, x, y, 3, file, block_rows=10)
    content = bytearray(file.read_bytes())
    content[50 + (len(content) - 50) * byte // 16] ^= 1 << byte % 8
    file.write_bytes(bytes(content))
    assert_same(done_rows(x, y, 3, file, block_rows=10)[1], oracle.both(x, y, 3))


def test_numbers_that_no_search_found_are_not_taken(file, monkeypatch):
    """A file whose digests hold, and whose neighbours are in no order: its writer was mistaken."""
    x, y = distinct()
    as_they_are = records._packed
    with monkeypatch.context() as patch:
        patch.setattr(records, "_packed", lambda numbers, width: as_they_are(numbers[::-1], width))
        saves(x, y, 4, file, block_rows=50)
    done, found = done_rows(x, y, 4, file, block_rows=50)
    assert done == 50
    assert_same(found, oracle.both(x, y, 4))


class Counted:
    """What is written to files by os.pwrite, and by how many saves."""

    def __init__(self, monkeypatch) -> None:
        self.bytes = self.saves = 0
        write, sync = os.pwrite, os.fsync

        def counted(fd: int, data: bytes, offset: int) -> int:
            self.bytes += len(data)
            return write(fd, data, offset)

        def synced(fd: int) -> None:
            self.saves += 1
            sync(fd)

        monkeypatch.setattr(os, "pwrite", counted)
        monkeypatch.setattr(os, "fsync", synced)


def nearer_and_nearer(n=1500, m=1000, d=8):
    """The later a row of x, the nearer it is to all rows of y: every row of x changes the neighbours of each of
    them."""
    rng = np.random.default_rng(3)
    one = oracle.vectors(rng, 1, d, np.float32)
    y = one + 0.01 * oracle.vectors(rng, m, d, np.float32)
    x = (0.1 + 0.9 * np.arange(n)[:, None] / n) * (one + 1e-5 * oracle.vectors(rng, n, d, np.float32))
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize(
    ("made", "between"),
    [(lambda: distinct(n=1500, m=1000, d=8), 150), (nearer_and_nearer, 650)],
    ids=["in no order", "nearer and nearer"],
)
def test_saves_write_no_more_than_the_answer_takes(file, monkeypatch, made, between):
    """However often it may save, and in whatever order the rows come; and no stretch of rows stays unsaved for long."""
    x, y = made()
    k, block, want = 3, 25, oracle.both(x, y, 3)
    written = Counted(monkeypatch)
    done, kept = 0, [0]

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        if written.saves == len(kept):
            kept.append(done)

    with Checkpoint(file) as saved:
        found = search_both(x, y, k, SearchOptions(block_rows=block), progress=told, checkpoint=saved)
    assert written.bytes == file.stat().st_size <= 12 * k * (len(x) + len(y))
    assert kept[-1] == len(x)
    assert max(np.diff(kept)) <= between
    assert_same(arrays(found), want)
    assert_same(done_rows(x, y, k, file)[1], want)


def test_killed_now_and_then_it_still_writes_no_more(file, monkeypatch):
    x, y = distinct(n=600, m=450)
    written = Counted(monkeypatch)
    for blocks in (7, 3, 5):
        killed_after(blocks, x, y, 3, file, block_rows=20)
    done, found = done_rows(x, y, 3, file, block_rows=20)
    assert done >= 240
    assert written.bytes <= 12 * 3 * (len(x) + len(y))
    assert_same(found, oracle.both(x, y, 3))


def test_seldom_saved_lists_with_few_changes(file, monkeypatch):
    """Gaps of more places than fit a byte, and lists that are shorter than k."""
    rng = np.random.default_rng(5)
    x = oracle.vectors(rng, 90, 16)
    y = oracle.vectors(rng, 4000, 16)
    x[30:] = -0.3 * np.abs(x[30:])  # to y's first rows alone are these near
    y[50:] = np.abs(y[50:])
    for k in (3, 40):
        killed_after(3, x, y, k, file, block_rows=30)
        assert_same(done_rows(x, y, k, file, block_rows=30)[1], oracle.both(x, y, k))


def test_neighbours_that_come_before_their_turn(file):
    """An engine may look at some rows of x before all others, so that thresholds rise early."""
    x, y = distinct(n=100, m=80, d=6)
    k, early = 4, np.arange(60, 100, 3)
    rows = VectorRows(x, x.dtype), VectorRows(y, y.dtype)
    want = oracle.both(x, y, k)

    def merged(best: TopK, queries: np.ndarray, pool: np.ndarray, which: np.ndarray, swap: bool) -> None:
        for i in which.tolist():
            sims = pair_products(
                queries[[i] * len(pool)], pool, np.arange(len(pool)), np.arange(len(pool)), x.dtype
            )
            at, ids = np.full(len(pool), i), np.arange(len(pool))
            best.merge(*((ids, at) if swap else (at, ids)), sims)

    state = TopK.empty(100, k), TopK.empty(80, k)
    with Checkpoint(file) as saved:
        assert saved.resume("key", *rows, *state) == 0
        merged(state[1], x, y, early, swap=True)
        for start in range(0, 60, 20):
            part = np.arange(start, start + 20)
            merged(state[0], x, y, part, swap=False)
            merged(state[1], x, y, part, swap=True)
            assert saved.save(start + 20)
    again = TopK.empty(100, k), TopK.empty(80, k)
    with Checkpoint(file) as saved:
        assert saved.resume("key", *rows, *again) == 60
    part = np.arange(60, 100)
    merged(again[0], x, y, part, swap=False)
    merged(again[1], x, y, part, swap=True)
    assert_same((again[0].sim, again[0].id, again[1].sim, again[1].id), want)


def test_a_folder_that_is_not_there(tmp_path, caplog):
    x, y = sides()
    with Checkpoint(tmp_path / "none" / "search.part") as saved:
        found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=saved)
        saved.remove()
    assert caplog.text.count("cannot save") == 1
    assert_same(arrays(found), oracle.both(x, y, 4))


@pytest.mark.parametrize("writes", [0, 1, 3, 9])
def test_a_full_disk(file, monkeypatch, caplog, writes):
    write, left = os.pwrite, writes

    def full(fd: int, data: bytes, offset: int) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
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
    from bitextmine.search import checkpoint, records
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
    for count in (
        1,
        2,
        3,
        4,
        6,
        10,
        5,
        7,
    ):  # a save is four writes, and the header before the first one; the counts begin anew in each process
        code = subprocess.run([sys.executable, script, str(count)], cwd=tmp_path, check=False).returncode
        assert code == -signal.SIGKILL
        assert not (tmp_path / "found.npz").exists()
    subprocess.run([sys.executable, script, "0"], cwd=tmp_path, check=True)
    with np.load(tmp_path / "found.npz") as found:
        assert_same([found[name] for name in found.files], oracle.both(x, y, 4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.npz", "search.py", "x.npy", "y.npy"]
