"""Counting in one pass: scores, repeated texts, a random sample, the best few."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class ScoreCounts:
    """All scores, to be counted; 8 bytes a score."""

    def __init__(self) -> None:
        self._sorted = np.empty(0)
        self._waiting: list[NDArray[np.float64]] = []

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count finite scores (n,)."""
        self._waiting.append(scores)

    @property
    def values(self) -> NDArray[np.float64]:
        """Return the scores, ascending."""
        if self._waiting:
            self._sorted = np.sort(np.concatenate([self._sorted, *self._waiting]))
            self._waiting = []
        return self._sorted

    @property
    def total(self) -> int:
        """Count the scores."""
        return len(self.values)

    def at_least(self, threshold: float) -> int:
        """Return how many scores reach the threshold."""
        return self.total - int(np.searchsorted(self.values, threshold))

    def quantile(self, share: float) -> float:
        """Return the score that a share (0 to 1) of the scores do not exceed; NaN without scores."""
        rank = min(max(math.ceil(share * self.total) - 1, 0), self.total - 1)
        return float(self.values[rank]) if self.total else math.nan


class KeyCounter:
    """Occurrences of keys (64-bit hashes).

    Counts are exact up to `limit` distinct keys. Beyond, the rarest are forgotten (lossy counting, Manku and Motwani,
    2002), and every count is too low by at most `missed`.
    """

    def __init__(self, limit: int = 1 << 19) -> None:
        self.missed = 0
        self._limit = limit
        self._counts = Counter[int]()

    def add(self, keys: Iterable[int]) -> None:
        """Count keys."""
        self._counts.update(keys)
        while len(self._counts) > self._limit:
            least = min(self._counts.values())
            self._counts = Counter({key: count for key, count in self._counts.items() if count > least})
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
