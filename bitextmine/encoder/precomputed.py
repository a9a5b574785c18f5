"""The encoder "precomputed", which stands for vectors that another tool made: it has a name, and encodes nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from bitextmine.errors import BitextmineError

PRECOMPUTED = "precomputed"


class Precomputed:
    """Network and tokeniser in one; encoding raises BitextmineError."""

    device = "cpu"
    dim = 0
    chunk_lines = 8_192
    slow = False

    def encode(self, *_: Any) -> NoReturn:
        """Raise BitextmineError."""
        refuse()

    vectors = encode

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return nothing: the vectors are as they are."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return the kind, for `bitextmine info`."""
        return {"kind": "encoder (vectors that another tool made)"}


def refuse(corpus: str = "") -> NoReturn:
    """Raise BitextmineError: `corpus` would have to be encoded."""
    before = f"{corpus}: " if corpus else ""
    raise BitextmineError(
        f"{before}--model precomputed encodes nothing: it stands for vectors that another tool made of a whole corpus; "
        "take them in first with 'bitextmine embed CORPUS --vectors FILE', or name an encoder"
    )
