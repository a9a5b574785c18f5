"""Files of line numbers: gold standards, the known translations between two corpora, and mined pairs."""

import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.table import open_table
from bitextmine.files.source import Source
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.sides import Sides

_NUMBER = re.compile(r"0*[1-9][0-9]{0,17}")  # from 1, and what fits in 64 bits
_MINED = ("score", "src_line", "tgt_line")


@dataclass(frozen=True)
class Gold:
    """Pairs of line numbers counted from 0: source int64 (g,), target int64 (g,), each pair once; and their file."""

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    path: str = "gold"

    def __len__(self) -> int:
        return len(self.src)


def read_gold(path: str | os.PathLike[str]) -> Gold:
    """Read a gold file: per line a source line number, a tab, a target line number, both counted from 1.

    Further columns and blank lines are ignored, a repeated pair counts once. BitextmineError names a malformed line.
    """
    found: list[tuple[int, int]] = []
    for number, line in enumerate(Source.of(path).lines(), start=1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 2 or not all(_NUMBER.fullmatch(cell.strip()) for cell in cells[:2]):
            raise BitextmineError(
                f"{path}: line {number}: expected two line numbers, from 1, separated by a tab, found {line[:60]!r}"
            )
        found.append((int(cells[0]), int(cells[1])))
    if not found:
        raise BitextmineError(f"{path}: no gold pair in it; expected lines like '12<tab>7'")
    src, tgt = (np.unique(np.array(found, dtype=np.int64), axis=0) - 1).T
    return Gold(src, tgt, str(path))


@dataclass(frozen=True)
class GoldRows:
    """Gold in rows of two sides: those of both ends, and the codes of the distinct pairs.

    Pairs with a line that is not mined have codes below 0.
    """

    ends: tuple[NDArray[np.int64], NDArray[np.int64]]
    codes: NDArray[np.int64]
    width: int
    path: str

    @classmethod
    def of(cls, gold: Gold, sides: Sides) -> "GoldRows":
        """Return the gold of two sides; BitextmineError for a line number beyond the end of a corpus."""
        ends = []
        for side, lines in zip(sides, (gold.src, gold.tgt), strict=True):
            if (last := int(lines.max(initial=-1))) >= side.unique.lines:
                raise BitextmineError(
                    f"{gold.path}: line number {last + 1:,}, but {side.text.name} has "
                    f"{counted(side.unique.lines, 'line')}; these files do not belong together"
                )
            ends.append(side.unique.line_to_row[lines])
        (src, tgt), width = ends, len(sides[1].unique.rows)
        lost = (src < 0) | (tgt < 0)
        codes = np.where(lost, -1 - np.arange(len(src)), pair_codes(src, tgt, width))
        return cls((src[src >= 0], tgt[tgt >= 0]), np.unique(codes), width, gold.path)

    def marks(self, pairs: ScoredPairs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks (p,): the pairs that gold has, and those with a line that it mentions."""
        correct = np.isin(pair_codes(pairs.src, pairs.tgt, self.width), self.codes)
        return correct, np.isin(pairs.src, self.ends[0]) | np.isin(pairs.tgt, self.ends[1])


def pair_codes(src: NDArray[np.int64], tgt: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return one number per pair, for set operations; `width` is above every target number."""
    return src * np.int64(width) + tgt


def read_mined(path: str | os.PathLike[str]) -> ScoredPairs:
    """Read the output of ``mine --ids``: score, source line, target line (both from 1), as pairs of lines from 0.

    They are the columns score, src_line and tgt_line of the header; without a header, the first three. BitextmineError
    names a malformed row.
    """
    source = Source.of(path)
    table = open_table(source, Columns(errors=source.errors))
    places, remedy = table.layout.places, "make the file with 'bitextmine mine --ids --threshold none'"
    missing = [role for role in _MINED if role not in places] if table.layout.names else []
    if missing:
        raise BitextmineError(f"{source}: no column {' or '.join(missing)}; {remedy}")
    columns = [places[role] for role in _MINED] if table.layout.names else [0, 1, 2]
    parts: list[list[NDArray[np.float64]]] = [[np.empty(0)] * len(_MINED)]
    for block in table.blocks():
        wrong = min(block.bad(), default=len(block))
        rows = np.arange(wrong if max(columns) < block.width else 0)
        score, *lines = (block.numbers(column, rows) for column in columns)
        bad = np.isnan(score)
        for line in lines:  # whole numbers from 1 that float64 holds exactly
            bad |= ~((line >= 1) & (line == np.floor(line)) & (line < 1 << 53))
        if len(rows) < len(block) or bad.any():
            number = block.start + int(np.argmax([*bad, True])) + table.header_line
            raise BitextmineError(
                f"{source}: {'line' if table.format.lines else 'row'} {number}: expected a score, a source line and a "
                f"target line, both counted from 1; {remedy}"
            )
        parts.append([score, *lines])
    score, src, tgt = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ScoredPairs(src.astype(np.int64) - 1, tgt.astype(np.int64) - 1, score)
