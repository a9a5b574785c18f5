"""How well two sentences match, by piece, window or part, from the vectors of their pieces."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bitextmine import compiled
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import lengths_of
from bitextmine.system import processors

# The cosine of a piece with a sentence of no pieces.
NOTHING = -2.0
# Most pieces in a window.
WIDEST = 9

BLOCK_PAIRS = 1024
# Sums of pieces are computed in whole numbers, scaled so that the longest vector of a piece has this length: the sum of
# a window then fits int16, rounding included.
LONGEST = 3600
FRACTION = 16


class PieceMatcher:
    """Compares tokenised sentences by the cosines of their pieces' vectors, or of sums of these.

    A pair has the same cosines to the bit, compiled or not, whatever the other pairs. `windows` and `parts` are the
    oracles of match_features in matches.c, and take its place where it is not compiled.
    """

    def __init__(self, rows: np.ndarray, norms: np.ndarray) -> None:
        """Take the rows (pieces, d) int8 and norms (pieces,) of `Encoder.piece_rows`."""
        self.rows = np.ascontiguousarray(rows)
        length = lengths_of(rows)
        inverse = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
        self.inverse = inverse.astype(np.float32)
        longest = max(float(norms.max(initial=0)), 1e-30)
        scale = LONGEST * (1 << FRACTION) / longest
        self.factor = np.rint(norms.astype(np.float64) * inverse * scale).astype(np.int32)

    def matches(self, a: Pieces, b: Pieces) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Match sentence i of a with sentence i of b, piece by piece.

        Returns:
            (pieces of a,) float32 cosines with the most similar piece of b, (pieces of a,) int32 its place in its
            sentence, the first of equals, and both again for the pieces of b. A piece without a partner has NOTHING
            and 0.

        Raises:
            ValueError: the numbers of sentences differ, or a piece is not in the vocabulary.
        """
        self._check(a, b)
        results = [np.empty(len(side.ids), dtype=kind) for side in (a, b) for kind in (np.float32, np.int32)]
        library = compiled.library("encoder")
        if library is not None:
            vectors = self.rows, self.inverse, self.rows.shape[1]

            def match(at: int) -> int:
                sides = (a.ids, a.offsets[at:], b.ids, b.offsets[at:], min(BLOCK_PAIRS, len(a) - at))
                return int(library.match_pieces(*vectors, *sides, *results))

            with ThreadPoolExecutor(processors(), thread_name_prefix="match") as pool:
                if any(pool.map(match, range(0, len(a), BLOCK_PAIRS))):
                    raise MemoryError
        else:
            a_best, a_match, b_best, b_match = results
            for _, here, there in _pairs(a, b):
                if here.start == here.stop or there.start == there.stop:
                    a_best[here], a_match[here], b_best[there], b_match[there] = NOTHING, 0, NOTHING, 0
                    continue
                # Products of int8 add up exactly in float64.
                x, y = self.rows[a.ids[here]].astype(np.float64), self.rows[b.ids[there]].astype(np.float64)
                similar = _cosines(x, self.inverse[a.ids[here]], y, self.inverse[b.ids[there]])
                a_best[here], a_match[here] = similar.max(axis=1), similar.argmax(axis=1)
                b_best[there], b_match[there] = similar.max(axis=0), similar.argmax(axis=0)
        return results[0], results[1], results[2], results[3]

    def windows(self, a: Pieces, b: Pieces, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Match sentence i of a with sentence i of b by the windows of ``width`` pieces around each piece.

        ``width`` is odd and at most WIDEST. A window's vector is the sum of its pieces'; at the ends of a sentence it
        has fewer.

        Returns:
            (pieces of a,) float32 cosines with the most similar window of b, and the same for the pieces of b.
        """
        self._check(a, b)
        a_best, b_best = (np.empty(len(side.ids), dtype=np.float32) for side in (a, b))
        for _, here, there in _pairs(a, b):
            x, y = (_windows(self._on_one_scale(ids), width // 2) for ids in (a.ids[here], b.ids[there]))
            similar = _cosines(x, _inverse_lengths(x), y, _inverse_lengths(y))
            a_best[here], b_best[there] = (similar.max(axis=axis, initial=NOTHING) for axis in (1, 0))
        return a_best, b_best

    def parts(self, a: Pieces, b: Pieces, a_part: np.ndarray, b_part: np.ndarray, parts: int) -> np.ndarray:
        """Return the cosines (n, parts, parts) float32 of each part of a's sentences with each part of b's.

        a_part, b_part: (pieces,) the part of each piece, from 0 on. A part's vector is the sum of its pieces'; the
        cosine with an empty one is 0.
        """
        self._check(a, b)
        cosines = np.empty((len(a), parts, parts), dtype=np.float32)
        for pair, here, there in _pairs(a, b):
            sums = []
            for ids, part in ((a.ids[here], a_part[here]), (b.ids[there], b_part[there])):
                total = np.zeros((parts, self.rows.shape[1]), dtype=np.int64)
                np.add.at(total, part, self._on_one_scale(ids).astype(np.int64))
                sums.append(total)
            lengths = [np.sqrt((total**2).sum(axis=1).astype(np.float64)) for total in sums]
            both = lengths[0][:, None] * lengths[1][None]
            products = (sums[0] @ sums[1].T).astype(np.float64)
            cosines[pair] = np.divide(products, both, out=np.zeros_like(both), where=both > 0)
        return cosines

    def _check(self, a: Pieces, b: Pieces) -> None:
        if len(a) != len(b):
            raise ValueError(f"{len(a)} sentences, but {len(b)} to compare them with")
        self.check_ids(a, b)

    def check_ids(self, a: Pieces, b: Pieces) -> None:
        """Raise ValueError for a piece that is not in the vocabulary."""
        for ids in (a.ids, b.ids):
            if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(self.rows):
                raise ValueError(f"piece ids must lie in 0..{len(self.rows) - 1}")

    def _on_one_scale(self, ids: np.ndarray) -> np.ndarray:
        """Return whole numbers (n, d) float64, as `rescale` in matches.c does."""
        wide = self.rows[ids].astype(np.int64) * self.factor[ids, None]
        return ((wide + (1 << (FRACTION - 1))) >> FRACTION).astype(np.float64)


def _pairs(a: Pieces, b: Pieces) -> Iterator[tuple[int, slice, slice]]:
    """Yield the number of each pair, and the places of its sentences' pieces."""
    for pair in range(len(a)):
        here, there = (slice(*side.offsets[pair : pair + 2].tolist()) for side in (a, b))
        yield pair, here, there


def _cosines(x: np.ndarray, x_inverse: np.ndarray, y: np.ndarray, y_inverse: np.ndarray) -> np.ndarray:
    """Return (n, m) float32, rounded as in matches.c, of whole numbers x, y and one over the length of each row."""
    similar: np.ndarray = (x @ y.T).astype(np.float32) * x_inverse[:, None] * y_inverse[None]
    return similar


def _inverse_lengths(rows: np.ndarray) -> np.ndarray:
    squares = (rows**2).sum(axis=1)
    return np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0).astype(np.float32)


def _windows(rows: np.ndarray, reach: int) -> np.ndarray:
    """Return (n, d) sums of each row and its neighbours up to ``reach`` away."""
    total = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    at = np.arange(len(rows))
    upper, lower = np.minimum(at + reach + 1, len(rows)), np.maximum(at - reach, 0)
    sums: np.ndarray = total[upper] - total[lower]
    return sums
