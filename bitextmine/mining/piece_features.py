"""Features of how well the pieces of two sentences match, beyond their vectors, which are sums of piece vectors.

Three views. A piece is *matched* by the piece of the other sentence whose vector has the highest cosine with its own;
a *window*, the sum of several consecutive pieces, by a window, so that a piece has to fit in context; and the *parts*
of a sentence, halves and thirds of its weight, are compared with the same parts of the other. The weight of a piece is
the norm of its vector, which training makes large for distinctive pieces and small for common ones. The weight left
unmatched at several limits of the cosine is a cumulative matching histogram (Guo et al. 2016, "A deep relevance
matching model for ad-hoc retrieval"); the positions of the matches tell sentences that say the same from sentences
about the same things.

The compiled `match_features` computes the same for many pairs at once, each sentence prepared once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.compiled import library
from bitextmine.encoder.matches import PieceMatcher
from bitextmine.encoder.pieces import Pieces
from bitextmine.system import processors

LIMITS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# The largest distance at which the matches of two consecutive pieces count as together.
TOGETHER = 2
WIDTHS = (5, 9)
WINDOW_LIMITS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
PARTS = (2, 3)
# Parts are determined in whole numbers; the mean norm is this many.
WHOLE = 1 << 12
# Pairs that a thread compares in one call.
BLOCK_PAIRS = 1 << 12
# For each side: the weight unmatched at each limit, the mean displacement of the matches, the share that is together,
# the weight without a mutual match and the share with one; for each width the weight unmatched at each limit, the mean
# cosine and the lowest. Then for each number of parts the cosine of each with its counterpart and the mean of the other
# cosines; then the logarithms of both numbers of pieces. matches.c holds the same constants.
SIDE_FEATURES = len(LIMITS) + 4 + len(WIDTHS) * (len(WINDOW_LIMITS) + 2)
FEATURES = 2 * SIDE_FEATURES + sum(parts + 1 for parts in PARTS) + 2


@dataclass(frozen=True)
class Sentences:
    """Some sentences of a tokenised corpus: sentence i has the pieces of line rows[i], int64 (n,)."""

    pieces: Pieces
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[np.int64]) -> Sentences:
        """Return the sentences of these numbers (m,), in that order."""
        return Sentences(self.pieces, self.rows[rows])


class PieceFeatures:
    """Compares tokenised sentences by the vectors of their pieces.

    Args:
        rows: int8 (pieces, d), as `Encoder.piece_rows` returns them.
        norms: float32 (pieces,), likewise.
    """

    def __init__(self, rows: NDArray[np.int8], norms: NDArray[np.float32]) -> None:
        self._matcher = PieceMatcher(rows, norms)
        self.inverse = self._matcher.inverse
        self._weights = (norms / max(float(norms.mean()), 1e-12)).astype(np.float64)
        self._whole = np.rint(self._weights * WHOLE).astype(np.int64)
        self._checked: tuple[NDArray[np.int32] | None, ...] = (None, None)

    def features(
        self,
        src: Sentences,
        tgt: Sentences,
        best: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    ) -> NDArray[np.float32]:
        """Return (n, FEATURES) float32 for sentence i of src with sentence i of tgt.

        A pair with an empty sentence has zeros. Pairs that are sorted by src are compared faster. `best`, (pieces,) for
        each side, gets the cosine of each piece of these sentences with the most similar piece of the other; then no
        sentence may come twice.
        """
        compiled = library("encoder")
        if compiled is None:
            return self._plain((src, tgt), best)
        both = (src.pieces.ids, tgt.pieces.ids)
        if any(ids is not known for ids, known in zip(both, self._checked, strict=True)):
            self._matcher.check_ids(src.pieces, tgt.pieces)
            self._checked = both
        found = np.empty((len(src), FEATURES), dtype=np.float32)
        matcher = self._matcher
        values = (matcher.rows, matcher.inverse, matcher.factor, self._weights, self._whole)

        def compare(start: int) -> int:
            part = slice(start, start + BLOCK_PAIRS)
            sides = [
                array
                for side, its_best in zip((src, tgt), best or (None, None), strict=True)
                for array in (
                    np.ascontiguousarray(side.pieces.ids),
                    np.ascontiguousarray(side.pieces.offsets),
                    np.ascontiguousarray(side.rows[part], dtype=np.int64),
                    its_best,
                )
            ]
            some = found[part]
            addresses = np.array(
                [0 if array is None else array.ctypes.data for array in sides], dtype=np.int64
            )
            failed: int = compiled.match_features(*values, matcher.rows.shape[1], addresses, len(some), some)
            return failed

        starts = range(0, len(found), BLOCK_PAIRS)
        if len(starts) < 2:
            failed = any(map(compare, starts))
        else:
            with ThreadPoolExecutor(processors(), thread_name_prefix="match") as pool:
                failed = any(pool.map(compare, starts))
        if failed:
            raise MemoryError
        return found

    def _plain(
        self,
        both: tuple[Sentences, Sentences],
        best_of: tuple[NDArray[np.float32], NDArray[np.float32]] | None,
    ) -> NDArray[np.float32]:
        src, tgt = (side.pieces.take(side.rows) for side in both)
        src_best, src_match, tgt_best, tgt_match = self._matcher.matches(src, tgt)
        for side, own, into in zip(both, (src_best, tgt_best), best_of or (), strict=False):
            places = Pieces(np.arange(len(side.pieces.ids), dtype=np.int32), side.pieces.offsets)
            into[places.take(side.rows).ids] = own
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
        """Return (n, len(LIMITS) + 4) features of one side's pieces; ``back`` are the matches of the other's."""
        weight = self._weights[side.ids]
        # Positions as shares of the sentence, 0 at its beginning.
        lengths = side.lengths
        place = np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], lengths)
        there = np.repeat(np.maximum(other.lengths, 1), lengths)
        away = np.abs(place / np.repeat(lengths, lengths) - match / there)
        sure = np.maximum(best, 0) * weight
        apart = np.abs(np.diff(match, prepend=match[:1]))
        both = np.sqrt(sure * np.concatenate([sure[:1], sure[:-1]]))
        both[side.offsets[:-1][lengths > 0]] = 0  # nothing goes before a sentence's first piece
        together = sums(both * (apart <= TOGETHER), side) / np.maximum(sums(both, side), 1e-9)
        partner = np.repeat(other.offsets[:-1], lengths) + match
        has_partner = np.repeat(other.lengths, lengths) > 0
        mutual = np.zeros(len(side.ids), dtype=bool)
        mutual[has_partner] = back[partner[has_partner]] == place[has_partner]
        return np.stack(
            [
                *self._unmatched(weight, best, LIMITS, side),
                sums(away * sure, side) / np.maximum(sums(sure, side), 1e-9),
                together,
                np.log1p(sums(weight * ~mutual, side)),
                sums(sure * mutual, side) / np.maximum(sums(weight, side), 1e-9),
            ],
            axis=1,
        )

    def _windows(self, side: Pieces, best: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, len(WINDOW_LIMITS) + 2) features of the windows around one side's pieces."""
        weight = self._weights[side.ids]
        mean = sums(weight * best, side) / np.maximum(sums(weight, side), 1e-9)
        lowest = _reduced(np.minimum, best.astype(np.float64), side)
        return np.stack([*self._unmatched(weight, best, WINDOW_LIMITS, side), mean, lowest], axis=1)

    def _unmatched(
        self, weight: NDArray[np.float64], best: NDArray[np.float32], limits: tuple[float, ...], side: Pieces
    ) -> list[NDArray[np.float64]]:
        return [np.log1p(sums(weight * (best < limit), side)) for limit in limits]

    def _parts(self, src: Pieces, tgt: Pieces, parts: int) -> NDArray[np.float64]:
        """Return (n, parts + 1): the cosine of each part with its counterpart, and the mean of the others."""
        cosines = self._matcher.parts(src, tgt, self._part(src, parts), self._part(tgt, parts), parts).astype(
            np.float64
        )
        like = np.eye(parts, dtype=bool)
        return np.concatenate([cosines[:, like], cosines[:, ~like].mean(axis=1, keepdims=True)], axis=1)

    def _part(self, side: Pieces, parts: int) -> NDArray[np.int8]:
        """Return (pieces,) the part that holds the middle of each piece's weight."""
        weight = self._whole[side.ids]
        until = np.concatenate([[0], np.cumsum(weight)])
        starts, ends = (
            np.repeat(until[offsets], side.lengths) for offsets in (side.offsets[:-1], side.offsets[1:])
        )
        middle = until[:-1] + until[1:] - 2 * starts
        return np.minimum(middle * parts // np.maximum(2 * (ends - starts), 1), parts - 1).astype(np.int8)


def sums(values: NDArray[np.float64], side: Pieces) -> NDArray[np.float64]:
    """Return (n,) sums over the pieces of each sentence."""
    return _reduced(np.add, values, side)


def _reduced(how: np.ufunc, values: NDArray[np.float64], side: Pieces) -> NDArray[np.float64]:
    """Return (n,) ``how`` over the pieces of each sentence, 0 for an empty one."""
    found = np.zeros(len(side))
    some = side.lengths > 0
    if some.any():
        found[some] = how.reduceat(values, side.offsets[:-1][some])
    return found
