"""Encoders made by other toolkits: a module with `load` and `weight_files`, and a line in KINDS each."""

from __future__ import annotations

from pathlib import Path

from bitextmine.encoder.config import KIND
from bitextmine.encoder.folder import CONFIG
from bitextmine.files.jsonfile import read_json


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
