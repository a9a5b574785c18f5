"""Exact similarities of given candidates, from the stored vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rescore(
    queries: NDArray, pool: NDArray, ids: NDArray[np.integer], k: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Exact inner products of each query with its candidates, re-ordered.

    queries (n, d), pool (m, d): float16 or float32; ids (n, c): rows of `pool`, -1 where there is none.
    Returns (similarity float32 (n, k), id int64 (n, k)): highest first, equal similarities by lowest id, missing
    ones last as id -1 and similarity -inf. k defaults to c. An id occurring twice in a row counts once.

    The sum runs in float64. A product of two float16 numbers is a multiple of 2**-48, so for vectors of length
    up to 4 every partial sum fits the 53 bits of a float64: the result is the exact inner product, whatever the
    order of summation, rounded once to float32. That is what makes repeated runs equal byte for byte.
    """
    n, c = ids.shape
    k = c if k is None else k
    out_sim = np.full((n, k), -np.inf, dtype=np.float32)
    out_id = np.full((n, k), -1, dtype=np.int64)
    rows = max(1, (1 << 22) // max(1, c * queries.shape[1]))
    for start in range(0, n, rows):
        block = np.sort(ids[start : start + rows].astype(np.int64), axis=1)
        block[:, 1:][block[:, 1:] == block[:, :-1]] = -1
        q = np.asarray(queries[start : start + rows], dtype=np.float64)
        sims = np.zeros(block.shape, dtype=np.float32)
        for col in range(c):
            at = np.flatnonzero(block[:, col] >= 0)
            if at.size:
                p = np.asarray(pool[block[at, col]], dtype=np.float64)
                sims[at, col] = np.einsum("ij,ij->i", q[at], p)
        sims += np.float32(0.0)  # -0.0 becomes 0.0, so that zero vectors tie in every way
        sims[block < 0] = -np.inf
        order = np.lexsort((block, -sims), axis=1)[:, :k]
        found = np.take_along_axis(block, order, axis=1)
        out_id[start : start + rows, : order.shape[1]] = found
        out_sim[start : start + rows, : order.shape[1]] = np.take_along_axis(sims, order, axis=1)
    return out_sim, out_id
