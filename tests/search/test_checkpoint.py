"""A search that is interrupted resumes from its last save, and finds the same."""

import errno
import logging
import time

import numpy as np
import pytest

from bitextmine.files import atomic
from bitextmine.search import checkpoint
from bitextmine.search.checkpoint import Checkpoint, remove_checkpoint
from bitextmine.search.exact import search_both
from bitextmine.search.options import SearchOptions

from . import oracle
from .test_exact import PLAIN, arrays, assert_same, each_method


@pytest.fixture(autouse=True)
def always_time_to_save(monkeypatch):
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 0)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "search.part"


def sides(seed=1, n=300, m=200):
    rng = np.random.default_rng(seed)
    return oracle.corpus(rng, n, 24, 0.2, 0.1), oracle.corpus(rng, m, 24, 0.2, 0.1)


class Killed(BaseException):
    pass


def killed_after(blocks, x, y, k, file, **options):
    """Search, and stop after so many blocks without tidying up."""
    left = blocks

    def stop(_rows):
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    with pytest.raises(Killed):
        search_both(x, y, k, SearchOptions(**options), progress=stop, checkpoint=Checkpoint(file))


def done_rows(x, y, k, file, **options):
    """Return the rows that a search finds done, and its result."""
    seen: list[int] = []
    options = SearchOptions(**options)
    found = search_both(x, y, k, options, progress=seen.append, checkpoint=Checkpoint(file))
    remove_checkpoint(file)
    assert sum(seen) == len(x)
    assert not list(file.parent.iterdir())
    return seen[0], arrays(found)


@each_method
def test_it_resumes(file, method):
    x, y = sides()
    options = {**method, "block_rows": 40}
    killed_after(3, x, y, 4, file, **options)
    done, found = done_rows(x, y, 4, file, **options)
    assert done > 100
    assert_same(found, oracle.both(x, y, 4))


def test_it_resumes_with_another_engine(file):
    x, y = sides()
    killed_after(2, x, y, 4, file, **PLAIN, block_rows=50)
    found = search_both(x, y, 4, SearchOptions(block_rows=33), checkpoint=Checkpoint(file))
    assert_same(arrays(found), oracle.both(x, y, 4))


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


def test_saving_takes_a_fiftieth_of_the_time(file, monkeypatch):
    """Blocks take a second and a save ten, by a clock of the test's own."""
    monkeypatch.setattr(checkpoint, "_SHARE", 50)
    clock, saves = [0.0], []
    parts = Checkpoint._parts

    def slow(self, done):
        clock[0] += 10
        saves.append(done)
        return parts(self, done)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Checkpoint, "_parts", slow)
    x, y = sides(n=1200)

    def second(_rows):
        clock[0] += 1

    search_both(x, y, 4, SearchOptions(block_rows=1), progress=second, checkpoint=Checkpoint(file))
    between = np.diff(saves[:-1])  # the last save comes with the end
    assert len(between) and (between >= 500).all()


@pytest.mark.parametrize("part", [0, 3, 7])
def test_a_damaged_file_is_not_used(file, part):
    x, y = sides()
    killed_after(3, x, y, 4, file, block_rows=50)
    content = bytearray(file.read_bytes())
    content[60 + (len(content) - 60) * part // 8] ^= 1 << part
    file.write_bytes(content)
    done, found = done_rows(x, y, 4, file, block_rows=50)
    assert done < 100
    assert_same(found, oracle.both(x, y, 4))


def test_a_state_of_other_rows_than_its_head_says_is_not_used(file):
    x, y = sides()
    killed_after(3, x, y, 4, file, block_rows=50)
    head, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(head.replace(b'"rows": 1', b'"rows": 2') + b"\n" + rest)
    done, found = done_rows(x, y, 4, file, block_rows=50)
    assert done < 100
    assert_same(found, oracle.both(x, y, 4))


@pytest.mark.parametrize("saves", [0, 2])
def test_a_full_disk_keeps_the_last_save(file, saves, monkeypatch, caplog):
    x, y = sides()
    sync, left = atomic.sync_file, saves

    def full(opened):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(opened)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "sync_file", full)
        found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=Checkpoint(file))
    assert "No space left" in caplog.text
    assert_same(arrays(found), oracle.both(x, y, 4))
    done, found = done_rows(x, y, 4, file, block_rows=50)
    assert done >= 50 * saves
    assert_same(found, oracle.both(x, y, 4))


def test_two_processes_may_save_to_one_file(file):
    """Between the blocks of one search run another of other neighbours, and the same, which removes the file."""
    x, y = sides()
    wanted = {k: oracle.both(x, y, k) for k in (3, 4)}
    others = [4, 3]

    def another(_rows):
        if others:
            k = others.pop()
            found = search_both(x, y, k, SearchOptions(block_rows=70), checkpoint=Checkpoint(file))
            assert_same(arrays(found), wanted[k])
            if k == 4:
                remove_checkpoint(file)

    options = SearchOptions(block_rows=50)
    found = search_both(x, y, 4, options, progress=another, checkpoint=Checkpoint(file))
    assert_same(arrays(found), wanted[4])
    assert not others
    file.with_name(f".{file.name}.2.tmp").touch()  # of one that was killed in a save
    done, found = done_rows(x, y, 4, file)
    assert done == len(x), "nothing was left to do"
    assert_same(found, wanted[4])


def test_a_file_of_another_program_stays(file, caplog):
    file.write_text("notes")
    x, y = sides()
    found = search_both(x, y, 4, SearchOptions(block_rows=50), checkpoint=Checkpoint(file))
    remove_checkpoint(file)
    assert file.read_text() == "notes"
    assert "the search is not saved" in caplog.text
    assert_same(arrays(found), oracle.both(x, y, 4))
