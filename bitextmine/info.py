"""Facts about a model, an embedding, an index, a mined file or a corpus."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bitextmine.embeddings.store import (
    JOB,
    embedding_paths,
    journal_path,
    manifest_path,
    open_embedding,
    vectors_digest,
)
from bitextmine.encoder.hub import hub_name
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.names import SUFFIXES
from bitextmine.files.journal import last_record, read_head
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import Source
from bitextmine.files.storage import AnyPath, local_path, to_path

# Suffixes of files, and so no model's name on the hub.
_OURS = (".npy", ".part", ".json", ".faiss", ".tsv", ".parquet", ".gz", ".xz", ".zst")
# Suffixes of files that are no corpus, with what they are.
_NO_CORPUS = {
    **{suffix: "pairs" for suffix, form in SUFFIXES.items() if not form.lines},
    **dict.fromkeys((".html", ".htm"), "a web page"),
    ".toml": "a recipe or another TOML file",
}
_MAPPED = "vectors are mapped into memory, which only a file of this machine can be"
_DESCRIBED = (
    "info describes an encoder, an embedding (.npy), an index (.faiss), pairs with the manifest of 'mine' beside them "
    "(NAME.json), and a corpus: text, one sentence per line"
)


def describe(path: str | os.PathLike[str], *, verify: bool = False) -> dict[str, str]:
    """Return facts about a file or a folder, in order: its kind, then the content of its manifest.

    The path is an encoder's name or folder; an embedding (.npy, finished or not); an index (.faiss); a mined file with
    its .json beside it, or that .json; any other text, and "-", is read as a corpus. With `verify` an embedding or an
    index is compared with the checksum in its manifest, an encoder with its SHA256SUMS.

    Raises:
        BitextmineError: the file is missing, damaged, of another kind, or contradicts its manifest.
    """
    source = Source.of(path)
    facts = _describe(source)
    return {**facts, "verified": _verified(source, facts["what"])} if verify else facts


def _verified(source: Source, what: str) -> str:
    """Return the result of comparing a file with its checksum; BitextmineError if it is damaged."""
    if what == "index":
        from bitextmine.embeddings.index_file import verify_index

        index = local_path(source, "FAISS takes only files of this machine")
        return verify_index(index.with_suffix("") if index.suffix == ".json" else index)
    if what.startswith("embedding"):
        npy = _npy(local_path(source, _MAPPED))
        if vectors_digest(npy) == open_embedding(npy)[1].vectors_blake2b:
            return "checksum matches"
        raise BitextmineError(f"{npy}: damaged: its checksum is not that of its manifest; run embed --force")
    if _names_model(source):
        from bitextmine.encoder.folder import resolve, verify_folder

        return verify_folder(resolve(source.text))
    return "no checksum to compare with; encoders, embeddings and indexes have one"


def _names_model(source: Source) -> bool:
    file = source.path
    if source.is_standard or not isinstance(file, Path):
        return False
    unknown = file.suffix not in _OURS
    return file.is_dir() or not (file.suffix or file.exists()) or (unknown and bool(hub_name(source.text)))


def _npy(file: Path) -> Path:
    """Return the path of an embedding, given that, its manifest or its unfinished file."""
    return file.with_suffix({".json": ".npy", ".part": ""}.get(file.suffix, file.suffix))


def _describe(source: Source) -> dict[str, str]:
    if source.is_standard:
        return _corpus(source)
    file = source.path
    if _names_model(source):
        return _model(source.text)
    if file.suffix in (".npy", ".part") or (file.suffix == ".json" and _kind(file) == "embedding"):
        return _embedding(_npy(local_path(source, _MAPPED)))
    if file.suffix == ".json":
        if not _kind(file):
            raise BitextmineError(f"{file}: not a manifest: it states no kind; {_DESCRIBED}")
        return _manifest(read_json(file))
    beside = to_path(f"{file}.json")  # corpus.fr.json is of the embedding, not of the corpus
    if file.exists() and _kind(beside) not in ("", "embedding"):
        content = read_json(beside)
        if (
            isinstance(file, Path)
            and "bytes" in content
            and (size := file.stat().st_size) != content["bytes"]
        ):
            word = "truncated" if size < content["bytes"] else "damaged"
            raise BitextmineError(
                f"{file}: {word}: it has {size:,} bytes, but {beside.name} says {content['bytes']:,}; run index again"
            )
        return _manifest(content)
    if file.exists() and file.suffix == ".faiss":
        raise BitextmineError(
            f"{file}: an index without its manifest {Path(beside).name}; copy that too, or run index again"
        )
    if file.exists() and (kind := _NO_CORPUS.get(source.suffix)):
        lacking = f", without a manifest ({Path(beside).name})" if kind == "pairs" else ""
        raise BitextmineError(f"{file}: {kind}{lacking}; {_DESCRIBED}")
    return _corpus(source)


def _manifest(content: Mapping[str, Any]) -> dict[str, str]:
    return {
        "what": str(content["kind"]),
        **dict(_facts({key: content[key] for key in content if key != "kind"})),
    }


def _model(path: str) -> dict[str, str]:
    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.folder import PACKAGED
    from bitextmine.encoder.foreign import foreign_kind
    from bitextmine.shipped import SHIPPED

    folder = Path(path)
    is_model = (folder / "config.json").exists() or foreign_kind(folder) is not None
    if folder.is_dir() and not is_model:
        raise BitextmineError(
            f"{path}: a folder, and no model: there is no config.json in it; name a file in it"
        )
    if not folder.exists() and path not in PACKAGED and not hub_name(path):
        names = ", ".join(SHIPPED)
        raise BitextmineError(f"{path}: no such file or folder, nor an encoder of the package ({names})")
    return _manifest(load_encoder(path, "cpu").describe())


def _kind(file: AnyPath) -> str:
    return str(read_json(file).get("kind", "")) if file.exists() else ""


def _corpus(source: Source) -> dict[str, str]:
    text = Corpus(source)
    blank = sum(not line.strip() for line in text)
    facts = {"what": "corpus", "lines": f"{len(text):,}", "blank lines": f"{blank:,}"}
    if not source.is_standard:
        facts["language"] = source.lang or "not told by the name; embed takes --lang"
    facts["text sha256"] = text.sha256
    if isinstance(source.path, Path) and not source.is_standard:
        facts["embedding"] = _embedding_state(source, text.sha256)
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


def _embedding_state(source: Source, digest: str) -> str:
    npy = embedding_paths(source)[0]
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
