"""Nearest neighbours of two arrays, exact, in both directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bitextmine.errors import BitextmineError
from bitextmine.search.exact import Neighbours, search_both

__all__ = ["knn"]


def knn(x: ArrayLike, y: ArrayLike, k: int, *, device: str = "cpu", memory: int | None = None) -> Neighbours:
    """The k nearest rows of y for each row of x, and of x for each row of y, by inner product: exact, both ways.

    x (n, d), y (m, d): float16 or float32 arrays, memory-mapped ones too; other numbers are made float32. Of rows of
    length 1, as encoders give, the inner product is the cosine. device: cpu, cuda, cuda:N. memory: bytes that the
    search may take (default: half of what is free).

    The result has fwd_sim float32 (n, k), fwd_id int64 (n, k), bwd_sim (m, k), bwd_id (m, k): highest first, equal ones
    by the lower row; where k is more than there are rows, -inf and -1.

    Raises BitextmineError for arrays of other than two dimensions or of different d, k < 1, NaN and infinity, and too
    little memory.

    >>> near = knn([[1, 0], [0, 1], [0.6, 0.8]], [[0.8, 0.6], [0, 1]], k=1)
    >>> near.fwd_id.tolist(), near.bwd_id.tolist()
    ([[0], [1], [0]], [[2], [1]])
    >>> near.fwd_sim.round(2).tolist()
    [[0.800000011920929], [1.0], [0.9599999785423279]]
    """
    arrays = []
    for rows, name in ((x, "x"), (y, "y")):
        array = np.asanyarray(rows)
        if array.ndim != 2:
            raise BitextmineError(f"knn: {name} has the shape {array.shape}; expected rows of numbers (n, d)")
        arrays.append(array if array.dtype in (np.float16, np.float32) else array.astype(np.float32))
    return search_both(arrays[0], arrays[1], k, device=device, memory=memory)
