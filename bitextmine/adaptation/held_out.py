"""Test for improvement of an encoder on held-out pairs.

The first encoder's best pairs, nearly all of them right, are held out before any training. Finding a whole sentence's
translation again means little, as that is how they were chosen. So queries are sentences with half of their words
removed at random, several times: how often is the nearest line of the whole other corpus still the translation? The
right answers come from the first encoder on whole sentences; an encoder that trained on its own mistakes does not come
nearer to them. Two encoders are compared on the same queries.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder import Encoder

# The error rate of held-out pairs, relative to that of training: 5 of 100 queries without a right answer would hide
# small changes. Where hardly any pair is so certain, the best quarter is taken.
STRICT = 0.2
QUARTER = 4
# Held-out pairs at most; at most a fifth of the pairs.
MOST = 1000
SHARE = 5
# A gain counts when p < CHANCE, a loss of whole sentences when p < LOSS_CHANCE: the first encoder was most certain of
# these pairs, and any other encoder loses some of them, however good it is.
CHANCE = 0.05
LOSS_CHANCE = 0.001
# Each query is repeated with other halves, as the choice of the half is random, too.
DRAWS = 5
# Sentences of fewer words lose characters instead.
FEWEST_WORDS = 4
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class MinedPairs:
    """One-to-one pairs, best first, cut where the estimated error rate reaches that of the options.

    src, tgt: lines (p,) int64, from 0, of equal lines the first; precision: (p,) float64, the estimated share of true
    pairs among those up to each; interval: the 95% interval of the last of these.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    precision: NDArray[np.float64]
    interval: tuple[float, float] = (0.0, 1.0)

    def __len__(self) -> int:
        return len(self.src)

    def best(self, error_rate: float) -> int:
        """Return the number of best pairs with at most this share of wrong ones."""
        good = np.flatnonzero(self.precision >= 1 - error_rate)
        return int(good[-1]) + 1 if len(good) else 0


@dataclass(frozen=True)
class Measured:
    """Hits of each query, in both directions: whole (q,) bool, and half (q,) int64, out of DRAWS times."""

    whole: NDArray[np.bool_]
    half: NDArray[np.int64]

    def percent(self) -> tuple[float, float]:
        """Return P@1 in per cent, with whole sentences and with half of the words."""
        return 100 * float(self.whole.mean()), 100 * float(self.half.mean()) / DRAWS


def choose_held_out(mined: MinedPairs, src: Sequence[str], error_rate: float) -> NDArray[np.int64]:
    """Return the positions of the pairs to hold out, int64, increasing: those whose source has the smallest hash.

    src: the source sentences of the mined pairs.
    """
    best = max(mined.best(error_rate * STRICT), len(mined) // QUARTER)
    wanted = min(MOST, best // SHARE)
    keys = [hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest() for line in src[:best]]
    return np.sort(np.array(sorted(range(best), key=keys.__getitem__)[:wanted], dtype=np.int64))


def half_of(line: str, seed: int) -> str:
    """Return the line with a random half of its words, or of its characters if it has few words."""
    words = line.split()
    joint = " " if len(words) >= FEWEST_WORDS else ""
    parts = words if joint else list(line)
    digest = hashlib.sha256(f"{seed}\t{line}".encode("utf-8", "surrogatepass")).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    kept = np.sort(rng.permutation(len(parts))[: -(-len(parts) // 2)])
    return joint.join(parts[i] for i in kept)


def measure(
    encoder: Encoder,
    texts: Sequence[Sequence[str]],
    lines: Sequence[NDArray[np.int64]],
    matrices: Sequence[NDArray],
    seed: int,
) -> Measured:
    """Search for held-out pairs of two corpora in both directions.

    For each side: their sentences and lines (p,), and the encoder's vectors of all lines of the corpus (n, d).
    """
    whole, half = [], []
    for side in (0, 1):
        halves = [half_of(line, seed + draw) for draw in range(DRAWS) for line in texts[side]]
        queries = np.concatenate([matrices[side][lines[side]].astype(np.float32), encoder.encode(halves)])
        right = np.concatenate([lines[1 - side]] * (1 + DRAWS))
        hits = found_again(queries, right, matrices[1 - side]).reshape(1 + DRAWS, -1)
        whole.append(hits[0])
        half.append(hits[1:].sum(axis=0, dtype=np.int64))
    return Measured(np.concatenate(whole), np.concatenate(half))


def found_again(queries: NDArray[np.float32], right: NDArray[np.int64], pool: NDArray) -> NDArray[np.bool_]:
    """Return (q,) bool: no row of the pool (n, d) is nearer to query i than row right[i]; ties count as hits."""
    own = np.einsum("qd,qd->q", queries, pool[right].astype(np.float32))
    best = np.full(len(queries), -np.inf, dtype=np.float32)
    for start in range(0, len(pool), BLOCK_ROWS):
        block = np.asarray(pool[start : start + BLOCK_ROWS], dtype=np.float32)
        np.maximum(best, (queries @ block.T).max(axis=1), out=best)
    hits: NDArray[np.bool_] = best <= own + np.float32(1e-5)
    return hits


def is_better(new: Measured, old: Measured) -> bool:
    """Return True for a significant gain with half of the words and no significant loss with whole sentences.

    Exact one-sided sign tests, at CHANCE and at LOSS_CHANCE.
    """
    return _is_rise(new.half, old.half, CHANCE) and not _is_rise(old.whole, new.whole, LOSS_CHANCE)


def _is_rise(new: NDArray[Any], old: NDArray[Any], chance: float) -> bool:
    """Return True if a fair coin per change gives so many gains with a probability of at most ``chance``."""
    gained, lost = int((new > old).sum()), int((old > new).sum())
    changed = gained + lost
    as_many = sum(math.comb(changed, heads) for heads in range(gained, changed + 1))
    return as_many <= chance * 2**changed
