"""The embedding writer: whatever stops it, the next run ends with the same bytes."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitextmine.embeddings import writer as writer_module
from bitextmine.embeddings.store import (
    JOB,
    Manifest,
    check_fresh,
    check_vectors_path,
    open_embedding,
    vectors_digest,
)
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.errors import BitextmineError
from bitextmine.files.journal import Journal

ROWS, DIM, BATCH = 7, 3, 2


def vectors(name, rows=ROWS, dim=DIM):
    return np.random.default_rng(ord(name)).normal(size=(rows, dim)).astype(np.float32)


def embed(npy, name, **kwargs):
    """Embed under an identity, going on where an earlier run was; returns the row it began at."""
    if check_fresh(npy, name, "h") is None:
        return ROWS
    rows = vectors(name)
    with EmbeddingWriter(npy, ROWS, DIM, {"text": name}, **kwargs) as writer:
        for start in range(writer.resume_row, ROWS, BATCH):
            writer.write(start, rows[start : start + BATCH])
        writer.finish(Manifest(lang="fr", corpus="c.fr", text_sha256=name, model="m", model_hash="h"))
        return writer.resume_row


@pytest.fixture(autouse=True)
def sync_at_once(monkeypatch):
    """Every write is brought to disk and recorded."""
    monkeypatch.setattr(writer_module, "SYNC_SECONDS", 0.0)


@pytest.fixture
def no_fsync(monkeypatch):
    """A kill loses nothing that fsync would save, and fsync is slow."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def checked_manifest(npy):
    """The manifest beside it, whose digest must be that of the vectors."""
    _, manifest = open_embedding(npy)
    assert vectors_digest(npy) == manifest.vectors_blake2b
    return manifest


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def finished(folder):
    """The contents without what runs that never came to their end left behind."""
    return {name: data for name, data in contents(folder).items() if ".npy.part" not in name}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What an undisturbed run leaves, by identity."""
    result = {}
    for name in "AB":
        folder = tmp_path_factory.mktemp("reference")
        embed(folder / "c.fr.npy", name)
        result[name] = contents(folder)
        assert sorted(result[name]) == ["c.fr.json", "c.fr.npy"]
    return result


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_are_stored_as_float16(tmp_path, rows, dtype):
    npy = tmp_path / "c.fr.npy"
    data = vectors("A", rows, 4).astype(dtype)
    with EmbeddingWriter(npy, rows, 4, {}) as writer:
        assert writer.resume_row == 0
        writer.write(0, data[:2])
        writer.write(len(data[:2]), data[2:])
        assert not npy.exists()
        written = writer.finish(Manifest(lang="fr"))
    found, manifest = open_embedding(npy)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, data.astype(np.float16))
    np.testing.assert_array_equal(np.load(npy), found)
    assert manifest == written
    assert (manifest.rows, manifest.dim, manifest.dtype) == (rows, 4, "float16")
    checked_manifest(npy)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e6])
def test_numbers_that_float16_cannot_hold_name_their_line(tmp_path, bad):
    data = np.ones((5, 2), dtype=np.float32)
    data[3, 1] = bad
    with EmbeddingWriter(tmp_path / "c.fr.npy", 9, 2, {}) as writer:
        writer.write(0, np.ones((2, 2)))
        with pytest.raises(BitextmineError, match="vector of line 6 has NaN"):
            writer.write(2, data)


@pytest.mark.parametrize(
    ("rows", "dim", "identity"), [(ROWS, DIM, "B"), (ROWS + 1, DIM, "A"), (ROWS, DIM + 1, "A")]
)
def test_a_part_of_another_identity_is_discarded(tmp_path, reference, rows, dim, identity):
    npy = tmp_path / "c.fr.npy"
    with EmbeddingWriter(npy, rows, dim, {"text": identity}) as writer:
        writer.write(0, np.full((4, dim), 9.0))
    assert embed(npy, "A") == 0
    assert contents(tmp_path) == reference["A"]


@pytest.mark.parametrize("damage", ["no state", "empty", "longer", "other header", "too many"])
def test_a_damaged_part_is_discarded(tmp_path, reference, damage):
    npy = tmp_path / "c.fr.npy"
    part, state = Path(f"{npy}.part"), Path(f"{npy}.part.journal")
    with EmbeddingWriter(npy, ROWS, DIM, {"text": "A"}) as writer:
        writer.write(0, np.full((4, DIM), 9.0))
    whole = part.read_bytes()
    changed = {"empty": b"", "longer": whole + b"x", "other header": whole.replace(b"descr", b"DESCR")}
    if damage == "no state":
        state.unlink()
    elif damage in changed:
        part.write_bytes(changed[damage])
    else:
        with Journal(state, JOB, writer.identity) as journal:
            journal.append({"rows": ROWS + 1})
    assert embed(npy, "A") == 0
    assert contents(tmp_path) == reference["A"]


def test_a_foreign_journal_is_written_over_on_demand_only(tmp_path, reference):
    npy = tmp_path / "c.fr.npy"
    Path(f"{npy}.part.journal").write_text("a diary\n")
    with pytest.raises(BitextmineError, match=r"c\.fr\.npy\.part\.journal: .* move it away"):
        embed(npy, "A")
    assert embed(npy, "A", overwrite=True) == 0
    assert contents(tmp_path) == reference["A"]


CALLS = (
    (os, "ftruncate"),
    (os, "posix_fallocate"),
    (os, "pwrite"),
    (os, "fsync"),
    (Path, "unlink"),
    (Path, "replace"),
)


def killed_at(call, work):
    """Run ``work`` in a child that dies at its n-th change of the disk, if it gets that far; else True.

    It dies without any clean-up, as by SIGKILL, before the change, or half-way if that is a write.
    """
    child = os.fork()
    if child == 0:
        try:
            left = call

            def deadly(real):
                def change(*args, **kwargs):
                    nonlocal left
                    left -= 1
                    if left < 0:
                        if real is pwrite:
                            real(args[0], args[1][: len(args[1]) // 2], args[2])
                        os._exit(9)
                    return real(*args, **kwargs)

                return change

            pwrite = os.pwrite
            for owner, name in CALLS:
                if hasattr(owner, name):
                    setattr(owner, name, deadly(getattr(owner, name)))
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9)
    return code == 0


def check_what_is_visible(folder, reference):
    """A complete pair is a right pair."""
    if {"c.fr.npy", "c.fr.json"} <= {path.name for path in folder.iterdir()}:
        text = checked_manifest(folder / "c.fr.npy").text_sha256
        assert (folder / "c.fr.npy").read_bytes() == reference[text]["c.fr.npy"]
        assert (folder / "c.fr.json").read_bytes() == reference[text]["c.fr.json"]


def test_killed_at_any_moment_the_next_run_gives_the_same_bytes(tmp_path, no_fsync, reference):
    """At every change of the disk, over an older embedding of another text and of the same shape."""
    resumed = []
    for call in range(200):
        folder = tmp_path / str(call)
        folder.mkdir()
        npy = folder / "c.fr.npy"
        embed(npy, "B")
        done = killed_at(call, lambda npy=npy: embed(npy, "A"))
        check_what_is_visible(folder, reference)
        if done:
            break
        resumed.append(embed(npy, "A"))
        assert finished(folder) == reference["A"]
    else:
        pytest.fail("never came to the end")
    assert len(resumed) > 20
    assert resumed == sorted(resumed)  # what was done once is never done again
    assert set(resumed) == {0, 2, 4, 6, ROWS}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(runs=st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 60)), max_size=5))
def test_any_row_of_kills_and_identities_ends_well(tmp_path_factory, no_fsync, reference, runs):
    folder = tmp_path_factory.mktemp("kills")
    npy = folder / "c.fr.npy"
    for name, call in runs:
        killed_at(call, lambda name=name: embed(npy, name))
        check_what_is_visible(folder, reference)
    embed(npy, "A")
    assert finished(folder) == reference["A"]
    shutil.rmtree(folder)


DISK_BYTES = 256 * 1024


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a quarter of a mebibyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def no_allocation(*args):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


def test_a_disk_that_fills_up_underway_costs_no_finished_rows(small_disk, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", no_allocation)  # or the space would be taken already
    npy, filler, rows = small_disk / "c.npy", small_disk / "filler", vectors("A", 1000, 64)
    with EmbeddingWriter(npy, 1000, 64, {}) as writer:
        writer.write(0, rows[:200])
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(DISK_BYTES))
        with pytest.raises(
            BitextmineError, match=r"No space left.*take 126K, .* free\); 200 of 1,000 rows are kept"
        ):
            writer.write(200, rows[200:])
    filler.unlink()
    assert not npy.exists()
    with EmbeddingWriter(npy, 1000, 64, {}) as writer:
        assert writer.resume_row == 200
        writer.write(200, rows[200:])
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(DISK_BYTES))
        with pytest.raises(BitextmineError, match="No space left"):  # now the manifest has no room
            writer.finish(Manifest(lang="fr"))
        assert not npy.exists()
        filler.unlink()
    with EmbeddingWriter(npy, 1000, 64, {}) as writer:
        assert writer.resume_row == 1000
        writer.finish(Manifest(lang="fr"))
    checked_manifest(npy)
    np.testing.assert_array_equal(np.load(npy), rows.astype(np.float16))
    assert sorted(contents(small_disk)) == ["c.json", "c.npy"]


def test_a_link_stays_and_leads_to_the_vectors(tmp_path, reference):
    link, disk = tmp_path / "c.npy", tmp_path / "disk"
    disk.mkdir()
    link.symlink_to(disk / "big.npy")
    check_vectors_path(link)
    for name in "AB":  # of a missing file, then over one
        embed(link, name)
        assert link.is_symlink() and checked_manifest(link)
        assert contents(disk) == {"big.npy": reference[name]["c.fr.npy"]}
