"""Exact similarities of given candidates, from the stored vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.search import fused
from bitextmine.search.neighbours import best_first
from bitextmine.search.rows import Vectors, check_finite, check_pair

LANES = 32
_PAIRS = 512


def products(x: Vectors, y: Vectors) -> NDArray[np.float32]:
    """Return the inner products of x (p, d) and y (p, d), row by row, float32 (p,).

    The products, exact in float64, are summed in float64 in one fixed order: lane l adds up positions l, l + 32, l +
    64, ...; the 32 lanes are then folded pairwise. fused.c does the same. A product of two float16 numbers is a
    multiple of 2**-48, so for vectors of length up to 5 every partial sum fits a float64's 53 bits: the result is the
    exact inner product, rounded once to float32, in whatever order it is summed.
    """
    p, d = x.shape
    acc = np.zeros((p, LANES))
    x, y = _double(x), _double(y)
    for at in range(0, d, LANES):
        a, b = x[:, at : at + LANES], y[:, at : at + LANES]
        acc[:, : a.shape[1]] += a * b
    s = (acc[:, :8] + acc[:, 8:16]) + (acc[:, 16:24] + acc[:, 24:])
    s = s[:, :4] + s[:, 4:]
    total = (s[:, 0] + s[:, 2]) + (s[:, 1] + s[:, 3])
    out: NDArray[np.float32] = total.astype(np.float32) + np.float32(0.0)  # -0.0 becomes 0.0: one way to tie
    return out


def _double(rows: Vectors) -> NDArray[np.float64]:
    if rows.dtype != np.float16:
        return rows.astype(np.float64)
    import torch  # widens float16 ten times as fast as numpy does

    wide: NDArray[np.float64] = torch.from_numpy(np.ascontiguousarray(rows)).float().double().numpy()
    return wide


def pair_products(
    x: Vectors, y: Vectors, i: NDArray[np.int64], j: NDArray[np.int64], dtype: np.dtype[Any]
) -> NDArray[np.float32]:
    """Return `products` of x's rows i with y's rows j; compiled if possible. The caller has checked i and j."""
    out, lib = np.empty(len(i), dtype=np.float32), fused.library()
    same = x.dtype == y.dtype == dtype and x.dtype.isnative
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)  # not rows that are read from a file
    if lib is not None and same and arrays and x.flags.c_contiguous and y.flags.c_contiguous:
        i, j = np.ascontiguousarray(i, dtype=np.int64), np.ascontiguousarray(j, dtype=np.int64)
        lib.fused_products(x, i, y, j, len(i), x.shape[1], x.dtype == np.float32, lib.fused_isa(), out)
        return out
    for at in range(0, len(i), _PAIRS):
        part = slice(at, at + _PAIRS)
        out[part] = products(x[i[part]].astype(dtype, copy=False), y[j[part]].astype(dtype, copy=False))
    return out


def rescore(
    queries: Vectors, pool: Vectors, ids: NDArray[np.integer[Any]], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the exact inner products of each query with its k best candidates, best first.

    `queries` (n, d) and `pool` (m, d) are float16 or float32; `ids` (n, c) are rows of the pool, which is not checked,
    or -1 for none; one that occurs twice in a row counts once.

    Returns similarity float32 (n, k) and id int64 (n, k); missing ones are -1 with -inf, last.

    Raises:
        BitextmineError: different dimensions, or a NaN in a vector that is used.
    """
    dtype = check_pair(queries, pool, "queries", "pool")
    n, c = ids.shape
    sim = np.full((n, k), -np.inf, dtype=np.float32)
    out = np.full((n, k), -1, dtype=np.int64)
    step = max(1, (1 << 18) // max(1, c))
    for start in range(0, n, step):
        block = np.sort(ids[start : start + step].astype(np.int64), axis=1)
        block[:, 1:][block[:, 1:] == block[:, :-1]] = -1
        row, col = np.nonzero(block >= 0)
        sims = np.full(block.shape, -np.inf, dtype=np.float32)
        exact = pair_products(queries, pool, start + row, block[row, col], dtype)
        if np.isnan(exact).any():
            at = np.flatnonzero(np.isnan(exact))[0]
            check_finite(queries[start + row[at]][None], "queries", start + int(row[at]))
            line = int(block[row[at], col[at]])
            check_finite(pool[line][None], "pool", line)
        sims[row, col] = exact
        sim[start : start + step], out[start : start + step] = best_first(sims, block, k)
    return sim, out
