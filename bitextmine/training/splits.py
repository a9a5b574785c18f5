"""Subword regularisation: in training, some pieces come in two halves that the vocabulary has as pieces of its own."""

from __future__ import annotations

import dataclasses

import numpy as np

from bitextmine.encoder.ngrams import SPACE
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer

__all__ = ["Splits", "split_pieces", "split_table"]

# Halves to choose from, the likeliest first, for each piece.
CHOICES = 4
# A half may be split again: a piece can come in as many as 2 ** ROUNDS parts.
ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class Splits:
    """parts (V, CHOICES, 2) int32: the two halves of a piece; choices (V,) int64: how many of the rows are filled."""

    parts: np.ndarray
    choices: np.ndarray


def split_table(tokenizer: Tokenizer) -> Splits:
    """The ways to write each piece of a vocabulary as two others, those of the highest sum of log-probabilities."""
    pieces, scores = tokenizer.pieces(), tokenizer.scores()
    known = {piece: i for i, piece in enumerate(pieces) if piece and piece != SPACE}
    parts = np.zeros((len(pieces), CHOICES, 2), dtype=np.int32)
    choices = np.zeros(len(pieces), dtype=np.int64)
    for piece, i in known.items():
        found = []
        for at in range(1, len(piece)):
            left, right = known.get(piece[:at]), known.get(piece[at:])
            if left is not None and right is not None:
                found.append((-(scores[left] + scores[right]), left, right))
        found.sort()
        choices[i] = min(len(found), CHOICES)
        for row, (_, left, right) in enumerate(found[:CHOICES]):
            parts[i, row] = left, right
    return Splits(parts, choices)


def split_pieces(pieces: Pieces, splits: Splits, share: float, rng: np.random.Generator) -> Pieces:
    """Splits each piece in two with probability ``share``, by one of its choices, each as likely; `ROUNDS` times.

    The text stays the same, but rare words are met in parts that other words have too, so that a word never seen in
    training is better understood by its parts (Kudo 2018, "Subword regularization", with a cheaper sampling than
    his: no lattice, so that tokenised text can be kept).
    """
    if share <= 0:
        return pieces
    for _ in range(ROUNDS):
        ids = pieces.ids
        at = np.flatnonzero((rng.random(len(ids), dtype=np.float32) < share) & (splits.choices[ids] > 0))
        chosen = (rng.random(len(at)) * splits.choices[ids[at]]).astype(np.int64)
        halves = splits.parts[ids[at], chosen]
        times = np.ones(len(ids), dtype=np.int64)
        times[at] = 2
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(times, out=starts[1:])
        new = np.repeat(ids, times)
        new[starts[at]], new[starts[at] + 1] = halves[:, 0], halves[:, 1]
        pieces = Pieces(new, starts[pieces.offsets])
    return pieces
