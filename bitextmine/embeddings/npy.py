"""The ``.npy`` file of an embedding: header, rows and digest, read in blocks.

The format is NumPy's own (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a header padded to
64 bytes, then the rows in little-endian float16.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.storage import local

JOB = "embed"  # of the journal of an unfinished embedding
DTYPE = np.dtype("<f2")
BLOCK_BYTES = 1 << 22
_MOST = 1 << 48  # rows, or numbers in a row: NumPy makes no larger array, even an empty one


def part_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the name of an ``.npy`` until it is complete."""
    return Path(f"{os.fspath(npy_path)}.part")


def journal_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the journal that records the progress of an unfinished ``.npy``."""
    return Path(f"{os.fspath(npy_path)}.part.journal")


def shards_path(npy_path: str | os.PathLike[str]) -> Path:
    """Return the folder for shards of an ``.npy`` that a cluster encodes."""
    return Path(f"{os.fspath(npy_path)}.shards")


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
    local(npy_path, "vectors are mapped into memory, which only a file of this machine can be")
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


def open_vectors(npy_path: str | os.PathLike[str]) -> NDArray[np.float16]:
    """Map the vectors of an ``.npy``, float16 (rows, dim), read-only; its manifest is not needed.

    A file that is truncated while it is mapped ends the process (SIGBUS). `store.VectorFile` reads without a map, for
    searches.

    Raises:
        BitextmineError: as for `vectors_layout`.
    """
    shape, offset = vectors_layout(npy_path)
    if 0 in shape:  # nothing to map
        return np.empty(shape, DTYPE)
    try:
        return np.memmap(npy_path, dtype=DTYPE, mode="r", offset=offset, shape=shape)
    except (OSError, ValueError) as e:  # the file changed since its header was read
        raise BitextmineError(f"{npy_path}: cannot read: {e}") from None


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
