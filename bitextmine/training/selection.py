"""Choose the pairs to train on and to hold out; repeats are found by sorting on disk, in bounded memory."""

from __future__ import annotations

import dataclasses
import shutil
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
    disk per pair besides the outputs, and about 100 MB of memory and 32 bytes per held-out pair.

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
    with tempfile.TemporaryDirectory(dir=outputs[0][0].parent, prefix="repeats.", suffix=".part") as folder:
        repeats = RepeatedRows(Path(folder), int(first[-1]))
        if deduplicate:
            repeats.find(files, first, on_pairs)
        held_out = [
            _held_out(file, int(start), repeats, valid_pairs, on_pairs)
            for file, start in zip(files, first, strict=False)
        ]
        shared = np.unique(
            np.concatenate(
                [np.zeros(0, np.uint64)]
                + [_at(file, rows)["keys"].ravel() for file, rows in zip(files, held_out, strict=True)]
            )
        )
        return [
            _write(file, int(start), repeats, rows, shared, paths, on_pairs)
            for file, start, rows, paths in zip(files, first, held_out, outputs, strict=False)
        ]


class RepeatedRows:
    """The rows, counted through all corpora, that repeat an earlier pair; kept in one file per block of rows."""

    def __init__(self, folder: Path, total: int) -> None:
        self._rows, self._twins = folder / "rows", folder / "twins"
        self._buckets = 1 << max(0, (total - 1).bit_length() - (BLOCK.bit_length() - 1))

    def find(self, files: Sequence[PairFile], first: np.ndarray, on_pairs: Callable[[int], object]) -> None:
        """Sort the pairs into buckets by key, then find the repeats of each bucket."""
        self._rows.mkdir()
        self._twins.mkdir()
        for file, start in zip(files, first.tolist(), strict=False):
            for row, records in blocks(file, BLOCK):
                keys = records["keys"]
                twins = np.zeros(len(records), dtype=TWIN)
                twins["low"], twins["high"] = keys.min(axis=1), keys.max(axis=1)
                twins["row"] = np.arange(start + row, start + row + len(records))
                # Repeats are dropped here already, or a very frequent pair would make its bucket as large.
                twins = self._fresh(twins)
                bucket = _mix(twins["low"] ^ _mix(twins["high"])) % np.uint64(self._buckets)
                _append(self._twins, twins, bucket)
                on_pairs(len(records))
        for path in self._twins.iterdir():
            self._fresh(np.fromfile(path, dtype=TWIN))
        shutil.rmtree(self._twins)

    def _fresh(self, twins: np.ndarray) -> np.ndarray:
        """Return the first occurrences and record the rows of the others; ``twins`` are sorted by row."""
        order = np.lexsort((twins["high"], twins["low"]))
        low, high = twins["low"][order], twins["high"][order]
        again = np.zeros(len(twins), dtype=bool)
        again[order[1:]] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
        rows = twins["row"][again]
        _append(self._rows, rows, rows // np.uint64(BLOCK))
        return twins[~again]

    def among(self, start: int, count: int) -> np.ndarray:
        """Return (count,) bool: rows from ``start`` on that repeat an earlier pair."""
        found = np.zeros(count, dtype=bool)
        for block in range(start // BLOCK, (start + count - 1) // BLOCK + 1):
            path = self._rows / str(block)
            if path.exists():
                rows = np.fromfile(path, dtype=np.uint64).astype(np.int64) - start
                found[rows[(rows >= 0) & (rows < count)]] = True
        return found


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
    file: PairFile, start: int, repeats: RepeatedRows, wanted: int, on_pairs: Callable[[int], object]
) -> np.ndarray:
    """Return the rows to hold out, (m,) int64, increasing."""
    keys, rows = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    total = 0
    for row, records in blocks(file, BLOCK):
        fresh = np.flatnonzero(~repeats.among(start + row, len(records)))
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
    start: int,
    repeats: RepeatedRows,
    held_out: np.ndarray,
    shared: np.ndarray,
    paths: tuple[Path, Path],
    on_pairs: Callable[[int], object],
) -> Chosen:
    train = repeated = 0
    with paths[0].open("wb") as to_train, paths[1].open("wb") as to_valid:
        for row, records in blocks(file, BLOCK):
            again = repeats.among(start + row, len(records))
            keep = ~again
            if len(shared):
                place = np.searchsorted(shared, records["keys"])
                keep &= ~(shared[np.minimum(place, len(shared) - 1)] == records["keys"]).any(axis=1)
            here = held_out[(held_out >= row) & (held_out < row + len(records))] - row
            to_train.write(records[keep].data)
            to_valid.write(records[here].data)
            train += int(keep.sum())
            repeated += int(again.sum())
            on_pairs(len(records))
    valid = len(held_out)
    return Chosen(train, valid, repeated, len(file) - train - valid - repeated)
