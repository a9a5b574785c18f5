"""Counting in bounded memory: scores by value, repeated texts, a random sample, the best few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fewest", "KeyCounter", "Sample", "ScoreCounts"]

T = TypeVar("T")

_DECIMALS = 6
_LARGEST = 1e12  # beyond it, scores share one bin at each end


class ScoreCounts:
    """How many scores there are of which value, in at most `limit` bins.

    Bins are a power of ten wide, at first 10**-6 as scores are printed, so that a threshold of six decimals
    lies between two of them and its count is exact. When there are more bins than `limit`, ten become one;
    the counts stay exact at thresholds of one decimal less.
    """

    def __init__(self, limit: int = 1 << 18) -> None:
        self._decimals = _DECIMALS
        self.total = 0
        self.low = math.inf
        self.high = -math.inf
        self._limit = limit
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
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
        # The little that is added keeps 1.06, which is 1.0600000000000000532..., and its like in their bins.
        self._waiting.append(np.floor(clipped * 10**_DECIMALS + 1e-3).astype(np.int64))
        self._waiting_size += len(scores)
        if self._waiting_size >= self._limit:
            self._merge()

    def _merge(self) -> None:
        if not self._waiting:
            return
        fresh, fresh_counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_size = [], 0
        fresh //= 10 ** (_DECIMALS - self._decimals)
        self._keys, self._counts = _summed(
            np.concatenate([self._keys, fresh]), np.concatenate([self._counts, fresh_counts])
        )
        while len(self._keys) > self._limit:
            self._decimals -= 1
            self._keys, self._counts = _summed(self._keys // 10, self._counts)

    def _edge(self, threshold: float) -> float:
        """The number of the first bin that lies at or above a threshold, as a float."""
        return math.ceil(float(np.clip(threshold, -_LARGEST, _LARGEST)) * 10.0**self._decimals - 1e-3)

    def at_least(self, threshold: float) -> int:
        """How many scores reach the threshold (a bin that it cuts does not count)."""
        self._merge()
        return int(self._counts[np.searchsorted(self._keys, self._edge(threshold)) :].sum())

    def quantile(self, share: float) -> float:
        """The score that a share (0 to 1) of all scores do not exceed, as the lower end of its bin; nan
        without scores.
        """
        self._merge()
        if not self.total:
            return math.nan
        rank = min(max(math.ceil(share * self.total) - 1, 0), self.total - 1)
        at = int(np.searchsorted(np.cumsum(self._counts), rank, side="right"))
        value = float(self._keys[at]) / 10.0**self._decimals
        return min(max(value, self.low), self.high)

    def between(self, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """Counts of scores in [edges[i], edges[i + 1]); edges (n + 1,) ascending, the last one included."""
        self._merge()
        cuts = np.searchsorted(self._keys, [self._edge(float(edge)) for edge in edges[:-1]])
        cuts = np.append(cuts, np.searchsorted(self._keys, self._edge(float(edges[-1])), side="right"))
        before = np.append(0, np.cumsum(self._counts))
        return np.diff(before[cuts])


def _summed(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Equal keys made one, sorted, their counts summed."""
    if not len(keys):
        return keys, counts
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[starts], np.add.reduceat(counts, starts)


class KeyCounter:
    """How often each key (a 64-bit hash) occurs, in two tables of at most about `limit` keys together.

    Exact as long as there are no more different keys than that. Beyond, the rarest are forgotten (Misra and
    Gries, 1982: one is taken off every count, and what is then zero goes), and every count is too low by at
    most `missed`.
    """

    def __init__(self, limit: int = 1 << 20, recent: int = 1 << 17) -> None:
        self.missed = 0
        self._limit = limit
        self._recent_limit = min(recent, limit)
        self._main = _KeyCounts()
        self._recent = _KeyCounts()

    def add(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the keys (n,); returns for each how often it has occurred by now, itself and the whole block
        included.
        """
        unique, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        self._recent = self._recent.plus(unique, counts)
        found = (self._recent.get(unique) + self._main.get(unique))[inverse.reshape(-1)]
        if len(self._recent.keys) > self._recent_limit:
            self._settle()
        return found

    def _settle(self) -> None:
        self._main = self._main.plus(self._recent.keys, self._recent.counts)
        self._recent = _KeyCounts()
        while len(self._main.keys) > self._limit:
            # The smallest count goes: one at a time would do the same in more steps.
            least = int(self._main.counts.min())
            self.missed += least
            kept = self._main.counts > least
            self._main = _KeyCounts(self._main.keys[kept], self._main.counts[kept] - least)

    def get(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each key (n,) has occurred, 0 for one that never did or is forgotten."""
        return self._recent.get(keys) + self._main.get(keys)

    def repeated(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys that occurred twice or more, the most frequent first, with their counts."""
        self._settle()
        many = self._main.counts > 1
        keys, counts = self._main.keys[many], self._main.counts[many]
        order = np.argsort(-counts, kind="stable")
        return keys[order], counts[order]


class _KeyCounts:
    """Sorted keys with counts."""

    def __init__(
        self, keys: NDArray[np.int64] | None = None, counts: NDArray[np.int64] | None = None
    ) -> None:
        self.keys = np.empty(0, dtype=np.int64) if keys is None else keys
        self.counts = np.empty(0, dtype=np.int64) if counts is None else counts

    def plus(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> _KeyCounts:
        return _KeyCounts(*_summed(np.concatenate([self.keys, keys]), np.concatenate([self.counts, counts])))

    def get(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)


class Sample(Generic[T]):
    """A uniform random sample of at most `size` things out of a stream (reservoir sampling), repeatable."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seen = 0
        self.items: list[T] = []
        self._random = np.random.default_rng(seed)

    def offer(self, n: int, make: Callable[[int], T]) -> None:
        """The next n things of the stream; make(i) makes the i-th of them, if it is drawn."""
        for i in range(min(n, max(self.size - self.seen, 0))):
            self.items.append(make(i))
        first = max(self.size - self.seen, 0)
        if first < n:
            ranks = np.arange(self.seen + first, self.seen + n)
            slots = np.floor(self._random.random(len(ranks)) * (ranks + 1)).astype(np.int64)
            for j in np.flatnonzero(slots < self.size):
                self.items[int(slots[j])] = make(first + int(j))
        self.seen += n


class Fewest(Generic[T]):
    """The `size` things of a stream with the lowest values; of equal ones the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: list[tuple[float, int, T]] = []
        self._seen = 0

    def offer(self, values: NDArray[np.float64], make: Callable[[int], T]) -> None:
        """The next values (n,), nan to leave one out; make(i) makes the i-th thing, if it is kept."""
        full = len(self._kept) >= self.size
        wanted = values < self._kept[-1][0] if full else ~np.isnan(values)
        which = np.flatnonzero(wanted)
        if len(which) > self.size:
            which = which[np.argsort(values[which], kind="stable")[: self.size]]
        if len(which):
            fresh = [(float(values[i]), self._seen + int(i), make(int(i))) for i in which]
            self._kept = sorted([*self._kept, *fresh], key=lambda entry: entry[:2])[: self.size]
        self._seen += len(values)

    def __iter__(self) -> Iterator[T]:
        return (thing for _, _, thing in self._kept)

    def __len__(self) -> int:
        return len(self._kept)
