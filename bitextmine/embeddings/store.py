"""Finished embeddings and their manifests: open them, compare them with their text and model, describe them.

The vectors of an embedding are in NumPy's own format, ``.npy``
(https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a header padded to 64 bytes, then the rows in
little-endian float16. Vectors and manifest appear complete or not at all (`writer`). They belong to the text, model and
settings whose digests are in the manifest, whatever their time stamps.

The first model to embed ``corpus.fr`` gets ``corpus.fr.npy``. Another one gets a name with the first digits of its
hash, ``corpus.fr.4f2a91c0.npy``, as do its manifest, its index and everything else named after the vectors. In a cache
folder names also hold digits of the text's digest, so that corpora of one name from many folders can lie side by side.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
import os
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError, explained
from bitextmine.files.corpus import Corpus
from bitextmine.files.journal import read_head
from bitextmine.files.json_toml import plain, read_json
from bitextmine.files.output import Destination, Made, check_ours, foreign
from bitextmine.files.source import Location
from bitextmine.files.storage import Remote, local_path
from bitextmine.version import __version__

JOB = "embed"  # of the journal of an unfinished embedding
DTYPE = np.dtype("<f2")
BLOCK_BYTES = 1 << 22
_MOST = 1 << 48  # rows, or numbers in a row: NumPy makes no larger array, even an empty one
Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclasses.dataclass
class Manifest:
    """The identity of an embedding file. It holds no time stamp: the same input and model give the same bytes."""

    rows: Count = 0
    dim: Count = 0
    lang: str = ""
    corpus: str = ""  # the file name of the text, without its folder; "-" for stdin
    text_sha256: str = ""  # bitextmine.files.source.line_digest of the lines
    model: str = ""
    model_hash: str = ""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)  # whatever else changes the vectors
    vectors_blake2b: str = ""  # BLAKE2b-256 of the rows' bytes, without the .npy header
    dtype: str = "float16"
    kind: str = "embedding"
    version: str = __version__  # of the tool that wrote it

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return plain(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str | os.PathLike[str] = "manifest") -> Manifest:
        """Return the manifest in a dictionary, without keys of other versions.

        BitextmineError, which names ``where``, if it is not that of an embedding, or a value has the wrong type.
        """
        try:
            if missing := [key for key in ("kind", "rows", "dim") if key not in content]:
                raise ValueError(f"no '{missing[0]}': not the manifest of an embedding")
            if content["kind"] != "embedding":
                raise ValueError(f"describes a thing of kind {content['kind']!r}, not an embedding")
            return msgspec.convert(content, cls)
        except ValueError as e:
            raise BitextmineError(f"{where}: {e}; run embed again") from None


def manifest_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the manifest beside an ``.npy``: ``corpus.fr.npy`` -> ``corpus.fr.json``."""
    path = Path(npy_path)
    return path.with_suffix(".json") if path.suffix == ".npy" else Path(f"{path}.json")


def part_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the name of an ``.npy`` until it is complete."""
    return Path(f"{npy_path}.part")


def journal_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the journal that records the progress of an unfinished ``.npy``."""
    return Path(f"{npy_path}.part.journal")


def shards_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the folder for shards of an ``.npy`` that a cluster encodes."""
    return Path(f"{npy_path}.shards")


def embedding_paths(corpus: Location) -> tuple[Path, Path]:
    """Return the first model's vectors and manifest: ``corpus.fr.gz`` -> ``corpus.fr.npy``, ``corpus.fr.json``."""
    npy = Path(f"{corpus.stem}.npy")
    return npy, manifest_path(npy)


def short_hash(model_hash: str) -> str:
    """Return the part of a model's hash that file names hold: "precomputed" as it is, 8 digits of others."""
    if "/" in model_hash:  # ORG/NAME@COMMIT of the hub
        model_hash = hashlib.sha256(model_hash.encode()).hexdigest()
    return model_hash if model_hash == "precomputed" else model_hash[:8]


def vectors_path(corpus: Location, model_hash: str) -> Path:
    """Return the .npy of a corpus and a model beside the corpus; UsageError if that is in shared storage."""
    if isinstance(corpus.path, Remote):
        raise UsageError(
            f"{corpus}: vectors are mapped into memory, so they need a local folder: pass --cache FOLDER"
        )
    npy, _ = embedding_paths(corpus)
    owner = _owner(npy)
    own = npy.with_name(f"{npy.stem}.{short_hash(model_hash)}.npy")
    if owner == model_hash or (owner is None and not own.exists() and not part_path(own).exists()):
        return npy
    return own


def embedding_path(text: Corpus, model_hash: str, cache: str | os.PathLike[str] | None = None) -> Path:
    """Return the .npy of a corpus and a model, beside the corpus or in a cache folder, which is made if necessary."""
    assert text.source is not None
    if cache is None:
        return vectors_path(text.source, model_hash)
    make_cache(cache)
    return Path(cache) / f"{text.source.stem.name}.{text.sha256[:12]}.{short_hash(model_hash)}.npy"


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
    with explained(f"{folder}: cannot make this folder (--cache)", "; name another one"):
        Path(folder).mkdir(parents=True, exist_ok=True)


def halves(rows: NDArray[Any]) -> tuple[NDArray[np.float16], int | None]:
    """Return rows in float16, C-contiguous, and the number of the first with NaN or a number that it cannot hold."""
    with np.errstate(over="ignore"):  # found below
        half = np.ascontiguousarray(rows, dtype=DTYPE)
    finite = np.isfinite(half).all(axis=1)
    return half, None if finite.all() else int(np.argmin(finite))


def npy_header(rows: int, dim: int) -> bytes:
    """Return the header (format 1.0) of a float16 array of shape (rows, dim)."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": DTYPE.str, "fortran_order": False, "shape": (rows, dim)}
    )
    return buffer.getvalue()


def vectors_layout(npy_path: str | os.PathLike[str]) -> tuple[tuple[int, int], int]:
    """Return the shape (rows, dim) of an ``.npy`` and the offset of its first row in bytes.

    Raises:
        BitextmineError: the file is missing, is not a two-dimensional C-ordered float16 array, or is shorter or longer
            than its header says.
    """
    local_path(npy_path, "vectors are mapped into memory, which only a file of this machine can be")
    try:
        with open(npy_path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read[version[0] - 1](file)
            offset = file.tell()
    except FileNotFoundError:
        left = part_path(npy_path).exists()
        hint = (
            "an interrupted run left a part of it; run embed again to resume" if left else "run embed first"
        )
        raise BitextmineError(f"{npy_path}: no such embedding; {hint}") from None
    except OSError as e:
        raise BitextmineError(f"{npy_path}: cannot read: {e.strerror or e}") from None
    except Exception as e:  # NumPy parses the header as Python source: damage raises almost anything
        raise BitextmineError(
            f"{npy_path}: not a whole .npy file: {size:,} bytes, {e}; run embed again"
        ) from None
    if len(shape) != 2 or min(shape) < 0 or max(shape) >= _MOST or dtype != DTYPE or fortran:
        order = " in Fortran order" if fortran else ""
        raise BitextmineError(
            f"{npy_path}: holds {dtype} numbers of shape {shape}{order}, not float16 of shape (rows, dim); run "
            "embed again, or import vectors of another tool with 'embed --vectors'"
        )
    rows, dim = int(shape[0]), int(shape[1])
    wanted = offset + rows * dim * DTYPE.itemsize
    if size != wanted:
        word = "truncated" if size < wanted else "damaged"
        raise BitextmineError(
            f"{npy_path}: {word}: it has {size:,} bytes, but {rows:,} rows of {dim} numbers need {wanted:,}; "
            "run embed again"
        )
    return (rows, dim), offset


def vectors_digest(npy_path: str | os.PathLike[str]) -> str:
    """Return the BLAKE2b-256 (64 hexadecimal digits) of the rows' bytes, without the header (see `vectors_layout`)."""
    _, offset = vectors_layout(npy_path)
    digest = hashlib.blake2b(digest_size=32)
    block = memoryview(bytearray(BLOCK_BYTES))
    with open(npy_path, "rb", buffering=0) as file:
        while count := os.preadv(file.fileno(), [block], offset):
            digest.update(block[:count])
            offset += count
    return digest.hexdigest()


class VectorFile:
    """The rows of an embedding in use, float16 (rows, dim), read with ``pread``: index it like a matrix.

    A change of the file while it is open is an error and never a wrong result: call `check` at the end.
    """

    nbytes = 0  # in memory
    _lines: NDArray[np.int64] | None = None
    _whole: VectorFile | None = None  # whose descriptor is in use

    def __init__(self, npy_path: str | os.PathLike[str]) -> None:
        self.path = Path(npy_path)
        self.shape, self._offset = vectors_layout(self.path)
        self.dtype, self.ndim = DTYPE, 2
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        opened = os.fstat(self._fd)
        self._stat = opened.st_ino, opened.st_size, opened.st_mtime_ns
        self.check()

    @cached_property
    def manifest(self) -> Manifest:
        """Return the manifest beside the file; BitextmineError if it is missing, damaged or of other vectors."""
        return open_embedding(self.path)[1]

    def only(self, lines: NDArray[np.int64]) -> VectorFile:
        """Return some of the rows, by number, which are read like the file itself."""
        some = copy.copy(self)
        some._whole, some._lines, some.shape = self, lines, (len(lines), self.shape[1])
        return some

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float16]:
        if self._lines is not None:
            rows = self._lines[rows]
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self._read(start, stop)[::step]
        if not len(rows):
            return self._read(0, 0)
        first, last = int(rows.min()), int(rows.max()) + 1
        if last - first <= 4 * len(rows):
            return self._read(first, last)[rows - first]
        return np.concatenate([self._read(row, row + 1) for row in rows.tolist()])

    def check(self) -> None:
        """Raise BitextmineError if the file is not the one that was opened."""
        try:
            now = {(s.st_ino, s.st_size, s.st_mtime_ns) for s in (os.fstat(self._fd), self.path.stat())}
        except OSError:
            raise self._changed() from None
        if now != {self._stat}:
            raise self._changed()

    def _read(self, start: int, stop: int) -> NDArray[np.float16]:
        width = self.shape[1] * DTYPE.itemsize
        out = np.empty((max(0, stop - start), self.shape[1]), DTYPE)
        view, at = out.data.cast("B") if out.size else memoryview(b""), self._offset + start * width
        while len(view):
            count = os.preadv(self._fd, [view[: 1 << 30]], at)
            if not count:
                raise self._changed()
            view, at = view[count:], at + count
        return out

    def _changed(self) -> BitextmineError:
        return BitextmineError(
            f"{self.path}: the vectors changed while they were in use; run the same command again"
        )


def open_embedding(npy_path: str | os.PathLike[str]) -> tuple[NDArray[np.float16], Manifest]:
    """Open a finished embedding: its vectors, float16 (rows, dim) as a read-only map, and its manifest.

    A file that is truncated while it is mapped ends the process (SIGBUS). `VectorFile` reads without a map, for
    searches.

    Raises:
        BitextmineError: the ``.npy`` is missing, truncated or foreign, its manifest is missing or damaged, or the
            numbers disagree.
    """
    shape, offset = vectors_layout(npy_path)
    try:
        vectors = np.memmap(npy_path, DTYPE, "r", offset, shape) if 0 not in shape else np.empty(shape, DTYPE)
    except (OSError, ValueError) as e:  # the file changed since its header was read
        raise BitextmineError(f"{npy_path}: cannot read: {e}") from None
    where = manifest_path(npy_path)
    if not where.exists():
        raise BitextmineError(f"{where}: no such manifest; run embed again")
    manifest = Manifest.from_json(read_json(where), where)
    if (manifest.rows, manifest.dim) != shape:
        raise BitextmineError(
            f"{npy_path}: {shape[0]:,} rows of {shape[1]} numbers, but {where.name} says "
            f"{manifest.rows:,} rows of {manifest.dim}; the two do not belong together, run embed again"
        )
    return vectors, manifest


def check_vectors_path(npy_path: str | os.PathLike[str]) -> None:
    """Raise BitextmineError if vectors cannot be written there, or a file of another program has one of their names.

    Vectors without a manifest are ours if a killed run left its journal beside them, or if there are none in the file.
    """
    npy = Path(npy_path)
    if not npy.exists():
        for file in (npy, part_path(npy)):
            Destination.of(file).check("name a folder for the vectors with --cache")
    instead = "name another place (embed --out)"
    manifest, part, journal = manifest_path(npy), part_path(npy), journal_path(npy)
    check_ours(manifest, Made.EMBEDDING, instead)
    check_ours(journal, Made.STATE, instead)
    if npy.exists():
        check_ours(npy, Made.VECTORS, instead)
    left = journal.exists()
    if part.exists() and not left:
        check_ours(part, Made.VECTORS, instead)
    if npy.exists() and npy.stat().st_size and not manifest.exists() and not left:
        raise foreign(npy, f"has no {manifest.name} beside it that says what it is", instead)


def check_fresh(npy_path: str | os.PathLike[str], text_sha256: str, model_hash: str) -> str | None:
    """Return None if the embedding is of this text and model, else the reason in words."""
    if not Path(npy_path).exists():
        return "not embedded yet"
    try:
        _, manifest = open_embedding(npy_path)
    except BitextmineError as e:
        return f"unusable: {e}"
    if manifest.text_sha256 != text_sha256:
        return "the text changed"
    if manifest.vectors_blake2b and vectors_digest(npy_path) != manifest.vectors_blake2b:
        return "its vectors do not match its manifest"
    if manifest.model_hash != model_hash:
        return f"made by another model ('{manifest.model}' {manifest.model_hash}, not {model_hash})"
    if (
        part_path(os.path.realpath(npy_path)).exists()
        and (head := read_head(journal_path(npy_path))) is not None
    ):
        began = [head.identity.get(key) for key in ("text_sha256", "model_hash")]
        if began == [text_sha256, model_hash]:
            return "embed --force has not finished"
    return None
