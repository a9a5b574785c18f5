"""Facts about a model, an embedding, an index, a mined file or a corpus."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bitextmine.embeddings.store import JOB, journal_path, open_embedding
from bitextmine.encoder.folder import PACKAGED, hub_name
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.names import SUFFIXES
from bitextmine.files.journal import last_record, read_head
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import Source
from bitextmine.files.storage import local_path, to_path
from bitextmine.shipped import SHIPPED

# Suffixes of files that are no corpus, with what they are; they need a manifest beside them.
_NO_CORPUS = {
    **{suffix: "pairs" for suffix, form in SUFFIXES.items() if not form.lines},
    **dict.fromkeys((".html", ".htm"), "a web page"),
    ".toml": "a recipe or another TOML file",
    ".json": "JSON",
    ".faiss": "an index",
}
# Suffixes of files, and so no model's name on the hub.
_OURS = (".npy", ".part", ".json", ".faiss", ".tsv", ".parquet", ".gz", ".xz", ".zst")


def describe(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return facts about a file or a folder, in order: its kind, then the content of its manifest.

    The path is an encoder's name or folder; an embedding (.npy, finished or not); an index (.faiss); a mined file with
    its .json beside it, or that .json; any other text, and "-", is read as a corpus.

    Raises:
        BitextmineError: the file is missing, damaged, of another kind, or contradicts its manifest.
    """
    source = Source.of(path)
    file = source.path
    if source.is_standard:
        return _corpus(source)
    if isinstance(file, Path) and _names_model(file, source.text):
        from bitextmine.encoder import load_encoder

        return _manifest(load_encoder(source.text, "cpu").describe())
    manifest = file if file.suffix == ".json" else to_path(f"{file}.json")
    content = read_json(manifest) if file.exists() and manifest.exists() else {}
    kind = content.get("kind", "")
    if file.suffix in (".npy", ".part") or (manifest == file and kind == "embedding"):
        npy = local_path(source, "vectors are mapped into memory, which only a file of this machine can be")
        return _embedding(npy.with_suffix({".json": ".npy", ".part": ""}.get(npy.suffix, npy.suffix)))
    if kind == "index" and isinstance(manifest, Path):
        from bitextmine.embeddings.index_file import read_facts

        content = read_facts(manifest.with_suffix(""))
    if kind not in ("", "embedding"):  # corpus.fr.json is of the embedding, not of the corpus
        return _manifest(content)
    suffix = file.suffix if file.suffix in _NO_CORPUS else source.suffix
    if file.exists() and (what := _NO_CORPUS.get(suffix)):
        raise BitextmineError(
            f"{file}: {what}, without a manifest ({Path(manifest).name}) that says more; info describes an encoder, an "
            "embedding (.npy), an index (.faiss), pairs with the manifest of 'mine', and a corpus: text, one sentence "
            "per line"
        )
    return _corpus(source)


def _names_model(file: Path, text: str) -> bool:
    named = text in PACKAGED or (file.suffix not in _OURS and hub_name(text) is not None)
    if not (named or file.suffix or file.exists()):
        raise BitextmineError(
            f"{file}: no such file or folder, and not one of the built-in encoders ({', '.join(SHIPPED)})"
        )
    return file.is_dir() or named


def _manifest(content: Mapping[str, Any]) -> dict[str, str]:
    facts = {key: content[key] for key in content if key != "kind"}
    return {"what": str(content["kind"]), **dict(_facts(facts))}


def _corpus(source: Source) -> dict[str, str]:
    text = Corpus(source)
    blank = sum(not line.strip() for line in text)
    facts = {"what": "corpus", "lines": f"{len(text):,}", "blank lines": f"{blank:,}"}
    if not source.is_standard:
        facts["language"] = source.lang or "not told by the name; embed takes --lang"
    return {**facts, "text sha256": text.sha256}


def _embedding(npy: Path) -> dict[str, str]:
    journal = journal_path(npy)
    head = None if npy.exists() else read_head(journal)
    if head is not None and head.job == JOB:
        done = (last_record(journal) or {}).get("rows", 0)
        about = {**head.identity, "rows": f"{done} of {head.identity.get('rows', 0)}"}
        return {"what": "unfinished embedding; run embed again to resume", **dict(_facts(about))}
    vectors, manifest = open_embedding(npy)
    facts = {**_manifest(manifest.to_json()), "what": "embedding: row i is line i of the text"}
    return {**facts, "bytes": f"{vectors.nbytes:,}"}


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
