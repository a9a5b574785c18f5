"""Equal lines, collapsed before the search.

A repeated line would fill its own neighbourhood, which leaves no margin.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.languages.normalize import normal_pieces
from bitextmine.mining.choices import Dedup

__all__ = ["Dedup", "Unique", "line_key", "unique_lines"]


# Characters that show nothing: a line of these alone is as empty as a line of blanks.
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\0"
_DIGITS = re.compile(r"\d+")
_NOT_WORD = re.compile(r"[\W_]+")
_ZEROS, _SPACES = re.compile("00+"), re.compile("  +")


@dataclass(frozen=True)
class Unique:
    """The rows of a corpus after deduplication, and the way between rows and lines.

    rows: int64 (u,), ascending; the line number (from 0) of each row's representative, its first line.
    line_to_row: int64 (n,); the row of each line, -1 for a line that is never mined (empty or blank).
    """

    rows: NDArray[np.int64]
    line_to_row: NDArray[np.int64]

    @property
    def lines(self) -> int:
        """How many lines the corpus has."""
        return len(self.line_to_row)

    @property
    def empty(self) -> int:
        """How many lines are empty or blank."""
        return int((self.line_to_row < 0).sum())

    @property
    def repeated(self) -> int:
        """How many lines repeat an earlier one."""
        return self.lines - self.empty - len(self.rows)

    def without(self, dropped: NDArray[np.bool_]) -> Unique:
        """The same, less the rows where the mask `dropped` (u,) is true; their lines are mined no more."""
        new_row = np.where(dropped, -1, np.cumsum(~dropped) - 1)
        padded = np.append(new_row, -1)  # line_to_row -1 reads the last entry
        return Unique(self.rows[~dropped], padded[self.line_to_row])

    def lines_by_row(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All lines grouped by row, each group ascending: (line numbers, start of each row's group; u + 1)."""
        order = np.argsort(self.line_to_row, kind="stable")
        first = np.searchsorted(self.line_to_row[order], np.arange(len(self.rows) + 1))
        return order, first.astype(np.int64)


def line_key(line: str, level: str = Dedup.EXACT) -> str:
    """What two lines share when they count as the same line; empty for a line that is never mined.

    ``exact``: Unicode NFC, white space runs made one space, none at the ends. ``near``: besides,
    compatibility forms (NFKC), case and punctuation ignored and every number taken for every other one; a
    line of punctuation alone keeps its exact key. More than 30 combining marks in a row, in a line of more than 1,000
    characters, are put in order 30 at a time (`normal_pieces`). ``none``: the line itself, or nothing when it is blank.
    """
    if level not in tuple(Dedup):
        raise BitextmineError(f"deduplication: unknown level {level!r}; choose one of {', '.join(Dedup)}")
    if level == Dedup.NONE:
        return line if line.strip().strip(_INVISIBLE) else ""
    exact = " ".join(line.split()) if line.isascii() else " ".join(_nfc(line).split())
    if not exact.strip(_INVISIBLE):
        return ""
    if level == Dedup.EXACT:
        return exact
    return _near(exact) or exact


def _nfc(line: str) -> str:
    return "".join(unicodedata.normalize("NFC", piece) for piece in normal_pieces(line))


def _near(line: str) -> str:
    pieces = [
        _NOT_WORD.sub(" ", _DIGITS.sub("0", unicodedata.normalize("NFKC", folded)))
        for piece in normal_pieces(line)
        for folded in (unicodedata.normalize("NFKC", piece).casefold(),)
    ]
    if len(pieces) == 1:
        return pieces[0].strip()
    # What was cut in two by the ends of pieces.
    return _SPACES.sub(" ", _ZEROS.sub("0", "".join(pieces))).strip()


def unique_lines(lines: Iterable[str], level: str = Dedup.EXACT) -> Unique:
    """Group the lines of a corpus by `line_key`; each group's first line stands for it.

    Reads `lines` once and keeps 24 bytes per line (a 128-bit digest of the key, not the text).
    """
    digests = bytearray()
    blank: list[int] = []
    n = 0
    for n, line in enumerate(lines, start=1):
        key = line_key(line, level)
        if not key:
            blank.append(n - 1)
        if level != Dedup.NONE:
            digests += hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    is_line = np.ones(n, dtype=bool)
    is_line[blank] = False
    candidates = np.flatnonzero(is_line)
    line_to_row = np.full(n, -1, dtype=np.int64)
    if level == Dedup.NONE:
        line_to_row[candidates] = np.arange(len(candidates))
        return Unique(candidates, line_to_row)
    if not len(candidates):
        return Unique(candidates, line_to_row)
    keys = np.frombuffer(digests, dtype=np.uint64).reshape(n, 2)[candidates]
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in the order of their lines
    ranked = keys[order]
    starts = np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1))
    first_of_group = candidates[order[starts]]
    rows = np.sort(first_of_group)
    row_of_group = np.searchsorted(rows, first_of_group)
    line_to_row[candidates[order]] = row_of_group[np.cumsum(starts) - 1]
    return Unique(rows, line_to_row)
