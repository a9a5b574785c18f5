"""Equal lines: one row for all of them before the search, pairs of lines again after it.

A repeated line would fill its own neighbourhood, which leaves no margin.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.store import VectorFile
from bitextmine.languages.clean import normal_pieces
from bitextmine.languages.romanize import fold_lookalikes
from bitextmine.mining.options import Dedup
from bitextmine.mining.pairing import ScoredPairs, joined

# Characters that show nothing: a line of these alone is as empty as a line of blanks.
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\0"
_DIGITS = re.compile(r"\d+")
_NOT_WORD = re.compile(r"[\W_]+")
# What `near` leaves out: soft hyphens, the dot that the small form of a dotted capital I has, tatweel, and the vowel
# marks of Arabic and Hebrew.
_LEFT_OUT = "\u00ad\u0307\u0640\u0670" + "".join(
    map(chr, (*range(0x610, 0x61B), *range(0x64B, 0x660), *range(0x6D6, 0x6DD), *range(0x591, 0x5BE)))
)
# Persian and Arabic ye and kaf, and the small dotless i, each as one letter.
_ALIKE = {**dict.fromkeys("\u0649\u06cc", "\u064a"), "\u06a9": "\u0643", "\u0131": "i"}
_FOLDED = str.maketrans({**dict.fromkeys(_LEFT_OUT, ""), **_ALIKE})
_ZEROS, _SPACES = re.compile("00+"), re.compile("  +")
_MEMBERS = 256  # of a group of nearly equal lines are compared


@dataclass(frozen=True)
class Unique:
    """The rows of a corpus after deduplication, ascending, by the number (from 0) of their first line, (u,).

    `line_to_row` (n,) is the row of each line, -1 for a line that is never mined (empty or blank).
    """

    rows: NDArray[np.int64]
    line_to_row: NDArray[np.int64]

    @property
    def lines(self) -> int:
        """Return the number of lines of the corpus."""
        return len(self.line_to_row)

    @property
    def empty(self) -> int:
        """Return the number of empty or blank lines."""
        return int((self.line_to_row < 0).sum())

    @property
    def repeated(self) -> int:
        """Return the number of lines that repeat an earlier one."""
        return self.lines - self.empty - len(self.rows)

    def without(self, dropped: NDArray[np.bool_]) -> Unique:
        """Return the rows without those where the mask `dropped` (u,) is true."""
        new_row = np.where(dropped, -1, np.cumsum(~dropped) - 1)
        padded = np.append(new_row, -1)  # line_to_row -1 reads the last entry
        return Unique(self.rows[~dropped], padded[self.line_to_row])

    def lines_by_row(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the line numbers grouped by row, ascending, and the start of each group (u + 1,)."""
        order = np.argsort(self.line_to_row, kind="stable")
        first = np.searchsorted(self.line_to_row[order], np.arange(len(self.rows) + 1))
        return order, first.astype(np.int64)


def line_key(line: str, level: str = Dedup.EXACT) -> str:
    """Return the key that equal lines share; empty for a line that is never mined.

    ``exact``: Unicode NFC, runs of white space as one space, none at the ends. ``near``: also NFKC, without case and
    punctuation, all numbers alike, letters that look alike in one script per word, without vowel marks and tatweel
    in Arabic (`_FOLDED`); a line of punctuation alone keeps its exact key. More than 30 combining marks in a row, in
    a line of more than 1,000 characters, are put in order 30 at a time (`normal_pieces`). ``none``: the line
    itself, or nothing if it is blank.
    """
    if level == Dedup.NONE:
        return line if line.strip().strip(_INVISIBLE) else ""
    if not line.isascii():
        line = "".join(unicodedata.normalize("NFC", piece) for piece in normal_pieces(line))
    exact = " ".join(line.split())
    if not exact.strip(_INVISIBLE):
        return ""
    if level == Dedup.EXACT:
        return exact
    return _near(exact) or exact


def _near(line: str) -> str:
    pieces = [
        _NOT_WORD.sub(" ", _DIGITS.sub("0", unicodedata.normalize("NFKC", folded).translate(_FOLDED)))
        for piece in normal_pieces(line)
        for folded in (unicodedata.normalize("NFKC", fold_lookalikes(piece)).casefold(),)
    ]
    if len(pieces) == 1:
        return pieces[0].strip()
    # What was cut in two by the ends of pieces.
    return _SPACES.sub(" ", _ZEROS.sub("0", "".join(pieces))).strip()


def unique_lines(lines: Iterable[str], level: str = Dedup.EXACT) -> Unique:
    """Group the lines of a corpus by `line_key`; the first line of a group represents it.

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
    candidates = np.delete(np.arange(n), blank)
    line_to_row = np.full(n, -1, dtype=np.int64)
    if level == Dedup.NONE:
        line_to_row[candidates] = np.arange(len(candidates))
        return Unique(candidates, line_to_row)
    keys = np.frombuffer(digests, dtype="V16")[candidates]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    rows, row_of_group = np.unique(candidates[first], return_inverse=True)
    line_to_row[candidates] = row_of_group[group]
    return Unique(rows, line_to_row)


def first_lines(pairs: ScoredPairs, src: Unique, tgt: Unique) -> ScoredPairs:
    """Turn pairs of rows into pairs of their first lines, in the same order."""
    return ScoredPairs(src.rows[pairs.src], tgt.rows[pairs.tgt], pairs.score)


def every_line(pairs: ScoredPairs, src: Unique, tgt: Unique) -> ScoredPairs:
    """Turn pairs of rows into pairs of lines in which each repetition of a mined line has its own pair.

    Of a lines equal to the source and b lines equal to the target, the first is paired with the first, the second with
    the second, and so on; the rest of the longer group with the first line of the other: max(a, b) pairs.
    """
    src_lines, src_start = src.lines_by_row()
    tgt_lines, tgt_start = tgt.lines_by_row()
    a = (src_start[1:] - src_start[:-1])[pairs.src]
    b = (tgt_start[1:] - tgt_start[:-1])[pairs.tgt]
    times = np.maximum(a, b)
    pair = np.repeat(np.arange(len(pairs)), times)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
    s = src_lines[src_start[pairs.src][pair] + np.where(nth < a[pair], nth, 0)]
    t = tgt_lines[tgt_start[pairs.tgt][pair] + np.where(nth < b[pair], nth, 0)]
    return joined(ScoredPairs(s, t, pairs.score[pair]))


def closest_lines(
    pairs: ScoredPairs,
    src: Unique,
    tgt: Unique,
    src_vectors: NDArray[Any] | VectorFile,
    tgt_vectors: NDArray[Any] | VectorFile,
    *,
    every: bool = False,
) -> ScoredPairs:
    """Turn pairs of rows into pairs of lines, for groups of nearly equal lines; vectors (lines, d) are of all lines.

    "Article 5" and "Article 6" are one row, and so are their translations. Each pair of groups gives the two lines of
    the highest cosine (of equal ones the first), or with `every` each line with its closest. Of a group of more than
    256 lines the first 256 are compared; with `every` the others are paired with the first line of the other side.
    """
    src_lines, src_start = src.lines_by_row()
    tgt_lines, tgt_start = tgt.lines_by_row()
    plain = (np.diff(src_start)[pairs.src] == 1) & (np.diff(tgt_start)[pairs.tgt] == 1)
    parts = [first_lines(pairs.take(plain), src, tgt)]
    grouped = pairs.take(~plain)
    for s, t, score in zip(grouped.src, grouped.tgt, grouped.score, strict=True):
        left, right = src_lines[src_start[s] : src_start[s + 1]], tgt_lines[tgt_start[t] : tgt_start[t + 1]]
        near_left, near_right = left[:_MEMBERS], right[:_MEMBERS]
        cos = src_vectors[near_left].astype(np.float64) @ tgt_vectors[near_right].astype(np.float64).T
        cos = np.round(cos, 6)
        ends = [divmod(int(cos.argmax()), cos.shape[1])]
        if every:
            of_right = ((i, j) for j, i in enumerate(cos.argmax(axis=0).tolist()))
            ends = sorted({*enumerate(cos.argmax(axis=1).tolist()), *of_right})
        lines = [(near_left[i], near_right[j]) for i, j in ends]
        if every:
            lines += [(i, right[0]) for i in left[_MEMBERS:]] + [(left[0], j) for j in right[_MEMBERS:]]
        s_lines, t_lines = np.array(lines, dtype=np.int64).T
        parts.append(ScoredPairs(s_lines, t_lines, np.full(len(lines), score)))
    return joined(*parts)
