"""Counting in one pass: scores by value, repeated texts, a random sample, the best few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

SCALE = 10.0**6  # scores are printed with six decimals
_LARGEST = 1e12  # scores beyond it count as equal


class ScoreCounts:
    """Scores by their value at six decimals, so counts at thresholds of six decimals are exact; 8 bytes a score."""

    def __init__(self) -> None:
        self.total, self.low, self.high = 0, math.inf, -math.inf
        self._keys = np.empty(0, dtype=np.int64)  # sorted
        self._waiting: list[NDArray[np.int64]] = []

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count finite scores (n,)."""
        if len(scores):
            self.total += len(scores)
            self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
            # The small term keeps 1.06, which is 1.0600000000000000532..., in its place.
            self._waiting.append(
                np.floor(np.clip(scores, -_LARGEST, _LARGEST) * SCALE + 1e-3).astype(np.int64)
            )

    def _place(self, threshold: float, side: str = "left") -> int:
        """Return how many scores are below a threshold; with side "right", below or at it."""
        if self._waiting:
            self._keys = np.sort(np.concatenate([self._keys, *self._waiting]))
            self._waiting = []
        edge = math.ceil(float(np.clip(threshold, -_LARGEST, _LARGEST)) * SCALE - 1e-3)
        return int(np.searchsorted(self._keys, edge, side))  # type: ignore[call-overload]

    def at_least(self, threshold: float) -> int:
        """Return how many scores reach the threshold."""
        return self.total - self._place(threshold)

    def quantile(self, share: float) -> float:
        """Return the score that a share (0 to 1) of the scores do not exceed; NaN without scores."""
        if not self.total:
            return math.nan
        self._place(0)
        rank = min(max(math.ceil(share * self.total) - 1, 0), self.total - 1)
        return min(max(float(self._keys[rank]) / SCALE, self.low), self.high)

    def between(self, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count scores in [edges[i], edges[i + 1]); edges (n + 1,) ascending, the last one included."""
        cuts = [self._place(float(edge)) for edge in edges[:-1]]
        return np.diff([*cuts, self._place(float(edges[-1]), "right")])


class KeyCounter:
    """Occurrences of keys (64-bit hashes).

    Counts are exact up to `limit` distinct keys. Beyond, the rarest are forgotten (lossy counting, Manku and Motwani,
    2002), and every count is too low by at most `missed`.
    """

    def __init__(self, limit: int = 1 << 19) -> None:
        self.missed = 0
        self._limit = limit
        self._counts: dict[int, int] = {}

    def add(self, keys: Iterable[int]) -> None:
        """Count keys."""
        counts = self._counts
        for key in keys:
            counts[key] = counts.get(key, 0) + 1
        while len(self._counts) > self._limit:
            least = min(self._counts.values())
            self._counts = {key: count for key, count in self._counts.items() if count > least}
            self.missed += least

    def get(self, keys: Iterable[int]) -> list[int]:
        """Return the count of each key, 0 for one that never occurred or is forgotten."""
        return [self._counts.get(key, 0) for key in keys]

    def total(self, least: int) -> int:
        """Return the occurrences of all keys that occurred `least` times or more."""
        return sum(count for count in self._counts.values() if count >= least)


class Sample(Generic[T]):
    """A uniform random sample of at most `size` items of a stream (reservoir sampling), the same in every run."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seen = 0
        self.items: list[T] = []
        self._random = np.random.default_rng(seed)

    def offer(self, n: int, make: Callable[[int], T]) -> None:
        """Offer the next n items; make(i) makes the i-th one if it is drawn."""
        first = min(n, max(self.size - self.seen, 0))
        self.items += map(make, range(first))
        if first < n:
            ranks = np.arange(self.seen + first, self.seen + n)
            slots = np.floor(self._random.random(len(ranks)) * (ranks + 1)).astype(np.int64)
            for j in np.flatnonzero(slots < self.size).tolist():
                self.items[int(slots[j])] = make(first + j)
        self.seen += n


class Fewest(Generic[T]):
    """The `size` items of a stream with the lowest values; of equal values the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: list[tuple[float, int, T]] = []
        self._seen = 0

    def offer(self, values: NDArray[np.float64], make: Callable[[int], T]) -> None:
        """Offer the next values (n,), NaN to leave one out; make(i) makes the i-th item if it is kept."""
        full = len(self._kept) >= self.size
        at = np.flatnonzero(values < self._kept[-1][0] if full else ~np.isnan(values))
        if len(at) > self.size:
            at = at[np.argsort(values[at], kind="stable")[: self.size]]
        fresh = [(float(values[i]), self._seen + i, make(i)) for i in at.tolist()]
        self._kept = sorted([*self._kept, *fresh], key=lambda entry: entry[:2])[: self.size]
        self._seen += len(values)

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._kept)
