"""What a search in both directions returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Neighbours"]


@dataclass(frozen=True)
class Neighbours:
    """The k best rows of y for each of the n rows of x (fwd), and the k best rows of x for each of the m rows of y
    (bwd).

    fwd_sim (n, k) and bwd_sim (m, k) are float32 inner products; fwd_id (n, k) and bwd_id (m, k) are int64 row numbers
    of the other side. Each row is ordered by similarity, highest first, equal similarities by id, lowest first. A
    neighbour that is missing (k is larger than the other side) is -1 with -inf.
    """

    fwd_sim: NDArray[np.float32]
    fwd_id: NDArray[np.int64]
    bwd_sim: NDArray[np.float32]
    bwd_id: NDArray[np.int64]
