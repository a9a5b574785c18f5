"""Tokenised sentence pairs on disk: read by row, and selected to train on and to hold out, in little memory."""

import dataclasses
import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing

# A pair in the index: the start of its pieces in the other file (in pieces), their numbers on the source and target
# side, and a key for each of the two sentences.
RECORD = np.dtype([("start", "<u8"), ("lengths", "<u4", (2,)), ("keys", "<u8", (2,))])

# Rows handled at once, about 100 bytes each, and rows among which repeats are found at once, about 60 bytes each.
BLOCK, AT_ONCE = 1 << 19, 1 << 21


@dataclasses.dataclass(frozen=True)
class EditedCopies:
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
    edited: EditedCopies | None = None

    def __len__(self) -> int:
        return len(self.src)


class PairFile:
    """The pairs of an index file, a whole corpus or a selection; BitextmineError if a file is missing or cut short.

    ``pieces`` holds piece ids, uint16 or uint32, the source's before the target's, pair after pair; ``index`` a RECORD
    for each pair. Both are read with pread: a memory map of pairs drawn at random soon counts most of the file as this
    process's memory, is no faster, and ends the process if the disk fails.
    """

    def __init__(self, pieces: Path, index: Path, dtype: np.dtype) -> None:
        self.pieces, self.index, self.dtype = pieces, index, np.dtype(dtype)
        files = []
        try:
            for path in (pieces, index):
                files.append(os.open(path, os.O_RDONLY))
                weakref.finalize(self, os.close, files[-1])
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
        records = np.frombuffer(raw, dtype=RECORD)
        lengths = records["lengths"].astype(np.int64)
        item = self.dtype.itemsize
        starts = records["start"].astype(np.int64) * item
        raw = self._read(self._pieces, self.pieces, starts, lengths.sum(axis=1) * item)
        both = Pieces(np.frombuffer(raw, dtype=self.dtype), offsets_of(lengths.ravel()))
        src, tgt = (both.take(np.arange(side, 2 * len(records), 2), max_pieces) for side in (0, 1))
        return TokenPairs(src, tgt, records["keys"].T.copy())

    def records(self, start: int, stop: int) -> np.ndarray:
        """Return the records of rows ``start`` to ``stop``, fewer at the end of the file."""
        stop = min(stop, self._n)
        size = RECORD.itemsize
        where, length = np.array([start * size]), np.array([max(0, stop - start) * size])
        return np.frombuffer(self._read(self._index, self.index, where, length), dtype=RECORD)

    def _read(self, file: int, path: Path, starts: np.ndarray, sizes: np.ndarray) -> bytes:
        try:
            raw = b"".join(map(os.pread, itertools.repeat(file), sizes.tolist(), starts.tolist()))
        except OSError as e:
            raise BitextmineError(f"{path}: cannot read the token cache: {e.strerror}") from None
        if len(raw) != sizes.sum():
            raise self._damaged(path)
        return raw

    def _damaged(self, path: Path) -> BitextmineError:
        return BitextmineError(f"{path}: the token cache is cut short; remove {path.parent} to make it again")


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


def blocks(file: PairFile) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the records of a file, BLOCK at a time, with the number of the first row."""
    for start in range(0, len(file), BLOCK):
        yield start, file.records(start, start + BLOCK)


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


# --- selection -----------------------------------------------------------------------------------------------


def choose(
    files: Sequence[PairFile],
    outputs: Sequence[tuple[Path, Path]],
    valid_pairs: int,
    on_pairs: Callable[[int], object] = lambda n: None,
) -> list[dict[str, int]]:
    """Write an index of the pairs to train on and one of the held-out pairs for each corpus, in the corpus's order.

    Of pairs with the same two sentences (128 bits of hash, in either direction) the first is kept. Returns the numbers
    of each corpus's pairs: "train", "valid", "repeated" (an earlier one) and "shared" (with a sentence of a held-out
    pair).

    No pair to train on has a sentence, on either side, that is in a held-out pair of any corpus. Takes about 150 MB of
    memory, 1 byte per pair and 32 bytes per held-out pair.

    Args:
        files: the corpora.
        outputs: paths of the two indexes of each corpus.
        valid_pairs: pairs to hold out of each corpus, at most a twentieth of it: those whose source has the smallest
            key, one per source, so that the same sentences stay held out when a corpus grows.
        on_pairs: called with numbers of pairs, three for each pair.
    """
    first = np.cumsum([0, *map(len, files)])
    repeated = np.zeros(int(first[-1]), dtype=bool)
    passes = max(1, -(-len(repeated) // AT_ONCE))
    for number in range(passes):
        _mark_repeats(files, number, passes, repeated)
    on_pairs(len(repeated))
    parts = [repeated[a:b] for a, b in itertools.pairwise(first)]
    held_out = [_held_out(file, part, valid_pairs, on_pairs) for file, part in zip(files, parts, strict=True)]
    keys = [file.take(rows).keys.ravel() for file, rows in zip(files, held_out, strict=True)]
    shared = np.unique(np.concatenate([np.zeros(0, np.uint64), *keys]))
    counted = []
    for file, part, rows, paths in zip(files, parts, held_out, outputs, strict=True):
        train = 0
        with replacing(paths[0]) as to_train, replacing(paths[1]) as to_valid:
            for row, records in blocks(file):
                keep = ~part[row : row + len(records)] & ~np.isin(records["keys"], shared).any(axis=1)
                here = rows[(rows >= row) & (rows < row + len(records))] - row
                to_train.write(records[keep].data)
                to_valid.write(records[here].data)
                train += int(keep.sum())
                on_pairs(len(records))
        valid, dropped = len(rows), int(part.sum())
        counts = train, valid, dropped, len(file) - train - valid - dropped
        counted.append(dict(zip(("train", "valid", "repeated", "shared"), counts, strict=True)))
    return counted


def _mark_repeats(files: Sequence[PairFile], number: int, passes: int, repeated: np.ndarray) -> None:
    """Mark the rows, counted through all corpora, that repeat an earlier pair; each pass sees a share of the keys."""
    low, high, row, start = [], [], [], 0
    for _, records in (block for file in files for block in blocks(file)):
        keys = np.sort(records["keys"], axis=1)
        mine = np.flatnonzero(_mix(keys[:, 0] ^ _mix(keys[:, 1])) % np.uint64(passes) == number)
        low.append(keys[mine, 0])
        high.append(keys[mine, 1])
        row.append(start + mine)
        start += len(records)
    if start:
        lows, highs = np.concatenate(low), np.concatenate(high)
        order = np.lexsort((highs, lows))  # stable: of equal pairs the first row comes first
        lows, highs = lows[order], highs[order]
        again = (lows[1:] == lows[:-1]) & (highs[1:] == highs[:-1])
        repeated[np.concatenate(row)[order[1:][again]]] = True


def _mix(keys: np.ndarray) -> np.ndarray:
    keys = keys * np.uint64(0x9E3779B97F4A7C15)
    return keys ^ (keys >> np.uint64(32))


def _held_out(
    file: PairFile, repeated: np.ndarray, wanted: int, on_pairs: Callable[[int], object]
) -> np.ndarray:
    """Return the rows to hold out, (m,) int64, increasing."""
    keys, rows = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    total = 0
    for row, records in blocks(file):
        fresh = np.flatnonzero(~repeated[row : row + len(records)])
        total += len(fresh)
        # Of equal keys the first row stays.
        keys, first = np.unique(np.concatenate([keys, records["keys"][fresh, 0]]), return_index=True)
        keys, rows = keys[:wanted], np.concatenate([rows, row + fresh])[first[:wanted]]
        on_pairs(len(records))
    return np.sort(rows[: min(wanted, total // 20)])
