"""The neighbourhoods of a margin: the last pairs of the stream."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.margin import neighbourhood_mean
from bitextmine.search.exact import search_both, search_one

# Unit vectors of the sources and of the targets, float32 (n, d) each.
PairVectors = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Around:
    """Neighbourhoods of pairs.

    Attributes:
        src, tgt: the mean cosine of each source to its nearest targets, and the reverse, float64 (n,).
        size: the number of texts that these were chosen from, on the smaller side.
    """

    src: NDArray[np.float64]
    tgt: NDArray[np.float64]
    size: int


class Neighbourhood:
    """Neighbours among the last `window` pairs of the stream, the pairs themselves included.

    Equal texts of a side count once: a repeated line must not fill its own neighbourhood. Texts on both sides count on
    neither: they are copies, nearer to themselves than any translation. A block shorter than the window is seen
    together with the pairs before it, so that the last pairs of a stream have neighbourhoods as large as the first.
    """

    def __init__(self, k: int, window: int) -> None:
        self.k, self.window = k, window
        self._texts: list[list[str]] = [[], []]
        self._vectors: list[NDArray[np.float32]] = []

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: PairVectors) -> Around:
        """Return the neighbourhoods of the next pairs of the stream."""
        self.remember(src, tgt, vectors)
        copies = set(self._texts[0]).intersection(self._texts[1])
        rows = [_distinct(texts, copies) for texts in self._texts]
        x, y = (side[list(at_of.values())] for side, at_of in zip(self._vectors, rows, strict=True))
        size = min(len(x), len(y))
        if len(self._texts[0]) > len(src) or size < self.k:
            return Around(_nearest_mean(vectors[0], y, self.k), _nearest_mean(vectors[1], x, self.k), size)
        # Nearly all queries are in the other side's pool, too: one search has both directions.
        nearest = search_both(x, y, self.k)
        means = (
            neighbourhood_mean(nearest.fwd_sim, nearest.fwd_id),
            neighbourhood_mean(nearest.bwd_sim, nearest.bwd_id),
        )
        both = []
        for texts, queries, pool, mean, at_of in zip((src, tgt), vectors, (y, x), means, rows, strict=True):
            number = {text: at for at, text in enumerate(at_of)}
            at = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
            around = mean[at]
            around[at < 0] = _nearest_mean(queries[at < 0], pool, self.k)
            both.append(around)
        return Around(both[0], both[1], size)

    def remember(self, src: Sequence[str], tgt: Sequence[str], vectors: PairVectors) -> None:
        """Add pairs to the window."""
        dropped = max(0, len(self._texts[0]) - max(0, self.window - len(src)))
        before = self._vectors or [side[:0] for side in vectors]
        self._texts = [[*old[dropped:], *new] for old, new in zip(self._texts, (src, tgt), strict=True)]
        self._vectors = [
            np.concatenate([old[dropped:], new]) for old, new in zip(before, vectors, strict=True)
        ]


def _distinct(texts: Sequence[str], without: Collection[str]) -> dict[str, int]:
    """Return the first row of each text, without some texts."""
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text not in without:
            first.setdefault(text, row)
    return first


def _nearest_mean(queries: NDArray[np.float32], pool: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """Return the mean of the k largest inner products of queries (n, d) with a pool (m, d); NaN if that is empty."""
    if not len(pool) or not len(queries):
        return np.full(len(queries), np.nan)
    return neighbourhood_mean(*search_one(queries, pool, min(k, len(pool))))
