from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.search.blocks import exact_products
from bitextmine.search.products import pair_products, products, rescore

from . import oracle


@settings(max_examples=60)
@given(
    st.integers(0, 40),
    st.integers(1, 30),
    st.integers(1, 9),
    st.sampled_from([1, 3, 32, 50]),
    st.integers(0, 99),
)
def test_equals_the_oracle(n, m, c, d, seed):
    rng = np.random.default_rng(seed)
    x, y = oracle.corpus(rng, n, d, 0.2, 0.1, coarse=seed % 2 == 0), oracle.corpus(rng, m, d, 0.5, 0.1)
    ids = rng.integers(-1, m, (n, c))
    sims = oracle.similarities(x, y)
    k = int(rng.integers(1, c + 3))
    sim, found = rescore(x, y, ids, k)
    assert sim.shape == found.shape == (n, k)
    for i in range(n):
        want = sorted({(-sims[i, j], j) for j in ids[i].tolist() if j >= 0})[:k]
        assert found[i].tolist() == [j for _, j in want] + [-1] * (k - len(want))
        assert sim[i].tolist() == [-s for s, _ in want] + [-np.inf] * (k - len(want))


def test_float16_products_are_the_exact_ones(way):
    rng = np.random.default_rng(0)
    x, y = oracle.vectors(rng, 30, 512), oracle.vectors(rng, 30, 512)
    each = np.arange(30)
    got = pair_products(x, y, each, each, np.dtype(np.float16))
    for a, b, value in zip(x, y, got, strict=True):
        exact = sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True))
        assert value == np.float32(float(exact))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("d", [1, 31, 32, 33, 100, 512])
def test_products_in_c_and_torch_are_those_of_numpy(dtype, d):
    rng = np.random.default_rng(d)
    x, y = (3 * rng.standard_normal((n, d)).astype(dtype) for n in (40, 50))
    i, j = rng.integers(0, 40, 300), rng.integers(0, 50, 300)
    want = products(x[i], y[j])
    for device in ("cpu", "cuda")[: 1 + torch.cuda.is_available()]:
        rows = (torch.from_numpy(side).to(device) for side in (x[i], y[j]))
        assert exact_products(*rows).cpu().numpy().tobytes() == want.tobytes()
    assert pair_products(x, y, i, j, np.dtype(dtype)).tobytes() == want.tobytes()
    assert pair_products(x[:, ::-1][:, ::-1], y, i, j, np.dtype(dtype)).tobytes() == want.tobytes()


def test_input_that_cannot_be_rescored():
    x, y = np.eye(3, dtype=np.float16), np.eye(3, dtype=np.float16)
    with pytest.raises(BitextmineError, match="queries 3, pool 4"):
        rescore(x, np.eye(4, dtype=np.float16), np.array([[0], [1], [2]]), 1)
    y[2, 1] = np.nan
    with pytest.raises(BitextmineError, match="pool: the vector of line 3 holds a NaN"):
        rescore(x, y, np.array([[0], [2], [1]]), 1)
