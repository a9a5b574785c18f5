"""Gold standards: the known translations between two corpora, as line numbers."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.files.lines import iter_lines
from bitextmine.mining.sides import Side

_NUMBER = re.compile(r"[0-9]{1,18}")  # what fits in 64 bits


@dataclass(frozen=True)
class Gold:
    """Pairs of line numbers counted from 0: source int64 (g,), target int64 (g,), each pair once."""

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.src)


def read_gold(path: str | os.PathLike[str], errors: str = "strict") -> Gold:
    """Read a gold file: per line a source line number, a tab, a target line number, both counted from 1.

    Further columns and blank lines are ignored, and a repeated pair counts once.

    Raises:
        BitextmineError: a line has another shape, or the file holds no pair; the message names the line.
    """
    src: list[int] = []
    tgt: list[int] = []
    for number, line in enumerate(iter_lines(path, errors), start=1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 2 or not all(_NUMBER.fullmatch(cell.strip()) for cell in cells[:2]):
            raise BitextmineError(
                f"{path}: line {number}: expected two line numbers separated by a tab, found {line[:60]!r}"
            )
        s, t = int(cells[0]), int(cells[1])
        if s < 1 or t < 1:
            raise BitextmineError(f"{path}: line {number}: line numbers count from 1, found {min(s, t)}")
        src.append(s - 1)
        tgt.append(t - 1)
    if not src:
        raise BitextmineError(f"{path}: no gold pair in it; expected lines like '12<tab>7'")
    pairs = np.unique(np.array([src, tgt], dtype=np.int64), axis=1)
    return Gold(pairs[0], pairs[1])


def gold_in_rows(
    gold: Gold, sides: tuple[Side, Side], path: str | os.PathLike[str]
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]:
    """Return the rows of both ends of the gold pairs, and the codes of the distinct pairs.

    Pairs with a line that is not mined have codes below 0.

    Raises:
        BitextmineError: a line number is beyond the end of a corpus.
    """
    for side, lines in zip(sides, (gold.src, gold.tgt), strict=True):
        check_line_numbers(os.fspath(path), lines, side.text.name, side.unique.lines)
    src, tgt = (
        side.unique.line_to_row[lines] for side, lines in zip(sides, (gold.src, gold.tgt), strict=True)
    )
    codes = pair_codes(src, tgt, len(sides[1].unique.rows))
    lost = (src < 0) | (tgt < 0)
    return (src[src >= 0], tgt[tgt >= 0]), np.unique(np.where(lost, -1 - np.arange(len(codes)), codes))


def check_line_numbers(where: str, lines: NDArray[np.int64], text: str, there: int) -> None:
    """Raise BitextmineError if a line number is beyond the end of a corpus.

    Args:
        where: the file that holds the numbers.
        lines: the numbers, from 0.
        text: the name of the corpus.
        there: lines in the corpus.
    """
    if len(lines) and (last := int(lines.max())) >= there:
        raise BitextmineError(
            f"{where}: line number {last + 1:,}, but {text} has {counted(there, 'line')}; these files do not belong "
            "together"
        )


def pair_codes(src: NDArray[np.int64], tgt: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return one number per pair, for set operations.

    `width` is above every target number, and src * width below 2**63.
    """
    return src * np.int64(width) + tgt
