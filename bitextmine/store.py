"""Embeddings on disk: a float16 ``.npy`` whose row *i* is line *i*, and a ``.json`` that says what it is.

A pair ``corpus.fr.npy`` and ``corpus.fr.json`` appears complete or not at all. Until then the rows are in
``corpus.fr.npy.part``, with ``corpus.fr.npy.part.json`` telling how many of them are safely on disk. That is
all a resumed run needs, whenever the earlier one was killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from bitextmine import __version__
from bitextmine.errors import BitextmineError
from bitextmine.text import FULL_DISK, corpus_stem

__all__ = [
    "EmbeddingWriter",
    "Manifest",
    "check_fresh",
    "describe_embedding",
    "embedding_paths",
    "manifest_path",
    "open_embedding",
    "open_vectors",
    "read_json",
    "read_manifest",
    "verify_embedding",
    "write_json",
    "write_manifest",
]

DTYPE = np.dtype("<f2")
DIGEST_BLOCK = 1 << 22
# How long finished rows may wait for the disk: what a kill can cost at most, apart from the last batch.
SYNC_SECONDS = 2.0


def embedding_paths(corpus_path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where the embedding of a corpus goes: ``corpus.fr.gz`` -> ``corpus.fr.npy``, ``corpus.fr.json``."""
    npy = Path(f"{corpus_stem(corpus_path)}.npy")
    return npy, manifest_path(npy)


def manifest_path(npy_path: str | os.PathLike[str]) -> Path:
    """The manifest beside an ``.npy``: ``corpus.fr.npy`` -> ``corpus.fr.json``."""
    path = Path(npy_path)
    return path.with_suffix(".json") if path.suffix == ".npy" else Path(f"{path}.json")


# --- JSON ------------------------------------------------------------------------------------------------


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON object from a file; BitextmineError when it is missing, unreadable or something else."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise BitextmineError(f"{path}: cannot read: {e.strerror or e}") from None
    except ValueError as e:
        raise BitextmineError(f"{path}: not valid JSON ({e}); remove it and make it again") from None
    if not isinstance(found, dict):
        raise BitextmineError(f"{path}: holds a JSON {type(found).__name__}, not an object; make it again")
    return found


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically and durably: sorted keys, so that a rerun gives the same bytes."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            json.dump(content, file, indent=1, sort_keys=True, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from JSON (tuples as lists, keys as text), for comparisons."""
    result: dict[str, Any] = json.loads(json.dumps(content, sort_keys=True))
    return result


# --- manifests -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Manifest:
    """What an embedding file is. It holds no time stamp: the same input and model give the same bytes."""

    rows: int = 0
    dim: int = 0
    lang: str = ""
    corpus: str = ""  # the file name of the text, without its folder; "-" for stdin
    text_sha256: str = ""  # bitextmine.text.line_digest of the lines
    model: str = ""
    model_hash: str = ""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)  # what else changes the vectors
    vectors_blake2b: str = ""  # BLAKE2b-256 of the rows' bytes, without the .npy header
    dtype: str = "float16"
    kind: str = "embedding"
    version: str = __version__
    extra: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )  # keys of another version, kept as they are

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; keys this version does not know stand beside the others."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "extra"}
        return _plain({**self.extra, **fields})

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str | os.PathLike[str] = "manifest") -> Manifest:
        """The manifest in a dictionary. Unknown keys go to ``extra``; kind, rows and dim must be there."""
        fields = {f.name: f for f in dataclasses.fields(cls) if f.name != "extra"}
        for key in ("kind", "rows", "dim"):
            if key not in content:
                raise BitextmineError(
                    f"{where}: no '{key}': not the manifest of an embedding; run embed again"
                )
        known: dict[str, Any] = {}
        for key, value in content.items():
            if key not in fields:
                continue
            wanted = {"int": int, "str": str}.get(str(fields[key].type), dict)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise BitextmineError(
                    f"{where}: '{key}' is {json.dumps(value)}, not a JSON {wanted.__name__}; run embed again"
                )
            known[key] = value
        if known["kind"] != "embedding":
            raise BitextmineError(f"{where}: describes a thing of kind '{known['kind']}', not an embedding")
        if known["rows"] < 0 or known["dim"] < 0:
            raise BitextmineError(
                f"{where}: {known['rows']} rows of {known['dim']} numbers cannot be; run embed again"
            )
        extra = {key: value for key, value in content.items() if key not in fields}
        return cls(**known, extra=extra)


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """The manifest in a ``.json`` file, or the one beside an ``.npy``; BitextmineError if there is none."""
    path = manifest_path(path) if Path(path).suffix == ".npy" else Path(path)
    if not path.exists():
        raise BitextmineError(
            f"{path}: no such manifest: the embedding beside it is unfinished; run embed again"
        )
    return Manifest.from_json(read_json(path), path)


def write_manifest(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Write a manifest atomically to a ``.json`` file, or beside an ``.npy``."""
    write_json(manifest_path(path) if Path(path).suffix == ".npy" else path, manifest.to_json())


# --- writing ---------------------------------------------------------------------------------------------


def _header(rows: int, dim: int) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": DTYPE.str, "fortran_order": False, "shape": (rows, dim)}
    )
    return buffer.getvalue()


class EmbeddingWriter:
    """Writes an embedding row by row, so that a run killed at any moment can go on where it was.

    ``identity`` says what the rows come from (text digest, model hash, settings, batch boundaries if they
    change the vectors): a part left behind is taken up only if its identity is the same. Ask
    ``resume_row`` for the first row still missing, ``write(start, rows)`` in order from there, and
    ``finish(manifest)``. Without ``finish`` the part stays for a later run; use ``with``, or ``close()``.

    Rows go through ``pwrite`` and not a memory map: a full disk is then an error, where a map ends the
    process with SIGBUS, and no page of the file counts as memory of this process.

    Raises BitextmineError when another process is writing the same embedding, when the disk cannot hold
    it (found at the start: the whole file is allocated first), and for rows with NaN or infinite numbers.
    """

    def __init__(
        self,
        npy_path: str | os.PathLike[str],
        rows: int,
        dim: int,
        identity: Mapping[str, Any],
        *,
        sync_seconds: float = SYNC_SECONDS,
    ) -> None:
        self.npy_path = Path(npy_path)
        self.part_path = Path(f"{self.npy_path}.part")
        self.state_path = Path(f"{self.npy_path}.part.json")
        self.rows, self.dim = int(rows), int(dim)
        self._identity = _plain({**identity, "rows": self.rows, "dim": self.dim, "dtype": DTYPE.name})
        self._sync_seconds = sync_seconds
        self._head = _header(self.rows, self.dim)
        self._size = len(self._head) + self.rows * self.dim * DTYPE.itemsize
        self._fd = self._lock()
        try:
            self.resume_row = self._resume_row()
            if self.resume_row is None:
                self._start()
                self.resume_row = 0
            self._next = self._safe = self.resume_row
            self._save_state()
        except BaseException:
            self.close()
            raise
        self._synced = time.monotonic()

    resume_row: int | None

    def _lock(self) -> int:
        """Open the part and lock it; the lock dies with the process, so that nothing stale can stay."""
        while True:
            try:
                fd = os.open(self.part_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as e:
                raise _cannot_create(self.part_path, e) from None
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    os.close(fd)
                    raise BitextmineError(
                        f"{self.npy_path}: {self._holder()} is writing this embedding now; "
                        "wait for it, stop it, or write elsewhere with --out"
                    ) from None
                # A file system without locks: go on without, as numpy would.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), os.stat(self.part_path)):
                    return fd
            os.close(fd)  # another process finished in between and moved the file away

    def _holder(self) -> str:
        try:
            writer = read_json(self.state_path)["writer"]
            return f"process {writer['pid']} on {writer['host']}"
        except (BitextmineError, KeyError, TypeError):
            return "another process"

    def _resume_row(self) -> int | None:
        """How many rows of this identity the part holds already, or None when it cannot be used."""
        try:
            state = read_json(self.state_path)
        except BitextmineError:
            return None
        done = state.get("done_rows")
        if state.get("identity") != self._identity or not isinstance(done, int) or not 0 <= done <= self.rows:
            return None
        if os.fstat(self._fd).st_size != self._size or os.pread(self._fd, len(self._head), 0) != self._head:
            return None
        return done

    def _start(self) -> None:
        """Take all the space there will be. The old state goes first: it must never vouch for new bytes."""
        with contextlib.suppress(FileNotFoundError):
            self.state_path.unlink()
        _sync_folder(self.part_path.parent)
        os.ftruncate(self._fd, 0)
        try:
            self._allocate()
            self._pwrite(self._head, 0)
        except OSError as e:
            free = shutil.disk_usage(self.part_path.parent).free
            with contextlib.suppress(OSError):
                self.part_path.unlink()
            if e.errno in FULL_DISK:
                raise BitextmineError(
                    f"{self.npy_path}: the disk is too full: {self.rows:,} rows of {self.dim} float16 numbers need "
                    f"{self._size:,} bytes, {free:,} are free ({e.strerror}); free some space, or use --out"
                ) from None
            raise BitextmineError(f"{self.part_path}: cannot write: {e.strerror or e}") from None

    def _allocate(self) -> None:
        try:
            os.posix_fallocate(self._fd, 0, self._size)
            return
        except AttributeError:  # macOS
            pass
        except OSError as e:
            if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
        if shutil.disk_usage(self.part_path.parent).free < self._size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(self._fd, self._size)

    def _pwrite(self, data: bytes | memoryview, offset: int) -> None:
        view = memoryview(data)
        while view.nbytes:
            written = os.pwrite(self._fd, view, offset)
            view, offset = view[written:], offset + written

    def _save_state(self) -> None:
        write_json(
            self.state_path,
            {
                "identity": self._identity,
                "done_rows": self._safe,
                "writer": {"pid": os.getpid(), "host": socket.gethostname()},
            },
        )

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write rows ``start, start + 1, ...``: float (b, dim), stored as float16.

        ``start`` is the row after the last one written. Rows are safe within ``sync_seconds`` of it.
        """
        if self._fd < 0:
            raise ValueError("this EmbeddingWriter is closed")
        if start != self._next:
            raise ValueError(f"rows come in order: expected row {self._next}, got row {start}")
        if rows.ndim != 2 or rows.shape[1] != self.dim or start + len(rows) > self.rows:
            raise ValueError(
                f"rows of shape {rows.shape} do not fit ({self.rows}, {self.dim}) at row {start}"
            )
        with np.errstate(over="ignore"):  # found below
            half = np.ascontiguousarray(rows, dtype=DTYPE)
        finite = np.isfinite(half).all(axis=1)
        if not finite.all():
            bad = start + int(np.argmin(finite))
            raise BitextmineError(
                f"{self.npy_path}: the vector of row {bad} (line {bad + 1}) has NaN or infinite numbers; "
                "the model is damaged, or too wide for float16"
            )
        if not half.size:
            self._next += len(rows)
            return
        offset = len(self._head) + start * self.dim * DTYPE.itemsize
        try:
            self._pwrite(half.view(np.uint8).reshape(-1).data, offset)
        except OSError as e:
            raise BitextmineError(
                f"{self.npy_path}: cannot write row {start}: {e.strerror or e}; "
                f"{self._safe:,} rows are safe, run again to go on"
            ) from None
        self._next = start + len(rows)
        if time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Bring the rows written so far safely to disk, then count them as done."""
        try:
            os.fsync(self._fd)
        except OSError as e:
            raise BitextmineError(f"{self.npy_path}: cannot write: {e.strerror or e}") from None
        self._safe = self._next
        self._save_state()
        self._synced = time.monotonic()

    def finish(self, manifest: Manifest) -> Manifest:
        """Put the complete embedding and its manifest in place; returns the manifest as written.

        Rows, dim, dtype and the digest of the vectors are filled in here.
        """
        if self._next != self.rows:
            raise ValueError(f"only {self._next} of {self.rows} rows are written")
        self.sync()
        manifest = dataclasses.replace(
            manifest, rows=self.rows, dim=self.dim, dtype=DTYPE.name, vectors_blake2b=_digest(self.part_path)
        )
        final = manifest_path(self.npy_path)
        try:
            # The old manifest goes first: killed between the two renames, it would describe other vectors.
            with contextlib.suppress(FileNotFoundError):
                final.unlink()
            _sync_folder(final.parent)
            os.replace(self.part_path, self.npy_path)
        except OSError as e:
            raise BitextmineError(f"{self.npy_path}: cannot put it in place: {e.strerror or e}") from None
        write_manifest(final, manifest)
        with contextlib.suppress(FileNotFoundError):
            self.state_path.unlink()
        self._release()
        return manifest

    def close(self) -> None:
        """Stop without finishing: what is written stays for a later run."""
        if self._fd < 0:
            return
        try:
            if getattr(self, "_next", 0) > getattr(self, "_safe", 0):
                self.sync()
        finally:
            self._release()

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> EmbeddingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cannot_create(path: Path, e: OSError) -> BitextmineError:
    if isinstance(e, (FileNotFoundError, NotADirectoryError)):
        return BitextmineError(f"{path}: cannot write: there is no folder {path.parent}; create it first")
    return BitextmineError(f"{path}: cannot write: {e.strerror or e}; write elsewhere with --out")


# --- reading ---------------------------------------------------------------------------------------------


def open_vectors(npy_path: str | os.PathLike[str]) -> np.ndarray:
    """The vectors of an ``.npy`` as a read-only map, float16 (n, d), with or without a manifest.

    Raises BitextmineError for a missing file, one that is not a two-dimensional C-ordered float16 array,
    and one that is shorter or longer than its header says.
    """
    shape, offset = _check_vectors(npy_path)
    if 0 in shape:  # nothing to map
        return np.empty(shape, DTYPE)
    return np.memmap(npy_path, dtype=DTYPE, mode="r", offset=offset, shape=shape)


def _check_vectors(npy_path: str | os.PathLike[str]) -> tuple[tuple[int, int], int]:
    """Shape and first byte of the rows."""
    again = "run embed again"
    try:
        with open(npy_path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                version = np.lib.format.read_magic(file)
                read = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, fortran, dtype = read[version](file)
            except (ValueError, KeyError) as e:
                raise BitextmineError(f"{npy_path}: not a .npy file ({e}), {size:,} bytes; {again}") from None
            offset = file.tell()
    except FileNotFoundError:
        part = Path(f"{npy_path}.part")
        hint = (
            "; an unfinished run left a part of it, run embed again to go on"
            if part.exists()
            else "; run embed"
        )
        raise BitextmineError(f"{npy_path}: no such embedding{hint}") from None
    except OSError as e:
        raise BitextmineError(f"{npy_path}: cannot read: {e.strerror or e}") from None
    if len(shape) != 2 or dtype != DTYPE or fortran:
        order = " in Fortran order" if fortran else ""
        raise BitextmineError(
            f"{npy_path}: holds {dtype} numbers of shape {shape}{order}, not float16 of shape (rows, dim); {again}"
        )
    wanted = offset + shape[0] * shape[1] * DTYPE.itemsize
    if size != wanted:
        word = "truncated" if size < wanted else "damaged"
        raise BitextmineError(
            f"{npy_path}: {word}: {size:,} bytes, but {shape[0]:,} rows of {shape[1]} need {wanted:,}; {again}"
        )
    return (int(shape[0]), int(shape[1])), offset


def open_embedding(
    npy_path: str | os.PathLike[str], *, rows: int | None = None, dim: int | None = None
) -> tuple[np.ndarray, Manifest]:
    """The vectors (read-only map, float16 (n, d)) and the manifest of a finished embedding.

    ``rows`` and ``dim``, where given, are what the text and the model want. Raises BitextmineError as
    `open_vectors` does, for a missing or damaged manifest, and for numbers that disagree.
    """
    vectors = open_vectors(npy_path)
    where = manifest_path(npy_path)
    manifest = read_manifest(where)
    if (manifest.rows, manifest.dim) != vectors.shape:
        raise BitextmineError(
            f"{npy_path}: {vectors.shape[0]:,} rows of {vectors.shape[1]}, but {where.name} says "
            f"{manifest.rows:,} rows of {manifest.dim}; the two do not belong together, run embed again"
        )
    if manifest.dtype != DTYPE.name:
        raise BitextmineError(
            f"{where}: says {manifest.dtype}, but {npy_path} is {DTYPE.name}; run embed again"
        )
    if rows is not None and rows != manifest.rows:
        raise BitextmineError(
            f"{npy_path}: {manifest.rows:,} rows, but the text has {rows:,} lines; the text changed, run embed again"
        )
    if dim is not None and dim != manifest.dim:
        raise BitextmineError(
            f"{npy_path}: vectors of {manifest.dim} numbers, but {dim} are wanted; "
            "it is of another model, run embed again with the same model for both"
        )
    return vectors, manifest


def check_fresh(
    npy_path: str | os.PathLike[str],
    text_sha256: str,
    model_hash: str,
    settings: Mapping[str, Any] | None = None,
) -> str | None:
    """None when the embedding is of this text, model and settings, else the reason in words."""
    if not Path(npy_path).exists():
        return "not embedded yet"
    try:
        _, manifest = open_embedding(npy_path)
    except BitextmineError as e:
        return f"unusable: {e}"
    if manifest.text_sha256 != text_sha256:
        return "the text changed"
    if manifest.model_hash != model_hash:
        return f"made by another model ({manifest.model} {manifest.model_hash}, not {model_hash})"
    if settings is not None:
        wanted = _plain(settings)
        for key in sorted(wanted.keys() | manifest.settings.keys()):
            old, new = manifest.settings.get(key), wanted.get(key)
            if old != new:
                return f"made with another setting ({key}: {json.dumps(old)}, not {json.dumps(new)})"
    return None


def _digest(npy_path: str | os.PathLike[str]) -> str:
    """BLAKE2b-256 over the rows' bytes, read in blocks."""
    _, offset = _check_vectors(npy_path)
    digest = hashlib.blake2b(digest_size=32)
    with open(npy_path, "rb", buffering=0) as file:
        file.seek(offset)
        block = bytearray(DIGEST_BLOCK)
        while count := file.readinto(block):
            digest.update(memoryview(block)[:count])
    return digest.hexdigest()


def verify_embedding(npy_path: str | os.PathLike[str]) -> Manifest:
    """Read all the vectors and compare their digest with the manifest's (about a second per gigabyte).

    Raises BitextmineError when they differ, and as `open_embedding` does.
    """
    _, manifest = open_embedding(npy_path)
    found = _digest(npy_path)
    if found != manifest.vectors_blake2b:
        raise BitextmineError(
            f"{npy_path}: damaged: the vectors' digest is {found[:16]}..., but the manifest says "
            f"{manifest.vectors_blake2b[:16] or 'nothing'}...; run embed again"
        )
    return manifest


def describe_embedding(npy_path: str | os.PathLike[str]) -> dict[str, str]:
    """An embedding in words, for people: ordered pairs of what and which. Unfinished ones too.

    Raises BitextmineError, as `open_embedding` does, when it cannot be used.
    """
    path = Path(npy_path)
    state_path = Path(f"{path}.part.json")
    facts: dict[str, str] = {}
    if not path.exists() and state_path.exists():
        state = read_json(state_path)
        identity = state.get("identity")
        identity = identity if isinstance(identity, dict) else {}
        facts["what"] = "unfinished embedding (run embed again to go on)"
        facts["rows"] = f"{state.get('done_rows', 0):,} of {identity.get('rows', 0):,}"
        facts.update(_facts(identity))
        return facts
    _, manifest = open_embedding(path)
    facts["what"] = "embedding: row i is line i of the text, L2-normalised"
    facts["rows"] = f"{manifest.rows:,}"
    facts["dim"] = str(manifest.dim)
    facts["numbers"] = f"{manifest.dtype}, {path.stat().st_size:,} bytes in all"
    facts.update(_facts({**manifest.to_json()}, skip={"rows", "dim", "dtype", "kind"}))
    return facts


def _facts(
    content: Mapping[str, Any], skip: set[str] | frozenset[str] = frozenset({"rows"})
) -> Iterator[tuple[str, str]]:
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
    keys = [key for key in names if key in content] + sorted(set(content) - set(names))
    for key in keys:
        value = content[key]
        if key in skip or value in ("", {}, None):
            continue
        if key == "version":
            value = f"bitextmine {value}"
        elif isinstance(value, dict):
            value = ", ".join(f"{k}={json.dumps(v)}" for k, v in sorted(value.items()))
        yield names.get(key, key), str(value)
