import os
import subprocess
import sys

import faiss
import numpy as np
import pytest

from bitextmine.errors import BitextmineError
from bitextmine.search import faiss_index
from bitextmine.search.exact import search_one
from bitextmine.search.faiss_index import factory_string, openblas_kernel
from bitextmine.search.indexed import Indexed, draw, measure, tune

from ..search import oracle
from .conftest import build_index


def test_the_kind_follows_the_size():
    assert factory_string("auto", 10) == factory_string("auto", 250_000) == "Flat"
    assert factory_string("auto", 250_001).startswith("IVF")
    assert factory_string("ivf", 1_000_000) == "IVF2048,SQfp16"
    assert factory_string("PCA16,Flat", 3) == "PCA16,Flat"
    for rows in (1, 2, 38, 100, 5000, 10**6, 10**8):
        lists = int(factory_string("ivf", rows).split(",")[0].removeprefix("IVF"))
        assert lists == 1 or rows / lists >= 39


@pytest.mark.parametrize("kind", ["auto", "flat", "IDMap,Flat", "Flat,RFlat"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_flat_index_finds_what_exact_search_finds(kind, dtype):
    rng = np.random.default_rng(0)
    pool = oracle.corpus(rng, 400, 24, 0.3, 0.1, dtype=dtype)
    queries = oracle.corpus(rng, 100, 24, dtype=dtype)
    want = search_one(queries, pool, 5)
    sim, ids = Indexed(pool, build_index(pool, kind)).search(queries, 5)
    # a zero vector is not in the index: it is nobody's neighbour, and here is near nobody
    assert sim.tobytes() == want[0].tobytes()
    assert ids.tobytes() == want[1].tobytes()


@pytest.mark.parametrize("kind", ["ivf", "HNSW32_SQ8", "PCA16,Flat", "IVF8,PQ8x4fs", "SQ8", "HNSW16"])
@pytest.mark.parametrize("rows", [1, 30, 700])
def test_similarities_are_exact_and_ordered_whatever_the_index_keeps(kind, rows):
    rng = np.random.default_rng(1)
    pool, queries = oracle.corpus(rng, rows, 32, 0.1), oracle.vectors(rng, 50, 32)
    try:
        index = build_index(pool, kind)
    except BitextmineError as error:
        assert "too few to train" in str(error)
        assert rows < 700
        return
    sim, ids = Indexed(pool, index).search(queries, 4)
    sims = oracle.similarities(queries, pool)
    for q in range(50):
        found = ids[q][ids[q] >= 0]
        assert len(found) == len(set(found.tolist())) > 0
        assert sim[q][: len(found)].tolist() == sims[q, found].tolist()
        assert np.isneginf(sim[q][len(found) :]).all()
        assert found.tolist() == sorted(found.tolist(), key=lambda j, q=q: (-sims[q, j], j))


def test_long_lists_of_fast_scan_codes_are_whole():
    """FAISS overruns such a list, at a length of 128 here, if it is told which rows go into it."""
    pool = oracle.vectors(np.random.default_rng(16), 700, 32)
    index = build_index(pool, "IVF1,PQ16x4fs")
    lists = index.inverted.invlists
    assert lists.list_size(0) == index.rows == 700
    assert faiss.rev_swig_ptr(lists.get_ids(0), 700).tolist() == list(range(700))
    assert (Indexed(pool, index).search(pool, 1)[1][:, 0] == np.arange(700)).mean() > 0.9


def test_lists_that_run_empty_give_no_neighbours():
    """FAISS answers -1 and -3.4e38 when the lists it looked into hold fewer than k."""
    rng = np.random.default_rng(3)
    centres = np.eye(16, dtype=np.float32)
    pool = np.repeat(centres, 3, axis=0) + 0.01 * rng.standard_normal((48, 16)).astype(np.float32)
    pool = pool.astype(np.float16)
    index = build_index(pool, "IVF16,Flat")
    index.set_effort(1)
    assert (index.candidates(pool, 10) == -1).any()
    sim, ids = Indexed(pool, index).search(pool, 10)
    assert (ids == -1).any()
    assert np.isneginf(sim[ids < 0]).all()
    assert (sim[ids >= 0] > -2).all()
    assert measure(Indexed(pool, index), draw(pool, 4, size=48)).at_k < 1


@pytest.mark.parametrize("kind", ["ivf", "IVF32,SQ8"])
def test_tuning_reaches_the_target(kind):
    rng = np.random.default_rng(8)
    pool = oracle.vectors(rng, 4000, 48)
    index = build_index(pool, kind)
    index.set_effort(1)
    sample = draw(pool, 4, size=200)
    indexed = Indexed(pool, index)
    before = measure(indexed, sample)
    after = tune(indexed, sample, 0.97)
    assert before.at_1 < 0.97 <= after.at_1 <= 1
    assert 0 < before.at_k <= after.at_k <= 1
    assert after == measure(indexed, sample)


def test_recall_is_what_the_oracle_counts():
    rng = np.random.default_rng(9)
    pool = oracle.vectors(rng, 600, 16)
    index = build_index(pool, "IVF15,Flat")
    index.set_effort(2)
    indexed = Indexed(pool, index)
    recall = measure(indexed, draw(pool, 3, size=600))
    found = indexed.search(pool, 4)[1]
    true = oracle.similarities(pool, pool)
    np.fill_diagonal(true, -np.inf)
    best = np.argsort(-true, axis=1)[:, :3]
    others = [[row for row in rows if row != own][:3] for own, rows in enumerate(found.tolist())]
    assert recall.sample == 600
    assert recall.at_1 == pytest.approx(
        np.mean([best[own, 0] in rows[:1] for own, rows in enumerate(others)])
    )
    assert recall.at_k == pytest.approx(
        np.mean([len(set(rows) & set(best[own].tolist())) / 3 for own, rows in enumerate(others)])
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("NoSuchIndex", r"could not parse index string NoSuchIndex"),
        ("IVF16,PQ7", "dimension"),
        ("PQ5", "multiple of the number of subquantizers"),
        ("IVF500,Flat", "300 distinct rows are too few"),
    ],
)
def test_kinds_that_cannot_be(kind, message):
    rng = np.random.default_rng(13)
    with pytest.raises(BitextmineError, match=message):
        build_index(oracle.vectors(rng, 300, 32), kind)


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_ids_that_are_not_of_these_vectors(kind):
    """A large index is not compared with its checksum at each use."""
    pool = oracle.vectors(np.random.default_rng(14), 300, 32)
    index = build_index(pool, kind)
    index.facts["rows"] = 20
    with pytest.raises(BitextmineError, match="its ids are not those of 20 rows; run index --force"):
        index.candidates(pool, 4)


def test_vectors_that_cannot_be_indexed():
    rng = np.random.default_rng(14)
    pool = oracle.vectors(rng, 300, 32)
    with pytest.raises(BitextmineError, match="nothing to index: 5 row"):
        build_index(np.zeros((5, 8), np.float16))
    with pytest.raises(BitextmineError, match="nothing to index: 0 row"):
        build_index(np.zeros((0, 8), np.float16))
    index = build_index(pool)
    with pytest.raises(BitextmineError, match=r"32.* 16"):
        Indexed(pool[:, :16], index)
    with pytest.raises(BitextmineError, match="of 300 rows, the vectors beside it are 299"):
        Indexed(pool[:299], index)
    with pytest.raises(BitextmineError, match="k must be at least 1"):
        Indexed(pool, index).search(pool[:3], 0)
    bad = pool.copy()
    bad[123, 4] = np.nan
    with pytest.raises(BitextmineError, match="line 124 holds a NaN"):
        build_index(bad)
    with pytest.raises(BitextmineError, match=r"queries: .*line 124 holds a NaN"):
        Indexed(pool, index).search(bad, 2)


HASWELL = {"sse2", "avx2", "fma"}
SKYLAKE = HASWELL | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.parametrize(
    ("flags", "kernel"),
    [(SKYLAKE, "SkylakeX"), (SKYLAKE - {"avx512vl"}, "Haswell"), (HASWELL, "Haswell"), ({"sse2"}, None)],
)
def test_the_kernel_follows_the_processor(flags, kernel, monkeypatch):
    monkeypatch.setattr(faiss_index, "processor_flags", lambda: frozenset(flags))
    assert openblas_kernel() == kernel


@pytest.mark.skipif(openblas_kernel() is None, reason="OpenBLAS chooses for this processor")
@pytest.mark.parametrize("given", [None, "Prescott"])
def test_faiss_loads_with_the_kernel(given):
    variables = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    variables |= {"OPENBLAS_VERBOSE": "2"} | ({"OPENBLAS_CORETYPE": given} if given else {})
    code = "import os, bitextmine.search.faiss_index; print(os.environ.get('OPENBLAS_CORETYPE'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True, timeout=100
    )
    lines = done.stdout.splitlines()
    kernels = [
        line.split()[1]
        for text in (done.stdout, done.stderr)
        for line in text.splitlines()
        if "Core:" in line
    ]
    if not kernels:
        pytest.skip("this faiss is built with another BLAS")
    assert kernels[-1] == (given or openblas_kernel())
    assert str(given) in lines
