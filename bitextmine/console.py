"""Progress bars on stderr, counts with their nouns, tables."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Progress = Callable[[int], object]  # called with the number of things done since the last call


def silent(count: int) -> None:
    """Show no progress."""


class _Hidden:
    """A progress bar that shows nothing, so that a command whose output goes to a file does not load tqdm."""

    disable = True
    total = 0

    def __enter__(self) -> _Hidden:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, n: float = 1) -> None:
        """Do nothing."""

    set_postfix_str = update


def progress(total: int | None, desc: str, unit: str = "lines", show: bool | None = None) -> Any:
    """Return a tqdm bar to ``update(n)`` in a ``with`` statement; show=None: on a terminal and in a notebook."""
    notebook = "ipykernel" in sys.modules
    if sys.stderr is None or not (notebook or sys.stderr.isatty() if show is None else show):
        return _Hidden()
    if notebook:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm

    columns = rows = 0
    with contextlib.suppress(OSError, ValueError):
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    return tqdm(
        total=total,
        desc=desc,
        unit=f" {unit}",
        file=sys.stderr,
        ncols=None if columns else 80,  # tqdm shows nothing in a terminal that does not know its size
        nrows=None if rows else 24,
        dynamic_ncols=columns > 0,
        mininterval=0.3,
        smoothing=0.1,
    )


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Return a number and its noun: "1 pair", "1,000 pairs"."""
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns padded to one width, numbers to the right, words to the left, without trailing blanks."""
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


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    head, *table = (f"| {' | '.join(row)} |" for row in [header, *rows])
    return "\n".join([head, "|---" * len(header) + "|", *table])


def nice_step(wanted: float) -> float:
    """Return the smallest of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that is at least `wanted` (> 0)."""
    magnitude = 10.0 ** math.floor(math.log10(wanted))
    return next(f * magnitude for f in (1, 2, 5, 10) if f * magnitude >= wanted * 0.999)
