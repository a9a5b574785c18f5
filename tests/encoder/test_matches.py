"""Pieces matched with pieces: against loops in float64, and compiled against plain, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import compiled
from bitextmine.encoder import load_encoder
from bitextmine.encoder.matches import NOTHING, WIDEST, PieceMatcher
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import restore_rows
from bitextmine.errors import BitextmineError

VOCABULARY = 40
SENTENCES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), max_size=6)


def some_rows(dim):
    rows = np.random.default_rng(dim).integers(-127, 128, (VOCABULARY, dim)).astype(np.int8)
    rows[3], rows[7] = 0, rows[8]  # no direction; two of the same
    return rows


def some_norms(rows):
    norms = np.random.default_rng(2).uniform(0.5, 3, len(rows))
    return np.where(rows.any(axis=1), norms, 0).astype(np.float32)


def some_matcher(dim):
    rows = some_rows(dim)
    return PieceMatcher(rows, some_norms(rows))


def vectors(dim):
    """What the rows and norms stand for."""
    wide = some_rows(dim).astype(np.float64)
    length = np.linalg.norm(wide, axis=1)
    return wide / np.where(length > 0, length, 1)[:, None] * some_norms(wide)[:, None]


def cosine(x, y):
    lengths = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / lengths) if lengths > 0 else 0.0


@pytest.mark.parametrize("dim", [1, 33, 256])
@given(a=SENTENCES, b=SENTENCES)
def test_matches(dim, a, b):
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    found = some_matcher(dim).matches(Pieces.from_lists(a), Pieces.from_lists(b))
    wide = vectors(dim)
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


@pytest.mark.skipif(compiled.library("encoder") is None, reason="nothing is compiled here")
def test_compiled_and_plain_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = (
        Pieces.from_lists([rng.integers(0, VOCABULARY, n).tolist() for n in rng.integers(0, 30, 3000)])
        for _ in range(2)
    )
    matcher = some_matcher(48)
    found = [array.tobytes() for array in matcher.matches(a, b)]
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert [array.tobytes() for array in matcher.matches(a, b)] == found


# Whole numbers stand for the vectors: the fewer dimensions, the more a rounding turns them.
@pytest.mark.parametrize(("dim", "width"), [(33, 1), (33, 3), (256, 5), (256, WIDEST)])
@given(a=SENTENCES, b=SENTENCES)
def test_windows(dim, width, a, b):
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    found = some_matcher(dim).windows(Pieces.from_lists(a), Pieces.from_lists(b), width)
    wide, reach = vectors(dim), width // 2

    def sums(sentence):
        around = (sentence[max(0, i - reach) : i + reach + 1] for i in range(len(sentence)))
        return [sum((wide[p] for p in window), np.zeros(dim)) for window in around]

    for best, here, there in ((found[0], a, b), (found[1], b, a)):
        expected = [
            max((cosine(x, y) for y in sums(other)), default=NOTHING)
            for sentence, other in zip(here, there, strict=True)
            for x in sums(sentence)
        ]
        np.testing.assert_allclose(best, expected, atol=5e-3)


@pytest.mark.parametrize("dim", [33, 256])
@given(data=st.data(), a=SENTENCES, b=SENTENCES)
def test_parts(dim, data, a, b):
    n, parts = min(len(a), len(b)), data.draw(st.integers(1, 4))
    sides = [Pieces.from_lists(side[:n]) for side in (a, b)]
    which = [
        np.array(
            data.draw(st.lists(st.integers(0, parts - 1), min_size=len(s.ids), max_size=len(s.ids))), np.int8
        )
        for s in sides
    ]
    found = some_matcher(dim).parts(*sides, *which, parts)
    assert found.shape == (n, parts, parts) and found.dtype == np.float32
    wide = vectors(dim)
    for i in range(n):
        sums = np.zeros((2, parts, dim))
        for side, (pieces, part) in enumerate(zip(sides, which, strict=True)):
            for place in range(*pieces.offsets[i : i + 2]):
                sums[side, part[place]] += wide[pieces.ids[place]]
        expected = [[cosine(x, y) for y in sums[1]] for x in sums[0]]
        np.testing.assert_allclose(found[i], expected, atol=5e-3)


def test_the_longest_windows_stay_in_range():
    rows = np.zeros((2, 600), dtype=np.int8)
    rows[0, 0], rows[1] = 127, -127
    long, short = Pieces.from_lists([[0] * 30, [1] * 30]), Pieces.from_lists([[0], [1]])
    # A sum too long for its type would point the other way.
    a_best, b_best = PieceMatcher(rows, np.array([5, 5], dtype=np.float32)).windows(long, short, WIDEST)
    np.testing.assert_allclose([*a_best, *b_best], 1, atol=1e-6)


def test_what_it_refuses():
    matcher = some_matcher(8)
    one, two = Pieces.from_lists([[1]]), Pieces.from_lists([[1], [2]])
    for call in (matcher.matches, lambda a, b: matcher.windows(a, b, 3)):
        with pytest.raises(ValueError, match="2 sentences"):
            call(two, one)
        for bad in (-1, VOCABULARY):
            with pytest.raises(ValueError, match=r"0\.\.39"):
                call(one, Pieces.from_lists([[bad]]))


def test_rows_of_an_encoder(make_folder, tmp_path):
    encoder = load_encoder(make_folder(tmp_path / "mean", 0))
    rows, lengths = encoder.piece_rows()
    network = encoder.network
    wide = restore_rows(network.values, network.scale)
    np.testing.assert_allclose(lengths, np.linalg.norm(wide, axis=1), rtol=1e-5)
    cosines = (
        (rows.astype(np.float64) * wide).sum(1) / np.linalg.norm(rows.astype(np.float64), axis=1) / lengths
    )
    np.testing.assert_allclose(cosines[lengths > 0], 1, atol=1e-5)
    with pytest.raises(BitextmineError, match="it has layers"):
        load_encoder(make_folder(tmp_path / "layers", 1)).piece_rows()
