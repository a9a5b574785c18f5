"""The length of a sentence, as the last columns of its vector.

The direction of a sum of piece vectors is the same for three words and for thirty, while translations are about equally
long in characters (Gale and Church 1993, "A program for aligning sentences in bilingual corpora"). The columns are
cosines and sines of a few multiples of the logarithm of the length (with SLACK added, as a word more or less says
little about a short sentence), so that the product of those of two sentences falls with the ratio of their lengths: 1
for equal ones, 0.4 for 100 and 180 characters, below 0 from a ratio of 2.5 on. Weighted by a normal curve's spectrum
they follow exp(-d^2 / (2 SPREAD^2)) of the difference d of the logarithms, less its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from bitextmine.encoder.pieces import Pieces, offsets_of

COLUMNS = 8
SPREAD = 0.5
# The product returns to 1 where logarithms differ by this, and rises from half of it on.
PERIOD = 6.0
# Characters on top of each length.
SLACK = 5
# Longer sentences count as so many characters: the product with a single one is then still below 0.
LONGEST = 600


@cache
def length_table() -> np.ndarray:
    """Return (LONGEST + 1, COLUMNS) float32 unit rows, row n for a sentence of n characters; read-only."""
    frequencies = 2 * np.pi / PERIOD * np.arange(1, COLUMNS // 2 + 1)
    weights = np.exp(-((SPREAD * frequencies) ** 2) / 2)
    angles = np.log(np.arange(LONGEST + 1) + SLACK)[:, None] * frequencies
    waves = np.sqrt(weights / weights.sum()) * np.stack([np.cos(angles), np.sin(angles)])
    table = np.concatenate(list(waves), axis=1).astype(np.float32)
    table.flags.writeable = False
    return table


def piece_characters(pieces: Sequence[str], ngrams: int = 0) -> np.ndarray:
    """Return the characters (pieces + ngrams,) uint8 of each piece, with the space before a word.

    An unknown piece counts as one; n-grams have 0, as their letters are those of pieces.
    """
    lengths = [min(255, max(1, len(piece))) for piece in pieces]
    return np.array([*lengths, *[0] * ngrams], dtype=np.uint8)


def sentence_characters(pieces: Pieces, characters: np.ndarray) -> np.ndarray:
    """Return the characters (n,) int64 of n sentences, at most LONGEST, from those of each piece."""
    total = offsets_of(characters[pieces.ids])
    return np.minimum(total[pieces.offsets[1:]] - total[pieces.offsets[:-1]], LONGEST)
