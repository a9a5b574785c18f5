"""Embeddings in shared storage. Vectors are mapped into memory, so that they are used from a cache folder of this
machine: made there and sent, or fetched to it. A manifest says by its digests whether what lies there is the one that
is wanted."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from bitextmine.embeddings.manifest import Manifest, manifest_path
from bitextmine.embeddings.npy import vectors_digest, vectors_layout
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import locked_folder, staging, sync_file
from bitextmine.files.corpora import corpus_stem
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.storage import Remote

__all__ = ["beside", "check_cached", "fetched", "manifest_there"]

log = logging.getLogger(__name__)


def check_cached(corpus: str | os.PathLike[str], cache: str | os.PathLike[str] | None) -> None:
    """Raises UsageError for a corpus in shared storage without a folder for its vectors."""
    if cache is None:
        raise UsageError(
            f"{os.fspath(corpus)}: its vectors are mapped into memory, and so cannot lie beside it: name a folder of "
            "this machine for them with --cache"
        )


def beside(corpus: str | os.PathLike[str]) -> Remote:
    """Where the embedding of a corpus in shared storage may lie: ``corpus.fr.npy`` beside it."""
    return Remote(f"{corpus_stem(corpus)}.npy")


def fetched(there: Remote, npy: Path, text_sha256: str, model_hash: str) -> bool:
    """Puts a copy of the embedding that lies ``there`` in its place here, if it is of this text and model.

    What its manifest does not fit is passed over, with a line in the log. Raises BitextmineError for storage that
    cannot be asked, OSError for a disk that is full.
    """
    manifest = manifest_there(there)
    if manifest is None or (manifest.text_sha256, manifest.model_hash) != (text_sha256, model_hash):
        return False
    log.info("%s: fetching it", there)
    with staging(npy, "fetched") as (temporary, file):
        there.fetch(temporary)
        try:
            right = vectors_layout(temporary)[0] == (manifest.rows, manifest.dim)
        except BitextmineError:
            right = False
        if not right or vectors_digest(temporary) != manifest.vectors_blake2b:
            log.warning("%s: is not what its manifest was written for; not used", there)
            return False
        sync_file(file)
        with locked_folder(npy.parent):
            manifest_path(npy).unlink(missing_ok=True)  # the old one must not describe the new vectors
            temporary.replace(npy)
            write_json(manifest_path(npy), manifest.to_json())
    return True


def manifest_there(there: Remote) -> Manifest | None:
    """The manifest of an embedding that is there; None where there is none, or something else."""
    where = there.with_suffix(".json")
    if not (where.is_file() and there.is_file()):
        return None
    try:
        return Manifest.from_json(read_json(where), where)
    except BitextmineError as e:
        log.warning("%s", e)
        return None
