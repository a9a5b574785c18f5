"""A set of 64-bit hashes that says which ones are new, in a bounded number of bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEFAULT_MEMORY", "Seen"]

# A table of 2**28 places: room for 200 million pairs.
DEFAULT_MEMORY = 1 << 31

_PLACE = 8  # bytes
_SMALLEST = 1 << 16
# Above this share of occupied places a search takes many steps; the table doubles there, while it may.
_FULL = 0.75


class Seen:
    """Open addressing with linear probing over one array of uint64, which doubles as it fills.

    State: 8 bytes per place, at most `memory` bytes (rounded down to a power of two), three quarters of it
    occupied: 100 million hashes take 1 GiB. While it doubles, the old array is held besides the new one.
    When it may not double any more, hashes that come are still looked up, but not remembered: `forgotten`
    counts them.

    Two different pairs of n share a hash with a probability of about n * n / 2**65: 0.0003 for 100 million.
    """

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        places = max(1, memory // _PLACE)
        self._most = 1 << (places.bit_length() - 1)
        self._table = np.zeros(min(_SMALLEST, self._most), dtype=np.uint64)
        self.count = 0
        self.forgotten = 0

    @property
    def bytes(self) -> int:
        """The size of the table now."""
        return self._table.nbytes

    def add(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of the hashes (n,) are new, in their order: of equal ones the first is, if it is; adds
        them.
        """
        hashes = np.where(
            hashes == 0, np.uint64(1), hashes.astype(np.uint64, copy=False)
        )  # 0 marks a free place
        unique, first = np.unique(hashes, return_index=True)
        fresh = np.zeros(len(hashes), dtype=bool)
        for start in range(0, len(unique), 1 << 16):
            part = unique[start : start + (1 << 16)]
            self._make_room(len(part))
            fresh[first[start : start + len(part)][self._insert(part)]] = True
        return fresh

    def _make_room(self, more: int) -> None:
        while self.count + more > _FULL * len(self._table) and len(self._table) < self._most:
            old = self._table
            self._table = np.zeros(2 * len(old), dtype=np.uint64)
            self.count = 0
            for start in range(0, len(old), 1 << 20):
                part = old[start : start + (1 << 20)]
                self._insert(part[part != 0])

    def _insert(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these distinct hashes were not there; puts them in where there is room."""
        table = self._table
        mask = np.uint64(len(table) - 1)
        room = max(0, int(_FULL * len(table)) - self.count)
        fresh = np.zeros(len(hashes), dtype=bool)
        waiting = np.arange(len(hashes))
        # The low bits of a hash are as good as any.
        place = hashes & mask
        while len(waiting):
            found = table[place]
            free = found == 0
            if free.any():
                at = np.flatnonzero(free)
                if len(at) > room:  # what finds no room is new all the same, once for each time it comes
                    fresh[waiting[at[room:]]] = True
                    self.forgotten += len(at) - room
                    found[at[room:]] = hashes[waiting[at[room:]]]
                    at = at[:room]
                table[place[at]] = hashes[waiting[at]]
                # Of several that want one place the last one written got it.
                won = at[table[place[at]] == hashes[waiting[at]]]
                fresh[waiting[won]] = True
                self.count += len(won)
                room -= len(won)
                found[won] = hashes[waiting[won]]
            left = found != hashes[waiting]
            waiting = waiting[left]
            place = (place[left] + np.uint64(1)) & mask
        return fresh
