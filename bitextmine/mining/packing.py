"""The rows of an embedding that take part in mining, packed together for the search."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import allocate
from bitextmine.search.pages import release

__all__ = ["IN_MEMORY", "packed_rows", "zero_rows"]

_BLOCK = 1 << 14

# Packed rows up to this many bytes are held in memory, more in a temporary file.
IN_MEMORY = 1 << 28


def packed_rows(
    matrix: NDArray, rows: NDArray[np.int64], folder: str | os.PathLike[str], in_memory: int = IN_MEMORY
) -> NDArray:
    """These rows (ascending) of a matrix (n, d) as an array of their own, (len(rows), d), of the same type.

    All of them: the matrix itself, not a copy. Above `in_memory` bytes the array is a map of a temporary
    file in `folder` (in the system's folder for those, where `folder` cannot be written) that vanishes with
    the array. The matrix is read once, from front to back. Raises BitextmineError when the disk has no room
    for the file.
    """
    if len(rows) == len(matrix):
        return matrix
    shape = (len(rows), matrix.shape[1])
    size = shape[0] * shape[1] * matrix.itemsize
    out: NDArray
    if size <= in_memory:
        out = np.empty(shape, matrix.dtype)
    else:
        try:
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError:
            folder = Path(tempfile.gettempdir())
            file = tempfile.TemporaryFile()  # noqa: SIM115
        with file:
            try:
                allocate(file.fileno(), size)
            except OSError as e:
                raise BitextmineError(
                    f"{folder}: cannot set {size:,} bytes aside for the lines without repetitions: "
                    f"{e.strerror}; free some space"
                ) from None
            out = np.memmap(file, dtype=matrix.dtype, mode="r+", shape=shape)  # the map keeps the file alive
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        out[start : start + _BLOCK] = matrix[some]
        release(matrix, int(some[0]), int(some[-1]) + 1)
        release(out, start, start + _BLOCK)
    return out


def zero_rows(matrix: NDArray, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these rows are all zero (len(rows),): the vocabulary knows nothing in those lines."""
    zero = np.empty(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        zero[start : start + _BLOCK] = ~matrix[some].any(axis=1)
        release(matrix, int(some[0]), int(some[-1]) + 1)
    return zero
