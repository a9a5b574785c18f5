"""Repeats and held-out pairs against a few plain lines of Python."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.training import selection
from bitextmine.training.pairfile import RECORD, PairFile
from bitextmine.training.selection import choose

Keys = list[tuple[int, int]]


def corpora(folder: Path, corpora: list[Keys]) -> list[PairFile]:
    (folder / "pieces").write_bytes(b"")
    files = []
    for i, keys in enumerate(corpora):
        records = np.zeros(len(keys), dtype=RECORD)
        records["start"] = np.arange(len(keys))  # to tell the rows by
        records["keys"] = np.array(keys, dtype=np.uint64).reshape(-1, 2)
        (folder / f"{i}.index").write_bytes(records.tobytes())
        files.append(PairFile(folder / "pieces", folder / f"{i}.index", np.dtype(np.uint16)))
    return files


def rows(path: Path) -> list[int]:
    return np.fromfile(path, dtype=RECORD)["start"].tolist()


def expected(corpora: list[Keys], deduplicate: bool, wanted: int) -> list[tuple[list[int], list[int], int]]:
    """Train rows, valid rows and number of repeats, per corpus."""
    seen: set[tuple[int, ...]] = set()
    fresh: list[list[int]] = []
    for keys in corpora:
        fresh.append([])
        for row, pair in enumerate(keys):
            twin = tuple(sorted(pair))
            if not deduplicate or twin not in seen:
                fresh[-1].append(row)
            seen.add(twin)
    valid = []
    for keys, left in zip(corpora, fresh, strict=True):
        by_source: dict[int, int] = {}
        for row in left:
            by_source.setdefault(keys[row][0], row)
        valid.append(sorted(row for _, row in sorted(by_source.items())[: min(wanted, len(left) // 20)]))
    shared = {key for keys, part in zip(corpora, valid, strict=True) for row in part for key in keys[row]}
    return [
        ([row for row in left if not shared & set(keys[row])], part, len(keys) - len(left))
        for keys, left, part in zip(corpora, fresh, valid, strict=True)
    ]


@given(
    st.lists(st.integers(0, 130), min_size=1, max_size=3),
    st.integers(3, 400),
    st.booleans(),
    st.integers(0, 4),
    st.sampled_from([2, 8, 64, 1 << 19]),
    st.integers(0, 10**6),
)
def test_choice(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    alphabet: int,
    deduplicate: bool,
    wanted: int,
    block: int,
    seed: int,
) -> None:
    rng = random.Random(seed)
    # Keys are hashes, so that they differ in all their bits.
    names = [rng.getrandbits(64) for _ in range(alphabet)]
    text = [[(rng.choice(names), rng.choice(names)) for _ in range(size)] for size in sizes]
    folder = tmp_path_factory.mktemp("choice")
    outputs = [(folder / f"{i}.train", folder / f"{i}.valid") for i in range(len(text))]
    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "BLOCK", block)
        found = choose(
            corpora(folder, text), outputs, deduplicate=deduplicate, valid_pairs=wanted, on_pairs=told.append
        )
    for (train, valid, repeated), paths, counts, keys in zip(
        expected(text, deduplicate, wanted), outputs, found, text, strict=True
    ):
        assert (rows(paths[0]), rows(paths[1])) == (train, valid)
        assert (counts.train, counts.valid, counts.repeated) == (len(train), len(valid), repeated)
        assert counts.train + counts.valid + counts.repeated + counts.shared == len(keys)
    assert sum(told) == (2 + deduplicate) * sum(sizes)
    assert not list(folder.glob("*.part"))


def test_one_pair_without_end_keeps_to_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats within a block never reach the buckets: one bucket of a million twins would fill the memory."""
    monkeypatch.setattr(selection, "BLOCK", 64)
    largest = 0
    read = np.fromfile

    def watched(path: Path, dtype: np.dtype) -> np.ndarray:
        nonlocal largest
        found = read(path, dtype=dtype)
        largest = max(largest, len(found))
        return found

    monkeypatch.setattr(np, "fromfile", watched)
    files = corpora(tmp_path, [[(7, 9)] * 2000])
    found = choose(files, [(tmp_path / "t", tmp_path / "v")], deduplicate=True, valid_pairs=0)
    assert (found[0].train, found[0].repeated) == (1, 1999)
    assert largest <= 64
