"""Encoders made by other toolkits: a module with `load` and `weight_files`, and a line in KINDS each."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.encoder.config import KIND
from bitextmine.encoder.folder import CONFIG, hash_files
from bitextmine.files.jsonfile import read_json
from bitextmine.run import Run

if TYPE_CHECKING:
    from bitextmine.encoder.protocols import Network, PieceMaker


def is_sentence_transformers(folder: Path) -> bool:
    """Return True for a folder of sentence-transformers, unless an encoder of ours is its module."""
    return (folder / "modules.json").is_file() and not (
        (folder / CONFIG).is_file() and read_json(folder / CONFIG).get("kind") == KIND
    )


def is_laser(folder: Path) -> bool:
    """Return True for a folder that holds a SentencePiece model named *.spm."""
    return any(folder.glob("*.spm"))


# A test for the folders of each module; the first that succeeds decides.
KINDS = {"sentence_transformers": is_sentence_transformers, "laser": is_laser}


def foreign_kind(folder: Path) -> str | None:
    """Return the key in `KINDS` of another toolkit's folder, None for any other."""
    return next((kind for kind, is_kind in KINDS.items() if is_kind(folder)), None)


def load_foreign(kind: str, folder: Path, run: Run, precision: str) -> tuple[Network, PieceMaker, int]:
    """Return network, tokeniser and most pieces of a folder; BitextmineError if it cannot be run here."""
    module = importlib.import_module(f"bitextmine.encoder.foreign.{kind}")
    found: tuple[Network, PieceMaker, int] = module.load(folder, run, precision)
    return found


def foreign_hash(kind: str, folder: Path) -> str:
    """Return 16 hex digits of a SHA-256 over the files that decide the vectors."""
    module = importlib.import_module(f"bitextmine.encoder.foreign.{kind}")
    return hash_files(module.weight_files(folder))
