"""Places of embeddings: beside the corpus, one for each model, or in a cache folder.

The first model to embed ``corpus.fr`` gets ``corpus.fr.npy``. Another one gets a name with the first digits of its
hash, ``corpus.fr.4f2a91c0.npy``, as do its manifest, its index and everything else named after the vectors. In a cache
folder names also hold digits of the text's digest, so that corpora of one name from many folders can lie side by side.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from bitextmine.embeddings.store import journal_path, manifest_path, part_path
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.journal import read_head
from bitextmine.files.jsonfile import read_json
from bitextmine.files.storage import is_remote
from bitextmine.files.streams import strip_compression


def embedding_paths(corpus_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the first model's vectors and manifest: ``corpus.fr.gz`` -> ``corpus.fr.npy``, ``corpus.fr.json``."""
    npy = Path(f"{strip_compression(corpus_path)}.npy")
    return npy, manifest_path(npy)


def short_hash(model_hash: str) -> str:
    """Return the part of a model's hash that file names hold: "precomputed" as it is, 8 digits of others."""
    if "/" in model_hash:  # ORG/NAME@COMMIT of the hub
        model_hash = hashlib.sha256(model_hash.encode()).hexdigest()
    return model_hash if model_hash == "precomputed" else model_hash[:8]


def place_of(corpus_path: str | os.PathLike[str], model_hash: str) -> Path:
    """Return the .npy of a corpus and a model beside the corpus; UsageError if that is in shared storage."""
    if is_remote(corpus_path):
        raise UsageError(
            f"{os.fspath(corpus_path)}: its vectors are mapped into memory, and so cannot lie beside it: name a folder "
            "of this machine for them with --cache"
        )
    npy, _ = embedding_paths(corpus_path)
    owner = _owner(npy)
    own = npy.with_name(f"{npy.stem}.{short_hash(model_hash)}.npy")
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


def make_cache(folder: str | os.PathLike[str]) -> None:
    """Make a cache folder if necessary; BitextmineError if that fails."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(
            f"{folder}: cannot make this folder (--cache): {e.strerror or e}; name another one"
        ) from None
