"""How common each piece is in what a run trains on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.cache import PairCache
from bitextmine.training.sampling import permuted

__all__ = ["piece_frequencies", "sample_pieces"]

PAIRS_PER_CORPUS = 20_000


def piece_frequencies(
    caches: Sequence[PairCache], vocab_size: int, pairs: int = PAIRS_PER_CORPUS
) -> np.ndarray:
    """(vocab_size,) float64, above 0, sum 1: the share of each piece among the pieces that training will see.

    Estimated on up to ``pairs`` pairs of each corpus. A piece that they lack counts as seen half a time.
    """
    total = np.zeros(vocab_size)
    for sides, weight in sample_pieces(caches, pairs):
        for side in sides:
            total += weight * np.bincount(side.ids, minlength=vocab_size)
    smallest = total[total > 0].min(initial=1.0)
    total = np.where(total > 0, total, smallest / 2)
    return np.asarray(total / total.sum())


def sample_pieces(
    caches: Sequence[PairCache], pairs: int = PAIRS_PER_CORPUS
) -> Iterator[tuple[tuple[Pieces, Pieces], float]]:
    """Up to ``pairs`` training pairs of each corpus, the two sides' pieces, and for how many pairs each of them
    stands, drawn as often as the sampler draws that corpus."""
    for cache in caches:
        n = len(cache.train)
        rows = permuted(np.arange(min(n, pairs)), n, 0)
        drawn = cache.train.take(np.sort(rows))
        yield (drawn.src, drawn.tgt), n * cache.corpus.weight / len(rows)
