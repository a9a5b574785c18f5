"""The k best neighbours so far, and merging more in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.search.products import best_first


@dataclass(frozen=True)
class TopK:
    """The k best so far for each of n rows: sim (n, k) float32 and id (n, k) int64, ordered as by `best_first`.

    The similarities are final (`products.products`), so the content does not depend on the order of merging.
    """

    sim: NDArray[np.float32]
    id: NDArray[np.int64]

    @staticmethod
    def empty(n: int, k: int) -> TopK:
        """Return the state of n rows without neighbours."""
        return TopK(np.full((n, k), -np.inf, dtype=np.float32), np.full((n, k), -1, dtype=np.int64))

    @property
    def k(self) -> int:
        """The number of neighbours."""
        return int(self.sim.shape[1])

    def limit(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the k-th best similarity of rows start..stop, which a newcomer must reach; -inf with fewer than k."""
        return self.sim[start:stop, -1]

    def merge(self, row: NDArray[np.int64], ids: NDArray[np.int64], sim: NDArray[np.float32]) -> None:
        """Add candidates (row, id, similarity), any number per row; an id that a row already has counts once."""
        if not len(row):
            return
        order = np.lexsort((ids, -sim, row))
        row, ids, sim = row[order], ids[order], sim[order]
        rows, begin, count = np.unique(row, return_index=True, return_counts=True)
        rank = np.arange(len(row)) - np.repeat(begin, count)
        k = self.k
        keep = rank < k
        new_sim = np.full((len(rows), k), -np.inf, dtype=np.float32)
        new_id = np.full((len(rows), k), -1, dtype=np.int64)
        at = np.repeat(np.arange(len(rows)), count)[keep]
        new_sim[at, rank[keep]] = sim[keep]
        new_id[at, rank[keep]] = ids[keep]
        known = (new_id[:, :, None] == self.id[rows][:, None, :]).any(axis=2)
        new_sim[known], new_id[known] = -np.inf, -1
        self.sim[rows], self.id[rows] = best_first(
            np.concatenate([self.sim[rows], new_sim], axis=1),
            np.concatenate([self.id[rows], new_id], axis=1),
            k,
        )
