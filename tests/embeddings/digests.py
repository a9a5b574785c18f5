"""Whether the vectors of an embedding are those that its manifest was written for."""

from __future__ import annotations

from pathlib import Path

from bitextmine.embeddings.npy import vectors_digest
from bitextmine.embeddings.store import Manifest, open_embedding


def checked_manifest(npy: Path) -> Manifest:
    """The manifest beside it, whose digest must be that of the vectors."""
    _, manifest = open_embedding(npy)
    assert vectors_digest(npy) == manifest.vectors_blake2b
    return manifest
