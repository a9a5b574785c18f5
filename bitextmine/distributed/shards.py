"""Shards of rows: their size and bounds, which depend on the corpora alone, so that any cluster finds the same ones."""

from __future__ import annotations

from collections.abc import Iterator


def shard_rows(rows: int, least: int = 1 << 16) -> int:
    """Return the size of a shard: a 64th of the rows, from `least` to 4 million, a multiple of 1,024."""
    wanted = min(max(-(-rows // 64), least), 1 << 22)
    return -(-wanted // 1024) * 1024


def spans(start: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of shards from `start` to `rows`, which end at multiples of `size`."""
    while start < rows:
        stop = min((start // size + 1) * size, rows)
        yield start, stop
        start = stop
