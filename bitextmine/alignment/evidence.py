"""Evidence from pieces: does each subword find its match inside a link, or in a sentence beside it?

The vectors of two windows tell whether they are about the same things, but hardly whether one sentence more or less
belongs to a link. Its pieces do: where the best match of a piece lies just outside the link, the link misses it. The
evidence a link misses is the sum over its pieces of weight times (cosine of the best match within REACH sentences of
the link - cosine of the best match inside it). The weight of a piece is the norm of its vector, which training makes
large for distinctive pieces; light ones are left out, which makes the comparison several times faster. Capitalised
words, most of them names, and numbers count as further pieces, which match where their first characters are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.matches import PieceMatcher
from bitextmine.encoder.pieces import PieceRows, Pieces, offsets_of

REACH = 2
# Pieces lighter than this share of the mean weight are left out.
_LIGHT = 0.6
_NAME = 2  # the weight of a name, in mean weights of pieces
# Cosines and weights are whole numbers, so that sums do not depend on their order.
_COSINE, _WEIGHT = 255, 256
# Sentence pairs compared in one call, and sentences whose matches are summed in one.
_PAIRS, _SENTENCES = 1 << 14, 1 << 12


class WeightedPieces(NamedTuple):
    """The distinctive pieces of a document's sentences, or their names, with weights (pieces,) int32."""

    pieces: Pieces
    weight: NDArray[np.int32]


class PieceEvidence:
    """Compares the pieces of sentences.

    Args:
        network: an encoder without layers.
    """

    def __init__(self, network: PieceRows) -> None:
        rows, norms = network.piece_rows()
        self._matcher = PieceMatcher(rows, norms)
        self._weight = np.rint(norms / max(float(norms.mean()), 1e-12) * _WEIGHT).astype(np.int32)

    @classmethod
    def of(cls, encoder: Encoder) -> PieceEvidence | None:
        """Return the comparison for an encoder; None if it has no vectors of pieces."""
        return cls(encoder.network) if isinstance(encoder.network, PieceRows) else None

    def missed(
        self, src_pieces: Pieces, tgt_pieces: Pieces, pairs: NDArray[np.int64], sizes: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the evidence that each sentence misses when it is linked with a window of the other document.

        Args:
            src_pieces: the source document.
            tgt_pieces: the target document.
            pairs: (p, 2) sentences to compare, sorted by source, then target; each sentence has consecutive partners.
            sizes: sentences in the longest window.

        Returns:
            two (p, sizes) float32: of pair (i, j), column t - 1 what source sentence i misses in target sentences
            j .. j + t - 1, and what target sentence j misses in source sentences i .. i + t - 1. Sentences that are not
            compared have no match.
        """
        src, tgt = self.side(src_pieces), self.side(tgt_pieces)
        best = [np.empty(0, dtype=np.uint8)], [np.empty(0, dtype=np.uint8)]
        for start in range(0, len(pairs), _PAIRS):
            block = pairs[start : start + _PAIRS]
            x, _, y, _ = self._matcher.matches(src.pieces.take(block[:, 0]), tgt.pieces.take(block[:, 1]))
            for cosines, cosine in zip(best, (x, y), strict=True):
                cosines.append(np.rint(np.clip(cosine, 0, 1) * _COSINE).astype(np.uint8))
        return _both_missed(src, tgt, pairs, np.concatenate(best[0]), np.concatenate(best[1]), sizes)

    def side(self, pieces: Pieces) -> WeightedPieces:
        """Return the distinctive pieces of a document."""
        kept = pieces.keep(self._weight[pieces.ids] >= _LIGHT * _WEIGHT)
        return WeightedPieces(kept, self._weight[kept.ids])


def missed_names(
    src_names: Pieces, tgt_names: Pieces, pairs: NDArray[np.int64], sizes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the evidence in names that each sentence misses, as `PieceEvidence.missed` returns that in pieces."""
    src, tgt = (
        WeightedPieces(names, np.full(len(names.ids), _NAME * _WEIGHT, dtype=np.int32))
        for names in (src_names, tgt_names)
    )
    places = []
    for side, rows in zip((src, tgt), pairs.T, strict=True):
        pieces = side.pieces.take(rows)
        places.append((np.repeat(np.arange(len(rows)), pieces.lengths) << 32) | pieces.ids)
    best = [np.where(np.isin(a, b), np.uint8(_COSINE), np.uint8(0)) for a, b in (places, places[::-1])]
    return _both_missed(src, tgt, pairs, best[0], best[1], sizes)


def _both_missed(
    src: WeightedPieces,
    tgt: WeightedPieces,
    pairs: NDArray[np.int64],
    forward: NDArray[np.uint8],
    backward: NDArray[np.uint8],
    sizes: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what source and target sentences miss; the matches of their pieces are those of each pair, in order."""
    of_src = _missed(src, pairs, forward, sizes)
    order = np.lexsort((pairs[:, 0], pairs[:, 1]))
    lengths = tgt.pieces.lengths[pairs[:, 1]]
    turned = backward[_ranges(offsets_of(lengths)[order], lengths[order])]
    of_tgt = np.empty_like(of_src)
    of_tgt[order] = _missed(tgt, pairs[order][:, ::-1], turned, sizes)
    return of_src, of_tgt


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starts[0], starts[0] + 1, ... lengths[0] of them, then those from starts[1], and so on."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def _missed(
    side: WeightedPieces, pairs: NDArray[np.int64], best: NDArray[np.uint8], sizes: int
) -> NDArray[np.float32]:
    """Return (p, sizes) for the sentences pairs[:, 0], by which the pairs are sorted.

    best: the match of each piece of the first sentence of each pair, pair after pair.
    """
    out = np.zeros((len(pairs), sizes), dtype=np.float32)
    own, first, partners = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    lengths = side.pieces.lengths[own]
    begin = offsets_of(lengths * partners)
    for count in np.unique(partners).tolist():
        alike = np.flatnonzero((partners == count) & (lengths > 0))
        for at in range(0, len(alike), _SENTENCES):
            members = alike[at : at + _SENTENCES]
            long = lengths[members]
            # A row for each partner, with rows of no match around, and a column for each piece.
            places = _ranges(begin[members], long) + np.arange(count)[:, None] * np.repeat(long, long)
            table = np.zeros((count + 2 * REACH + sizes - 1, places.shape[1]), dtype=np.uint8)
            table[REACH : REACH + count] = best[places]
            weight = side.weight[_ranges(side.pieces.offsets[own[members]], long)]
            rows = first[members] + np.arange(count)[:, None]
            inside = np.zeros(places.shape, dtype=np.uint8)
            around = np.maximum.reduce([table[i : i + count] for i in range(2 * REACH)])
            for size in range(sizes):
                np.maximum(inside, table[REACH + size :][:count], out=inside)
                np.maximum(around, table[2 * REACH + size :][:count], out=around)
                lost = np.add.reduceat((around - inside) * weight, offsets_of(long)[:-1], axis=1)
                out[rows, size] = lost / (_COSINE * _WEIGHT)
    return out
