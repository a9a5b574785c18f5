"""Exact k nearest neighbours in both directions, out of one pass over the similarity matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.index.rescore import rescore

_SPARE = 16


@dataclass(frozen=True)
class Neighbours:
    """The k best rows of y for each row of x (fwd) and the k best rows of x for each row of y (bwd).

    Similarities are float32, ids int64; a missing neighbour (k larger than the other side) is -1 with -inf.
    Each row is ordered by similarity, highest first, equal similarities by id, lowest first.
    """

    fwd_sim: NDArray[np.float32]
    fwd_id: NDArray[np.int64]
    bwd_sim: NDArray[np.float32]
    bwd_id: NDArray[np.int64]


def _check(a: NDArray, name: str) -> None:
    if a.ndim != 2:
        raise BitextmineError(f"{name}: expected rows of vectors (2 dimensions), found {a.ndim} dimension(s)")
    for start in range(0, a.shape[0], 8192):
        bad = ~np.isfinite(a[start : start + 8192]).all(axis=1)
        if bad.any():
            raise BitextmineError(
                f"{name}: row {start + int(np.argmax(bad))} holds a NaN or an infinity; embed the corpus again"
            )


def _tile(a: NDArray, start: int, stop: int) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(a[start:stop], dtype=np.float32))


def _merge(
    best: tuple[torch.Tensor, torch.Tensor], sims: torch.Tensor, offset: int, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    top, ids = torch.topk(sims, min(k, sims.shape[1]), dim=1)
    all_sims = torch.cat([best[0], top], dim=1)
    all_ids = torch.cat([best[1], ids + offset], dim=1)
    new, where = torch.topk(all_sims, k, dim=1)
    return new, all_ids.gather(1, where)


def search_both(
    x: NDArray,
    y: NDArray,
    k: int,
    *,
    block_rows: int = 4096,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
) -> Neighbours:
    """The k nearest neighbours of every row of x in y and of every row of y in x, by inner product.

    x (n, d) and y (m, d) are float16 or float32, in memory or memory-mapped; rows are L2-normalised or zero.
    `progress`, when given, is called with the number of rows of x finished since the last call.
    """
    _check(x, "source embeddings")
    _check(y, "target embeddings")
    if x.shape[1] != y.shape[1]:
        raise BitextmineError(f"dimension mismatch: source vectors have {x.shape[1]}, target vectors {y.shape[1]}")
    if k < 1:
        raise BitextmineError(f"k must be at least 1, found {k}")
    n, m = x.shape[0], y.shape[0]
    keep = k + _SPARE
    fwd_id = np.full((n, keep), -1, dtype=np.int64)
    bwd_sim = torch.full((m, keep), -torch.inf)
    bwd_id = torch.full((m, keep), -1, dtype=torch.int64)
    for i in range(0, n, block_rows):
        a = _tile(x, i, i + block_rows)
        best = (torch.full((a.shape[0], keep), -torch.inf), torch.full((a.shape[0], keep), -1, dtype=torch.int64))
        for j in range(0, m, block_rows):
            b = _tile(y, j, j + block_rows)
            sims = a @ b.T
            best = _merge(best, sims, j, keep)
            rows = slice(j, j + b.shape[0])
            bwd_sim[rows], bwd_id[rows] = _merge((bwd_sim[rows], bwd_id[rows]), sims.T, i, keep)
        fwd_id[i : i + a.shape[0]] = best[1].numpy()
        if progress is not None:
            progress(a.shape[0])
    fs, fi = rescore(x, y, fwd_id, k)
    bs, bi = rescore(y, x, bwd_id.numpy(), k)
    return Neighbours(fs, fi, bs, bi)


def search_one(
    queries: NDArray,
    pool: NDArray,
    k: int,
    *,
    block_rows: int = 4096,
    device: str = "cpu",
    progress: Callable[[int], object] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k nearest rows of `pool` for every row of `queries`: (similarity (n, k), id (n, k)), as search_both."""
    found = search_both(queries, pool, k, block_rows=block_rows, device=device, progress=progress)
    return found.fwd_sim, found.fwd_id
