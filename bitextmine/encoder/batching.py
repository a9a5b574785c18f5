"""Batches of like length: little padding, bounded work per batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["length_batches"]


def length_batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Parts rows into batches of like length, longest first (so that memory peaks at once, not at the end).

    lengths (n,) int; batch_tokens is a batch's budget in pieces, padding included: rows x longest row. A row
    longer than the budget is a batch of its own. Yields (m,) int64 row numbers; each row comes once. Equal
    lengths keep their order, so that the same lengths always make the same batches.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = min(len(order), start + max(1, batch_tokens // longest))
        yield order[start:stop]
        start = stop
