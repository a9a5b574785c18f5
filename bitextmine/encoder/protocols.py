"""The parts of an encoder: a tokeniser and a network, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bitextmine.encoder.pieces import Pieces


class PieceMaker(Protocol):
    """A tokeniser."""

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the pieces of each line, cut to ``max_pieces``, and the number of lines cut; blank lines have none."""


class Network:
    """A model.

    device: cpu, cuda or cuda:N; dim: dimensions of a vector; chunk_lines: lines that are best encoded together; slow:
    a line takes longer to encode than to look up; facts: kind, dimensions and size, for `bitextmine info`.
    """

    device = "cpu"
    dim = 0
    chunk_lines = 8_192
    slow = False
    facts: dict[str, Any]

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) float unit rows; zeros for a sentence of no pieces."""
        raise NotImplementedError

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return the settings that, besides the weights, decide the last bits of a vector."""
        return {}


@runtime_checkable
class PieceRows(Protocol):
    """A network whose sentence vectors are sums of vectors of pieces."""

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pieces' vectors, (pieces, d) int8, each on a scale of its own, and their norms (pieces,)."""
