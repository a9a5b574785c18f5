"""What a margin is taken over: the neighbourhoods of pairs, and the protocol of what finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Around", "Neighbourhood", "Vectors"]

# Unit vectors of the sources and of the targets, float32 (n, d) each.
Vectors = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Around:
    """For each pair the mean cosine of the source to its nearest targets and of the target to its nearest sources,
    float64 (n,) each; size: how many texts these were chosen from, on the side that has fewer."""

    src: NDArray[np.float64]
    tgt: NDArray[np.float64]
    size: int


class Neighbourhood(Protocol):
    """Finds what is around each pair of a stream."""

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> Around:
        """For the next pairs: their texts (n,), and the vectors of both sides."""
