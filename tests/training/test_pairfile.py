"""Pairs on disk come back by row; keys tell sentences apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training.pairfile import PairFile, PairWriter, sentence_keys

SENTENCES = st.lists(st.integers(0, 65_535), max_size=6)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=12)


def written(folder: Path, chunks: list[list[tuple[list[int], list[int]]]], dtype: type) -> PairFile:
    paths = folder / "x.pieces", folder / "x.index"
    with paths[0].open("wb") as pieces, paths[1].open("wb") as index:
        writer = PairWriter(pieces, index, np.dtype(dtype))
        for chunk in chunks:
            src, tgt = (Pieces.from_lists([pair[i] for pair in chunk]) for i in (0, 1))
            writer.write(src, tgt, np.stack([sentence_keys(src), sentence_keys(tgt)]))
    return PairFile(*paths, np.dtype(dtype))


@given(st.lists(PAIRS, max_size=4), st.data(), st.sampled_from([np.uint16, np.uint32]))
def test_pairs_come_back_by_row(
    tmp_path_factory: pytest.TempPathFactory,
    chunks: list[list[tuple[list[int], list[int]]]],
    data: st.DataObject,
    dtype: type,
) -> None:
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
def test_keys_are_equal_for_equal_sentences_only(sentences: list[list[int]]) -> None:
    keys = sentence_keys(Pieces.from_lists(sentences)).tolist()
    assert len(set(keys)) == len({tuple(s) for s in sentences})
    assert len(set(zip(keys, map(tuple, sentences), strict=True))) == len(set(keys))


def test_a_file_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
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
