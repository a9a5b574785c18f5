"""Ragged piece arrays against plain lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.model import forward

sentences = st.lists(st.lists(st.integers(0, 999), max_size=12), max_size=20)


def lists(pieces):
    return [pieces.ids[a:b].tolist() for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)]


@given(sentences, st.data(), st.one_of(st.none(), st.integers(1, 5)))
def test_take_is_indexing_and_cutting(found, data, limit):
    rows = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=30)) if found else []
    taken = Pieces.from_lists(found).take(np.array(rows, dtype=np.int64), limit)
    assert lists(taken) == [found[row][:limit] for row in rows]


@given(sentences, st.data())
def test_keep_drops_the_masked_pieces(found, data):
    masks = [data.draw(st.lists(st.booleans(), min_size=len(s), max_size=len(s))) for s in found]
    flat = np.array([flag for mask in masks for flag in mask], dtype=bool)
    expected = [
        [x for x, flag in zip(s, mask, strict=True) if flag] for s, mask in zip(found, masks, strict=True)
    ]
    assert lists(Pieces.from_lists(found).keep(flat)) == expected


@given(st.lists(sentences, min_size=1, max_size=4))
def test_join_is_concatenation(parts):
    assert lists(Pieces.join([Pieces.from_lists(part) for part in parts])) == [
        s for part in parts for s in part
    ]


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 120))
def test_length_batches_cover_each_row_once_within_the_budget(lengths, budget):
    sizes = np.array(lengths, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "BATCH_TOKENS", budget)
        batches = list(forward.length_batches(sizes))
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(1, sizes[batch].max()) <= budget
