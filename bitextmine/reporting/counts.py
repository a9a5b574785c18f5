"""Counting in bounded memory: scores by value, repeated texts, a random sample, the best few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_DECIMALS = 6
_LARGEST = 1e12  # scores beyond it share one bin at each end


class ScoreCounts:
    """A histogram of scores in at most `limit` bins.

    Bins are a power of ten wide, at first 10**-6 as scores are printed, so a threshold of six decimals lies between two
    bins and its count is exact. When there are more bins than `limit`, ten become one; counts stay exact at thresholds
    of one decimal less.
    """

    def __init__(self, limit: int = 1 << 18) -> None:
        self._decimals = _DECIMALS
        self.total = 0
        self.low = math.inf
        self.high = -math.inf
        self._limit = limit
        self._table = _Table()
        self._waiting: list[NDArray[np.int64]] = []
        self._waiting_size = 0

    @property
    def decimals(self) -> int:
        """Bins are 10**-decimals wide."""
        self._merge()
        return self._decimals

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count finite scores (n,)."""
        if not len(scores):
            return
        self.total += len(scores)
        self.low = min(self.low, float(scores.min()))
        self.high = max(self.high, float(scores.max()))
        clipped = np.clip(scores, -_LARGEST, _LARGEST)
        # The small term keeps 1.06, which is 1.0600000000000000532..., in its bin.
        self._waiting.append(np.floor(clipped * 10**_DECIMALS + 1e-3).astype(np.int64))
        self._waiting_size += len(scores)
        if self._waiting_size >= self._limit:
            self._merge()

    def _merge(self) -> None:
        if not self._waiting:
            return
        fresh, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_size = [], 0
        self._table = self._table.plus(fresh // 10 ** (_DECIMALS - self._decimals), counts)
        while len(self._table.keys) > self._limit:
            self._decimals -= 1
            self._table = _Table().plus(self._table.keys // 10, self._table.counts)

    def _edge(self, threshold: float) -> float:
        """Return the number of the first bin at or above a threshold."""
        return math.ceil(float(np.clip(threshold, -_LARGEST, _LARGEST)) * 10.0**self._decimals - 1e-3)

    def at_least(self, threshold: float) -> int:
        """Return how many scores reach the threshold (a bin that it cuts does not count)."""
        self._merge()
        return int(self._table.counts[np.searchsorted(self._table.keys, self._edge(threshold)) :].sum())

    def quantile(self, share: float) -> float:
        """Return the score that a share (0 to 1) of the scores do not exceed; NaN without scores."""
        self._merge()
        if not self.total:
            return math.nan
        rank = min(max(math.ceil(share * self.total) - 1, 0), self.total - 1)
        at = int(np.searchsorted(np.cumsum(self._table.counts), rank, side="right"))
        value = float(self._table.keys[at]) / 10.0**self._decimals
        return min(max(value, self.low), self.high)

    def between(self, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count scores in [edges[i], edges[i + 1]); edges (n + 1,) ascending, the last one included."""
        self._merge()
        keys = self._table.keys
        cuts = np.searchsorted(keys, [self._edge(float(edge)) for edge in edges[:-1]])
        cuts = np.append(cuts, np.searchsorted(keys, self._edge(float(edges[-1])), side="right"))
        before = np.append(0, np.cumsum(self._table.counts))
        return np.diff(before[cuts])


class KeyCounter:
    """Occurrences of keys (64-bit hashes), in two tables of at most about `limit` keys together.

    Counts are exact up to `limit` distinct keys. Beyond, the rarest are forgotten (Misra and Gries, 1982: one is taken
    off every count, and keys at zero go), and every count is too low by at most `missed`. New keys go to a small table
    first, because merging into the large one takes time in proportion to its size.
    """

    def __init__(self, limit: int = 1 << 20, recent: int = 1 << 17) -> None:
        self.missed = 0
        self._limit = limit
        self._recent_limit = min(recent, limit)
        self._main = _Table()
        self._recent = _Table()

    def add(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count keys (n,); return how often each has occurred so far, the whole block included."""
        unique, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        self._recent = self._recent.plus(unique, counts)
        found = self.get(unique)[inverse.reshape(-1)]
        if len(self._recent.keys) > self._recent_limit:
            self._settle()
        return found

    def _settle(self) -> None:
        self._main = self._main.plus(self._recent.keys, self._recent.counts)
        self._recent = _Table()
        while len(self._main.keys) > self._limit:
            least = int(self._main.counts.min())
            self.missed += least
            kept = self._main.counts > least
            self._main = _Table(self._main.keys[kept], self._main.counts[kept] - least)

    def get(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the count of each key (n,), 0 for one that never occurred or is forgotten."""
        return self._recent.get(keys) + self._main.get(keys)

    def total(self, least: int) -> int:
        """Return the occurrences of all keys that occurred `least` times or more."""
        self._settle()
        return int(self._main.counts[self._main.counts >= least].sum())


class _Table:
    """Sorted keys with counts."""

    def __init__(
        self, keys: NDArray[np.int64] | None = None, counts: NDArray[np.int64] | None = None
    ) -> None:
        self.keys = np.empty(0, dtype=np.int64) if keys is None else keys
        self.counts = np.empty(0, dtype=np.int64) if counts is None else counts

    def plus(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> _Table:
        """Return the sum of this table and other keys, which need not be distinct."""
        keys, counts = np.concatenate([self.keys, keys]), np.concatenate([self.counts, counts])
        if not len(keys):
            return self
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        return _Table(keys[starts], np.add.reduceat(counts, starts))

    def get(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)


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
