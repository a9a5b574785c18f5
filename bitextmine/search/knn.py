"""Nearest neighbours of two arrays, exact, in both directions."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitextmine.arguments import plain_array, whole_number, yes_or_no
from bitextmine.declarations import keywords
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.exact import search_both
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions
from bitextmine.system import available, size

_ROWS = 1 << 14


@keywords
def knn(x: ArrayLike, y: ArrayLike, k: int, *, normalize: bool = False, run: Run) -> Neighbours:
    """Return the k rows of y with the largest inner product for each row of x, and the k rows of x for each of y.

    Args:
        x: one vector per row, shape (n, d), or anything that np.asarray turns into one. float16 stays float16 if y is
            float16 too; everything else is compared as float32 (float64 is rounded to it).
        y: the same, shape (m, d).
        k: neighbours per row, 1 or more.
        normalize: compare by cosine: divide every row by its length first, in float32. Without it the vectors are
            taken as they are; those that `bitextmine embed` writes and encoders return have length 1 already. A row
            of zeros stays one: its similarity to everything is 0.
        run: or its fields: ``device``, ``threads``, and ``memory``, the bytes that the search may take besides x and y
            (default: half of what is free).

    Returns:
        Neighbours: fwd_sim (n, k) float32 and fwd_id (n, k) int64, rows of y; bwd_sim (m, k) float32 and bwd_id (m, k)
        int64, rows of x. Each row goes from the highest similarity to the lowest; of equal similarities the lower
        id comes first. Where the other side has fewer than k rows, what is missing is id -1 with similarity -inf.
        A similarity is the inner product in float64, rounded once to float32. The result does not depend on device,
        memory or threads.

    Raises:
        BitextmineError: x or y is no matrix of real numbers, holds a NaN, an infinity or a number beyond float32, is so
            long a vector (1e12) that products overflow; different d, d = 0; too little memory; a device that is not
            there. UsageError, one of them: k, memory or threads is no whole number from 1, device no name of one.

    >>> import numpy as np
    >>> x = np.eye(2)
    >>> y = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> neighbours = knn(x, y, 2)
    >>> neighbours.fwd_id
    array([[1, 0],
           [2, 0]])
    >>> neighbours.fwd_sim
    array([[1. , 0.6],
           [1. , 0.8]], dtype=float32)
    >>> neighbours.bwd_id
    array([[1, 0],
           [0, 1],
           [1, 0]])
    """
    how = SearchOptions(run.device_name, run.memory, run.threads, names=("x", "y"))
    neighbours = whole_number("k", k)
    normalize = yes_or_no("normalize", normalize)
    a, b = _matrix(x, "x", normalize), _matrix(y, "y", normalize)
    result = 12 * neighbours * (len(a) + len(b))  # float32 and int64
    if result > available():
        raise BitextmineError(
            f"k = {neighbours}: the result alone takes {size(result)}, and {size(available())} of memory is free; ask "
            "for fewer neighbours"
        )
    return search_both(a, b, neighbours, how)


def _matrix(rows: ArrayLike, name: str, normalize: bool) -> NDArray[Any]:
    try:
        matrix = np.asarray(plain_array(rows))
    except ValueError as error:  # rows of different lengths
        raise BitextmineError(f"{name}: not a matrix of numbers ({error})") from None
    if matrix.ndim != 2:
        raise BitextmineError(
            f"{name}: expected one vector a row (2 dimensions), found {matrix.ndim} dimension(s)"
        )
    if matrix.dtype.kind not in "fiu":
        raise BitextmineError(f"{name}: expected real numbers, found {matrix.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):  # the search names the row
        if normalize:
            return _unit(matrix)
        return matrix if matrix.dtype in (np.float16, np.float32) else matrix.astype(np.float32)


def _unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    out = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS].astype(np.float64)
        largest = np.abs(block).max(axis=1, keepdims=True, initial=0.0)  # squares of the others then hold
        block /= np.where(largest != 0, largest, 1)
        length = np.linalg.norm(block, axis=1, keepdims=True)
        out[start : start + _ROWS] = block / np.where(length != 0, length, 1)
    return out
