"""How common each piece is in what a run trains on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitextmine.train.cache import PairCache
from bitextmine.train.sampling import permuted

__all__ = ["piece_frequencies"]

PAIRS_PER_CORPUS = 20_000


def piece_frequencies(
    caches: Sequence[PairCache], vocab_size: int, pairs: int = PAIRS_PER_CORPUS
) -> np.ndarray:
    """(vocab_size,) float64, above 0, sum 1: the share of each piece among the pieces that training will see.

    Estimated on up to ``pairs`` pairs of each corpus, which count as often as the sampler draws that corpus. A piece
    that they lack counts as seen half a time.
    """
    total = np.zeros(vocab_size)
    for cache in caches:
        n = len(cache.train)
        rows = permuted(np.arange(min(n, pairs)), n, 0)
        drawn = cache.train.take(np.sort(rows))
        counts = sum(np.bincount(side.ids, minlength=vocab_size) for side in (drawn.src, drawn.tgt))
        total += counts * (n * cache.corpus.weight / len(rows))
    smallest = total[total > 0].min(initial=1.0)
    total = np.where(total > 0, total, smallest / 2)
    return np.asarray(total / total.sum())
