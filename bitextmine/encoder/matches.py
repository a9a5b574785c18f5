"""For each piece of a sentence, the piece of another one that is most like it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bitextmine.encoder import native
from bitextmine.encoder.pieces import Pieces
from bitextmine.processors import processors

__all__ = ["NOTHING", "PieceMatcher"]

# The cosine of a piece with a sentence of no pieces.
NOTHING = -2.0

BLOCK_PAIRS = 1024


class PieceMatcher:
    """Compares tokenised sentences piece by piece, by the cosines of the pieces' vectors.

    Compiled or not, in whatever company, a pair has the same matches to the bit.
    """

    def __init__(self, rows: np.ndarray) -> None:
        """rows (pieces, d) int8, each on a scale of its own, as `Encoder.piece_rows` has them."""
        self._rows = np.ascontiguousarray(rows)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.int64)
        length = np.sqrt(squares.astype(np.float64))
        self._inverse = np.divide(1, length, out=np.zeros_like(length), where=length > 0).astype(np.float32)

    def matches(self, a: Pieces, b: Pieces) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """For the pairs of sentence i of a with sentence i of b, piece by piece: (pieces of a,) float32 cosines with
        the most similar piece of b, (pieces of a,) int32 where in its sentence that is, the first of equals, and both
        again for the pieces of b. A piece without a partner has NOTHING and 0.

        Raises ValueError for unequal numbers of sentences and for a piece that is not in the vocabulary.
        """
        if len(a) != len(b):
            raise ValueError(f"{len(a)} sentences, but {len(b)} to compare them with")
        for ids in (a.ids, b.ids):
            if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(self._rows):
                raise ValueError(f"piece ids must lie in 0..{len(self._rows) - 1}")
        found = tuple(
            np.empty(len(side.ids), dtype=kind) for side in (a, b) for kind in (np.float32, np.int32)
        )
        one = self._plain if native.library() is None else self._compiled
        with ThreadPoolExecutor(processors(), thread_name_prefix="match") as pool:
            starts = range(0, len(a), BLOCK_PAIRS)
            # list(): the exception of a block comes out of its result.
            list(pool.map(lambda start: one(a, b, start, min(start + BLOCK_PAIRS, len(a)), *found), starts))
        return found  # type: ignore[return-value]

    def _compiled(self, a: Pieces, b: Pieces, start: int, stop: int, *found: np.ndarray) -> None:
        library = native.library()
        assert library is not None
        where = [
            native.address(array, kind) for array, kind in zip(found, (np.float32, np.int32) * 2, strict=True)
        ]
        failed = library.match_pieces(
            native.address(self._rows, np.int8), native.address(self._inverse, np.float32), self._rows.shape[1],
            *(
                part
                for side in (a, b)
                for part in (native.address(side.ids, np.int32), native.address(side.offsets[start:], np.int64))
            ),
            stop - start, *where,
        )  # fmt: skip
        if failed:
            raise MemoryError

    def _plain(self, a: Pieces, b: Pieces, start: int, stop: int, *found: np.ndarray) -> None:
        a_best, a_match, b_best, b_match = found
        for here, there in _spans(a, b, start, stop):
            if here.start == here.stop or there.start == there.stop:
                a_best[here], a_match[here], b_best[there], b_match[there] = NOTHING, 0, NOTHING, 0
                continue
            # Products of int8 add up exactly in float64.
            x, y = self._rows[a.ids[here]].astype(np.float64), self._rows[b.ids[there]].astype(np.float64)
            similar = (x @ y.T).astype(np.float32)
            similar = similar * self._inverse[a.ids[here], None] * self._inverse[None, b.ids[there]]
            a_best[here], a_match[here] = similar.max(axis=1), similar.argmax(axis=1)
            b_best[there], b_match[there] = similar.max(axis=0), similar.argmax(axis=0)


def _spans(a: Pieces, b: Pieces, start: int, stop: int) -> Iterator[tuple[slice, slice]]:
    for i in range(start, stop):
        yield slice(*a.offsets[i : i + 2].tolist()), slice(*b.offsets[i : i + 2].tolist())
