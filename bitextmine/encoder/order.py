"""Where the pieces of a sentence stand, as some columns of its vector.

A sum of piece vectors is the same whatever their order. With the pieces weighed by a cosine that falls from 1 at the
beginning of a sentence to -1 at its end, the sum tells what comes early from what comes late: the coefficient after
the first of a discrete cosine transform over the places (Almarwani, Aldarmaki and Diab 2019, "Efficient sentence
embedding using discrete cosine transform"). Translations mostly say things in the same order, on this scale.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bitextmine.encoder.pieces import Pieces

__all__ = ["STEPS", "place_steps", "wave", "waves"]

# Places are told apart in so many steps.
STEPS = 1024


@cache
def wave() -> np.ndarray:
    """(STEPS,) float32: half a cosine wave. Read-only."""
    table = np.cos(np.pi * (np.arange(STEPS) + 0.5) / STEPS).astype(np.float32)
    table.flags.writeable = False
    return table


def place_steps(pieces: Pieces) -> np.ndarray:
    """(pieces,) int64: where in its sentence each piece stands, from 0 at the beginning to STEPS - 1 at the end."""
    lengths = pieces.lengths
    place = np.arange(len(pieces.ids)) - np.repeat(pieces.offsets[:-1], lengths)
    steps: np.ndarray = (2 * place + 1) * STEPS // (2 * np.repeat(lengths, lengths))
    return steps


def waves(pieces: Pieces, weight: float) -> np.ndarray:
    """(pieces,) float32: what each piece's vector counts in the columns that tell the order."""
    found: np.ndarray = (wave() * np.float32(weight))[place_steps(pieces)]
    return found
