"""Indexes on disk: corpus.fr.faiss beside corpus.fr.npy, with a manifest."""

import contextlib
import hashlib
import logging
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bitextmine.console import Progress, counted, silent
from bitextmine.embeddings.store import Manifest, open_embedding
from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import staging, sync_file, sync_folder
from bitextmine.files.json_toml import read_json, write_json
from bitextmine.files.output import Destination, Made, check_ours, foreign
from bitextmine.files.storage import local_path
from bitextmine.run import Run
from bitextmine.search.faiss_index import Index, build_index, faiss, reason
from bitextmine.search.indexed import Indexed, Recall, draw, tune
from bitextmine.search.options import INDEX_KINDS, IndexOptions
from bitextmine.version import __version__

log = logging.getLogger(__name__)

_CHEAP = 1 << 28  # bytes of an index whose checksum is compared at each use


def index_paths(npy_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the paths of an index: ``corpus.fr.npy`` -> ``corpus.fr.faiss``, ``corpus.fr.faiss.json``."""
    path = local_path(npy_path, "vectors are mapped into memory, which only a file of this machine can be")
    file = path.with_suffix(".faiss") if path.suffix == ".npy" else Path(f"{path}.faiss")
    return file, Path(f"{file}.json")


def check_index_output(npy_path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise BitextmineError if the index of an embedding cannot go to its place; to be asked before the work.

    Without `force`, files of other programs there are an error, too.
    """
    file, manifest = index_paths(npy_path)
    if not file.exists():
        Destination.of(manifest).check("index the corpus with --cache, in another folder")
    if force:
        return
    instead = "index a copy of the corpus elsewhere"
    check_ours(manifest, Made.INDEX, instead)
    if file.exists() and not manifest.exists():
        raise foreign(file, f"has no {manifest.name} beside it that says what it is", instead)
    check_ours(file, Made.FAISS, instead)


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.sha256(hashlib.file_digest(opened, "sha256").digest()).hexdigest()


def load_index(path: str | os.PathLike[str]) -> Index:
    """Return the index in a file, memory-mapped if FAISS can; BitextmineError if it is missing or damaged."""
    file = Path(path)
    _check_name(file)
    facts = read_facts(file)
    try:
        built: Any = faiss.read_index(str(file), faiss.IO_FLAG_MMAP)
    except (RuntimeError, MemoryError) as error:
        raise BitextmineError(f"{file}: not a whole FAISS index ({reason(error)}); run index again") from None
    for key, value in (("dim", int(built.d)), ("distinct_rows", int(built.ntotal))):
        if (stated := facts.get(key)) != value:
            raise BitextmineError(
                f"{file}: {key} is {value}, but {file.name}.json says {stated}; run index again"
            )
    index = Index(built, facts, mapped=file)
    index.check_mapped()
    index.factor = facts.get("rescored_per_neighbour", index.factor)
    for value in facts.get("effort", {}).values():
        index.set_effort(value)
    return index


_Effort = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]


@dataclass
class _Facts:
    """The entries of a manifest that are used, with their types."""

    rows: Annotated[int, msgspec.Meta(ge=0)]
    factory: str
    recall: Recall
    rescored_per_neighbour: _Effort = 1
    effort: dict[str, _Effort] = field(default_factory=dict)


def read_facts(file: Path) -> dict[str, Any]:
    """Return the manifest of an index; BitextmineError if it is wrong, or the index missing or not as long."""
    manifest = Path(f"{file}.json")
    if not file.exists():
        raise BitextmineError(f"{file}: no such index; run index first")
    if not manifest.exists():
        raise BitextmineError(f"{file}: its manifest {manifest.name} is missing; run index again")
    facts = read_json(manifest)
    if facts.get("kind") != "index":
        raise BitextmineError(f"{manifest}: describes a thing of kind {facts.get('kind')!r}, not an index")
    try:
        msgspec.convert(facts, _Facts)
    except msgspec.ValidationError as error:
        raise BitextmineError(f"{manifest}: {error}; run index again") from None
    if (length := file.stat().st_size) != facts.get("bytes"):
        raise BitextmineError(
            f"{file}: {length:,} bytes, but {manifest.name} says {facts.get('bytes')}; run index again"
        )
    return facts


def _check_name(file: Path) -> None:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise BitextmineError(
            f"{file}: its name is not UTF-8, and FAISS takes no such path; rename it, or search without an index"
        ) from None


def check_index(npy_path: str | os.PathLike[str], kind: str | None = None) -> str | None:
    """Return None if the embedding's index is there and of these vectors (and kind), else the reason in words."""
    file, manifest = index_paths(npy_path)
    if not file.exists() or not manifest.exists():
        return "not indexed yet"
    _, embedding = open_embedding(npy_path)
    try:
        facts = read_facts(file)
    except BitextmineError as error:
        return f"unusable: {error}"
    if facts.get("effort", {}).keys() - {"nprobe"}:
        return "tuned by an earlier version"
    if facts.get("embedding") != _identity(embedding):
        return "the vectors changed"
    if facts["bytes"] <= _CHEAP and facts.get("sha256") != _checksum(file):
        return "damaged: its checksum is wrong"
    if kind is not None and facts.get("type") != kind:
        return f"made as {facts.get('type')!r}, not {kind!r}"
    return None


def _identity(embedding: Manifest) -> dict[str, Any]:
    names = ("corpus", "lang", "text_sha256", "model", "model_hash", "vectors_blake2b")
    return {name: getattr(embedding, name) for name in names}


@dataclass(frozen=True)
class IndexReport:
    """The result of `index_corpus`: the file, the facts of its manifest, the seconds it took (0 if up to date)."""

    path: Path
    facts: dict[str, Any]
    seconds: float = 0.0
    built: bool = False

    def to_table(self) -> str:
        """Return a few lines for a person."""
        facts, recall = self.facts, self.facts["recall"]
        turned = "".join(f", {name} {value}" for name, value in facts.get("effort", {}).items())
        done = f"built in {self.seconds:.1f} s" if self.built else "up to date"
        size = facts["bytes"] / facts["distinct_rows"]
        k = min(recall["k"], facts["distinct_rows"])  # of the nearest, and there are no more
        more = f", recall@{k} {_percent(recall['at_k'])}" if k > 1 else ""
        lines = [
            f"{self.path}: {facts['factory']}{turned}, {counted(facts['distinct_rows'], 'distinct vector')} of "
            f"{counted(facts['dim'], 'number')}, {size:,.0f} bytes each; {done}",
            f"measured on {counted(recall['sample'], 'indexed row')} without self-matches: "
            f"recall@1 {_percent(recall['at_1'])}{more}",
        ]
        return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{round(100 * share, 2):g}%"


def index_corpus(
    npy_path: str | os.PathLike[str],
    options: IndexOptions | None = None,
    run: Run | None = None,
    progress: Progress = silent,
) -> IndexReport:
    """Build the index of an embedding beside it, unless one of these vectors and kind is there.

    Its recall is measured against exact search on a seeded sample of its own rows, each left out of its own answer;
    nprobe is raised until recall@1 reaches 99%. Every run makes the same index (HNSW apart)
    and the same manifest. `progress` is called with the number of rows added.
    """
    options, run = options or IndexOptions(), run or Run()
    vectors, embedding = open_embedding(npy_path)
    file, manifest = index_paths(npy_path)
    _check_name(file)
    if not options.force and check_index(npy_path, options.kind) is None:
        return IndexReport(file, read_json(manifest))
    check_index_output(npy_path, force=options.force)
    begin = time.perf_counter()
    index = build_index(vectors, options.kind, memory=run.memory, progress=progress)
    seconds = time.perf_counter() - begin
    with explained(f"{file}: cannot write"), staging(file) as (staged, out):
        # Before its effort is set, which the manifest says.
        faiss.write_index(index.faiss, faiss.PyCallbackIOWriter(out.write))  # type: ignore[attr-defined]
        sync_file(out)
        recall, (nprobe, _) = tune(Indexed(vectors, index), draw(vectors)), index.effort()
        facts = {
            "kind": "index",
            "version": __version__,
            **index.facts,
            "embedding": _identity(embedding),
            "effort": {"nprobe": nprobe} if nprobe else {},
            "rescored_per_neighbour": index.factor,
            "recall": asdict(recall),
            "faiss": faiss.__version__,
            "bytes": staged.stat().st_size,
            "sha256": _checksum(staged),
        }
        # At no time does the manifest lie beside another index, nor an index without one.
        file.unlink(missing_ok=True)
        sync_folder(file.parent)
        write_json(manifest, facts)
        staged.replace(file)
        sync_folder(file.parent)
    return IndexReport(file, facts, seconds, True)


def open_index(npy_path: str | os.PathLike[str], run: Run | None = None) -> Index:
    """Return the index of an embedding, built (of the type it had) if it is missing, damaged or of other vectors."""
    file, manifest = index_paths(npy_path)
    if (wrong := check_index(npy_path)) is not None:
        facts: dict[str, Any] = {}
        if manifest.exists():
            with contextlib.suppress(BitextmineError):
                facts = read_json(manifest)
        kind, factory = facts.get("type"), facts.get("factory")  # earlier versions had further names
        kind = kind if kind in INDEX_KINDS else factory if isinstance(factory, str) else "auto"
        if file.exists():
            log.warning("%s: %s; building it again (--type %s)", file, wrong, kind)
        index_corpus(npy_path, IndexOptions(kind=kind), run)
    return load_index(file)
