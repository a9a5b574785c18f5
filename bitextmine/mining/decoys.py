"""Decoys: how well the best of many sentences that are no translations scores, seen within one language.

Where translations are rare, the margins of wrong pairs must be known far out, where there are few of them and a true
pair looks the same. A Gumbel curve through the bulk is too thin there: a text holds sentences that say nearly the same,
and the translation of such a one is a wrong pair of high margin. Those sentences can be seen without any translation.
Each sentence of a corpus is mined against its own corpus without itself; whatever it finds is wrong. The margins within
a language are spread like those of wrong pairs across languages, but for a shift and a stretch, which the bulk of both
tells (`Decoys.above`).

The idea is that of target-decoy search (Elias and Gygi, 2007), with sentences of the own language for decoys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.candidates import best_candidates
from bitextmine.mining.margin import neighbourhood_mean
from bitextmine.search.exact import search_both

__all__ = ["SAMPLE", "Decoys", "decoy_scores", "sampled_decoys"]

# Rows of a side that are looked at. Two searches of 24,000 x 24,000 are a third of one of 60,000 x 60,000; with 16,384
# the tail of 55,500 lines came out thinner, and precision up to 6 points higher (mine/dirty.md).
SAMPLE = 24_000

# So many of the best decoys say how the tail goes on above them.
_TAIL = 5


@dataclass(frozen=True)
class Decoys:
    """Margins of decoys, ascending, float64 (n,), n >= 2. pool: how many sentences each was the best of."""

    score: NDArray[np.float64]
    pool: int

    def above(
        self, score: NDArray[np.float64], shares: tuple[float, float], at: NDArray[np.float64], pool: int
    ) -> NDArray[np.float64]:
        """The share (n,) of wrong pairs at or above scores (n,), where the best is taken of ``pool`` sentences.

        at (2,): below which scores the ``shares`` of wrong pairs lie; there the decoys are put on top of them. Of
        m / pool times as many independent sentences the best has the distribution F ** (m / pool). Above the highest
        decoys the tail goes on exponentially.
        """
        n = len(self.score)
        below = ((np.arange(n) + 0.5) / n) ** (pool / self.pool)
        own = np.interp(shares, below, self.score)
        z = (score - at[0]) * (own[1] - own[0]) / max(at[1] - at[0], 1e-9) + own[0]
        top = max(_TAIL, n // 5000)
        start = self.score[max(0, n - top)]
        scale = max(float(self.score[-top:].mean() - start), 1e-9)
        thin = (1 - np.interp(start, self.score, below)) * np.exp(-np.maximum(z - start, 0) / scale)
        found: NDArray[np.float64] = np.where(z > start, thin, 1 - np.interp(z, self.score, below, left=0.0))
        return found


def decoy_scores(vectors: NDArray, k: int, margin: str) -> NDArray[np.float64]:
    """(n,) the best margin of each row (n, d) with another row of the same matrix, -inf for none.

    Margins as across languages: over the k nearest other rows of both.
    """
    n = len(vectors)
    found = search_both(vectors, vectors, min(k + 1, n))
    own = found.fwd_id == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # many equal rows: itself is not among them, and the last goes
    sim, ids = (array[~own].reshape(n, -1) for array in (found.fwd_sim, found.fwd_id))
    mean = neighbourhood_mean(sim, ids)
    return best_candidates(sim, ids, mean, mean, margin).score


def sampled_decoys(vectors: NDArray, k: int, margin: str, seed: int = 1) -> Decoys:
    """The decoys of a side: of SAMPLE of its rows, always the same. vectors: float16 (n, d)."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    score = decoy_scores(np.ascontiguousarray(vectors[rows]), k, margin)
    return Decoys(np.sort(score[np.isfinite(score)]), max(1, len(rows) - 1))
