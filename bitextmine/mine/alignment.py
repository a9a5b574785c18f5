"""How well the pieces of two sentences match, piece by piece: what their vectors, being sums, no longer tell.

A piece is matched by the piece of the other sentence whose vector has the highest cosine with its own. Its weight is
the norm of its own vector, which training makes large for pieces that tell sentences apart and small for those in
every sentence. How much weight is left unmatched at several limits of the cosine is a matching histogram (Guo et al.
2016, "A deep relevance matching model for ad-hoc retrieval") in cumulative form; where the matches stand tells
sentences that say the same from those that speak of the same things.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.matches import PieceMatcher
from bitextmine.encoder.pieces import Pieces

__all__ = ["FEATURES", "Aligner"]

LIMITS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# Matches of two pieces in a row are together when they are no farther apart than this.
TOGETHER = 2
# For each side: the weight unmatched at each limit, how far matches are from where they should be, how many are
# together; then the logarithms of the two numbers of pieces.
FEATURES = 2 * (len(LIMITS) + 2) + 2


class Aligner:
    """Compares tokenised sentences by the vectors of their pieces."""

    def __init__(self, rows: NDArray[np.int8], norms: NDArray[np.float32]) -> None:
        """rows (pieces, d) and norms (pieces,) are those of `Encoder.piece_rows`."""
        self._matcher = PieceMatcher(rows)
        self._weights = (norms / max(float(norms.mean()), 1e-12)).astype(np.float64)

    def features(self, src: Pieces, tgt: Pieces) -> NDArray[np.float32]:
        """(n, FEATURES) float32 for the pairs of sentence i of src with sentence i of tgt; zeros where one of them has
        no pieces."""
        src_best, src_match, tgt_best, tgt_match = self._matcher.matches(src, tgt)
        parts = [
            self._side(src, src_best, src_match, tgt.lengths),
            self._side(tgt, tgt_best, tgt_match, src.lengths),
            np.log1p(np.stack([src.lengths, tgt.lengths], axis=1)),
        ]
        found = np.concatenate(parts, axis=1).astype(np.float32)
        found[(src.lengths == 0) | (tgt.lengths == 0)] = 0
        return found

    def _side(
        self,
        side: Pieces,
        best: NDArray[np.float32],
        match: NDArray[np.int32],
        other: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """(n, len(LIMITS) + 2) features of the pieces of one side; other (n,): pieces of the other."""
        weight = self._weights[side.ids]
        unmatched = [np.log1p(_sums(weight * (best < limit), side)) for limit in LIMITS]
        # Places as shares of the sentence, 0 at its beginning.
        lengths = side.lengths
        place = (np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], lengths)) / np.repeat(
            lengths, lengths
        )
        away = np.abs(place - match / np.repeat(np.maximum(other, 1), lengths))
        sure = np.maximum(best, 0) * weight
        apart = np.abs(np.diff(match, prepend=match[:1]))
        both = np.sqrt(sure * np.concatenate([sure[:1], sure[:-1]]))
        both[side.offsets[:-1][lengths > 0]] = 0  # nothing goes before a sentence's first piece
        together = _sums(both * (apart <= TOGETHER), side) / np.maximum(_sums(both, side), 1e-9)
        return np.stack(
            [*unmatched, _sums(away * sure, side) / np.maximum(_sums(sure, side), 1e-9), together], axis=1
        )


def _sums(values: NDArray[np.float64], side: Pieces) -> NDArray[np.float64]:
    """(n,) sums over the pieces of each sentence."""
    found = np.zeros(len(side))
    some = side.lengths > 0
    if some.any():
        found[some] = np.add.reduceat(values, side.offsets[:-1][some])
    return found
