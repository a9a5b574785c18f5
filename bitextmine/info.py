"""Facts about a model, an embedding, an index, a mined file or a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bitextmine.embeddings.npy import JOB, journal_path, vectors_digest
from bitextmine.embeddings.store import manifest_path, open_embedding
from bitextmine.encoder.hub import hub_name
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus, corpus_language
from bitextmine.files.journal import last_record, read_head
from bitextmine.files.jsonfile import read_json
from bitextmine.files.storage import Place, local, place
from bitextmine.files.streams import strip_compression

# Suffixes of files, and so no model's name on the hub.
_OURS = (".npy", ".part", ".json", ".faiss", ".tsv", ".parquet", ".gz", ".xz", ".zst")


def describe(path: str | os.PathLike[str], errors: str = "strict", *, verify: bool = False) -> dict[str, str]:
    """Return facts about a file or a folder, in order: its kind, then the content of its manifest.

    The path is an encoder's name or folder; an embedding (.npy, finished or not); an index (.faiss); a mined file with
    its .json beside it, or that .json; anything else, and "-", is read as a corpus. With `verify` an embedding or an
    index is compared with the checksum in its manifest; an encoder always is, with its SHA256SUMS.

    Raises:
        BitextmineError: the file is missing, damaged, or contradicts its manifest.
    """
    file = place(path)
    facts = _describe(path, file, errors)
    return {**facts, "verified": _verified(Path(file))} if verify else facts


def _verified(file: Path) -> str:
    """Return the result of comparing a file with its checksum; BitextmineError if it is damaged."""
    file = file.with_suffix("") if file.name.endswith((".npy.json", ".faiss.json")) else file
    if file.suffix == ".faiss":
        from bitextmine.indexing.file import verify_index

        return verify_index(file)
    if file.suffix == ".npy":
        if vectors_digest(file) == open_embedding(file)[1].vectors_blake2b:
            return "checksum matches"
        raise BitextmineError(f"{file}: damaged: its checksum is not that of its manifest; run embed --force")
    from bitextmine.encoder.folder import SUMS, resolve

    known = (file.is_dir() or not file.exists()) and (resolve(str(file)) / SUMS).is_file()
    return "checksums match" if known else "no checksum to compare with"


def _describe(path: str | os.PathLike[str], file: Place, errors: str) -> dict[str, str]:
    if os.fspath(path) == "-":
        return _corpus(file, errors)
    if isinstance(file, Path) and (
        file.is_dir() or not (file.suffix or file.exists()) or (file.suffix not in _OURS and hub_name(path))
    ):
        return _model(path)
    if file.suffix in (".npy", ".part") or (file.suffix == ".json" and _kind(file) == "embedding"):
        npy = local(file, "vectors are mapped into memory, which only a file of this machine can be")
        return _embedding(npy.with_suffix({".json": ".npy", ".part": ""}.get(npy.suffix, npy.suffix)))
    if file.suffix == ".json":
        return _manifest(read_json(file))
    beside = place(f"{file}.json")  # corpus.fr.json is of the embedding, not of the corpus
    if file.exists() and (file.suffix == ".faiss" or _kind(beside) not in ("", "embedding")):
        return _manifest(read_json(beside))
    return _corpus(file, errors)


def _manifest(content: Mapping[str, Any]) -> dict[str, str]:
    kind = content.get("kind", "not stated")
    return {"what": str(kind), **dict(_facts({key: content[key] for key in content if key != "kind"}))}


def _model(path: str | os.PathLike[str]) -> dict[str, str]:
    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.folder import PACKAGED
    from bitextmine.encoder.foreign import foreign_kind

    folder = Path(path)
    known = (folder / "config.json").exists() or foreign_kind(folder) is not None
    if folder.is_dir() and not known:
        raise BitextmineError(
            f"{path}: a folder, and no model: there is no config.json in it; name a file in it"
        )
    if not folder.exists() and os.fspath(path) not in PACKAGED and not hub_name(path):
        names = ", ".join(sorted(PACKAGED))
        raise BitextmineError(f"{path}: no such file or folder, nor an encoder of the package ({names})")
    return _manifest(load_encoder(path, "cpu").describe())


def _kind(file: Place) -> str:
    return str(read_json(file).get("kind", "")) if file.exists() else ""


def _corpus(file: Place, errors: str) -> dict[str, str]:
    text = Corpus(file, errors=errors)
    blank = sum(not line.strip() for line in text)
    facts = {"what": "corpus", "lines": f"{len(text):,}", "blank lines": f"{blank:,}"}
    if file != Path("-"):
        try:
            facts["language"] = corpus_language(file)
        except BitextmineError:
            facts["language"] = "not told by the name; embed takes --lang"
    facts["text sha256"] = text.sha256
    if isinstance(file, Path) and file != Path("-"):
        facts["embedding"] = _embedding_state(file, text.sha256)
    return facts


def _embedding(npy: Path) -> dict[str, str]:
    journal = journal_path(npy)
    head = None if npy.exists() else read_head(journal)
    if head is not None and head.job == JOB:
        done = (last_record(journal) or {}).get("rows", 0)
        about = {**head.identity, "rows": f"{done} of {head.identity.get('rows', 0)}"}
        return {"what": "unfinished embedding; run embed again to resume", **dict(_facts(about))}
    vectors, manifest = open_embedding(npy)
    facts = {"what": "embedding: row i is line i of the text", "bytes": f"{vectors.nbytes:,}"}
    return {
        **facts,
        **dict(_facts({key: value for key, value in manifest.to_json().items() if key != "kind"})),
    }


def _embedding_state(file: Path, digest: str) -> str:
    npy = Path(f"{strip_compression(file)}.npy")
    if not npy.exists():
        return "unfinished" if Path(f"{npy}.part").exists() else "none"
    if not manifest_path(npy).exists():
        return f"{npy.name}, without its manifest"
    manifest = read_json(manifest_path(npy))
    made = f"{npy.name}, by model {manifest.get('model')} {manifest.get('model_hash')}"
    return made if manifest.get("text_sha256") == digest else f"{made}, of another text than this"


def _facts(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield entries as text, nested ones by their path; lists of anything but words and numbers are left out."""
    for key, value in content.items():
        name = prefix + key.replace("_", " ")
        if isinstance(value, Mapping):
            yield from _facts(value, f"{name} ")
        elif isinstance(value, list):
            if value and all(isinstance(item, (str, int, float)) for item in value):
                yield name, ", ".join(map(str, value))
        elif value not in (None, ""):
            whole = isinstance(value, int) and not isinstance(value, bool)
            yield name, f"{value:,}" if whole else str(value)
