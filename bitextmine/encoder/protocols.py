"""The parts of an encoder: a tokeniser and a network, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.run import Run


class PieceMaker(Protocol):
    """A tokeniser."""

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the pieces of each line, cut to ``max_pieces``, and the number of lines cut; blank lines have none."""


class Network(Protocol):
    """A model: `PieceSums`, `DeviceSums`, `Transformer`, `Backbone`, `Lstm`."""

    device: str
    dim: int
    chunk_lines: int  # lines that are best encoded together
    slow: bool  # a line takes longer to encode than to look up

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) float unit rows; zeros for a sentence of no pieces."""

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return the settings that, besides the weights, decide the last bits of a vector."""

    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""


@runtime_checkable
class PieceRows(Protocol):
    """A network whose sentence vectors are sums of vectors of pieces."""

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pieces' vectors, (pieces, d) int8, each on a scale of its own, and their norms (pieces,)."""


class ForeignFolder(Protocol):
    """A model folder of another toolkit; making one raises BitextmineError if it cannot be run here."""

    heavy: bool  # a GPU would help

    @property
    def max_pieces(self) -> int:
        """The longest sentence that is encoded."""

    @property
    def tokenizer(self) -> PieceMaker:
        """The tokeniser."""

    def hash(self) -> str:
        """Return 16 hex digits of a SHA-256 over the files that decide the vectors."""

    def network(self, run: Run, precision: str) -> Network:
        """Return the model on ``run.device``, the name of a device that is there."""
