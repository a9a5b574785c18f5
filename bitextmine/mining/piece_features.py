"""How well the pieces of two sentences match: what the sentences' vectors, being sums of theirs, no longer tell.

Three views. A piece is *matched* by the piece of the other sentence whose vector has the highest cosine with its own;
a *window*, the sum of some pieces in a row, likewise by a window, so that a piece has to fit in its company; and the
*parts* of a sentence, halves and thirds of its weight, are compared with the same parts of the other. The weight of a
piece is the norm of its vector, which training makes large for pieces that tell sentences apart and small for those in
every sentence. How much weight is left unmatched at several limits of the cosine is a matching histogram (Guo et al.
2016, "A deep relevance matching model for ad-hoc retrieval") in cumulative form; where the matches stand tells
sentences that say the same from those that speak of the same things.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.matches import PieceMatcher
from bitextmine.encoder.pieces import Pieces

__all__ = ["FEATURES", "PieceFeatures"]

LIMITS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# Matches of two pieces in a row are together when they are no farther apart than this.
TOGETHER = 2
WIDTHS = (5, 9)
WINDOW_LIMITS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
PARTS = (2, 3)
# Parts are found in whole numbers, so many of which make the mean norm.
WHOLE = 1 << 12
# For each side: the weight unmatched at each limit, how far matches are from where they should be, how many are
# together, the weight without a mutual match and the share with one, and for each width the weight unmatched at each
# limit, the mean cosine and the lowest. Then for each number of parts the cosine of each with its like and the mean of
# the other cosines; then the logarithms of the two numbers of pieces.
SIDE_FEATURES = len(LIMITS) + 4 + len(WIDTHS) * (len(WINDOW_LIMITS) + 2)
FEATURES = 2 * SIDE_FEATURES + sum(parts + 1 for parts in PARTS) + 2


class PieceFeatures:
    """Compares tokenised sentences by the vectors of their pieces."""

    def __init__(self, rows: NDArray[np.int8], norms: NDArray[np.float32]) -> None:
        """rows (pieces, d) and norms (pieces,) are those of `Encoder.piece_rows`."""
        self._matcher = PieceMatcher(rows, norms)
        self._weights = (norms / max(float(norms.mean()), 1e-12)).astype(np.float64)

    def features(self, src: Pieces, tgt: Pieces) -> NDArray[np.float32]:
        """(n, FEATURES) float32 for the pairs of sentence i of src with sentence i of tgt; zeros where one of them has
        no pieces."""
        src_best, src_match, tgt_best, tgt_match = self._matcher.matches(src, tgt)
        windows = [self._matcher.windows(src, tgt, width) for width in WIDTHS]
        sides = [
            [
                self._matches(side, other, best, match, back),
                *(self._windows(side, both[number]) for both in windows),
            ]
            for number, (side, other, best, match, back) in enumerate(
                ((src, tgt, src_best, src_match, tgt_match), (tgt, src, tgt_best, tgt_match, src_match))
            )
        ]
        lengths = np.log1p(np.stack([src.lengths, tgt.lengths], axis=1))
        parts = (self._parts(src, tgt, number) for number in PARTS)
        found = np.concatenate([*sides[0], *sides[1], *parts, lengths], axis=1).astype(np.float32)
        found[(src.lengths == 0) | (tgt.lengths == 0)] = 0
        return found

    def _matches(
        self,
        side: Pieces,
        other: Pieces,
        best: NDArray[np.float32],
        match: NDArray[np.int32],
        back: NDArray[np.int32],
    ) -> NDArray[np.float64]:
        """(n, len(LIMITS) + 4) features of the pieces of one side, and back (pieces of other,): what they match."""
        weight = self._weights[side.ids]
        # Places as shares of the sentence, 0 at its beginning.
        lengths = side.lengths
        place = np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], lengths)
        there = np.repeat(np.maximum(other.lengths, 1), lengths)
        away = np.abs(place / np.repeat(lengths, lengths) - match / there)
        sure = np.maximum(best, 0) * weight
        apart = np.abs(np.diff(match, prepend=match[:1]))
        both = np.sqrt(sure * np.concatenate([sure[:1], sure[:-1]]))
        both[side.offsets[:-1][lengths > 0]] = 0  # nothing goes before a sentence's first piece
        together = _sums(both * (apart <= TOGETHER), side) / np.maximum(_sums(both, side), 1e-9)
        partner = np.repeat(other.offsets[:-1], lengths) + match
        has_partner = np.repeat(other.lengths, lengths) > 0
        mutual = np.zeros(len(side.ids), dtype=bool)
        mutual[has_partner] = back[partner[has_partner]] == place[has_partner]
        return np.stack(
            [
                *self._unmatched(weight, best, LIMITS, side),
                _sums(away * sure, side) / np.maximum(_sums(sure, side), 1e-9),
                together,
                np.log1p(_sums(weight * ~mutual, side)),
                _sums(sure * mutual, side) / np.maximum(_sums(weight, side), 1e-9),
            ],
            axis=1,
        )

    def _windows(self, side: Pieces, best: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, len(WINDOW_LIMITS) + 2) features of the windows around the pieces of one side."""
        weight = self._weights[side.ids]
        mean = _sums(weight * best, side) / np.maximum(_sums(weight, side), 1e-9)
        lowest = _reduced(np.minimum, best.astype(np.float64), side)
        return np.stack([*self._unmatched(weight, best, WINDOW_LIMITS, side), mean, lowest], axis=1)

    def _unmatched(
        self, weight: NDArray[np.float64], best: NDArray[np.float32], limits: tuple[float, ...], side: Pieces
    ) -> list[NDArray[np.float64]]:
        return [np.log1p(_sums(weight * (best < limit), side)) for limit in limits]

    def _parts(self, src: Pieces, tgt: Pieces, parts: int) -> NDArray[np.float64]:
        """(n, parts + 1): the cosine of each part with its like, and the mean of the others."""
        cosines = self._matcher.parts(src, tgt, self._part(src, parts), self._part(tgt, parts), parts).astype(
            np.float64
        )
        like = np.eye(parts, dtype=bool)
        return np.concatenate([cosines[:, like], cosines[:, ~like].mean(axis=1, keepdims=True)], axis=1)

    def _part(self, side: Pieces, parts: int) -> NDArray[np.int8]:
        """(pieces,) the part that the middle of each piece's weight is in."""
        weight = np.rint(self._weights[side.ids] * WHOLE).astype(np.int64)
        until = np.concatenate([[0], np.cumsum(weight)])
        starts, ends = (
            np.repeat(until[offsets], side.lengths) for offsets in (side.offsets[:-1], side.offsets[1:])
        )
        middle = until[:-1] + until[1:] - 2 * starts
        return np.minimum(middle * parts // np.maximum(2 * (ends - starts), 1), parts - 1).astype(np.int8)


def _sums(values: NDArray[np.float64], side: Pieces) -> NDArray[np.float64]:
    """(n,) sums over the pieces of each sentence."""
    return _reduced(np.add, values, side)


def _reduced(how: np.ufunc, values: NDArray[np.float64], side: Pieces) -> NDArray[np.float64]:
    """(n,) ``how`` over the pieces of each sentence, 0 for one without."""
    found = np.zeros(len(side))
    some = side.lengths > 0
    if some.any():
        found[some] = how.reduceat(values, side.offsets[:-1][some])
    return found
