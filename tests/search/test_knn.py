import doctest
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.search import knn as module
from bitextmine.search.knn import knn

from . import oracle
from .test_exact import arrays, assert_same


def test_the_example():
    tried = doctest.testmod(module)
    assert tried.attempted > 3
    assert not tried.failed


@settings(max_examples=30)
@given(
    n=st.integers(0, 60),
    m=st.integers(0, 60),
    d=st.sampled_from([1, 3, 32, 70]),
    k=st.integers(1, 8),
    dtype=st.sampled_from([np.float16, np.float32, np.float64, np.int8]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_oracle(n, m, d, k, dtype, seed):
    """On a grid, on which every way to sum is exact and many similarities are equal."""
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-3, 4, (size, d)).astype(dtype) for size in (n, m))
    assert_same(arrays(knn(x, y, k)), oracle.both(x, y, k))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_cosine(dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(0.1, 9, (size, 1)) * oracle.vectors(rng, size, 20, np.float64) for size in (70, 90))
    x[3] = y[4] = 0
    x, y = x.astype(dtype), y.astype(dtype)
    got = knn(x, y, 5, normalize=True)
    wide = [
        v.astype(np.float64) / np.maximum(np.linalg.norm(v.astype(np.float64), axis=1, keepdims=True), 1e-300)
        for v in (x, y)
    ]
    sims = wide[0] @ wide[1].T
    np.testing.assert_allclose(got.fwd_sim, -np.sort(-sims, axis=1)[:, :5], atol=2e-7)
    np.testing.assert_allclose(got.bwd_sim, -np.sort(-sims.T, axis=1)[:, :5], atol=2e-7)
    np.testing.assert_allclose(np.take_along_axis(sims, got.fwd_id, 1), got.fwd_sim, atol=2e-7)
    assert (got.fwd_id[3] == np.arange(5)).all()
    assert (got.bwd_sim[4] == 0).all()


def test_takes_lists_and_tensors_and_leaves_them_alone():
    rng = np.random.default_rng(2)
    x, y = oracle.vectors(rng, 20, 8), oracle.vectors(rng, 30, 8)
    before = x.copy()
    want = oracle.both(x, y, 3)
    assert_same(arrays(knn(x.tolist(), torch.from_numpy(y), 3)), want)
    tensor = torch.from_numpy(x).requires_grad_()
    assert_same(arrays(knn(tensor, y, 3)), want)
    coarse = tensor.bfloat16()
    assert_same(arrays(knn(coarse, y, 3)), arrays(knn(coarse.float().detach().numpy(), y, 3)))
    x.flags.writeable = False
    assert_same(arrays(knn(x, y, np.int64(3))), want)
    knn(x, y, 3, normalize=True)
    assert (x == before).all()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"x: expected one vector a row \(2 dimensions\), found 1"),
        ([[1.0, 2.0], [3.0]], "x: not a matrix"),
        ([[1j, 2]], "x: expected real numbers, found complex128"),
        ([[1.0, 2.0], [np.nan, 0.0]], "x: the vector of line 2 holds a NaN"),
        ([[1e13, 0.0]], "a vector of length 1.0e[+]13"),
        ([[1.0, 2.0, 3.0]], "different dimensions: x 3, y 2"),
    ],
)
def test_what_it_refuses(x, message):
    with pytest.raises(BitextmineError, match=message):
        knn(x, [[1.0, 0.0]], 1)


def test_what_else_it_refuses():
    with pytest.raises(BitextmineError, match="k must be at least 1, found 0"):
        knn([[1.0]], [[1.0]], 0)
    with pytest.raises(BitextmineError, match=r"k = 10{12}: the result alone takes"):
        knn([[1.0]], [[1.0]], 10**12)
    with pytest.raises(BitextmineError, match="too little"):
        knn(np.eye(50), np.eye(50), 4, memory=1)


@pytest.mark.parametrize("module", ["knn", "neighbours", "options"])
def test_importing_it_imports_neither_faiss_nor_torch(module):
    code = f"import sys, bitextmine.search.{module}; assert not {{'faiss', 'torch'}} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
