"""Manifests: the small JSON file beside an embedding that identifies its text, model and settings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import plain, read_json
from bitextmine.version import __version__

Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclasses.dataclass
class Manifest:
    """The identity of an embedding file. It holds no time stamp: the same input and model give the same bytes."""

    rows: Count = 0
    dim: Count = 0
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
        fields = {field.name for field in dataclasses.fields(cls)} - {"extra"}
        try:
            if missing := [key for key in ("kind", "rows", "dim") if key not in content]:
                raise ValueError(f"no '{missing[0]}': not the manifest of an embedding")
            if content["kind"] != "embedding":
                raise ValueError(f"describes a thing of kind {content['kind']!r}, not an embedding")
            found = msgspec.convert({key: content[key] for key in fields & content.keys()}, cls)
        except ValueError as e:
            raise BitextmineError(f"{where}: {e}; run embed again") from None
        found.extra = {key: value for key, value in content.items() if key not in fields}
        return found


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
