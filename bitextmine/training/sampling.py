"""Which pairs make which batch: a pure function of the seed and the step, so that a run can resume anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.splits import Splits, split_pieces

__all__ = ["Batch", "Sampler", "drop_pieces", "permuted", "with_ngrams"]


@dataclasses.dataclass(frozen=True)
class Batch:
    """n pairs: row i of src and row i of tgt are translations.

    src, tgt: Pieces of n sentences each; keys: (2, n) uint64, equal within a row where sentences are equal. The last
    ``candidates`` rows are those that hard negatives are chosen from, with which the batch has ``wanted`` pairs.
    teacher: None, or what a teacher makes of the sentences: (2, n, d) float32, rows of length 1.
    """

    corpus: int
    src: Pieces
    tgt: Pieces
    keys: np.ndarray
    candidates: int = 0
    wanted: int = 0
    teacher: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.src)


def permuted(positions: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Elements ``positions`` (m,) int64 of a pseudo-random permutation of range(n), in memory independent of n.

    A four-round Feistel network on the smallest even number of bits that holds n, walked again while the
    result falls outside (Black & Rogaway 2002, "Ciphers with arbitrary finite domains").
    """
    half = max(1, (max(1, int(n - 1)).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    shift = np.uint64(half)
    keys = np.random.SeedSequence([seed, n]).generate_state(4, np.uint64)

    def cipher(x: np.ndarray) -> np.ndarray:
        left, right = x >> shift, x & mask
        for key in keys:
            mixed = (right + key) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
        return (left << shift) | right

    out = cipher(np.asarray(positions, dtype=np.uint64))
    while (outside := out >= n).any():
        out[outside] = cipher(out[outside])
    return out.astype(np.int64)


class Drawn(Protocol):
    """A corpus to draw from."""

    @property
    def corpus(self) -> Corpus: ...

    @property
    def train(self) -> DrawnPairs: ...


class DrawnPairs(Protocol):
    """Its pairs, by row."""

    def __len__(self) -> int: ...

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs: ...


class Sampler:
    """Draws batches, each from one corpus: sentences of one kind of text are the hardest negatives of each other.

    A corpus is chosen with a probability in proportion to its pairs times its weight, and gives its pairs in
    a random order that changes with every pass. In the first ``split_steps`` steps some pieces come in halves, as
    ``splits`` has them. With train.hard_negatives a share of each batch is left to be chosen, and the batch has
    candidates for it, which the corpus gives in another random order. With ``ngrams`` words in several pieces have
    theirs.
    """

    def __init__(
        self,
        caches: Sequence[Drawn],
        recipe: Recipe,
        splits: Splits | None = None,
        split_steps: int = 0,
        ngrams: Ngrams | None = None,
    ) -> None:
        self.ngrams = ngrams
        self.splits, self.split_steps, self.share = splits, split_steps, recipe.train.piece_splits
        self.caches, self.seed, self.max_pieces = caches, recipe.train.seed, recipe.model.max_pieces
        self.batch = recipe.train.batch
        self.hard_negatives, self.hard_pool = recipe.train.hard_negatives, recipe.train.hard_pool
        self.sizes = np.array([len(cache.train) for cache in caches], dtype=np.float64)
        mass = self.sizes * np.array([cache.corpus.weight for cache in caches])
        self.shares = mass / mass.sum()
        # Taken so far, per corpus: pairs, and candidates.
        self.drawn = np.zeros((2, len(caches)), dtype=np.int64)

    def skip(self, steps: int) -> None:
        """Goes to where ``steps`` batches have been drawn."""
        self.drawn[:] = 0
        for step in range(steps):
            corpus = self._choose(step)
            self.drawn[:, corpus] += self._sizes(corpus)

    def draw(self, step: int) -> Batch:
        """The batch of ``step``; steps are drawn in order."""
        corpus = self._choose(step)
        cache = self.caches[corpus]
        rows = [self._next(corpus, kind, size) for kind, size in enumerate(self._sizes(corpus))]
        pairs = cache.train.take(np.concatenate(rows), self.max_pieces)
        rng = np.random.default_rng([self.seed, step, 1])
        src, tgt = self._vary(pairs.src, step, rng), self._vary(pairs.tgt, step, rng)
        return Batch(corpus, src, tgt, pairs.keys, len(rows[1]), self._size(corpus), pairs.teacher)

    def _next(self, corpus: int, kind: int, size: int) -> np.ndarray:
        """The next rows (size,) int64 of a corpus, as pairs (kind 0) or candidates (1), each in its own order."""
        n = len(self.caches[corpus].train)
        positions = np.arange(self.drawn[kind, corpus], self.drawn[kind, corpus] + size)
        self.drawn[kind, corpus] += size
        rows = np.empty(size, dtype=np.int64)
        for epoch in np.unique(positions // n):
            inside = positions // n == epoch
            # Pairs come in the order that they had before there were candidates.
            seed = hash_seed(self.seed, corpus, int(epoch), *([kind] if kind else []))
            rows[inside] = permuted(positions[inside] % n, n, seed)
        return rows

    def _vary(self, pieces: Pieces, step: int, rng: np.random.Generator) -> Pieces:
        if self.splits is not None and step < self.split_steps:
            pieces = split_pieces(pieces, self.splits, self.share, rng)
        return with_ngrams(pieces, self.ngrams, self.max_pieces)

    def _choose(self, step: int) -> int:
        return int(np.random.default_rng([self.seed, step, 0]).choice(len(self.shares), p=self.shares))

    def _size(self, corpus: int) -> int:
        # A small corpus gives smaller batches: the same pair twice in one batch teaches nothing.
        return int(min(self.batch, self.sizes[corpus]))

    def _sizes(self, corpus: int) -> tuple[int, int]:
        """How many pairs a batch of this corpus draws, and how many candidates."""
        size = self._size(corpus)
        chosen = min(size - 1, round(self.hard_negatives * size))
        return size - chosen, int(min(chosen * self.hard_pool, self.sizes[corpus]))


def with_ngrams(pieces: Pieces, ngrams: Ngrams | None, max_pieces: int) -> Pieces:
    """The sentences as the finished model will see them: with their n-grams, and cut to ``max_pieces``."""
    extended = pieces if ngrams is None else ngrams.extend(pieces)
    long = (extended.lengths > max_pieces).any()
    return extended.take(np.arange(len(pieces)), max_pieces) if long else extended


def hash_seed(*numbers: int) -> int:
    """One seed out of several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def drop_pieces(pieces: Pieces, share: float, rng: np.random.Generator) -> Pieces:
    """Leaves out each piece with probability ``share``; a sentence that would lose all keeps its first."""
    if share <= 0 or not len(pieces.ids):
        return pieces
    keep = rng.random(len(pieces.ids), dtype=np.float32) >= share
    starts = pieces.offsets[:-1][pieces.lengths > 0]
    keep[starts] |= ~np.logical_or.reduceat(keep, starts)
    return pieces.keep(keep)
