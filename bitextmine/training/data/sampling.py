"""Draw batches as a pure function of the seed and the step, so that a run can resume anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bitextmine.encoder.ngrams import SPACE, Ngrams
from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.training.data.cache import PairCache
from bitextmine.training.data.edits import Edits
from bitextmine.training.data.pairfile import EditedCopies, TokenPairs
from bitextmine.training.recipe import PairCorpus, Recipe

# Pairs of each corpus that frequencies are estimated on.
PAIRS_PER_CORPUS = 20_000
# Alternative splits kept per piece, the likeliest first.
CHOICES = 4
# A half may be split again: a piece becomes up to 2 ** ROUNDS parts.
ROUNDS = 2


def permuted(positions: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return elements ``positions`` (m,) int64 of a pseudo-random permutation of range(n), in memory independent of n.

    A four-round Feistel network on the smallest even number of bits that holds n, applied again while the result falls
    outside (Black & Rogaway 2002, "Ciphers with arbitrary finite domains").
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


class PairSource(NamedTuple):
    """Pairs to draw from, as from a `PairCache`: train has a length, and `take` as a `PairFile` does."""

    corpus: PairCorpus
    train: Any


class Phases(NamedTuple):
    """The first ``easy`` steps have neither edited copies nor joined pairs; ``split`` steps split pieces."""

    split: frozenset[int] = frozenset()
    easy: int = 0


EVERYTHING = Phases()


class Sampler:
    """Draws batches of one corpus each: sentences of the same kind of text are the hardest negatives of each other.

    A corpus is chosen with a probability proportional to its pairs times its weight, and gives its pairs in a random
    order that changes with every pass. ``ngrams`` adds n-grams to words in several pieces.
    """

    def __init__(
        self,
        caches: Sequence[PairCache | PairSource],
        recipe: Recipe,
        splits: Splits | None = None,
        phases: Phases = EVERYTHING,
        ngrams: Ngrams | None = None,
        edits: Edits | None = None,
    ) -> None:
        self.ngrams, self.edits, self.phases = ngrams, edits, phases
        self.splits, self.share = splits, recipe.train.piece_splits
        self.caches, self.seed, self.max_pieces = caches, recipe.train.seed, recipe.model.max_pieces
        self.batch = recipe.train.batch
        self.sizes = np.array([len(cache.train) for cache in caches], dtype=np.float64)
        mass = self.sizes * np.array([cache.corpus.weight for cache in caches])
        self.shares = mass / mass.sum()
        own = mass * [isinstance(cache, PairCache) for cache in caches]
        self.easy_shares = own / own.sum() if phases.easy else self.shares
        self.drawn = np.zeros(len(caches), dtype=np.int64)  # pairs so far, per corpus

    def skip(self, steps: int) -> None:
        """Go to the state after ``steps`` batches."""
        self.drawn[:] = 0
        for step in range(steps):
            corpus = self._choose(step)
            self.drawn[corpus] += self._size(corpus)

    def draw(self, step: int) -> TokenPairs:
        """Return the batch of ``step``; steps are drawn in order."""
        corpus = self._choose(step)
        pairs = self.caches[corpus].train.take(self._next(corpus), self.max_pieces)
        rng = np.random.default_rng([self.seed, step, 1])
        src, tgt = self._vary(pairs.src, step, rng), self._vary(pairs.tgt, step, rng)
        edited = None
        if self.edits is not None and step >= self.phases.easy:
            rng = np.random.default_rng([self.seed, step, 2])
            side = int(rng.integers(2))
            lang = self.caches[corpus].corpus.langs[side]
            chosen, copies = self.edits.edit((pairs.src, pairs.tgt)[side], lang, rng)
            edited = EditedCopies(side, chosen, self._vary(copies, step, rng))
        return dataclasses.replace(pairs, src=src, tgt=tgt, edited=edited)

    def _next(self, corpus: int) -> np.ndarray:
        n, size = len(self.caches[corpus].train), self._size(corpus)
        positions = np.arange(self.drawn[corpus], self.drawn[corpus] + size)
        self.drawn[corpus] += size
        rows = np.empty(size, dtype=np.int64)
        for epoch in np.unique(positions // n):
            inside = positions // n == epoch
            rows[inside] = permuted(positions[inside] % n, n, hash_seed(self.seed, corpus, int(epoch)))
        return rows

    def _vary(self, pieces: Pieces, step: int, rng: np.random.Generator) -> Pieces:
        if self.splits is not None and step in self.phases.split:
            pieces = split_pieces(pieces, self.splits, self.share, rng)
        return with_ngrams(pieces, self.ngrams, self.max_pieces)

    def _choose(self, step: int) -> int:
        shares = self.easy_shares if step < self.phases.easy else self.shares
        return int(np.random.default_rng([self.seed, step, 0]).choice(len(shares), p=shares))

    def _size(self, corpus: int) -> int:
        # A small corpus gives smaller batches: the same pair twice in one batch teaches nothing.
        return int(min(self.batch, self.sizes[corpus]))


def with_ngrams(pieces: Pieces, ngrams: Ngrams | None, max_pieces: int) -> Pieces:
    """Return the sentences as the finished model sees them: with their n-grams, and cut to ``max_pieces``."""
    extended = pieces if ngrams is None else ngrams.extend(pieces)
    long = (extended.lengths > max_pieces).any()
    return extended.take(np.arange(len(pieces)), max_pieces) if long else extended


def hash_seed(*numbers: int) -> int:
    """Return one seed made of several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def drop_pieces(pieces: Pieces, share: float, rng: np.random.Generator) -> Pieces:
    """Drop each piece with probability ``share``; a sentence that would lose all keeps its first."""
    if share <= 0 or not len(pieces.ids):
        return pieces
    keep = rng.random(len(pieces.ids), dtype=np.float32) >= share
    starts = pieces.offsets[:-1][pieces.lengths > 0]
    keep[starts] |= ~np.logical_or.reduceat(keep, starts)
    return pieces.keep(keep)


# --- subword regularisation ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Splits:
    """Halves of each piece: parts (V, CHOICES, 2) int32; choices (V,) int64, the number of filled rows."""

    parts: np.ndarray
    choices: np.ndarray


def split_table(tokenizer: Tokenizer) -> Splits:
    """Return the ways to write each piece as two others, those with the highest sum of log-probabilities."""
    pieces, scores = tokenizer.pieces(), tokenizer.scores()
    known = {piece: i for i, piece in enumerate(pieces) if piece and piece != SPACE}
    parts = np.zeros((len(pieces), CHOICES, 2), dtype=np.int32)
    choices = np.zeros(len(pieces), dtype=np.int64)
    for piece, i in known.items():
        halves = []
        for at in range(1, len(piece)):
            left, right = known.get(piece[:at]), known.get(piece[at:])
            if left is not None and right is not None:
                halves.append((-(scores[left] + scores[right]), left, right))
        halves.sort()
        choices[i] = min(len(halves), CHOICES)
        for row, (_, left, right) in enumerate(halves[:CHOICES]):
            parts[i, row] = left, right
    return Splits(parts, choices)


def split_pieces(pieces: Pieces, splits: Splits, share: float, rng: np.random.Generator) -> Pieces:
    """Split each piece in two with probability ``share``, by one of its choices at random, `ROUNDS` times.

    Rare words then appear in parts that other words have, too (Kudo 2018, "Subword regularization", with cheaper
    sampling: no lattice, so that tokenised text can be kept).
    """
    if share <= 0:
        return pieces
    for _ in range(ROUNDS):
        ids = pieces.ids
        at = np.flatnonzero((rng.random(len(ids), dtype=np.float32) < share) & (splits.choices[ids] > 0))
        chosen = (rng.random(len(at)) * splits.choices[ids[at]]).astype(np.int64)
        halves = splits.parts[ids[at], chosen]
        times = np.ones(len(ids), dtype=np.int64)
        times[at] = 2
        starts = offsets_of(times)
        new = np.repeat(ids, times)
        new[starts[at]], new[starts[at] + 1] = halves[:, 0], halves[:, 1]
        pieces = Pieces(new, starts[pieces.offsets])
    return pieces


# --- piece frequencies ---------------------------------------------------------------------------------------


def piece_frequencies(caches: Sequence[PairCache], vocab_size: int) -> np.ndarray:
    """Return (vocab_size,) float64, above 0, sum 1: the share of each piece in a sample of the text drawn in training.

    A piece that is not in it counts as seen half a time.
    """
    total = np.zeros(vocab_size)
    for sides, weight in sample_pieces(caches):
        for side in sides:
            total += weight * np.bincount(side.ids, minlength=vocab_size)
    total[total == 0] = total[total > 0].min(initial=1.0) / 2
    return np.asarray(total / total.sum())


def sample_pieces(
    caches: Sequence[PairCache], pairs: int = PAIRS_PER_CORPUS
) -> Iterator[tuple[tuple[Pieces, Pieces], float]]:
    """Yield up to ``pairs`` training pairs of each corpus and the number of pairs each of them stands for."""
    for cache in caches:
        n = len(cache.train)
        rows = permuted(np.arange(min(n, pairs)), n, 0)
        drawn = cache.train.take(np.sort(rows))
        yield (drawn.src, drawn.tgt), n * cache.corpus.weight / len(rows)
