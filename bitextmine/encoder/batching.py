"""Batches of like length: little padding, bounded work per batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def length_batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Yield the rows (m,) int64 of batches of like length, longest first, so that memory peaks at the start.

    lengths: (n,) int; batch_tokens: a batch's budget in pieces, padding included: rows x longest row. A longer row is a
    batch of its own. Equal lengths keep their order, so that the same lengths always make the same batches.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = min(len(order), start + max(1, batch_tokens // longest))
        yield order[start:stop]
        start = stop


def whole_batches(offsets: np.ndarray, batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of batches of consecutive rows of at most batch_tokens pieces, without padding.

    offsets: (n + 1,) int64, where each row begins. A longer row is a batch of its own.
    """
    start, rows = 0, len(offsets) - 1
    while start < rows:
        fitting = int(np.searchsorted(offsets, offsets[start] + batch_tokens, side="right")) - 1
        stop = min(rows, max(start + 1, fitting))
        yield start, stop
        start = stop


def runs(lengths: np.ndarray) -> list[tuple[int, int]]:
    """Return (rows, length) of each run of equal lengths in sorted ones."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    starts = np.concatenate([np.zeros(min(1, len(lengths)), dtype=np.int64), edges])
    counts = np.diff(np.append(starts, len(lengths)))
    return list(zip(counts.tolist(), lengths[starts].tolist(), strict=True))
