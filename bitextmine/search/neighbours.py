"""The result of a search in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Neighbours:
    """The k best rows of y for each of the n rows of x (fwd), and the k best rows of x for each of the m of y (bwd).

    Similarities, (n, k) and (m, k), are float32 inner products; ids are int64 row numbers of the other side. A row is
    ordered by similarity, highest first, then by id, lowest first. A missing neighbour (k is larger than the other
    side) is -1 with -inf.
    """

    fwd_sim: NDArray[np.float32]
    fwd_id: NDArray[np.int64]
    bwd_sim: NDArray[np.float32]
    bwd_id: NDArray[np.int64]
