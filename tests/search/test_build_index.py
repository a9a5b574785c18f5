import errno
from types import SimpleNamespace
from unittest import mock

import faiss
import numpy as np
import pytest

from bitextmine.embeddings.index_file import index_paths, load_index
from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError
from bitextmine.files.journal import Journal, read_head
from bitextmine.search import build_index as build
from bitextmine.search.build_index import build_on_disk, make_plan
from bitextmine.search.indexed import Indexed

from ..embeddings.test_index_file import contents, embed, index_corpus
from ..search import oracle
from .conftest import build_index


@pytest.fixture
def npy(tmp_path):
    return embed(tmp_path / "corpus.fr.npy", oracle.corpus(np.random.default_rng(0), 900, 32, 0.1, 0.02))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(build, "_ADD_ROWS", 200)


@pytest.mark.parametrize("kind", ["ivf", "IVF8,SQ8", "IVF300,Flat", "IVF8_HNSW8,SQ8", "IVF8,PQ8x4"])
@pytest.mark.parametrize("memory", [1 << 30, 20_000])
def test_the_file_is_as_faiss_writes_it(npy, tmp_path, kind, memory):
    """An index that FAISS itself adds the vectors to, with lists that it assigns."""
    vectors, _ = open_embedding(npy)
    plan = make_plan(vectors, kind)
    made = build_on_disk(vectors, plan, tmp_path / "part", {}, memory=memory).file
    index = faiss.read_index(str(tmp_path / "part" / "trained.faiss"))
    index.add_with_ids(np.ascontiguousarray(vectors[plan.chosen], np.float32), plan.chosen)
    faiss.write_index(index, str(tmp_path / "wanted.faiss"))
    assert made.read_bytes() == (tmp_path / "wanted.faiss").read_bytes()


def test_lists_are_mapped(npy):
    found = load_index(index_corpus(npy, "ivf").path)
    assert isinstance(faiss.downcast_InvertedLists(found.inverted.invlists), faiss.OnDiskInvertedLists)


@pytest.mark.parametrize("damage", [None, "missing", "truncated", "another model"])
def test_interrupted_work_is_taken_up(npy, damage, monkeypatch):
    index_corpus(npy, "ivf")
    wanted, part, seen = contents(npy), npy.parent / "corpus.fr.faiss.part", []

    def stop(count):
        seen.append(count)
        if sum(seen) == 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_corpus(npy, "ivf", progress=stop, force=True)
    if damage == "missing":
        (part / "lists").unlink()
    elif damage == "truncated":
        (part / "codes").write_bytes((part / "codes").read_bytes()[:-1])
    elif damage == "another model":
        head = read_head(part / "journal")
        head.identity["embedding"]["model_hash"] = "1" * 16
        (part / "journal").unlink()
        with Journal(part / "journal", head.job, head.identity):
            pass
    report = index_corpus(npy, "ivf", force=True)
    assert report.resumed == (0 if damage else 600)
    assert contents(npy) == wanted
    assert not part.exists()


def test_two_at_the_same_index(npy):
    vectors, _ = open_embedding(npy)
    part = npy.parent / "part"
    part.mkdir()
    (part / "journal").touch()
    with (
        Journal(part / "journal", build.JOB, {}),
        pytest.raises(BitextmineError, match="another process is building"),
    ):
        build_on_disk(vectors, make_plan(vectors, "ivf"), part, {}, memory=1 << 30)


def test_too_little_room(npy, monkeypatch):
    with pytest.raises(
        BitextmineError, match=r"HNSW32_SQ8: takes about .* of memory, .* may be used; use ivf"
    ):
        index_corpus(npy, "HNSW32_SQ8", memory=1000)
    monkeypatch.setattr(build.shutil, "disk_usage", lambda _: SimpleNamespace(free=5000))
    with pytest.raises(
        BitextmineError, match=r"the index takes about [\d,]+ bytes, and [\d,]+ are to be had"
    ):
        index_corpus(npy, "ivf")
    assert not index_paths(npy)[0].exists()


def test_a_full_disk_half_way(npy, monkeypatch):
    index_corpus(npy, "ivf")
    wanted, real, calls = contents(npy), build.sync_file, []

    def full(file):
        calls.append(file)
        if len(calls) == 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(build, "sync_file", full)
        with pytest.raises(BitextmineError, match=r"No space left on device.*run index again to go on"):
            index_corpus(npy, "ivf", force=True)
    assert index_corpus(npy, "ivf", force=True).resumed == 400
    assert contents(npy) == wanted


def with_gpus(monkeypatch, move):
    """Have faiss find GPUs, to which `move` copies an index."""
    for name, found in (
        ("StandardGpuResources", object),
        ("get_num_gpus", lambda: 2),
        ("index_cpu_to_all_gpus", move),
    ):
        monkeypatch.setattr(faiss, name, found, raising=False)


def test_a_faiss_with_gpus_searches_there(monkeypatch):
    rng = np.random.default_rng(2)
    pool, queries = oracle.vectors(rng, 500, 16), oracle.vectors(rng, 30, 16)
    index = build_index(pool, "IVF4,SQ8")
    index.set_effort(4)
    want = Indexed(pool, index).search(queries, 3)
    moved = []
    with_gpus(monkeypatch, lambda cpu: moved.append(cpu) or cpu)
    for _ in range(2):
        got = Indexed(pool, index).search(queries, 3)
    assert moved == [index.faiss]  # once
    assert got[1].tolist() == want[1].tolist()

    with_gpus(
        monkeypatch, mock.Mock(side_effect=RuntimeError("GpuIndex: This type of index is not implemented"))
    )
    assert Indexed(pool, build_index(pool, "HNSW8")).search(queries, 3)[1].shape == (30, 3)


class MadeUpGpu:
    """An index on a GPU, with its limits; it finds what the one on the CPU does."""

    def __init__(self, cpu):
        self.cpu, self.asked, self.nprobe = cpu, 0, cpu.nprobe

    def search(self, block, count):
        assert count <= 2048
        assert self.nprobe <= 2048
        self.asked += 1
        return self.cpu.search(block, count)


def test_the_limits_of_faiss_on_a_gpu(monkeypatch):
    rng = np.random.default_rng(3)
    pool, queries = oracle.vectors(rng, 2500, 8), oracle.vectors(rng, 5, 8)
    index = build_index(pool, "IVF4,SQ8")
    there = MadeUpGpu(index.faiss)

    class Parameters:
        def set_index_parameter(self, copy, name, value):
            assert copy is there
            setattr(copy, name, value)

    with_gpus(monkeypatch, lambda _: there)
    monkeypatch.setattr(faiss, "GpuParameterSpace", Parameters, raising=False)
    index.set_effort(2)
    index.candidates(queries, 2048)
    index.set_effort(3)
    assert there.nprobe == 3  # without another copy
    index.candidates(queries, 10)
    assert there.asked == 2
    index.candidates(queries, 2049)
    index.set_effort(5000)
    index.candidates(queries, 10)
    assert there.asked == 2
