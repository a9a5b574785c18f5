"""The clusters of an inverted file: finding their centres, and the nearest ones to a row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.search.exact import search_one
from bitextmine.search.options import default_arithmetic
from bitextmine.search.rows import Vectors

ROUNDS = 8
# Rows whose products with the centres are made together. What is made together may decide the last bit of a product, so
# that blocks of queries begin at multiples of this.
ROUTE_ROWS = 2048


def nearest_centre(vectors: Vectors, centres: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the centre with the highest inner product for each row (n, d), int64 (n,); ties go to the lower one.

    Our search takes a tenth of the time of FAISS's own assignment.
    """
    return search_one(vectors, _rounded(centres, vectors), 1)[1][:, 0]


def find_centres(vectors: Vectors, count: int, *, seed: int, rounds: int = ROUNDS) -> NDArray[np.float32]:
    """Return `count` centres, float32 (count, d) of length 1, by spherical k-means (Dhillon and Modha 2001).

    Begins with `count` of the n >= count rows, drawn with `seed`; a centre that loses all its rows takes half of
    another's (faiss.contrib.clustering.reassign_centroids).
    """
    from faiss.contrib import clustering

    reassign: Any = clustering.reassign_centroids
    random = np.random.RandomState(seed)  # what reassign_centroids() draws with
    centres = _unit(vectors[np.sort(random.choice(len(vectors), count, replace=False))].astype(np.float32))
    for _ in range(rounds):
        of = nearest_centre(vectors, centres)
        order = np.argsort(of, kind="stable")
        begins = np.flatnonzero(np.diff(of[order], prepend=-1))
        sizes = np.bincount(of, minlength=count)
        sums = np.zeros((count, vectors.shape[1]), dtype=np.float32)
        for start, stop in zip(begins, np.append(begins[1:], len(order)), strict=True):
            members = order[start:stop]
            sums[of[members[0]]] = vectors[members].sum(axis=0, dtype=np.float32)
        reassign(sizes, sums, random)
        centres = _unit(sums)
    return centres


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(length > 0, length, 1)).astype(np.float32)


def _rounded(centres: NDArray[np.float32], like: Vectors) -> Vectors:
    """Return centres in the dtype of the vectors."""
    return centres.astype(np.float16) if like.dtype == np.float16 else centres


class Router:
    """Finds the `probes` lists whose centres are nearest to a row.

    Products are made in this processor's fastest arithmetic; only lists at the edge, with two centres about as near,
    depend on it.
    """

    def __init__(self, centres: NDArray[np.float32], probes: int) -> None:
        import torch  # here, and not above: most builds of an index route nothing, and loading it takes seconds

        self._dtype = getattr(torch, default_arithmetic("cpu"))
        self._centres = torch.from_numpy(np.ascontiguousarray(centres)).to(self._dtype).T
        self._lists = len(centres)
        self._probes = min(probes, self._lists)

    def scores(self, rows: Vectors) -> NDArray[np.float32]:
        """Return the products of rows (b, d) with the centres, float32 (b, lists)."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a read-only map is only read
            block = torch.from_numpy(np.ascontiguousarray(rows)).to(self._dtype)
        out: NDArray[np.float32] = (block @ self._centres).float().numpy()
        return out

    def near(self, rows: Vectors) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the lists of rows (b, d): all of them, row after row and ascending; the number for each row, (b,).

        A row has `probes` lists, or more if several centres are equally near.
        """
        found: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.int64]] = []
        for start in range(0, len(rows), ROUTE_ROWS):
            scores = self.scores(rows[start : start + ROUTE_ROWS])
            if self._probes < self._lists:
                at = self._lists - self._probes
                near = scores >= np.partition(scores, at, axis=1)[:, at : at + 1]
            else:
                near = np.ones(scores.shape, dtype=bool)
            counts.append(near.sum(axis=1))
            flat = np.flatnonzero(near)
            flat %= self._lists
            found.append(flat.astype(np.int32))
        if not found:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        return np.concatenate(found), np.concatenate(counts)

    def route(self, rows: Vectors) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return rows (b, d) by list: row numbers, ascending within a list; where each list begins, (lists + 1,)."""
        return by_list(*self.near(rows), self._lists)


def by_list(
    lists: NDArray[np.int32], counts: NDArray[np.int64], total: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows of each of `total` lists, from the lists of each row (`Router.near`); as `Router.route`."""
    from scipy.sparse import csr_matrix

    begins = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(counts), total)
    found: Any = csr_matrix((np.ones(len(lists), np.int8), lists, begins), shape=shape).tocsc()
    return found.indices.astype(np.int32, copy=False), found.indptr.astype(np.int64)


def rank_lists(rows: Vectors, centres: NDArray[np.float32], lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of lists to search, nearest first, until the given one of each row is among them.

    A list of -1 is never found: infinity.
    """
    router = Router(centres, 1)
    out = np.full(len(rows), np.inf)
    for start in range(0, len(rows), 1024):
        scores = router.scores(rows[start : start + 1024])
        at = lists[start : start + 1024]
        own = scores[np.arange(len(at)), np.maximum(at, 0)]
        out[start : start + 1024] = np.where(at >= 0, (scores >= own[:, None]).sum(axis=1), np.inf)
    return out
