"""The ``.npy`` file of an embedding: its header, its rows, their digest. It is never read as a whole.

The format is NumPy's own (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a header padded to
64 bytes, then the rows, one after the other, in little-endian float16.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np

from bitextmine.errors import BitextmineError
from bitextmine.files.storage import local

__all__ = [
    "DTYPE",
    "file_digest",
    "npy_header",
    "open_vectors",
    "part_path",
    "shards_path",
    "staged_path",
    "state_path",
    "vectors_digest",
    "vectors_layout",
]

DTYPE = np.dtype("<f2")
BLOCK_BYTES = 1 << 22
_MOST = 1 << 48  # rows or numbers, beside none of the other: NumPy makes no larger array, even an empty one


def part_path(npy_path: str | os.PathLike[str]) -> Path:
    """What an ``.npy`` is called until it is complete."""
    return Path(f"{os.fspath(npy_path)}.part")


def state_path(npy_path: str | os.PathLike[str]) -> Path:
    """Where it says how much of a part is done, and of what."""
    return Path(f"{os.fspath(npy_path)}.part.json")


def shards_path(npy_path: str | os.PathLike[str]) -> Path:
    """The folder of shards that wait to be put together, where a cluster encodes."""
    return Path(f"{os.fspath(npy_path)}.shards")


def staged_path(npy_path: str | os.PathLike[str]) -> Path:
    """The manifest to be, until the vectors have their name."""
    return Path(f"{part_path(npy_path)}.manifest.json")


def npy_header(rows: int, dim: int) -> bytes:
    """The header (format 1.0) of a float16 array of shape (rows, dim)."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": DTYPE.str, "fortran_order": False, "shape": (rows, dim)}
    )
    return buffer.getvalue()


def vectors_layout(npy_path: str | os.PathLike[str]) -> tuple[tuple[int, int], int]:
    """The shape (rows, dim) of an ``.npy`` and the offset of its first row, in bytes.

    Raises BitextmineError for a missing file, one that is not a two-dimensional C-ordered float16 array,
    and one that is shorter or longer than its header says.
    """
    local(npy_path, "vectors are mapped into memory, which only a file of this machine can be")
    try:
        with open(npy_path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                version = np.lib.format.read_magic(file)
                read = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }[version]
                shape, fortran, dtype = read(file)
            except OSError:
                raise
            except Exception as e:  # NumPy parses the header as Python source: damage raises almost anything
                raise BitextmineError(
                    f"{npy_path}: not a whole .npy file: {size:,} bytes, {e}; run embed again"
                ) from None
            offset = file.tell()
    except FileNotFoundError:
        left = part_path(npy_path).exists()
        hint = "an unfinished run left a part of it, run embed again to go on" if left else "run embed first"
        raise BitextmineError(f"{npy_path}: no such embedding; {hint}") from None
    except OSError as e:
        raise BitextmineError(f"{npy_path}: cannot read: {e.strerror or e}") from None
    if len(shape) != 2 or min(shape) < 0 or max(shape) >= _MOST or dtype != DTYPE or fortran:
        order = " in Fortran order" if fortran else ""
        raise BitextmineError(
            f"{npy_path}: holds {dtype} numbers of shape {shape}{order}, not float16 of shape (rows, dim); "
            "run embed again"
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


def open_vectors(npy_path: str | os.PathLike[str]) -> np.ndarray:
    """The vectors of an ``.npy``, float16 (rows, dim), as a read-only map; a manifest is not asked for.

    Raises BitextmineError as `vectors_layout` does.
    """
    shape, offset = vectors_layout(npy_path)
    if 0 in shape:  # nothing to map
        return np.empty(shape, DTYPE)
    try:
        return np.memmap(npy_path, dtype=DTYPE, mode="r", offset=offset, shape=shape)
    except (OSError, ValueError) as e:  # it changed since it was looked at
        vectors_layout(npy_path)
        raise BitextmineError(f"{npy_path}: cannot read: {e}") from None


def vectors_digest(npy_path: str | os.PathLike[str]) -> str:
    """BLAKE2b-256 (64 hexadecimal digits) of the rows' bytes without the header, read in blocks.

    Raises BitextmineError as `vectors_layout` does.
    """
    _, offset = vectors_layout(npy_path)
    with open(npy_path, "rb", buffering=0) as file:
        return file_digest(file.fileno(), offset)


def file_digest(fd: int, offset: int) -> str:
    """The same of an open file, from ``offset`` to its end. OSError passes through."""
    digest = hashlib.blake2b(digest_size=32)
    block = memoryview(bytearray(BLOCK_BYTES))
    while count := os.preadv(fd, [block], offset):
        digest.update(block[:count])
        offset += count
    return digest.hexdigest()
