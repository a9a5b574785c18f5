"""What a person sees: the progress bar on stderr, counts with their nouns, results as tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["aligned", "counted", "nice_step", "progress", "tab_separated"]


def progress(total: int | None, desc: str, unit: str = "lines", show: bool | None = None) -> Any:
    """A tqdm bar with rate and time left; call ``.update(n)`` on it and ``.close()``, or use ``with``.

    ``show=None`` shows it only when stderr is a terminal, so that pipelines and logs stay clean.
    """
    from tqdm import tqdm

    if sys.stderr is None:
        show = False
    return tqdm(
        total=total,
        desc=desc,
        unit=f" {unit}",
        disable=None if show is None else not show,
        file=sys.stderr,
        dynamic_ncols=True,
        mininterval=0.3,
        smoothing=0.1,
    )


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun: "1 pair", "1,000 pairs"."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to one width; numbers to the right, words to the left; no trailing blanks."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell[:1] in "-+.0123456789" for cell in column[1:]) and bool(rows) for column in columns]
    lines = (
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [header, *rows]
    )
    return "\n".join(lines)


def tab_separated(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """One row per line, cells between tabs."""
    return "\n".join("\t".join(row) for row in [header, *rows])


def nice_step(wanted: float) -> float:
    """The smallest of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that is no smaller than `wanted` (> 0)."""
    magnitude = 10.0 ** math.floor(math.log10(wanted))
    return next(f * magnitude for f in (1, 2, 5, 10) if f * magnitude >= wanted * 0.999)
