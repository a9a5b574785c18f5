"""What an encoder is put together from: a tokeniser and a network, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bitextmine.encoder.pieces import Pieces

__all__ = ["ForeignFolder", "Network", "PieceMaker", "PieceRows"]


class PieceMaker(Protocol):
    """What an encoder asks of a tokeniser."""

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Pieces of each line, cut to ``max_pieces``, and how many lines were cut; a line of blanks has none."""


class Network(Protocol):
    """What an encoder asks of a model: `PieceSums`, `Transformer`, `Backbone`, `Lstm`."""

    device: str
    dim: int
    chunk_lines: int  # lines that are best encoded together
    slow: bool  # whether a line takes longer to encode than to look up

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) float unit rows; zeros for a sentence of no pieces."""

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """What else than the weights decides the last bits of a vector."""

    def describe(self) -> dict[str, Any]:
        """Kind, dimensions and size, for `bitextmine info`."""


@runtime_checkable
class PieceRows(Protocol):
    """A network whose sentence vectors are sums of vectors of pieces."""

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The vector of each piece, (pieces, d) int8, each on a scale of its own, and its norm (pieces,) float32."""


class ForeignFolder(Protocol):
    """A model folder of another toolkit, read as far as it says what it is. Making one raises BitextmineError for
    what cannot be run here."""

    max_pieces: int
    heavy: bool  # whether a GPU would help

    @property
    def tokenizer(self) -> PieceMaker:
        """Ready to use."""

    def hash(self) -> str:
        """16 hex digits of a SHA-256 over the files that decide what the vectors are."""

    def network(self, device: str, precision: str) -> Network:
        """The model, ready on ``device`` (cpu, cuda, cuda:N)."""
