"""The table of pairs seen: which hashes of a stream are new, in bounded memory."""

import numpy as np
from numpy.typing import NDArray

# Memory of the pairs seen, a table of 2**28 places: room for 200 million pairs.
DEFAULT_MEMORY = 1 << 31
_PLACE = 8  # bytes
_SMALLEST = 1 << 16  # places
# Above this share of occupied places a search takes many steps, so the table doubles if it may.
_FULL = 0.75


class Seen:
    """Open addressing with linear probing over one array of uint64, which doubles as it fills.

    It takes 8 bytes per place, at most `memory` bytes (rounded down to a power of two), three quarters of them
    occupied: 100 million hashes take 1 GiB. While it doubles, the old array exists beside the new one. Once it may not
    double, new hashes are still looked up, but not remembered: `forgotten` counts them.

    Any two of n different pairs share a hash with a probability of about n * n / 2**65: 0.0003 for 100 million.
    """

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        places = max(1, memory // _PLACE)
        self._most = 1 << (places.bit_length() - 1)
        self._table = np.zeros(min(_SMALLEST, self._most), dtype=np.uint64)
        self.count = 0
        self.forgotten = 0

    @property
    def bytes(self) -> int:
        """Return the current size of the table."""
        return self._table.nbytes

    def add(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Add hashes (n,); return a mask (n,) of the new ones, of which the first of equal ones counts."""
        hashes = np.where(hashes == 0, np.uint64(1), hashes)  # 0 marks a free place
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
        """Insert distinct hashes if there is room; return a mask of the new ones."""
        table = self._table
        mask = np.uint64(len(table) - 1)
        room = max(0, int(_FULL * len(table)) - self.count)
        fresh = np.zeros(len(hashes), dtype=bool)
        waiting = np.arange(len(hashes))
        place = hashes & mask
        while len(waiting):
            stored = table[place]
            free = stored == 0
            if free.any():
                at = np.flatnonzero(free)
                if len(at) > room:  # a hash without room is new every time
                    fresh[waiting[at[room:]]] = True
                    self.forgotten += len(at) - room
                    stored[at[room:]] = hashes[waiting[at[room:]]]
                    at = at[:room]
                table[place[at]] = hashes[waiting[at]]
                # If several hashes want one place, the last one written gets it.
                won = at[table[place[at]] == hashes[waiting[at]]]
                fresh[waiting[won]] = True
                self.count += len(won)
                room -= len(won)
                stored[won] = hashes[waiting[won]]
            left = stored != hashes[waiting]
            waiting = waiting[left]
            place = (place[left] + np.uint64(1)) & mask
        return fresh
