"""The choice of the engine."""

from __future__ import annotations

from typing import Protocol

from bitextmine.errors import BitextmineError
from bitextmine.search import native
from bitextmine.search.engines.compiled import FusedSearch
from bitextmine.search.options import Engine, SearchOptions
from bitextmine.search.rows import VectorRows
from bitextmine.search.topk import TopK

_WIDEST = 1 << 15  # sums of int8 products of more would not fit 32 bits


class SearchEngine(Protocol):
    """Compares blocks of x's rows with all of y, for one x, one y and one k."""

    @property
    def block_rows(self) -> int:
        """The most rows of x in a block."""

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compare x's rows start..stop with y and merge the results into `fwd`, and into `bwd` if y's are wanted.

        A block that is given twice changes nothing the second time.
        """


def compiled_runs(dim: int) -> bool:
    """Tell if the compiled engine can search vectors of so many dimensions here."""
    return dim <= _WIDEST and native.instruction_set() is not None


def open_engine(
    x: VectorRows, y: VectorRows, k: int, options: SearchOptions, memory: int
) -> tuple[SearchEngine, int]:
    """Return the engine that the options name, or the fastest, and the least bytes that it needs.

    Args:
        x: rows of one side.
        y: rows of the other.
        k: neighbours.
        options: see `SearchOptions`.
        memory: bytes to work in.

    Raises:
        BitextmineError: there is no such engine here.
    """
    engine = options.engine
    if engine == Engine.AUTO:
        # Plain C is slower than torch's products.
        fast = compiled_runs(x.dim) and native.instruction_set() != "portable"
        engine = Engine.COMPILED if options.device == "cpu" and fast else Engine.TORCH
    if engine == Engine.COMPILED:
        if not compiled_runs(x.dim):
            raise BitextmineError(
                f"the compiled search was not built, or {x.dim} dimensions are too many for it; use engine torch"
            )
        fused = FusedSearch(x, y, k, options, memory)
        return fused, fused.least_memory()
    from bitextmine.search.engines.blocks import BlockSearch

    blocks = BlockSearch(x, y, device=options.device, arithmetic=options.arithmetic, memory=memory)
    return blocks, BlockSearch.least_memory(x)
