"""Results as text: aligned for eyes, tab-separated for programs."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "tab_separated"]


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
