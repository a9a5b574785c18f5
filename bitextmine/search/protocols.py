"""What the parts of the search expect of one another."""

from __future__ import annotations

from typing import Protocol

from bitextmine.search.topk import TopK

__all__ = ["SearchEngine"]


class SearchEngine(Protocol):
    """Compares blocks of x's rows with all of y; made for one x, one y and one k."""

    @property
    def block_rows(self) -> int:
        """Most rows of x to give to block() at a time."""
        ...

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compares x's rows start..stop with every row of y and merges what is found into fwd, and into bwd if y's
        neighbours are wanted. A block that is given twice changes nothing the second time."""
        ...
