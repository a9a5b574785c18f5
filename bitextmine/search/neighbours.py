"""Nearest neighbours: the result of a search in both directions, and the k best found so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Neighbours:
    """The k best rows of y for each of the n rows of x (fwd), and the k best rows of x for each of the m of y (bwd).

    Similarities, (n, k) and (m, k), are float32 inner products; ids are int64 row numbers of the other side. A row is
    ordered by similarity, highest first, then by id, lowest first. A missing neighbour (k is larger than the other
    side) is -1 with -inf.
    """

    fwd_sim: NDArray[np.float32]
    fwd_id: NDArray[np.int64]
    bwd_sim: NDArray[np.float32]
    bwd_id: NDArray[np.int64]


def best_first(
    sim: NDArray[np.float32], ids: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the k best of each row: highest similarity first, then lowest id; id -1 (sim -inf) goes last."""
    key = np.where(ids < 0, np.iinfo(np.int64).max, ids)
    order = np.lexsort((key, -sim), axis=1)[:, :k]
    sim, ids = np.take_along_axis(sim, order, axis=1), np.take_along_axis(ids, order, axis=1)
    if sim.shape[1] < k:
        wide = ((0, 0), (0, k - sim.shape[1]))
        sim = np.pad(sim, wide, constant_values=-np.inf)
        ids = np.pad(ids, wide, constant_values=-1)
    return sim, ids


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
        """Return the number of neighbours."""
        return int(self.sim.shape[1])

    def add(self, rows: slice | NDArray[np.int64], sim: NDArray[np.float32], ids: NDArray[np.int64]) -> None:
        """Merge candidates (r, c) into some rows, none of which the rows have yet; -1 is no candidate."""
        self.sim[rows], self.id[rows] = best_first(
            np.concatenate([self.sim[rows], sim], axis=1),
            np.concatenate([self.id[rows], ids], axis=1),
            self.k,
        )
