"""How much of the exact answer an index finds, on a sample, and turning it up until that is enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.indexing.faiss_index import Index, stored_as_they_are
from bitextmine.search.exact import search_one
from bitextmine.search.neighbours import best_first
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
    if size < 1:
        raise BitextmineError(f"the recall sample must have at least 1 row, found {size}")
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pool))[:size])
    own = drawn[(pool[drawn] != 0).any(axis=1)].astype(np.int64)
    vectors = np.ascontiguousarray(pool[own])
    sim, ids = search_one(vectors, pool, k + 1)
    return RecallSample(vectors, _without(sim, ids, own, k)[0], own, seed)


def measure(index: Index, pool: Vectors, sample: RecallSample) -> Recall:
    """Return the recall of the index on a sample, rescoring included."""
    k = sample.sim.shape[1]
    found = _without(*index.search(sample.vectors, pool, k + 1), sample.own, k)[0]
    return Recall(*shares_found(found, sample.sim), k, len(sample.vectors), sample.seed)


def shares_found(found: NDArray[np.float32], exact: NDArray[np.float32]) -> tuple[float, float]:
    """Return the recall@1 and recall@k of similarities (s, k) against the exact ones; a tie counts as found."""
    there = ~np.isneginf(exact)
    worst = np.where(there, exact, np.inf).min(axis=1, initial=np.inf)
    hits = np.minimum((found >= worst[:, None]).sum(axis=1), there.sum(axis=1)).sum()
    has, total = there[:, 0], int(there.sum())
    at_1 = float((found[has, 0] >= exact[has, 0]).mean()) if has.any() else 1.0
    return at_1, float(hits / total) if total else 1.0


def tune(index: Index, pool: Vectors, sample: RecallSample, target: float = 0.99) -> Recall:
    """Set the least nprobe or efSearch, to about a tenth, whose recall@1 on the sample reaches the target.

    If none does, it is the highest. Where more of it no longer helps, the codes lose the rest: then more candidates are
    rescored.
    """
    recall = measure(index, pool, sample)
    below = 0
    while recall.at_1 < target:
        before, effort = recall, index.effort()
        if effort is not None and effort[1] < effort[2]:
            below = effort[1]
            index.set_effort(min(2 * effort[1], effort[2]))
            recall = measure(index, pool, sample)
        if recall.at_1 >= target:
            break
        more = effort is None or effort[1] >= effort[2] // 2 or recall.at_1 - before.at_1 < _LITTLE
        if more and _lossy(index) and index.factor < _MOST_RESCORED:
            index.factor *= 2
            recall = measure(index, pool, sample)
        elif effort is None or effort[1] >= effort[2]:
            break
    effort = index.effort()
    if effort is None or not below or recall.at_1 < target:
        return recall
    high = effort[1]
    while high - below > max(1, high // 10):
        middle = (below + high) // 2
        index.set_effort(middle)
        found = measure(index, pool, sample)
        if found.at_1 >= target:
            high, recall = middle, found
        else:
            below = middle
    index.set_effort(high)
    return recall


def _lossy(index: Index) -> bool:
    ivf = index.inverted
    return not index.exact and (ivf is None or not stored_as_they_are(ivf))


def _without(
    sim: NDArray[np.float32], ids: NDArray[np.int64], own: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    mine = ids == own[:, None]
    return best_first(np.where(mine, -np.inf, sim).astype(np.float32), np.where(mine, -1, ids), k)
