"""What texts gain without some of their words: against loops over all runs and pairs of words, compiled or not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import compiled
from bitextmine.encoder import deletions as module
from bitextmine.encoder.deletions import DELETIONS, RUNS, SIDE_DELETIONS, PieceTable, deletions
from bitextmine.encoder.pieces import Pieces

PIECES = 60
# No piece comes twice in a text: equal runs would be as good as each other.
TEXTS = st.lists(
    st.tuples(*[st.lists(st.integers(0, PIECES - 1), max_size=14, unique=True)] * 2), min_size=1, max_size=4
)


def table(dim=40):
    """Pieces of which a third begin no word, and the last six are marks; one is of no direction."""
    rng = np.random.default_rng(1)
    rows, at = rng.integers(-127, 128, (PIECES, dim)).astype(np.int8), np.arange(PIECES)
    rows[5] = 0
    return PieceTable(rows, rng.uniform(0.01, 0.03, PIECES).astype(np.float32), at % 3 > 0, at >= PIECES - 6)


def words_of(ids, v):
    """The vectors of the words, and the word of each piece."""
    words, word_of = [], []
    for place, piece in enumerate(ids):
        if place == 0 or v.begins[piece]:
            words.append([])
        word_of.append(len(words) - 1)
        if not v.marks[piece]:
            words[-1].append(v.rows[piece] * np.float64(v.scale[piece]))
    real = [number for number, word in enumerate(words) if word]
    word_of = [real.index(number) if number in real else -1 for number in word_of]
    return [np.sum(words[number], axis=0) for number in real], word_of


def cosine(words, others, left, others_left):
    """The cosine of both texts with these words alone."""
    one, other = (
        np.sum([side[i] for i in kept], axis=0) for side, kept in ((words, left), (others, others_left))
    )
    return one @ other / math.prod(math.sqrt(max(vector @ vector, 1e-3)) for vector in (one, other))


def gain(cosine, base):
    return max(math.log((1.02 - min(base, 0.999)) / (1.02 - min(cosine, 0.999))), -1)


def oracle(src, tgt):
    """The features of a pair, and of each side what its words gain, from the definitions."""
    sides = src, tgt
    every = [list(range(len(side))) for side in sides]
    whole = [np.sum(side, axis=0) for side in sides]
    base = whole[0] @ whole[1] / math.sqrt(math.prod(max(v @ v, 1e-6) for v in whole))
    features, joint, of_words = [], [], []
    pairs = {
        (i, j): cosine(src, tgt, [k for k in every[0] if k != i], [k for k in every[1] if k != j])
        for i in every[0]
        for j in every[1]
    }
    for own in range(2):
        words, others = sides[own], sides[1 - own]
        n = len(words)
        runs = {
            (i, j): cosine(words, others, [k for k in every[own] if not i <= k < j], every[1 - own])
            for i in range(n)
            for j in range(i + 1, n + 1)
            if j - i <= max(n * 7 // 10, 1)
        }
        for low, high in RUNS:
            some = {run: value for run, value in runs.items() if low <= run[1] - run[0] <= high}
            best = max(some, key=some.get, default=None)
            features += [0, 0]
            if best:
                run = np.sum(words[slice(*best)], axis=0)
                features[-2:] = (
                    gain(some[best], base),
                    math.sqrt(run @ run / max(whole[own] @ whole[own], 1e-6)),
                )
        alone = [min(gain(runs[i, i + 1], base), 1) for i in range(n)]
        replaced = [gain(max(v for at, v in pairs.items() if at[own] == i), base) for i in range(n)]
        rises = [a for a in alone if a > 1e-3]
        features += [sum(rises), len(rises) / n, max(alone)]
        features += [sum((sorted(alone)[::-1] + [-1] * 3)[:3]) / 3, np.std(alone)]
        features += [sum((sorted(replaced)[::-1] + [-1] * 3)[:3]) / 3]
        of_words.append(np.array([alone, replaced]).T)
        best = max(runs, key=runs.get)
        left = [k for k in every[own] if not best[0] <= k < best[1]]
        m = len(others)
        after = [
            cosine(words, others, left, [k for k in every[1 - own] if not i <= k < j])
            for i in range(m)
            for j in range(i + 1, m + 1)
            if j - i <= max(m * 7 // 10, 1)
        ]
        joint.append(gain(max(runs[best], *after), base))
    return [*features, *joint, gain(max(pairs.values()), base)], of_words


@pytest.fixture(params=["compiled", "plain"])
def build(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(module, "library", lambda name: None)
    elif compiled.library("encoder") is None:
        pytest.skip("not compiled here")


def pieces(texts):
    return tuple(map(Pieces.from_lists, zip(*texts, strict=True)))


@given(texts=TEXTS)
def check_against_the_oracle(texts):
    v = table()
    found = deletions(pieces(texts), v)
    assert found.features.shape == (len(texts), DELETIONS)
    at, piece = [0, 0], [0, 0]
    for row, both in enumerate(texts):
        sides, word_of = zip(*(words_of(ids, v) for ids in both), strict=True)
        if min(map(len, sides)) > 1:
            features, of_words = oracle(*sides)
            assert found.features[row] == pytest.approx(features, abs=2e-3)
        elif not min(map(len, sides)):
            assert not found.features[row].any()
        for own, (side, numbers) in enumerate(zip(sides, word_of, strict=True)):
            part = slice(at[own], at[own] + len(side))
            if min(map(len, sides)) > 1:
                assert found.words[own][part, :2] == pytest.approx(of_words[own], abs=2e-3)
                lengths = [np.linalg.norm(word) for word in side]
                assert found.words[own][part, 3] == pytest.approx(lengths, rel=1e-3, abs=1e-4)
            numbers = [number if number < 0 else number + at[own] for number in numbers]
            assert found.word_of[own][piece[own] : piece[own] + len(numbers)].tolist() == numbers
            at[own] += len(side)
            piece[own] += len(numbers)


def test_deletions(build):
    check_against_the_oracle()


def test_words_without_a_counterpart_gain_most(build):
    v = table()
    common = [1, 2, 4, 7, 8, 10, 11, 13, 14, 16]
    found = deletions(pieces([([*common[:4], 31, 32, 34, 35, *common[4:]], common), (common, common)]), v)
    alone = found.words[0][:14, 0]
    assert set(np.argsort(-alone)[:4].tolist()) == {4, 5, 6, 7}
    run = RUNS.index((3, 5))
    assert found.features[0, 2 * run] > 1 > 0.01 > found.features[1, 2 * run]
    assert found.words[1][:10, 2] == pytest.approx(1, abs=1e-6)  # each has its like
    swapped = [*common[:4], 31, *common[4:]], [*common[:4], 32, *common[4:]]
    found = deletions(pieces([swapped]), v)
    assert found.words[0][:, 1].argmax() == found.words[1][:, 1].argmax() == 4
    assert found.features[0, 2 * SIDE_DELETIONS + 2] == pytest.approx(found.words[0][4, 1])


def test_neighbouring_words_of_a_long_text_count_as_one(build):
    v = table()
    long = [piece for _ in range(300) for piece in (1, 2, 4, 7)]
    found = deletions(pieces([(long, long[:50]), ([1, 2], [1, 2])]), v)
    numbers = found.word_of[0][:1200]
    assert found.words[0].shape == (80 + 2, 4) and (np.diff(numbers) >= 0).all() and numbers[-1] == 79
    assert np.bincount(numbers).max() - np.bincount(numbers).min() <= 1
    assert np.isfinite(found.features).all() and found.word_of[0][1200:].tolist() == [80, 81]


def test_compiled_or_not_the_result_is_the_same(monkeypatch):
    if compiled.library("encoder") is None:
        pytest.skip("not compiled here")
    rng = np.random.default_rng(3)
    # Of few pieces, many runs are the same, and equally good.
    texts = [
        tuple(rng.integers(1, most, rng.integers(1, 40)).tolist() for _ in range(2))
        for most in np.repeat([3, 5, 9, PIECES], 50)
    ]
    fast = deletions(pieces(texts), table(100))
    monkeypatch.setattr(module, "library", lambda name: None)
    plain = deletions(pieces(texts), table(100))
    assert fast.features == pytest.approx(plain.features, abs=1e-9)
    for side in range(2):
        assert fast.words[side] == pytest.approx(plain.words[side], abs=1e-9)
        assert (fast.word_of[side] == plain.word_of[side]).all()
