"""Choose the pairs to train on and to hold out; repeats are found by sorting on disk, in little memory."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bitextmine.training.pairfile import RECORD, PairFile, blocks

# Rows handled at once; about 100 bytes each are in memory at a time.
BLOCK = 1 << 19
# A pair during the search for repeats: its two sentences' keys, the smaller first, and its row, counted through all
# corpora. 24 bytes a pair, on disk.
TWIN = np.dtype([("low", "<u8"), ("high", "<u8"), ("row", "<u8")])


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
        with tempfile.TemporaryDirectory(
            dir=outputs[0][0].parent, prefix="repeats.", suffix=".part"
        ) as folder:
            _find_repeats(files, Path(folder), repeated, on_pairs)
    parts = [repeated[a:b] for a, b in itertools.pairwise(first)]
    held_out = [_held_out(file, part, valid_pairs, on_pairs) for file, part in zip(files, parts, strict=True)]
    keys = [_at(file, rows)["keys"].ravel() for file, rows in zip(files, held_out, strict=True)]
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
        for row, records in blocks(file, BLOCK):
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


def _at(file: PairFile, rows: np.ndarray) -> np.ndarray:
    parts = [file.records(row, row + 1) for row in rows.tolist()]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=RECORD)


def _held_out(
    file: PairFile, repeated: np.ndarray, wanted: int, on_pairs: Callable[[int], object]
) -> np.ndarray:
    """Return the rows to hold out, (m,) int64, increasing."""
    keys, rows = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    total = 0
    for row, records in blocks(file, BLOCK):
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
        for row, records in blocks(file, BLOCK):
            keep = ~repeated[row : row + len(records)] & ~np.isin(records["keys"], shared).any(axis=1)
            here = held_out[(held_out >= row) & (held_out < row + len(records))] - row
            to_train.write(records[keep].data)
            to_valid.write(records[here].data)
            train += int(keep.sum())
            on_pairs(len(records))
    valid, dropped = len(held_out), int(repeated.sum())
    return Chosen(train, valid, dropped, len(file) - train - valid - dropped)
