"""The order of a sentence's pieces, as some columns of its vector.

A sum of piece vectors does not depend on their order. Weighted by a cosine that falls from 1 at the beginning of a
sentence to -1 at its end, it distinguishes early pieces from late ones: the second coefficient of a discrete cosine
transform over the places (Almarwani, Aldarmaki and Diab 2019, "Efficient sentence embedding using discrete cosine
transform"). Translations mostly say things in the same order, on this scale.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bitextmine.encoder.pieces import Pieces

# Resolution of places.
STEPS = 1024


@cache
def wave() -> np.ndarray:
    """Return half a cosine wave, (STEPS,) float32; read-only."""
    table = np.cos(np.pi * (np.arange(STEPS) + 0.5) / STEPS).astype(np.float32)
    table.flags.writeable = False
    return table


def steps(place: Any, length: Any) -> Any:
    """Return place 0..length - 1 of a sentence as a step from 0 to STEPS - 1; numbers, arrays or tensors."""
    return (2 * place + 1) * STEPS // (2 * length)


def waves(pieces: Pieces, weight: float) -> np.ndarray:
    """Return each piece's weight in the columns for the order, (pieces,) float32."""
    lengths = pieces.lengths
    place = np.arange(len(pieces.ids)) - np.repeat(pieces.offsets[:-1], lengths)
    found: np.ndarray = (wave() * np.float32(weight))[steps(place, np.repeat(lengths, lengths))]
    return found
