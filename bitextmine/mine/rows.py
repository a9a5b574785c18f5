"""The rows of an embedding that take part in mining, gathered block by block as the search asks for them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Rows", "zero_rows"]

_BLOCK = 1 << 15


class Rows:
    """A view of some rows (ascending) of a matrix, as far as the search needs an array: no copy of the whole.

    Indexing with a slice or an integer array gives those rows as an array. The wanted rows of a memory-mapped
    file are read in file order, so a pass over the view costs as much as a pass over the file.
    """

    def __init__(self, matrix: NDArray[Any], rows: NDArray[np.int64]) -> None:
        self.matrix = matrix
        self.rows = rows
        self.all = len(rows) == len(matrix)
        self.shape = (len(rows), matrix.shape[1])
        self.dtype = matrix.dtype
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> NDArray[Any]:
        return np.asarray(self.matrix[which] if self.all else self.matrix[self.rows[which]])

    @property
    def array(self) -> NDArray[Any]:
        """The view itself, for functions that ask for an array and only index it."""
        return cast("NDArray[Any]", self)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


def zero_rows(matrix: NDArray[Any] | Rows) -> NDArray[np.bool_]:
    """Which rows are all zero (n,): lines of which the vocabulary knows nothing, near to everything and
    nothing.
    """
    zero = np.empty(len(matrix), dtype=bool)
    for start in range(0, len(matrix), _BLOCK):
        zero[start : start + _BLOCK] = ~np.asarray(matrix[start : start + _BLOCK]).any(axis=1)
    return zero
