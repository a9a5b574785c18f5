"""Where the pieces of a sentence stand, as some columns of its vector.

A sum of piece vectors is the same whatever their order. With the pieces weighed by a cosine that falls from 1 at the
beginning of a sentence to -1 at its end, the sum tells what comes early from what comes late: the coefficient after
the first of a discrete cosine transform over the places (Almarwani, Aldarmaki and Diab 2019, "Efficient sentence
embedding using discrete cosine transform"). Translations mostly say things in the same order, on this scale.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bitextmine.encoder.pieces import Pieces

__all__ = ["STEPS", "steps", "wave", "waves"]

# Places are told apart in so many steps.
STEPS = 1024


@cache
def wave() -> np.ndarray:
    """(STEPS,) float32: half a cosine wave. Read-only."""
    table = np.cos(np.pi * (np.arange(STEPS) + 0.5) / STEPS).astype(np.float32)
    table.flags.writeable = False
    return table


def steps(place: Any, length: Any) -> Any:
    """Where place 0..length - 1 of a sentence is, from 0 at its beginning to STEPS - 1 at its end: whole numbers, or
    arrays or tensors of them."""
    return (2 * place + 1) * STEPS // (2 * length)


def waves(pieces: Pieces, weight: float) -> np.ndarray:
    """(pieces,) float32: what each piece's vector counts in the columns that tell the order."""
    lengths = pieces.lengths
    place = np.arange(len(pieces.ids)) - np.repeat(pieces.offsets[:-1], lengths)
    found: np.ndarray = (wave() * np.float32(weight))[steps(place, np.repeat(lengths, lengths))]
    return found
