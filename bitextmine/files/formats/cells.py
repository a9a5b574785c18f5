"""Cells of tab-separated lines, and columns that a command adds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECIMALS = 4
_MINED_DECIMALS = {"score": 6}  # as `mine` writes them

# Everything that ends a line or a cell for some reader of TSV: tab, LF, VT, FF, CR, FS, GS, RS, NEL, LS, PS.
_BREAKS = re.compile("[\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]+")


def one_cell(text: str) -> str:
    """Return a text as one cell of one line: each run of tabs and line breaks of any kind becomes a space."""
    return _BREAKS.sub(" ", text)


def cell_text(name: str, value: Any) -> str:
    """Return a value of the column `name` as a cell: empty for None, four decimals, six for a score."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_MINED_DECIMALS.get(name, DECIMALS)}f}"
    return one_cell(str(value))


@dataclass(frozen=True)
class Added:
    """A column to write beside those that were read: numbers (n,), NaN for none, or texts."""

    name: str
    values: NDArray[np.float64] | Sequence[str]


def cells_of(values: NDArray[np.float64] | Sequence[str]) -> list[str]:
    """Return a column as cells: numbers with four decimals, empty for NaN."""
    if isinstance(values, np.ndarray):
        return ["" if v != v else f"{v:.{DECIMALS}f}" for v in values.tolist()]
    return list(values)
