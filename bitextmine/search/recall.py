"""The recall of an index, measured on a sample against exact search, and the effort that reaches a target."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.search.exact import search_one
from bitextmine.search.indexed import Indexed
from bitextmine.search.neighbours import best_first, shares_of
from bitextmine.search.rows import Vectors

_MOST_RESCORED = 64  # candidates per neighbour
_LITTLE = 0.002


@dataclass(frozen=True)
class Recall:
    """The share of queries whose best neighbour was found (at_1), and of the k best (at_k), by similarity."""

    at_1: float
    at_k: float
    k: int
    sample: int
    seed: int
    queries: str = "its own rows, each left out of its own answer"


@dataclass(frozen=True)
class RecallSample:
    """Queries with their exact neighbours: vectors (s, d), similarities (s, k), -inf if missing.

    `own` (s,) is the query's own row in the pool, which does not count.
    """

    vectors: Vectors
    sim: NDArray[np.float32]
    own: NDArray[np.int64]
    seed: int


def draw(pool: Vectors, k: int, *, size: int = 1000, seed: int = 1) -> RecallSample:
    """Return a seeded sample of the pool's own rows with their exact k best in the pool.

    Zero rows, which have only ties, are not drawn. A row is not its own neighbour.
    """
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pool))[:size])
    own = drawn[(pool[drawn] != 0).any(axis=1)].astype(np.int64)
    vectors = np.ascontiguousarray(pool[own])
    sim, ids = search_one(vectors, pool, k + 1)
    return RecallSample(vectors, _without(sim, ids, own, k), own, seed)


def measure(indexed: Indexed, sample: RecallSample) -> Recall:
    """Return the recall of the index on a sample, rescoring included."""
    k = sample.sim.shape[1]
    sim, ids = indexed.search(sample.vectors, k + 1)
    at_1, at_k = shares_of(_without(sim, ids, sample.own, k), sample.sim)
    return Recall(at_1, at_k, k, len(sample.vectors), sample.seed)


def tune(indexed: Indexed, sample: RecallSample, target: float = 0.99) -> Recall:
    """Set the least nprobe or efSearch, to about a tenth, whose recall@1 on the sample reaches the target.

    If none does, it is the highest. Where more of it no longer helps, the codes lose the rest: then more candidates are
    rescored.
    """
    index, below = indexed.index, 0
    recall = measure(indexed, sample)
    while recall.at_1 < target:
        before, effort = recall, index.effort()
        if effort is not None and effort[1] < effort[2]:
            below = effort[1]
            index.set_effort(min(2 * effort[1], effort[2]))
            recall = measure(indexed, sample)
        if recall.at_1 >= target:
            break
        more = effort is None or effort[1] >= effort[2] // 2 or recall.at_1 - before.at_1 < _LITTLE
        if more and not index.lossless and index.factor < _MOST_RESCORED:
            index.factor *= 2
            recall = measure(indexed, sample)
        elif effort is None or effort[1] >= effort[2]:
            break
    effort = index.effort()
    if effort is None or not below or recall.at_1 < target:
        return recall
    high = effort[1]
    while high - below > max(1, high // 10):
        middle = (below + high) // 2
        index.set_effort(middle)
        less = measure(indexed, sample)
        if less.at_1 >= target:
            high, recall = middle, less
        else:
            below = middle
    index.set_effort(high)
    return recall


def _without(
    sim: NDArray[np.float32], ids: NDArray[np.int64], own: NDArray[np.int64], k: int
) -> NDArray[np.float32]:
    """Return the k best similarities of each row, less the row's own."""
    mine = ids == own[:, None]
    return best_first(np.where(mine, -np.inf, sim).astype(np.float32), np.where(mine, -1, ids), k)[0]
