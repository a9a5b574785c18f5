"""Tokenised sentence pairs on disk: read by row, and selected to train on and to hold out, in little memory."""

from __future__ import annotations

import dataclasses
import itertools
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError

# A pair in the index: the start of its pieces in the other file (in pieces), their numbers on the source and target
# side, and a key for each of the two sentences.
RECORD = np.dtype([("start", "<u8"), ("lengths", "<u4", (2,)), ("keys", "<u8", (2,))])

# Rows handled at once; about 100 bytes each are in memory at a time.
BLOCK = 1 << 19
# A pair during the search for repeats: its two sentences' keys, the smaller first, and its row, counted through all
# corpora. 24 bytes a pair, on disk.
TWIN = np.dtype([("low", "<u8"), ("high", "<u8"), ("row", "<u8")])


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
        offsets = np.zeros(2 * len(records) + 1, dtype=np.int64)
        np.cumsum(lengths.ravel(), out=offsets[1:])
        both = Pieces(np.frombuffer(raw, dtype=self.dtype), offsets)
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


def _blocks(file: PairFile) -> Iterator[tuple[int, np.ndarray]]:
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


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Counts of a corpus's pairs: to train on, held out, repeating an earlier one, sharing a held-out sentence."""

    train: int
    valid: int
    repeated: int
    shared: int


def choose(
    files: Sequence[PairFile],
    outputs: Sequence[tuple[Path, Path]],
    *,
    deduplicate: bool,
    valid_pairs: int,
    on_pairs: Callable[[int], object] = lambda n: None,
) -> list[Chosen]:
    """Write an index of the pairs to train on and one of the held-out pairs for each corpus, in the corpus's order.

    No pair to train on has a sentence, on either side, that is in a held-out pair of any corpus. Takes 24 bytes of
    disk per pair besides the outputs, and about 100 MB of memory, 1 byte per pair and 32 bytes per held-out pair.

    Args:
        files: the corpora.
        outputs: paths of the two indexes of each corpus.
        deduplicate: of pairs with the same two sentences (by 128 bits of hash of their pieces, in either direction)
            keep the first, over all corpora.
        valid_pairs: pairs to hold out of each corpus, at most a twentieth of it: those whose source has the smallest
            key, one per source, so that the same sentences stay held out when a corpus grows.
        on_pairs: called with numbers of pairs; each is read twice, or three times with deduplicate.
    """
    first = np.cumsum([0, *map(len, files)])
    repeated = np.zeros(int(first[-1]), dtype=bool)
    if deduplicate:
        with tempfile.TemporaryDirectory(".part", "repeats.", outputs[0][0].parent) as folder:
            _find_repeats(files, Path(folder), repeated, on_pairs)
    parts = [repeated[a:b] for a, b in itertools.pairwise(first)]
    held_out = [_held_out(file, part, valid_pairs, on_pairs) for file, part in zip(files, parts, strict=True)]
    keys = [file.take(rows).keys.ravel() for file, rows in zip(files, held_out, strict=True)]
    shared = np.unique(np.concatenate([np.zeros(0, np.uint64), *keys]))
    return [
        _write(file, part, rows, shared, paths, on_pairs)
        for file, part, rows, paths in zip(files, parts, held_out, outputs, strict=True)
    ]


def _find_repeats(
    files: Sequence[PairFile], folder: Path, repeated: np.ndarray, on_pairs: Callable[[int], object]
) -> None:
    """Mark the rows, counted through all corpora, that repeat an earlier pair.

    The pairs are sorted into files of some BLOCK pairs by key, so that repeats share a file.
    """
    buckets = 1 << max(0, (len(repeated) - 1).bit_length() - (BLOCK.bit_length() - 1))
    start = 0
    for file in files:
        for row, records in _blocks(file):
            keys = records["keys"]
            twins = np.zeros(len(records), dtype=TWIN)
            twins["low"], twins["high"] = keys.min(axis=1), keys.max(axis=1)
            twins["row"] = np.arange(start + row, start + row + len(records))
            # Repeats are dropped here already, or a very frequent pair would make its bucket as large.
            twins = _first_twins(twins, repeated)
            _append(folder, twins, _mix(twins["low"] ^ _mix(twins["high"])) % np.uint64(buckets))
            on_pairs(len(records))
        start += len(file)
    for path in folder.iterdir():
        _first_twins(np.fromfile(path, dtype=TWIN), repeated)


def _first_twins(twins: np.ndarray, repeated: np.ndarray) -> np.ndarray:
    """Return the first occurrences and mark the rows of the others; ``twins`` are sorted by row."""
    order = np.lexsort((twins["high"], twins["low"]))
    low, high = twins["low"][order], twins["high"][order]
    again = np.zeros(len(twins), dtype=bool)
    again[order[1:]] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    repeated[twins["row"][again].astype(np.int64)] = True
    return twins[~again]


def _append(folder: Path, items: np.ndarray, bucket: np.ndarray) -> None:
    """Append each item to the file of its bucket, in order."""
    order = np.argsort(bucket, kind="stable")
    names, starts = np.unique(bucket[order], return_index=True)
    for name, part in zip(names.tolist(), np.split(items[order], starts)[1:], strict=True):
        with (folder / str(name)).open("ab") as file:
            file.write(part.data)


def _mix(keys: np.ndarray) -> np.ndarray:
    keys = keys * np.uint64(0x9E3779B97F4A7C15)
    return keys ^ (keys >> np.uint64(32))


def _held_out(
    file: PairFile, repeated: np.ndarray, wanted: int, on_pairs: Callable[[int], object]
) -> np.ndarray:
    """Return the rows to hold out, (m,) int64, increasing."""
    keys, rows = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    total = 0
    for row, records in _blocks(file):
        fresh = np.flatnonzero(~repeated[row : row + len(records)])
        total += len(fresh)
        found = records["keys"][fresh, 0]
        if len(keys) == wanted:
            small = found < (keys[-1] if wanted else 0)
            fresh, found = fresh[small], found[small]
        # Of equal keys the first row stays.
        keys, first = np.unique(np.concatenate([keys, found]), return_index=True)
        keys, rows = keys[:wanted], np.concatenate([rows, row + fresh])[first[:wanted]]
        on_pairs(len(records))
    return np.sort(rows[: min(wanted, total // 20)])


def _write(
    file: PairFile,
    repeated: np.ndarray,
    held_out: np.ndarray,
    shared: np.ndarray,
    paths: tuple[Path, Path],
    on_pairs: Callable[[int], object],
) -> Chosen:
    train = 0
    with paths[0].open("wb") as to_train, paths[1].open("wb") as to_valid:
        for row, records in _blocks(file):
            keep = ~repeated[row : row + len(records)] & ~np.isin(records["keys"], shared).any(axis=1)
            here = held_out[(held_out >= row) & (held_out < row + len(records))] - row
            to_train.write(records[keep].data)
            to_valid.write(records[here].data)
            train += int(keep.sum())
            on_pairs(len(records))
    valid, dropped = len(held_out), int(repeated.sum())
    return Chosen(train, valid, dropped, len(file) - train - valid - dropped)
