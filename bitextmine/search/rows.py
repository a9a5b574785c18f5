"""Rows of vectors on disk or in memory: checked, with identical rows folded into one."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError

Vectors = NDArray[np.floating[Any]]
_SCAN_ROWS = 4096
_REPEATS = 512  # looked up at a time


@dataclass(frozen=True)
class Groups:
    """Groups of rows that are the same, byte for byte, for n rows and g groups.

    `first` (g,) is the lowest row of each group, ascending; `of` (n,) the group of each row; `members` are the rows
    ordered by group, then by number; `bounds` (g + 1,) where each group begins there.
    """

    first: NDArray[np.int64]
    of: NDArray[np.int64]
    members: NDArray[np.int64]
    bounds: NDArray[np.int64]


@dataclass(frozen=True)
class VectorRows:
    """Some rows of a matrix (n, d), read block by block as `dtype`; `index` picks them (None: all).

    `groups` are those of all rows, if `index` picks the first of each.
    """

    vectors: Vectors
    dtype: np.dtype[Any]
    index: NDArray[np.int64] | None = None
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(self.vectors) if self.index is None else len(self.index)

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.vectors.shape[1])

    def block(self, start: int, stop: int) -> Vectors:
        """Return rows start..stop as one C-contiguous array, without a copy if the matrix already is one."""
        rows = self.vectors[start:stop] if self.index is None else self.vectors[self.index[start:stop]]
        return np.ascontiguousarray(rows, dtype=self.dtype)

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Return some rows, in any order, as one C-contiguous array."""
        return np.ascontiguousarray(
            self.vectors[rows if self.index is None else self.index[rows]], dtype=self.dtype
        )


def check_pair(x: Vectors, y: Vectors, x_name: str, y_name: str) -> np.dtype[Any]:
    """Return the dtype to compute with; raise BitextmineError unless both are matrices of the same width."""
    for a, name in ((x, x_name), (y, y_name)):
        if a.ndim != 2:
            raise BitextmineError(
                f"{name}: expected one vector a row (2 dimensions), found {a.ndim} dimension(s)"
            )
        if a.dtype.kind != "f":
            raise BitextmineError(f"{name}: expected float16 or float32 vectors, found {a.dtype}")
    if x.shape[1] != y.shape[1]:
        raise BitextmineError(
            f"the vectors have different dimensions: {x_name} {x.shape[1]}, {y_name} {y.shape[1]}; "
            "embed both corpora with the same model"
        )
    if x.shape[1] == 0:
        raise BitextmineError(f"{x_name} and {y_name} have vectors of no dimension")
    half = x.dtype == np.float16 and y.dtype == np.float16
    return np.dtype(np.float16 if half else np.float32)


def check_finite(vectors: Vectors, name: str, first_row: int = 0) -> None:
    """Raise BitextmineError naming the first row (from 1, as lines are) with a NaN or an infinity."""
    with np.errstate(invalid="ignore"):
        bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise BitextmineError(
            f"{name}: the vector of line {first_row + int(np.argmax(bad)) + 1} holds a NaN or an infinity; "
            "make the vectors again"
        )


def check_length(longest: float, name: str) -> None:
    """Raise BitextmineError for vectors so long that the searches' float32 bounds would overflow."""
    if longest > 1e12:
        raise BitextmineError(f"{name}: a vector of length {longest:.1e}; embed() makes them of length 1")


def _row_hashes(vectors: Vectors, name: str) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row's bytes; check on the way that every number is finite."""
    n, size = len(vectors), vectors.shape[1] * vectors.dtype.itemsize
    width = -(-size // 8)
    random = np.random.default_rng(0x62697465)
    factors = random.integers(0, 1 << 63, width, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, _SCAN_ROWS):
        rows = vectors[start : start + _SCAN_ROWS]
        block = np.ascontiguousarray(rows, dtype=vectors.dtype.newbyteorder("="))
        if vectors.dtype == np.float16:
            # an exponent of all ones is what infinities and NaNs share
            suspicious = bool(((block.view(np.uint16) & np.uint16(0x7C00)) == np.uint16(0x7C00)).any())
        else:
            suspicious = not bool(np.isfinite(block).all())
        if suspicious:
            check_finite(block, name, start)
        if size == width * 8:
            words = block.view(np.uint64)
        else:
            raw = np.zeros((len(block), width * 8), dtype=np.uint8)
            raw[:, :size] = _bytes(block)
            words = raw.view(np.uint64)
        mixed = words ^ (words >> np.uint64(31))
        hashes[start : start + len(block)] = (mixed * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def scan(vectors: Vectors, name: str) -> tuple[Groups | None, str]:
    """Read every row once; return the groups of identical rows (None: there are none) and a digest of the rows.

    A corpus with a line many times over, or embeddings that collapsed, would make each of those rows a candidate of all
    others. BitextmineError: a NaN or an infinity.
    """
    n = len(vectors)
    digest = hashlib.blake2b(f"{vectors.dtype.str} {vectors.shape}".encode(), digest_size=16)
    if n == 0 or vectors.shape[1] == 0:
        return None, digest.hexdigest()
    hashes = _row_hashes(vectors, name)
    digest.update(hashes.tobytes())
    return _groups(vectors, hashes), digest.hexdigest()


def distinct_rows(vectors: Vectors, name: str, dtype: np.dtype[Any] | None = None) -> tuple[VectorRows, str]:
    """Return the first of each group of identical rows, read as `dtype`, and a digest of all rows, as `scan` does."""
    groups, digest = scan(vectors, name)
    return VectorRows(
        vectors, dtype or vectors.dtype, None if groups is None else groups.first, groups
    ), digest


def _groups(vectors: Vectors, hashes: NDArray[np.uint64]) -> Groups | None:
    n = len(hashes)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():  # as usual; takes a sixth of the memory of what follows
        return None
    del ordered
    _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
    first, of = first.astype(np.int64), of.reshape(-1).astype(np.int64)
    repeats = np.flatnonzero(first[of] != np.arange(n))
    for start in range(0, len(repeats), _REPEATS):
        at = repeats[start : start + _REPEATS]
        if not np.array_equal(_bytes(vectors[at]), _bytes(vectors[first[of[at]]])):
            return None  # rows that only share a hash: nothing is folded, which costs time alone
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, of = first[order], rank[of]
    members = np.argsort(of, kind="stable").astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(first)))]).astype(np.int64)
    return Groups(first, of, members, bounds)


def _bytes(rows: Vectors) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)


def unfold(
    sim: NDArray[np.float32], ids: NDArray[np.int64], queries: Groups | None, pool: Groups | None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Turn neighbours between groups (ids are group numbers) into neighbours between rows.

    k groups hold at least k rows that come before any row of another group, so nothing is missing.
    """
    k = ids.shape[1]
    if pool is not None:
        sizes = np.diff(pool.bounds)
        crowded = np.flatnonzero(((sizes[ids] > 1) & (ids >= 0)).any(axis=1))
        flat = np.where(ids >= 0, pool.first[ids], -1)
        sim = sim.copy()
        step = max(1, (1 << 20) // (k * k))
        for start in range(0, len(crowded), step):
            at = crowded[start : start + step]
            group = ids[at]
            offset = np.arange(k)
            have = (group[:, :, None] >= 0) & (offset < sizes[group][:, :, None])
            where = np.where(have, pool.bounds[group][:, :, None] + offset, 0)
            all_ids = np.where(have, pool.members[where], np.iinfo(np.int64).max).reshape(len(at), -1)
            all_sim = np.where(have, sim[at][:, :, None], -np.inf).reshape(len(at), -1)
            order = np.lexsort((all_ids, -all_sim), axis=1)[:, :k]
            best = np.take_along_axis(all_ids, order, axis=1)
            flat[at] = np.where(best == np.iinfo(np.int64).max, -1, best)
            sim[at] = np.take_along_axis(all_sim, order, axis=1)
        ids = flat
    if queries is not None:
        sim, ids = sim[queries.of], ids[queries.of]
    return sim, ids
