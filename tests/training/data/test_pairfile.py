"""Tokenised pairs come back by row; repeats and held-out pairs are those of a few plain lines of Python."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training.data import pairfile
from bitextmine.training.data.pairfile import RECORD, PairFile, PairWriter, choose, sentence_keys

SENTENCES = st.lists(st.integers(0, 65_535), max_size=6)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=12)


def written(folder, chunks, dtype):
    paths = folder / "x.pieces", folder / "x.index"
    with paths[0].open("wb") as pieces, paths[1].open("wb") as index:
        writer = PairWriter(pieces, index, np.dtype(dtype))
        for chunk in chunks:
            src, tgt = (Pieces.from_lists([pair[i] for pair in chunk]) for i in (0, 1))
            writer.write(src, tgt, np.stack([sentence_keys(src), sentence_keys(tgt)]))
    return PairFile(*paths, np.dtype(dtype))


@given(st.lists(PAIRS, max_size=4), st.data(), st.sampled_from([np.uint16, np.uint32]))
def test_pairs_come_back_by_row(tmp_path_factory, chunks, data, dtype):
    file = written(tmp_path_factory.mktemp("pairs"), chunks, dtype)
    pairs = [pair for chunk in chunks for pair in chunk]
    assert len(file) == len(pairs)
    rows = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=20)) if pairs else []
    most = data.draw(st.none() | st.integers(1, 4))
    found = file.take(np.array(rows, dtype=np.int64), most)
    for number, side in enumerate((found.src, found.tgt)):
        lists = [side.ids[a:b].tolist() for a, b in zip(side.offsets, side.offsets[1:], strict=False)]
        assert lists == [pairs[row][number][:most] for row in rows]
        whole = Pieces.from_lists([pairs[row][number] for row in rows])
        assert (found.keys[number] == sentence_keys(whole)).all()
    assert len(file.records(1, 10**9)) == max(0, len(pairs) - 1)


@given(st.lists(SENTENCES, max_size=30))
def test_keys_are_equal_for_equal_sentences_only(sentences):
    keys = sentence_keys(Pieces.from_lists(sentences)).tolist()
    assert len(set(keys)) == len({tuple(s) for s in sentences})
    assert len(set(zip(keys, map(tuple, sentences), strict=True))) == len(set(keys))


def test_a_file_that_is_cut_short_is_an_error(tmp_path):
    file = written(tmp_path, [[([1, 2], [3]), ([4], [5, 6])]], np.uint16)
    with pytest.raises(IndexError):
        file.take(np.array([2]))
    (tmp_path / "x.pieces").write_bytes((tmp_path / "x.pieces").read_bytes()[:-1])
    assert file.take(np.array([0])).src.ids.tolist() == [1, 2]
    with pytest.raises(BitextmineError, match="cut short"):
        file.take(np.array([0, 1]))
    (tmp_path / "x.index").write_bytes((tmp_path / "x.index").read_bytes()[:-1])
    with pytest.raises(BitextmineError, match="cut short"):
        PairFile(tmp_path / "x.pieces", tmp_path / "x.index", np.dtype(np.uint16))
    with pytest.raises(BitextmineError, match="cannot read the token cache"):
        PairFile(tmp_path / "x.pieces", tmp_path / "none", np.dtype(np.uint16))


def files_of(folder, files_of):
    (folder / "pieces").write_bytes(b"")
    files = []
    for i, keys in enumerate(files_of):
        records = np.zeros(len(keys), dtype=RECORD)
        records["start"] = np.arange(len(keys))  # to tell the rows by
        records["keys"] = np.array(keys, dtype=np.uint64).reshape(-1, 2)
        (folder / f"{i}.index").write_bytes(records.tobytes())
        files.append(PairFile(folder / "pieces", folder / f"{i}.index", np.dtype(np.uint16)))
    return files


def rows(path):
    return np.fromfile(path, dtype=RECORD)["start"].tolist()


def expected(files_of, wanted):
    """Train rows, valid rows and number of repeats, per corpus."""
    seen: set[tuple[int, ...]] = set()
    fresh: list[list[int]] = []
    for keys in files_of:
        fresh.append([])
        for row, pair in enumerate(keys):
            twin = tuple(sorted(pair))
            if twin not in seen:
                fresh[-1].append(row)
            seen.add(twin)
    valid = []
    for keys, left in zip(files_of, fresh, strict=True):
        by_source: dict[int, int] = {}
        for row in left:
            by_source.setdefault(keys[row][0], row)
        valid.append(sorted(row for _, row in sorted(by_source.items())[: min(wanted, len(left) // 20)]))
    shared = {key for keys, part in zip(files_of, valid, strict=True) for row in part for key in keys[row]}
    return [
        ([row for row in left if not shared & set(keys[row])], part, len(keys) - len(left))
        for keys, left, part in zip(files_of, fresh, valid, strict=True)
    ]


@given(
    st.lists(st.integers(0, 130), min_size=1, max_size=3),
    st.integers(3, 400),
    st.integers(0, 4),
    st.sampled_from([2, 8, 64, 1 << 19]),
    st.integers(0, 10**6),
)
def test_choice(tmp_path_factory, sizes, alphabet, wanted, block, seed):
    rng = random.Random(seed)
    # Keys are hashes, so that they differ in all their bits.
    names = [rng.getrandbits(64) for _ in range(alphabet)]
    text = [[(rng.choice(names), rng.choice(names)) for _ in range(size)] for size in sizes]
    folder = tmp_path_factory.mktemp("choice")
    outputs = [(folder / f"{i}.train", folder / f"{i}.valid") for i in range(len(text))]
    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairfile, "BLOCK", block)
        patch.setattr(pairfile, "AT_ONCE", 3 * block)
        found = choose(files_of(folder, text), outputs, wanted, told.append)
    for (train, valid, repeated), paths, counts, keys in zip(
        expected(text, wanted), outputs, found, text, strict=True
    ):
        assert (rows(paths[0]), rows(paths[1])) == (train, valid)
        assert [counts[key] for key in ("train", "valid", "repeated")] == [len(train), len(valid), repeated]
        assert sum(counts.values()) == len(keys)
    assert sum(told) == 3 * sum(sizes)
