"""Decoys: wrong pairs within one language, whose margins show the tail of those across languages.

When translations are rare, the threshold lies far out in the tail of wrong pairs, which a Gumbel curve through the bulk
underestimates: near-paraphrases in a text give wrong pairs with high margins. Mining a corpus against itself, without
each sentence's own row, finds such pairs without any translations. Their margins follow the distribution of wrong pairs
across languages up to a shift and a scale, which are fitted on the bulk (`Decoys.above`).

This is target-decoy search (Elias and Gygi, 2007) with sentences of the same language as decoys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.candidates import best_candidates
from bitextmine.mining.margin import neighbourhood_mean
from bitextmine.search.exact import search_both

# Rows sampled from a side. Two searches of 24,000 x 24,000 are a third of one of 60,000 x 60,000; with 16,384
# the tail of 55,500 lines came out thinner, and precision up to 6 points higher (mine/dirty.md).
SAMPLE = 24_000

# The number of best decoys that the tail above them is extrapolated from.
_TAIL = 5


@dataclass(frozen=True)
class Decoys:
    """The margins of decoys.

    Attributes:
        score: ascending, float64 (n,), n >= 2.
        pool: the number of sentences that each decoy was the best of.
    """

    score: NDArray[np.float64]
    pool: int

    def above(
        self, score: NDArray[np.float64], shares: tuple[float, float], at: NDArray[np.float64], pool: int
    ) -> NDArray[np.float64]:
        """Return the share (n,) of wrong pairs at or above scores (n,).

        The best of c times as many independent sentences has the distribution F ** c. Above the highest decoys the tail
        is exponential.

        Args:
            score: the scores.
            shares: two shares of wrong pairs.
            at: the scores below which these shares lie, (2,); the decoys are shifted and scaled to agree there.
            pool: the number of sentences that each pair is the best of.
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
    """Return the best margin (n,) of each row (n, d) with another row of the same matrix; -inf for none.

    Margins are taken over the k nearest other rows of both.
    """
    n = len(vectors)
    found = search_both(vectors, vectors, min(k + 1, n))
    own = found.fwd_id == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # many equal rows: itself is not among them, and the last goes
    sim, ids = (array[~own].reshape(n, -1) for array in (found.fwd_sim, found.fwd_id))
    mean = neighbourhood_mean(sim, ids)
    return best_candidates(sim, ids, mean, mean, margin).score


def sampled_decoys(vectors: NDArray, k: int, margin: str, seed: int = 1) -> Decoys:
    """Return the decoys of a side from SAMPLE of its vectors, float16 (n, d), sampled by `seed`."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    score = decoy_scores(np.ascontiguousarray(vectors[rows]), k, margin)
    return Decoys(np.sort(score[np.isfinite(score)]), max(1, len(rows) - 1))
