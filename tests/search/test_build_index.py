import faiss
import numpy as np
import pytest

from bitextmine.errors import BitextmineError
from bitextmine.search import faiss_index
from bitextmine.search.indexed import Indexed

from ..search import oracle
from .conftest import build_index


@pytest.mark.parametrize(
    "kind", ["ivf", "IVF8,SQ8", "IVF300,Flat", "IVF8_HNSW8,SQ8", "IVF8,PQ8x4", "OPQ8_32,IVF8,PQ8x4"]
)
def test_lists_are_those_that_faiss_assigns(kind, monkeypatch):
    monkeypatch.setattr(faiss_index, "_ADD_ROWS", 200)
    vectors = oracle.corpus(np.random.default_rng(0), 900, 32, 0.1, 0.02)
    made = faiss_index.build_index(vectors, kind).faiss
    index = faiss.clone_index(made)
    index.reset()  # but stays trained
    chosen = sorted({row.tobytes(): at for at, row in reversed([*enumerate(vectors)]) if row.any()}.values())
    index.add_with_ids(vectors[chosen].astype(np.float32), np.array(chosen))
    assert faiss.serialize_index(made).tobytes() == faiss.serialize_index(index).tobytes()


def test_an_index_larger_than_the_memory_is_refused():
    vectors = oracle.vectors(np.random.default_rng(0), 900, 32)
    for kind in ("ivf", "HNSW32_SQ8"):
        with pytest.raises(BitextmineError, match=r"takes about .* of memory, 1.* may be used; allow more"):
            faiss_index.build_index(vectors, kind, memory=1000)


class MadeUpGpu:
    """An index on a GPU, with its limits; it finds what the one on the CPU does."""

    def __init__(self, cpu):
        self.cpu, self.asked, self.nprobe = cpu, 0, cpu.nprobe

    def search(self, block, count):
        assert count <= 2048
        assert self.nprobe <= 2048
        self.asked += 1
        return self.cpu.search(block, count)

    def set_index_parameter(self, copy, name, value):
        setattr(copy, name, value)


def test_faiss_searches_on_gpus_within_their_limits(monkeypatch):
    rng = np.random.default_rng(3)
    pool, queries = oracle.vectors(rng, 2500, 8), oracle.vectors(rng, 5, 8)
    index, graph = build_index(pool, "IVF4,SQ8"), build_index(pool, "HNSW8")
    there = MadeUpGpu(index.faiss)

    def move(cpu):
        if cpu is index.faiss:
            return there
        raise RuntimeError("GpuIndex: This type of index is not implemented")

    for name, value in (
        ("StandardGpuResources", object),
        ("get_num_gpus", lambda: 2),
        ("index_cpu_to_all_gpus", move),
        ("GpuParameterSpace", lambda: there),
    ):
        monkeypatch.setattr(faiss, name, value, raising=False)
    index.set_effort(4)
    want = Indexed(pool, index).search(queries, 3)[1].tolist()
    assert (there.asked, want) == (1, Indexed(pool, index).search(queries, 3)[1].tolist())
    index.set_effort(3)
    assert there.nprobe == 3, "without another copy"
    asked = there.asked
    index.candidates(queries, 2049)
    index.set_effort(5000)
    index.candidates(queries, 10)
    assert there.asked == asked
    assert Indexed(pool, graph).search(queries, 3)[1].shape == (5, 3)
