"""Where embeddings lie: beside the corpus, one for each model, in a cache folder, or in shared storage.

The first model to embed ``corpus.fr`` gets ``corpus.fr.npy``. Another one gets a name with the first digits of its
hash, ``corpus.fr.4f2a91c0.npy``, as do its manifest, its index and everything else named after the vectors. In a cache
folder names also hold digits of the text's digest, so that corpora of one name from many folders can lie side by side.

Vectors are mapped into memory, so those in shared storage are used from a cache folder of this machine: made there and
sent, or fetched.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from bitextmine.embeddings.npy import journal_path, part_path, vectors_digest, vectors_layout
from bitextmine.embeddings.store import Manifest, manifest_path
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import locked_folder, staging, sync_file
from bitextmine.files.journal import read_head
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.storage import Remote
from bitextmine.files.streams import strip_compression
from bitextmine.files.urls import is_remote

log = logging.getLogger(__name__)


def embedding_paths(corpus_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the first model's vectors and manifest: ``corpus.fr.gz`` -> ``corpus.fr.npy``, ``corpus.fr.json``."""
    npy = Path(f"{strip_compression(corpus_path)}.npy")
    return npy, manifest_path(npy)


def place_of(corpus_path: str | os.PathLike[str], model_hash: str) -> Path:
    """Return the .npy of a corpus and a model beside the corpus; UsageError if that is in shared storage."""
    if is_remote(corpus_path):
        check_cached(corpus_path, None)
    npy, _ = embedding_paths(corpus_path)
    owner = _owner(npy)
    own = npy.with_name(f"{npy.stem}.{model_hash[:8]}.npy")
    if owner == model_hash or (owner is None and not own.exists() and not part_path(own).exists()):
        return npy
    return own


def _owner(npy: Path) -> str | None:
    """Return the hash of the model whose vectors are there, or are being written; None if unknown."""
    try:
        if npy.exists() and manifest_path(npy).exists():
            return str(read_json(manifest_path(npy)).get("model_hash") or "") or None
    except BitextmineError:
        return None
    head = read_head(journal_path(npy))
    return None if head is None else head.identity.get("model_hash")


# --- a cache folder ---


def check_cached(corpus: str | os.PathLike[str], cache: str | os.PathLike[str] | None) -> None:
    """Raise UsageError for a corpus in shared storage without a cache folder for its vectors."""
    if cache is None:
        raise UsageError(
            f"{os.fspath(corpus)}: its vectors are mapped into memory, and so cannot lie beside it: name a folder of "
            "this machine for them with --cache"
        )


def cached_path(
    folder: str | os.PathLike[str], corpus_path: str | os.PathLike[str], text_sha256: str, model_hash: str
) -> Path:
    """Return the .npy of a text and a model in a cache folder: ``corpus.fr.9c56cc51b374.4f2a91c0.npy``."""
    return Path(folder) / f"{strip_compression(corpus_path).name}.{text_sha256[:12]}.{model_hash[:8]}.npy"


def make_cache(folder: str | os.PathLike[str]) -> None:
    """Make a cache folder if necessary; BitextmineError if that fails."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(
            f"{folder}: cannot make this folder (--cache): {e.strerror or e}; name another one"
        ) from None


# --- shared storage ---


def send(npy: Path, there: Remote) -> None:
    """Copy a finished embedding to shared storage, the manifest last."""
    there.send(npy)
    with there.with_suffix(".json").writing() as file:
        file.write(manifest_path(npy).read_bytes())


def fetched(corpus: Remote, npy: Path, text_sha256: str, model_hash: str) -> bool:
    """Copy the embedding beside a corpus in shared storage to its place here; False if it is of another text or model.

    Raises:
        BitextmineError: the storage cannot be reached.
        OSError: the disk is full.
    """
    there = Remote(f"{strip_compression(corpus)}.npy")
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
