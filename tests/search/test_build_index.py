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


@pytest.mark.parametrize("kind", ["ivf", "IVF8,SQ8", "IVF300,Flat", "IVF8,PQ8x4fs", "SQ8"])
def test_shards_make_the_same_index(npy, kind):
    index_corpus(npy, kind)
    whole, _ = contents(npy)
    report = index_corpus(npy, kind, shard_rows=200, force=True)
    assert (report.facts["shards"] > 1) == kind.startswith(("ivf", "IVF8,SQ8", "IVF300"))  # others: in one go
    assert contents(npy)[0] == whole
    assert not list(npy.parent.glob("*.part"))


def test_lists_are_mapped(npy):
    found = load_index(index_corpus(npy, "ivf", shard_rows=200).path)
    assert isinstance(faiss.downcast_InvertedLists(found.inverted.invlists), faiss.OnDiskInvertedLists)


def test_a_shard_of_other_vectors_or_cut_short_is_built_again(npy, monkeypatch):
    part = npy.parent / "corpus.fr.faiss.part"
    wanted = contents_of(npy)

    def stop(*_):
        raise KeyboardInterrupt

    for damage in ("missing", "truncated", "another model"):
        with monkeypatch.context() as patch:
            patch.setattr(build, "_merge_shards", stop)
            with pytest.raises(KeyboardInterrupt):
                index_corpus(npy, "ivf", shard_rows=200, force=True)
        shard = part / "shard-00001.faiss"
        if damage == "missing":
            shard.unlink()
        elif damage == "truncated":
            shard.write_bytes(shard.read_bytes()[:-1000])
        else:
            head = read_head(part / "journal")
            head.identity["embedding"]["model_hash"] = "1" * 16
            (part / "journal").unlink()
            with Journal(part / "journal", head.job, head.identity):
                pass
        report = index_corpus(npy, "ivf", shard_rows=200, force=True)
        assert report.resumed == (0 if damage == "another model" else 3)
        assert contents(npy) == wanted


def contents_of(npy):
    index_corpus(npy, "ivf", shard_rows=200)
    return contents(npy)


def test_work_is_taken_up_with_another_memory(npy, monkeypatch):
    vectors, _ = open_embedding(npy)
    plan = make_plan(vectors, "ivf", shard_rows=300)
    part = npy.parent / "part"
    written: list[str] = []
    write = build.write_index
    monkeypatch.setattr(
        build, "write_index", lambda index, file: (written.append(file.name), write(index, file))
    )
    one = build_on_disk(vectors, plan, part, {}, memory=1 << 30)
    two = build_on_disk(vectors, make_plan(vectors, "ivf"), part, {}, memory=1 << 20)
    assert (one.shards, one.resumed, two.shards, two.resumed) == (3, 0, 3, 3)
    assert written.count("shard-00000.faiss") == 1


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
    wanted = contents_of(npy)
    real, calls = faiss.write_index, []

    def full(index, name):
        calls.append(name)
        if len(calls) == 4:
            raise RuntimeError("Error in operator() at io.cpp:10: write error: No space left on device")
        real(index, name)

    with monkeypatch.context() as patch:
        patch.setattr(faiss, "write_index", full)
        with pytest.raises(BitextmineError, match=r"No space left on device.*run index again to go on"):
            index_corpus(npy, "ivf", shard_rows=200, force=True)
    assert index_corpus(npy, "ivf", shard_rows=200, force=True).resumed == 2
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
