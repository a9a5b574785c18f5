"""Pieces matched with pieces: against loops in float64, and compiled against plain, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder, native
from bitextmine.encoder.matches import NOTHING, PieceMatcher
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import restore_rows
from bitextmine.errors import BitextmineError

VOCABULARY = 40
SENTENCES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), max_size=6)


def some_rows(dim: int) -> np.ndarray:
    rows = np.random.default_rng(dim).integers(-127, 128, (VOCABULARY, dim)).astype(np.int8)
    rows[3], rows[7] = 0, rows[8]  # no direction; two of the same
    return rows


@pytest.mark.parametrize("dim", [1, 33, 256])
@given(a=SENTENCES, b=SENTENCES)
def test_matches(dim: int, a: list[list[int]], b: list[list[int]]) -> None:
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    rows = some_rows(dim)
    found = PieceMatcher(rows).matches(Pieces.from_lists(a), Pieces.from_lists(b))
    wide = rows.astype(np.float64)
    length = np.linalg.norm(wide, axis=1)
    units = wide / np.where(length > 0, length, 1)[:, None]
    for best, match, here, there in ((*found[:2], a, b), (*found[2:], b, a)):
        at = 0
        for sentence, other in zip(here, there, strict=True):
            for piece in sentence:
                cosines = [units[piece] @ units[p] for p in other]
                if cosines:
                    assert best[at] == pytest.approx(max(cosines), abs=1e-5)
                    assert cosines[match[at]] == pytest.approx(max(cosines), abs=1e-5)
                    assert other[match[at]] not in other[: match[at]], "the first of equal pieces"
                else:
                    assert (best[at], match[at]) == (NOTHING, 0)
                at += 1
        assert at == len(best) == len(match)


@pytest.mark.skipif(native.library() is None, reason="nothing is compiled here")
def test_compiled_and_plain_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        Pieces.from_lists([rng.integers(0, VOCABULARY, n).tolist() for n in rng.integers(0, 30, 3000)])
        for _ in range(2)
    )
    matcher = PieceMatcher(some_rows(48))
    found = matcher.matches(a, b)
    monkeypatch.setattr(native, "library", lambda: None)
    again = matcher.matches(a, b)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in again]


def test_what_it_refuses() -> None:
    matcher = PieceMatcher(some_rows(8))
    one = Pieces.from_lists([[1]])
    with pytest.raises(ValueError, match="2 sentences"):
        matcher.matches(Pieces.from_lists([[1], [2]]), one)
    for bad in (-1, VOCABULARY):
        with pytest.raises(ValueError, match=r"0\.\.39"):
            matcher.matches(one, Pieces.from_lists([[bad]]))


def test_rows_of_an_encoder(make_folder, tmp_path) -> None:
    encoder = load_encoder(make_folder(tmp_path / "mean", 0))
    rows, lengths = encoder.piece_rows()
    network = encoder.network
    wide = restore_rows(network._values, network._scale)
    np.testing.assert_allclose(lengths, np.linalg.norm(wide, axis=1), rtol=1e-5)
    cosines = (rows.astype(np.float64) * wide).sum(1) / np.linalg.norm(rows.astype(np.float64), axis=1) / lengths
    np.testing.assert_allclose(cosines[lengths > 0], 1, atol=1e-5)
    with pytest.raises(BitextmineError, match="it has layers"):
        load_encoder(make_folder(tmp_path / "layers", 1)).piece_rows()
