"""Subword regularisation: other pieces, the same text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.training.sampling import CHOICES, ROUNDS, split_pieces, split_table

PACKAGED = Path(__file__).parents[2] / "bitextmine/encoder/packaged/europe5/tokenizer.model"
TOKENIZER = Tokenizer(PACKAGED)
SPLITS = split_table(TOKENIZER)
PIECES = TOKENIZER.pieces()
SENTENCES = st.lists(st.lists(st.integers(1, len(PIECES) - 1), max_size=8), max_size=10)


def text(pieces: Pieces, row: int) -> str:
    return "".join(PIECES[i] for i in pieces.ids[pieces.offsets[row] : pieces.offsets[row + 1]])


@given(SENTENCES, st.floats(0, 1), st.integers(0, 99))
def test_the_text_stays(found: list[list[int]], share: float, seed: int) -> None:
    before = Pieces.from_lists(found)
    after = split_pieces(before, SPLITS, share, np.random.default_rng(seed))
    assert after.ids.dtype == before.ids.dtype
    assert [text(after, i) for i in range(len(found))] == [text(before, i) for i in range(len(found))]
    assert (after.lengths >= before.lengths).all()
    assert (after.lengths <= before.lengths * 2**ROUNDS).all()


def test_the_likeliest_halves_are_offered_and_no_blank_alone() -> None:
    scores = TOKENIZER.scores()
    known = {piece: i for i, piece in enumerate(PIECES) if piece and piece != "\u2581"}
    rng = np.random.default_rng(0)
    for i in rng.choice(len(PIECES), 300, replace=False):
        piece = PIECES[i]
        ways = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        ways = [(a, b) for a, b in ways if a in known and b in known]
        ways.sort(key=lambda way: -(scores[known[way[0]]] + scores[known[way[1]]]))
        offered = SPLITS.parts[i, : SPLITS.choices[i]]
        assert len(offered) == min(len(ways), CHOICES) or not piece
        totals = [scores[a] + scores[b] for a, b in offered]
        best = [scores[known[a]] + scores[known[b]] for a, b in ways[:CHOICES]]
        assert totals == pytest.approx(best)


def test_a_share_is_a_share() -> None:
    whole = int(np.argmax(SPLITS.choices == CHOICES))
    many = Pieces.from_lists([[whole] * 20_000])
    once = 1 - (1 - 0.1) ** ROUNDS  # a piece escapes each round with 0.9
    after = split_pieces(many, SPLITS, 0.1, np.random.default_rng(0))
    assert abs((after.ids == whole).mean() * after.lengths[0] / 20_000 - (1 - once)) < 0.01
    assert split_pieces(many, SPLITS, 0.0, np.random.default_rng(0)) is many
