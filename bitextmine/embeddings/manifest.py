"""Manifests: the small JSON file beside an embedding that identifies its text, model and settings."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import plain, read_json
from bitextmine.version import __version__


@dataclasses.dataclass
class Manifest:
    """The identity of an embedding file. It holds no time stamp: the same input and model give the same bytes."""

    rows: int = 0
    dim: int = 0
    lang: str = ""
    corpus: str = ""  # the file name of the text, without its folder; "-" for stdin
    text_sha256: str = ""  # bitextmine.files.lines.line_digest of the lines
    model: str = ""
    model_hash: str = ""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)  # whatever else changes the vectors
    vectors_blake2b: str = ""  # BLAKE2b-256 of the rows' bytes, without the .npy header
    dtype: str = "float16"
    kind: str = "embedding"
    version: str = __version__  # of the tool that wrote it
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)  # keys of other versions

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, with the keys of other versions beside the known ones."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "extra"}
        return plain({**self.extra, **fields})

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str | os.PathLike[str] = "manifest") -> Manifest:
        """Return the manifest in a dictionary; unknown keys go to ``extra``.

        Raises:
            BitextmineError: kind, rows or dim are missing, a value has the wrong type, or the dictionary describes
                something else than an embedding. The message names ``where``.
        """
        for key in ("kind", "rows", "dim"):
            if key not in content:
                raise BitextmineError(
                    f"{where}: no '{key}': not the manifest of an embedding; run embed again"
                )
        if content["kind"] != "embedding":
            raise BitextmineError(f"{where}: describes a thing of kind {content['kind']!r}, not an embedding")
        types = {f.name: str(f.type) for f in dataclasses.fields(cls) if f.name != "extra"}
        known: dict[str, Any] = {}
        for key in content.keys() & types.keys():
            value = content[key]
            wanted, words = {"int": (int, "a count"), "str": (str, "text")}.get(
                types[key], (dict, "an object")
            )
            right = isinstance(value, wanted) and not isinstance(value, bool)
            if not right or (isinstance(value, int) and value < 0):
                raise BitextmineError(
                    f"{where}: '{key}' is {json.dumps(value)}, not {words}; run embed again"
                )
            known[key] = value
        return cls(**known, extra={key: value for key, value in content.items() if key not in types})


def manifest_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the manifest beside an ``.npy``: ``corpus.fr.npy`` -> ``corpus.fr.json``."""
    path = Path(npy_path)
    return path.with_suffix(".json") if path.suffix == ".npy" else Path(f"{path}.json")


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read a ``.json`` manifest, or the one beside an ``.npy``; BitextmineError if there is none."""
    path = Path(path) if Path(path).suffix == ".json" else manifest_path(path)
    if not path.exists():
        raise BitextmineError(f"{path}: no such manifest; run embed again")
    return Manifest.from_json(read_json(path), path)
