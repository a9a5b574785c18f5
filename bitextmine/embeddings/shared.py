"""Embeddings in shared storage.

Vectors are mapped into memory, so they are used from a cache folder of this machine: made there and sent, or fetched.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from bitextmine.embeddings.manifest import Manifest, manifest_path
from bitextmine.embeddings.npy import vectors_digest, vectors_layout
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import locked_folder, staging, sync_file
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.storage import Remote
from bitextmine.files.streams import strip_compression

log = logging.getLogger(__name__)


def check_cached(corpus: str | os.PathLike[str], cache: str | os.PathLike[str] | None) -> None:
    """Raise UsageError for a corpus in shared storage without a cache folder for its vectors."""
    if cache is None:
        raise UsageError(
            f"{os.fspath(corpus)}: its vectors are mapped into memory, and so cannot lie beside it: name a folder of "
            "this machine for them with --cache"
        )


def beside(corpus: str | os.PathLike[str]) -> Remote:
    """Return the place beside a corpus in shared storage where its embedding may lie."""
    return Remote(f"{strip_compression(corpus)}.npy")


def send(npy: Path, there: Remote) -> None:
    """Copy a finished embedding to shared storage, the manifest last."""
    there.send(npy)
    with there.with_suffix(".json").writing() as file:
        file.write(manifest_path(npy).read_bytes())


def fetched(there: Remote, npy: Path, text_sha256: str, model_hash: str) -> bool:
    """Copy the embedding that lies `there` to its place here; return False if it is not of this text and model.

    Raises:
        BitextmineError: the storage cannot be reached.
        OSError: the disk is full.
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
            log.warning("%s: does not match its manifest; not used", there)
            return False
        sync_file(file)
        with locked_folder(npy.parent):
            manifest_path(npy).unlink(missing_ok=True)  # the old one must not describe the new vectors
            temporary.replace(npy)
            write_json(manifest_path(npy), manifest.to_json())
    return True


def manifest_there(there: Remote) -> Manifest | None:
    """Return the manifest of an embedding in shared storage; None if there is none."""
    where = there.with_suffix(".json")
    if not (where.is_file() and there.is_file()):
        return None
    try:
        return Manifest.from_json(read_json(where), where)
    except BitextmineError as e:
        log.warning("%s", e)
        return None
