"""Indexes on disk: corpus.fr.faiss beside corpus.fr.npy, with a manifest that says what it is of."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss

from bitextmine import __version__
from bitextmine.errors import BitextmineError
from bitextmine.index.faiss_index import Index, build_index
from bitextmine.index.recall import draw, tune
from bitextmine.manifest import Manifest, read_json, write_json
from bitextmine.store import open_embedding
from bitextmine.wording import counted


def index_paths(npy_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where an embedding's index goes: ``corpus.fr.npy`` -> ``corpus.fr.faiss``, ``corpus.fr.faiss.json``."""
    path = Path(npy_path)
    file = path.with_suffix(".faiss") if path.suffix == ".npy" else Path(f"{path}.faiss")
    return file, Path(f"{file}.json")


def save_index(index: Index, path: str | os.PathLike[str]) -> None:
    """Writes the index and then its manifest (`facts`); a reader sees both or an error, never half a file."""
    file = Path(path)
    manifest = Path(f"{file}.json")
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        try:
            faiss.write_index(index.faiss, str(staged))
        except RuntimeError as error:
            raise BitextmineError(
                f"{file}: cannot write the index, about {_bytes_of(index):,} bytes ({_cause(error)}); "
                "is the disk full?"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            manifest.unlink()  # an index without a manifest is told from one with another's
        staged.replace(file)
    except OSError as error:
        raise BitextmineError(f"{file}: cannot write: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            staged.unlink()
    index.facts = {**index.facts, "bytes": file.stat().st_size}
    write_json(manifest, {"kind": "index", "version": __version__, **index.facts})


def load_index(path: str | os.PathLike[str]) -> Index:
    """The index in a file; BitextmineError when it or its manifest is missing, truncated or something
    else."""
    file = Path(path)
    manifest = Path(f"{file}.json")
    if not file.exists():
        raise BitextmineError(f"{file}: no such index; run index first")
    if not manifest.exists():
        raise BitextmineError(f"{file}: its manifest {manifest.name} is missing; run index again")
    facts = read_json(manifest)
    if facts.get("kind") != "index":
        raise BitextmineError(f"{manifest}: describes a thing of kind {facts.get('kind')!r}, not an index")
    size = file.stat().st_size
    if facts.get("bytes") != size:
        raise BitextmineError(
            f"{file}: {size:,} bytes, but {manifest.name} says {facts.get('bytes')}; run index again"
        )
    try:
        found = faiss.read_index(str(file))
    except (RuntimeError, MemoryError) as error:
        raise BitextmineError(f"{file}: not a whole FAISS index ({_cause(error)}); run index again") from None
    for key, value in (("dim", int(found.d)), ("distinct_rows", int(found.ntotal))):
        if facts.get(key) != value:
            raise BitextmineError(
                f"{file}: {key} is {value}, but {manifest.name} says {facts.get(key)}; run index again"
            )
    return Index(found, {key: facts[key] for key in facts if key not in ("kind", "version")})


def check_index(npy_path: str | os.PathLike[str], kind: str | None = None) -> str | None:
    """None when the embedding's index is there and of these vectors (and kind), else the reason in words."""
    file, manifest = index_paths(npy_path)
    if not file.exists() or not manifest.exists():
        return "not indexed yet"
    _, embedding = open_embedding(npy_path)
    try:
        facts = read_json(manifest)
    except BitextmineError as error:
        return f"unusable: {error}"
    if facts.get("bytes") != file.stat().st_size:
        return "truncated"
    if facts.get("embedding") != _identity(embedding):
        return "the vectors changed"
    if kind is not None and facts.get("type") != kind:
        return f"made as {facts.get('type')!r}, not {kind!r}"
    return None


def _identity(embedding: Manifest) -> dict[str, Any]:
    return {
        "corpus": embedding.corpus,
        "lang": embedding.lang,
        "text_sha256": embedding.text_sha256,
        "model": embedding.model,
        "model_hash": embedding.model_hash,
        "vectors_blake2b": embedding.vectors_blake2b,
    }


@dataclass(frozen=True)
class IndexReport:
    """What `index` did: the file, what its manifest says, and how long it took (0 when it was up to date)."""

    path: Path
    facts: dict[str, Any]
    build_seconds: float
    measure_seconds: float
    built: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            **self.facts,
            "build_seconds": round(self.build_seconds, 3),
            "measure_seconds": round(self.measure_seconds, 3),
            "built": self.built,
        }

    def to_table(self) -> str:
        """A few lines for a person."""
        facts, recall = self.facts, self.facts["recall"]
        effort = facts.get("effort") or {}
        turned = "".join(f", {name} {value}" for name, value in effort.items())
        done = f"built in {self.build_seconds:.1f} s" if self.built else "up to date"
        k = min(recall["k"], facts["distinct_rows"])  # of the nearest, and there are no more
        more = f", {100 * recall['at_k']:.2f}% of the {k} best" if k > 1 else ""
        return (
            f"{self.path}: {facts['factory']}{turned}, {counted(facts['distinct_rows'], 'distinct vector')} of "
            f"{counted(facts['dim'], 'number')}, "
            f"{facts['bytes'] / facts['distinct_rows']:,.0f} bytes each; {done}\n"
            f"recall against exact search for {counted(recall['sample'], 'row')} ({recall['queries']}): "
            f"{100 * recall['at_1']:.2f}% of the best{more}"
        )


def index_corpus(
    npy_path: str | os.PathLike[str],
    kind: str = "auto",
    *,
    recall_sample: int = 1000,
    recall_target: float = 0.99,
    k: int = 4,
    seed: int = 1,
    force: bool = False,
    progress: Callable[[int], object] | None = None,
) -> IndexReport:
    """Builds the index of an embedding beside it, unless one of these vectors and kind is there.

    Its recall is measured against exact search on a seeded sample of its own rows, each left out of its own
    answer; nprobe (ivf) or efSearch (hnsw) is turned up until recall@1 reaches the target. The manifest holds
    no times: where FAISS builds the same (hnsw does not when several threads build it), so does a rerun.
    Raises BitextmineError as build_index() and open_embedding() do.
    """
    vectors, embedding = open_embedding(npy_path)
    file, manifest = index_paths(npy_path)
    if not force and check_index(npy_path, kind) is None:
        facts = read_json(manifest)
        return IndexReport(
            file, {n: facts[n] for n in facts if n not in ("kind", "version")}, 0.0, 0.0, False
        )
    begin = time.perf_counter()
    index = build_index(vectors, kind, seed=seed, progress=progress)
    middle = time.perf_counter()
    recall = tune(index, vectors, draw(vectors, k, size=recall_sample, seed=seed), recall_target)
    end = time.perf_counter()
    effort = index.effort()
    index.facts = {
        **index.facts,
        "effort": {} if effort is None else {effort[0]: effort[1]},
        "recall": recall.to_json(),
        "embedding": _identity(embedding),
        "faiss": faiss.__version__,
    }
    save_index(index, file)
    return IndexReport(file, index.facts, middle - begin, end - middle, True)


def open_index(npy_path: str | os.PathLike[str]) -> Index:
    """The index of an embedding, built (auto) when it is missing or of other vectors."""
    if check_index(npy_path) is not None:
        index_corpus(npy_path)
    return load_index(index_paths(npy_path)[0])


def _bytes_of(index: Index) -> int:
    return int(index.rows) * (index.dim * 4 + 8)


def _cause(error: BaseException) -> str:
    text = str(error)
    return text.rsplit(": ", 1)[-1].strip() or type(error).__name__
