"""Slow, plain numpy: what the searches must equal."""

import numpy as np


def similarities(x, y):
    """Exact for float16 rows, in whatever order numpy sums (see products.products)."""
    return (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32) + np.float32(0)


def best_of(sims, k):
    order = np.argsort(-sims, axis=1, kind="stable")[:, :k]  # ties go to the lower id
    missing = ((0, 0), (0, k - order.shape[1]))
    sim = np.pad(np.take_along_axis(sims, order, axis=1), missing, constant_values=-np.inf)
    return sim, np.pad(order, missing, constant_values=-1)


def both(x, y, k):
    sims = similarities(x, y)
    return (*best_of(sims, k), *best_of(sims.T, k))


def vectors(rng, n, d, dtype=np.float16):
    v = rng.standard_normal((n, d))
    v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)
    return v.astype(dtype)


def corpus(rng, n, d, repeats=0.0, zeros=0.0, near=0.0, coarse=False, dtype=np.float16):
    """Rows with planted copies, zero rows and near copies; coarse ones tie without being equal."""
    v = vectors(rng, n, d, dtype)
    if coarse:
        v = np.sign(v).astype(np.float64) * (rng.random((n, d)) < 0.3)
        v = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1)).astype(dtype)
    for share, noise in ((repeats, 0.0), (near, 1e-3)):
        at = np.flatnonzero(rng.random(n) < share)
        if n and at.size:
            v[at] = (v[rng.integers(0, n, at.size)] + noise * rng.standard_normal((at.size, d))).astype(dtype)
    v[rng.random(n) < zeros] = 0
    return v
