"""Encoders made by other toolkits: a module and a line in KINDS each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bitextmine.encoder.foreign.laser import Laser, is_laser
from bitextmine.encoder.foreign.sentence_transformers import Import, is_imported
from bitextmine.encoder.protocols import ForeignFolder

__all__ = ["KINDS", "read_foreign"]

# A test of a folder and its reader; the first test that succeeds decides.
KINDS: list[tuple[Callable[[Path], bool], Callable[[Path], ForeignFolder]]] = [
    (is_imported, Import),
    (is_laser, Laser),
]


def read_foreign(folder: Path) -> ForeignFolder | None:
    """Return the reader of another toolkit's folder, None for any other; raises BitextmineError if it cannot run."""
    return next((kind(folder) for is_kind, kind in KINDS if is_kind(folder)), None)
