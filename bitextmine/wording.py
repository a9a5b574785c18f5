"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun: "1 pair", "1,000 pairs"."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
