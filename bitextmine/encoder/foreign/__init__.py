"""Encoders made by other toolkits: a module for each kind, and a line in KINDS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bitextmine.encoder.foreign.laser import Laser, is_laser
from bitextmine.encoder.foreign.sentence_transformers import Import, is_imported
from bitextmine.encoder.protocols import ForeignFolder

__all__ = ["KINDS", "read_foreign"]

# Whether a folder is of that kind, and what reads it; the first that says yes.
KINDS: list[tuple[Callable[[Path], bool], Callable[[Path], ForeignFolder]]] = [
    (is_imported, Import),
    (is_laser, Laser),
]


def read_foreign(folder: Path) -> ForeignFolder | None:
    """A folder of another toolkit, None if it is of none. Raises BitextmineError for one that cannot be run here."""
    return next((kind(folder) for is_kind, kind in KINDS if is_kind(folder)), None)
