"""Finished embeddings: where they are, opened, compared with what they should be of, checked, described.

Vectors and manifest appear complete or not at all (`bitextmine.embeddings.writer`). They hold for the text, model and
settings whose digests are in the manifest, whatever the time stamps say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.embeddings.manifest import Manifest, manifest_path, read_manifest
from bitextmine.embeddings.npy import DTYPE, open_vectors, part_path, staged_path, state_path, vectors_digest
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import plain, read_json
from bitextmine.files.ours import check_vectors_place
from bitextmine.files.streams import check_writable

__all__ = ["check_fresh", "check_place", "check_rows", "describe_embedding", "open_embedding"]


def open_embedding(
    npy_path: str | os.PathLike[str], *, rows: int | None = None, dim: int | None = None
) -> tuple[np.ndarray, Manifest]:
    """The vectors, float16 (rows, dim) as a read-only map, and the manifest of a finished embedding.

    ``rows`` and ``dim``, where given, are what the text and the model want. Raises BitextmineError for a
    missing, truncated or foreign ``.npy``, for a missing or damaged manifest, and for numbers that disagree.
    """
    vectors = open_vectors(npy_path)
    where = manifest_path(npy_path)
    manifest = read_manifest(where)
    if (manifest.rows, manifest.dim) != vectors.shape:
        raise BitextmineError(
            f"{npy_path}: {vectors.shape[0]:,} rows of {vectors.shape[1]} numbers, but {where.name} says "
            f"{manifest.rows:,} rows of {manifest.dim}; the two do not belong together, run embed again"
        )
    if manifest.dtype != DTYPE.name:
        raise BitextmineError(
            f"{where}: says {manifest.dtype}, but {npy_path} is {DTYPE.name}; run embed again"
        )
    if rows is not None:
        check_rows(npy_path, manifest, rows)
    if dim is not None and dim != manifest.dim:
        raise BitextmineError(
            f"{npy_path}: vectors of {manifest.dim} numbers, but {dim} are wanted; "
            f"it was made by another model ('{manifest.model}'), run embed again with the same model for both"
        )
    return vectors, manifest


def check_place(npy_path: str | os.PathLike[str], dim: int) -> None:
    """Raises BitextmineError where an embedding, with vectors of `dim` numbers, cannot go to its place: what is there
    is not ours, or nothing is there and the folder cannot be written to."""
    place = Path(npy_path)
    if not place.exists():
        check_writable(part_path(place))
    check_vectors_place(
        place,
        manifest_path(place),
        part_path(place),
        state_path(place),
        staged_path(place),
        dim,
        "name another place (embed --out)",
    )


def check_rows(npy_path: str | os.PathLike[str], manifest: Manifest, rows: int) -> None:
    """Raises BitextmineError where an embedding has not as many rows as its text has lines."""
    if rows != manifest.rows:
        raise BitextmineError(
            f"{npy_path}: {manifest.rows:,} rows, but the text has {rows:,} lines; "
            "the text changed, run embed again"
        )


def check_fresh(
    npy_path: str | os.PathLike[str],
    text_sha256: str,
    model_hash: str,
    settings: Mapping[str, Any] | None = None,
) -> str | None:
    """None when the embedding is of this text, model and settings, else the reason in words.

    ``settings=None`` takes any settings.
    """
    if not Path(npy_path).exists():
        return "not embedded yet"
    try:
        _, manifest = open_embedding(npy_path)
    except BitextmineError as e:
        return f"unusable: {e}"
    if manifest.text_sha256 != text_sha256:
        return "the text changed"
    if manifest.vectors_blake2b and vectors_digest(npy_path) != manifest.vectors_blake2b:
        return "its vectors are not the ones that its manifest was written for"
    if manifest.model_hash != model_hash:
        return f"made by another model ('{manifest.model}' {manifest.model_hash}, not {model_hash})"
    if settings is not None:
        wanted = plain(settings)
        for key in sorted(wanted.keys() | manifest.settings.keys()):
            old, new = manifest.settings.get(key), wanted.get(key)
            if old != new:
                return f"made with another setting ({key}: {json.dumps(old)}, not {json.dumps(new)})"
    return None


def describe_embedding(npy_path: str | os.PathLike[str]) -> dict[str, str]:
    """What a person wants to know of an embedding, finished or not: from the name of each fact to its value, in the
    order to show them.

    Raises BitextmineError, as `open_embedding` does, when it cannot be used.
    """
    path, unfinished = Path(npy_path), state_path(npy_path)
    if not path.exists() and unfinished.exists():
        state = read_json(unfinished)
        identity = state.get("identity")
        identity = identity if isinstance(identity, dict) else {}
        return {
            "what": "unfinished embedding; run embed again to go on",
            "rows": f"{state.get('done_rows', 0)} of {identity.get('rows', 0)}",
            **dict(_facts(identity)),
        }
    vectors, manifest = open_embedding(path)
    return {
        "what": "embedding: row i is line i of the text",
        "rows": f"{manifest.rows}",
        "dim": f"{manifest.dim}",
        "numbers": f"{manifest.dtype}, {vectors.nbytes:,} bytes",
        **dict(_facts(manifest.to_json())),
    }


def _facts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The other entries of a manifest or an identity, the known ones first."""
    names = {
        "lang": "language",
        "corpus": "text",
        "text_sha256": "text sha256",
        "model": "model",
        "model_hash": "model hash",
        "settings": "settings",
        "vectors_blake2b": "vectors blake2b",
        "version": "made by",
    }
    for key in [*names, *sorted(content.keys() - names.keys() - {"rows", "dim", "dtype", "kind"})]:
        value = content.get(key)
        if value in (None, "", {}):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in sorted(value.items()))
        yield names.get(key, key), f"bitextmine {value}" if key == "version" else str(value)
