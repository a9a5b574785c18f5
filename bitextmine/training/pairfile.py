"""Tokenised sentence pairs on disk, read by row, in memory independent of their number."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import weakref
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError

# A pair in the index: the start of its pieces in the other file (in pieces), their numbers on the source and target
# side, and a key for each of the two sentences.
RECORD = np.dtype([("start", "<u8"), ("lengths", "<u4", (2,)), ("keys", "<u8", (2,))])


@dataclasses.dataclass(frozen=True)
class Edited:
    """Changed copies (m) of the sentences ``rows`` (m,) int64 of one side (0: src, 1: tgt) of a batch."""

    side: int
    rows: np.ndarray
    pieces: Pieces


@dataclasses.dataclass(frozen=True)
class TokenPairs:
    """n tokenised pairs in memory.

    src, tgt: Pieces of n sentences each; keys: (2, n) uint64, equal for sentences of equal pieces; teacher: None, or
    the teacher's vectors of them, (2, n, d) float32 with unit rows; edited: None, or changed copies of some.
    """

    src: Pieces
    tgt: Pieces
    keys: np.ndarray
    teacher: np.ndarray | None = None
    edited: Edited | None = None

    def __len__(self) -> int:
        return len(self.src)


class PairFile:
    """The pairs of an index file: a whole corpus, or a selection of its rows.

    ``pieces`` holds piece ids, uint16 or uint32, the source's before the target's, pair after pair; ``index`` a
    RECORD for each pair, 32 bytes. Both are read with pread: a memory map of pairs drawn at random soon counts most of
    the file as this process's memory, is no faster, and ends the process if the disk fails.

    Raises:
        BitextmineError: a file is missing or cut short.
    """

    def __init__(self, pieces: Path, index: Path, dtype: np.dtype) -> None:
        self.pieces, self.index, self.dtype = pieces, index, np.dtype(dtype)
        files = []
        try:
            for path in (pieces, index):
                files.append(os.open(path, os.O_RDONLY))
                weakref.finalize(self, _close, files[-1])
            self._pieces, self._index = files
            self._n, rest = divmod(os.fstat(self._index).st_size, RECORD.itemsize)
        except OSError as e:
            raise BitextmineError(f"{path}: cannot read the token cache: {e.strerror}") from None
        if rest:
            raise self._damaged(index)

    def __len__(self) -> int:
        return self._n

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """Return the pairs of ``rows`` (m,) int, in that order, each sentence cut to ``max_pieces``."""
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= self._n):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {self._n}")
        size = RECORD.itemsize
        raw = self._read(self._index, self.index, rows * size, np.full(len(rows), size))
        return self._pairs(np.frombuffer(raw, dtype=RECORD), max_pieces)

    def records(self, start: int, stop: int) -> np.ndarray:
        """Return the records of rows ``start`` to ``stop``, as far as they exist."""
        stop = min(stop, self._n)
        size = RECORD.itemsize
        where, length = np.array([start * size]), np.array([max(0, stop - start) * size])
        return np.frombuffer(self._read(self._index, self.index, where, length), dtype=RECORD)

    def _pairs(self, records: np.ndarray, max_pieces: int | None) -> TokenPairs:
        lengths = records["lengths"].astype(np.int64)
        item = self.dtype.itemsize
        starts = records["start"].astype(np.int64) * item
        raw = self._read(self._pieces, self.pieces, starts, lengths.sum(axis=1) * item)
        offsets = np.zeros(2 * len(records) + 1, dtype=np.int64)
        np.cumsum(lengths.ravel(), out=offsets[1:])
        both = Pieces(np.frombuffer(raw, dtype=self.dtype), offsets)
        even = np.arange(0, 2 * len(records), 2)
        return TokenPairs(
            both.take(even, max_pieces), both.take(even + 1, max_pieces), records["keys"].T.copy()
        )

    def _read(self, file: int, path: Path, starts: np.ndarray, sizes: np.ndarray) -> bytes:
        try:
            raw = b"".join(map(os.pread, repeat(file), sizes.tolist(), starts.tolist()))
        except OSError as e:
            raise BitextmineError(f"{path}: cannot read the token cache: {e.strerror}") from None
        if len(raw) != sizes.sum():
            raise self._damaged(path)
        return raw

    def _damaged(self, path: Path) -> BitextmineError:
        return BitextmineError(f"{path}: the token cache is cut short; remove {path.parent} to make it again")


def _close(file: int) -> None:
    with contextlib.suppress(OSError):
        os.close(file)


class PairWriter:
    """Writes the two files that PairFile reads. OSError passes through."""

    def __init__(self, pieces: BinaryIO, index: BinaryIO, dtype: np.dtype) -> None:
        self._pieces, self._index, self._dtype = pieces, index, dtype
        self._start = 0

    def write(self, src: Pieces, tgt: Pieces, keys: np.ndarray) -> None:
        """Append n pairs; ``keys`` (2, n) uint64."""
        lengths = np.stack([src.lengths, tgt.lengths], axis=1)
        records = np.zeros(len(lengths), dtype=RECORD)
        records["lengths"] = lengths
        records["keys"] = keys.T
        sizes = lengths.sum(axis=1)
        records["start"] = self._start + np.cumsum(sizes) - sizes
        n = len(lengths)
        # Row i of the joined pieces is source i, row n + i target i.
        order = np.arange(2 * n).reshape(2, n).T.ravel()
        self._pieces.write(Pieces.join([src, tgt]).take(order).ids.astype(self._dtype).data)
        self._index.write(records.data)
        self._start += int(sizes.sum())


def blocks(file: PairFile, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the records of a file, ``rows`` at a time, with the number of the first row."""
    for start in range(0, len(file), rows):
        yield start, file.records(start, start + rows)


def sentence_keys(pieces: Pieces) -> np.ndarray:
    """Return (n,) uint64, a hash of each sentence's pieces in order.

    Polynomial in an odd base, finished by splitmix64's mixer; computed by column, so that it is fast in NumPy.
    """
    keys = np.full(len(pieces), 0x9E3779B97F4A7C15, dtype=np.uint64)
    lengths = pieces.lengths
    order = np.argsort(-lengths, kind="stable")
    starts, sorted_lengths = pieces.offsets[:-1][order], lengths[order]
    state = keys[order]
    for column in range(int(sorted_lengths[0]) if len(order) else 0):
        live = int(np.searchsorted(-sorted_lengths, -column, side="left"))
        ids = pieces.ids[starts[:live] + column].astype(np.uint64)
        state[:live] = state[:live] * np.uint64(0xD1342543DE82EF95) + ids + np.uint64(1)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    keys[order] = state
    return keys
