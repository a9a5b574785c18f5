"""The encoder "precomputed", which stands for vectors that another tool made: it has a name, and encodes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError

__all__ = ["PRECOMPUTED", "Precomputed"]

PRECOMPUTED = "precomputed"


class Precomputed:
    """Network and tokeniser in one. Everything that would need the tool itself raises BitextmineError."""

    device = "cpu"
    dim = 0
    chunk_lines = 8_192
    slow = False

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        refuse()

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        refuse()

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"kind": "encoder (vectors that another tool made)"}


def refuse(corpus: str = "") -> NoReturn:
    """Raises BitextmineError: `corpus` would have to be encoded."""
    before = f"{corpus}: " if corpus else ""
    raise BitextmineError(
        f"{before}--model precomputed encodes nothing: it stands for vectors that another tool made of a whole corpus; "
        "take them in first with 'bitextmine embed CORPUS --vectors FILE', or name an encoder"
    )
