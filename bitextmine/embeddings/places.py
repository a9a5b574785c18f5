"""Where the vectors of a corpus are: beside it, one place for each model, or in a cache.

The first model to embed ``corpus.fr`` has ``corpus.fr.npy``. Another one leaves that alone and has a name with the
first digits of its hash in it, ``corpus.fr.4f2a91c0.npy``; so has its manifest, and so have its index and what else is
named after the vectors. In a cache folder, names have the digits of the text's digest, too: corpora of one name from
many folders can lie there side by side.
"""

from __future__ import annotations

import os
from pathlib import Path

from bitextmine.embeddings.manifest import manifest_path
from bitextmine.embeddings.npy import part_path, state_path
from bitextmine.embeddings.shared import check_cached
from bitextmine.errors import BitextmineError
from bitextmine.files.corpora import corpus_stem
from bitextmine.files.jsonfile import read_json
from bitextmine.files.urls import is_remote

__all__ = ["cached_path", "embedding_paths", "make_cache", "place_of"]

_DIGITS = 8
_TEXT_DIGITS = 12


def embedding_paths(corpus_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where the embedding of a corpus goes: ``corpus.fr.gz`` -> ``corpus.fr.npy``, ``corpus.fr.json``."""
    npy = Path(f"{corpus_stem(corpus_path)}.npy")
    return npy, manifest_path(npy)


def place_of(corpus_path: str | os.PathLike[str], model_hash: str) -> Path:
    """The .npy of a corpus and a model, beside the corpus, whether it is there or not. Raises UsageError for a corpus
    in shared storage."""
    if is_remote(corpus_path):
        check_cached(corpus_path, None)
    npy, _ = embedding_paths(corpus_path)
    owner = _owner(npy)
    if owner == model_hash:
        return npy
    own = npy.with_name(f"{npy.stem}.{model_hash[:_DIGITS]}.npy")
    if owner is None and not any(path.exists() for path in (own, part_path(own))):
        return npy
    return own


def cached_path(
    folder: str | os.PathLike[str], corpus_path: str | os.PathLike[str], text_sha256: str, model_hash: str
) -> Path:
    """The .npy of a text and a model in a cache folder: ``corpus.fr.9c56cc51b374.4f2a91c0.npy``."""
    name = corpus_stem(corpus_path).name
    return Path(folder) / f"{name}.{text_sha256[:_TEXT_DIGITS]}.{model_hash[:_DIGITS]}.npy"


def make_cache(folder: str | os.PathLike[str]) -> Path:
    """The folder, made where it is missing. Raises BitextmineError where it cannot be."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(
            f"{folder}: cannot make this folder (--cache): {e.strerror or e}; name another one"
        ) from None
    return Path(folder)


def _owner(npy: Path) -> str | None:
    """The hash of the model whose vectors are there, or are being written; None where there are none, or nobody
    knows."""
    try:
        if npy.exists() and manifest_path(npy).exists():
            return str(read_json(manifest_path(npy)).get("model_hash") or "") or None
        return str(read_json(state_path(npy))["identity"]["model_hash"])
    except (BitextmineError, KeyError, TypeError):
        return None
