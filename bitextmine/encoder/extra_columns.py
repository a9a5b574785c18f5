"""Columns of a sentence vector that are not plain sums of piece vectors, and the weights of repeated pieces.

A sum of piece vectors does not depend on their order. Weighted by a cosine that falls from 1 at the beginning of a
sentence to -1 at its end, it distinguishes early pieces from late ones: the second coefficient of a discrete cosine
transform over the places (Almarwani, Aldarmaki and Diab 2019, "Efficient sentence embedding using discrete cosine
transform"). Translations mostly say things in the same order, on this scale.

Nor does its direction depend on the number of pieces, while translations are about equally long in characters (Gale and
Church 1993, "A program for aligning sentences in bilingual corpora"). The columns for the length are cosines and sines
of a few multiples of its logarithm (with SLACK added, as a word more or less says little about a short sentence), so
that the product of those of two sentences falls with the ratio of their lengths: 1 for equal ones, 0.4 for 100 and 180
characters, below 0 from a ratio of 2.5 on. Weighted by a normal curve's spectrum they follow exp(-d^2 / (2 SPREAD^2))
of the difference d of the logarithms, less its mean.

A piece that a sentence repeats (an article, a comma) says little new the second time, and a translation repeats
different ones. So n equal pieces or n-grams count n ** (1 - damping), n up to MOST_REPEATS, as term frequencies do in
retrieval.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from bitextmine import compiled
from bitextmine.encoder.pieces import Pieces, offsets_of

STEPS = 1024  # resolution of places
COLUMNS = 8  # for the length
SPREAD = 0.5
PERIOD = 6.0  # the product returns to 1 where logarithms differ by this, and rises from half of it on
SLACK = 5  # characters on top of each length
MOST_REPEATS = 64  # more of a piece count as this many in the weight of each
_HAN, _KANA = re.compile("[\u3400-\u9fff]"), re.compile("[\u3041-\u30ff]")
LONGEST = 600  # a longer sentence counts as this: the product with a single character is then still below 0


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
    weights: np.ndarray = (wave() * np.float32(weight))[steps(place, np.repeat(lengths, lengths))]
    return weights


@cache
def repeat_table(damping: float) -> np.ndarray:
    """Return (MOST_REPEATS,) float32, the weight of each of 1, 2, ... equal pieces of a sentence; read-only."""
    table = (np.arange(1, MOST_REPEATS + 1, dtype=np.float64) ** -damping).astype(np.float32)
    table.flags.writeable = False
    return table


def repeat_weights(pieces: Pieces, damping: float) -> np.ndarray | None:
    """Return each piece's weight by the number of its equals in the sentence, (pieces,) float32; None for all 1."""
    if not damping:
        return None
    table = repeat_table(damping)
    if library := compiled.library("encoder"):
        times = np.empty(len(pieces.ids), dtype=np.float32)
        library.weigh_repeats(pieces.ids, pieces.offsets, len(pieces), table, len(table), times)
        return times
    sentence = np.repeat(np.arange(len(pieces)), pieces.lengths)
    codes = sentence << 32 | pieces.ids
    _, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return table[np.minimum(counts, MOST_REPEATS)[which] - 1]


@cache
def length_table() -> np.ndarray:
    """Return (LONGEST + 1, COLUMNS) float32 unit rows, row n for a sentence of n characters; read-only."""
    frequencies = 2 * np.pi / PERIOD * np.arange(1, COLUMNS // 2 + 1)
    weights = np.exp(-((SPREAD * frequencies) ** 2) / 2)
    angles = np.log(np.arange(LONGEST + 1) + SLACK)[:, None] * frequencies
    parts = np.sqrt(weights / weights.sum()) * np.stack([np.cos(angles), np.sin(angles)])
    table = np.concatenate(list(parts), axis=1).astype(np.float32)
    table.flags.writeable = False
    return table


def piece_characters(pieces: Sequence[str], ngrams: int = 0) -> np.ndarray:
    """Return the characters (pieces + ngrams,) uint8 of each piece, with the space before a word.

    A Chinese character counts as three and kana as two: as many as other scripts need for the same. An unknown piece
    counts as one; n-grams have 0, as their letters are those of pieces.
    """
    wide = [2 * len(_HAN.findall(piece)) + len(_KANA.findall(piece)) for piece in pieces]
    lengths = [min(255, max(1, len(piece) + more)) for piece, more in zip(pieces, wide, strict=True)]
    return np.array([*lengths, *[0] * ngrams], dtype=np.uint8)


def sentence_characters(pieces: Pieces, characters: np.ndarray) -> np.ndarray:
    """Return the characters (n,) int64 of n sentences, at most LONGEST; characters: of each piece."""
    total = offsets_of(characters[pieces.ids])
    return np.minimum(total[pieces.offsets[1:]] - total[pieces.offsets[:-1]], LONGEST)
