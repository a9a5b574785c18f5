"""Where shards of rows begin and end. How many rows one has, `plan.shard_rows` says: the corpora alone decide that, so
that a run on another cluster finds the same shards."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["spans"]


def spans(start: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """The rows from `start` to `rows` in shards that end at multiples of `size`."""
    while start < rows:
        stop = min((start // size + 1) * size, rows)
        yield start, stop
        start = stop
