"""Whether an encoder got better, by pairs that it was never trained on and did not choose.

The first encoder's best pairs, those of which nearly all are right, are set aside before any training. To find a
whole sentence's translation again tells little: that is how they were chosen. So the question is asked of half of
their words, taken away at random, several times: how often is the nearest line of the whole other pile still the
translation? The answers come from the first encoder, on whole sentences; an encoder that trained on its own mistakes
does not come nearer to them. What counts is the difference on the same questions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.adaptation.mining import MinedPairs
from bitextmine.encoder import Encoder

__all__ = ["Measured", "choose_held_out", "found_again", "half_of", "is_better", "measure"]

# Of the pairs set aside, this share may be wrong: a fifth of what training takes, as 5 of 100 questions without a
# right answer would hide small changes.
STRICT = 0.2
# Pairs to set aside, at most, over all piles; at most a fifth of those there are.
MOST = 1000
SHARE = 5
# A difference of which chance alone would make one as large less often than this counts.
CHANCE = 0.05
# ... and a loss of whole sentences. The pairs are those that the first encoder was surest of: any other finds some of
# them no more, as good as it may be.
LOSS_CHANCE = 0.001
# A question is asked so many times, with other halves: which half is left is chance, too, and would hide small changes.
DRAWS = 5
# A sentence of fewer words loses characters instead.
FEWEST_WORDS = 4
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class Measured:
    """Of each question whether the nearest line was the translation, both ways: whole, bool (q,), asked with whole
    sentences, and half, how often of DRAWS times with half of their words, int64 (q,)."""

    whole: NDArray[np.bool_]
    half: NDArray[np.int64]

    def percent(self) -> tuple[float, float]:
        """P@1 in per cent, with whole sentences and with half of the words."""
        return 100 * float(self.whole.mean()), 100 * float(self.half.mean()) / DRAWS


def choose_held_out(mined: MinedPairs, src: Sequence[str], error_rate: float, most: int) -> NDArray[np.int64]:
    """Which of the mined pairs are set aside, positions, int64, increasing: those of the best whose source sentence has
    the smallest hash. src: the source sentences of the mined pairs. Whatever stays a round later, stays chosen."""
    best = mined.best(error_rate * STRICT)
    wanted = min(most, best // SHARE)
    keys = [hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest() for line in src[:best]]
    return np.sort(np.array(sorted(range(best), key=keys.__getitem__)[:wanted], dtype=np.int64))


def half_of(line: str, seed: int) -> str:
    """The line with half of its words, each with the same chance, or of its characters where it has few words."""
    words = line.split()
    joint = " " if len(words) >= FEWEST_WORDS else ""
    parts = words if joint else list(line)
    digest = hashlib.sha256(f"{seed}\t{line}".encode("utf-8", "surrogatepass")).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    kept = np.sort(rng.permutation(len(parts))[: -(-len(parts) // 2)])
    return joint.join(parts[i] for i in kept)


def measure(
    encoder: Encoder,
    texts: tuple[Sequence[str], Sequence[str]],
    lines: tuple[NDArray[np.int64], NDArray[np.int64]],
    matrices: tuple[NDArray, NDArray],
    seed: int,
) -> Measured:
    """Asks for the pairs set aside, both ways. texts: their sentences; lines: where they stand in their piles, int64
    (p,) each; matrices: the encoder's vectors of all lines of the two piles, (n, d) and (m, d)."""
    whole, half = [], []
    for side in (0, 1):
        halves = [half_of(line, seed + draw) for draw in range(DRAWS) for line in texts[side]]
        queries = np.concatenate([matrices[side][lines[side]].astype(np.float32), encoder.encode(halves)])
        right = np.concatenate([lines[1 - side]] * (1 + DRAWS))
        found = found_again(queries, right, matrices[1 - side]).reshape(1 + DRAWS, -1)
        whole.append(found[0])
        half.append(found[1:].sum(axis=0, dtype=np.int64))
    return Measured(np.concatenate(whole), np.concatenate(half))


def found_again(queries: NDArray[np.float32], right: NDArray[np.int64], pool: NDArray) -> NDArray[np.bool_]:
    """(q,) whether no row of the pool (n, d) is nearer to query i than row right[i] is. A row that is as near, as an
    equal line is, does not count against it."""
    own = np.einsum("qd,qd->q", queries, pool[right].astype(np.float32))
    best = np.full(len(queries), -np.inf, dtype=np.float32)
    for start in range(0, len(pool), BLOCK_ROWS):
        block = np.asarray(pool[start : start + BLOCK_ROWS], dtype=np.float32)
        np.maximum(best, (queries @ block.T).max(axis=1), out=best)
    found: NDArray[np.bool_] = best <= own + np.float32(1e-5)
    return found


def is_better(new: Measured, old: Measured) -> bool:
    """Whether more questions are answered more often with half of the words than less often, and not fewer with whole
    sentences: by more than chance would, as the exact one-sided sign test at 5% and at 0.1% has it."""
    return _is_rise(new.half, old.half, CHANCE) and not _is_rise(old.whole, new.whole, LOSS_CHANCE)


def _is_rise(new: NDArray[Any], old: NDArray[Any], chance: float) -> bool:
    """Whether a coin thrown for each answer that changed falls on the side of the gains as often as they are there with
    a probability of at most ``chance``."""
    gained, lost = int((new > old).sum()), int((old > new).sum())
    changed = gained + lost
    as_many = sum(math.comb(changed, heads) for heads in range(gained, changed + 1))
    return as_many <= chance * 2**changed
