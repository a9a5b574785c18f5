from __future__ import annotations

import numpy as np
import pytest

from bitextmine.index.exact import search_both


def oracle(x, y, k):
    sims = (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32) + np.float32(0)
    sim = np.full((len(x), k), -np.inf, np.float32)
    ids = np.full((len(x), k), -1, np.int64)
    for i, row in enumerate(sims):
        order = np.lexsort((np.arange(len(row)), -row))[:k]
        sim[i, : len(order)], ids[i, : len(order)] = row[order], order
    return sim, ids


def vectors(rng, n, d):
    v = rng.standard_normal((n, d))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return v.astype(np.float16)


@pytest.mark.parametrize("n,m,k", [(50, 70, 4), (3, 70, 4), (70, 3, 4), (1, 1, 1), (200, 100, 16)])
@pytest.mark.parametrize("block", [7, 64, 4096])
def test_equals_oracle(n, m, k, block):
    rng = np.random.default_rng(0)
    x, y = vectors(rng, n, 16), vectors(rng, m, 16)
    y[: min(n, m) // 2] = x[: min(n, m) // 2]
    got = search_both(x, y, k, block_rows=block)
    for a, b in zip((got.fwd_sim, got.fwd_id, got.bwd_sim, got.bwd_id), (*oracle(x, y, k), *oracle(y, x, k))):
        assert np.array_equal(a, b)
