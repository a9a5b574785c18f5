"""The questions that decide whether an encoder is better, and what they are asked about."""

import numpy as np

from bitextmine.adaptation.held_out import (
    DRAWS,
    Measured,
    MinedPairs,
    choose_held_out,
    found_again,
    half_of,
    is_better,
    measure,
)
from bitextmine.encoder import load_encoder


def mined(precision, lines=0):
    at = np.arange(len(precision))
    return MinedPairs(at, at[::-1].copy(), np.array(precision))


def test_the_best_pairs_are_as_many_as_the_error_rate_allows():
    pairs = mined([1.0, 1.0, 0.97, 0.96, 0.951, 0.94, 0.5])
    assert [pairs.best(rate) for rate in (0.01, 0.035, 0.05, 0.5, 0.001)] == [2, 3, 5, 7, 2]
    assert mined([0.4, 0.3]).best(0.05) == 0


def test_questions_are_found_again_as_the_plain_way_finds_them():
    """Over more rows than a block has, with equal rows, against one argsort a question."""
    rng = np.random.default_rng(1)
    pool = rng.standard_normal((40_000, 16))
    pool = (pool / np.linalg.norm(pool, axis=1, keepdims=True)).astype(np.float16)
    pool[39_999] = pool[7]
    right = np.array([0, 7, 39_999, 20_000, 20_001, 39_998])
    noise = np.array([0.01, 0.01, 0.01, 0.01, 0.5, 0.5])[:, None] * rng.standard_normal((6, 16))
    queries = (pool[right] + noise).astype(np.float32)
    nearest = (queries.astype(np.float64) @ pool.T.astype(np.float64)).argmax(1)
    plain = [bool((pool[best] == pool[row]).all()) for best, row in zip(nearest, right, strict=True)]
    assert found_again(queries, right, pool).tolist() == plain
    assert True in plain and False in plain


def test_half_of_a_line():
    line = "one two three four five six seven"
    half = half_of(line, 1)
    words = half.split()
    assert len(words) == 4 and [word for word in line.split() if word in words] == words
    assert half_of(line, 1) == half
    assert {half_of(line, seed) for seed in range(20)} != {half}
    assert len(half_of("原子力発電", 1)) == 3
    assert half_of("a", 1) == "a"


def test_pairs_set_aside_are_of_the_surest_and_stay_when_others_come():
    pairs = mined([1.0] * 100 + [0.97] * 100)
    sources = [f"sentence {i}" for i in range(200)]
    chosen = choose_held_out(pairs, sources, 0.05)
    assert len(chosen) == 20 and chosen.max() < 100 and (np.diff(chosen) > 0).all()
    more = choose_held_out(mined([1.0] * 150 + [0.97] * 50), sources, 0.05)
    assert len(more) == 30 and len(set(chosen.tolist()) & set(more.tolist())) > 10


def answers(right, of=1000):
    found: np.ndarray = np.arange(of) < right
    return found


def test_better_is_more_than_chance():
    old = Measured(answers(980), answers(600))
    assert is_better(Measured(answers(980), answers(640)), old)
    assert not is_better(Measured(answers(980), answers(602)), old)  # two more of a thousand
    assert not is_better(Measured(answers(980), answers(560)), old)
    assert not is_better(old, old)
    # Better with half of the words, but whole sentences are lost.
    assert not is_better(Measured(answers(900), answers(640)), old)
    # As many, but others.
    assert not is_better(Measured(answers(980), ~answers(400)), old)
    for gained, better in ((6, False), (7, True)):
        found = answers(600 + gained)
        found[0] = False
        assert is_better(Measured(answers(980), found), old) is better
    # Whole sentences lost: 9 may be chance, 10 are not (1 in 1,024).
    assert [is_better(Measured(answers(980 - n), answers(640)), old) for n in (9, 10)] == [True, False]


def test_questions_are_asked_with_several_halves():
    lines = [f"{a} house stands on hill number {i}" for i, a in enumerate(["The", "A", "No", "One"] * 5)]
    encoder, at = load_encoder("europe5"), np.arange(20)
    vectors = encoder.encode(lines)
    found = measure(encoder, (lines, lines), (at, at), (vectors, vectors), 1)
    assert found.whole.all()
    asked = np.stack([encoder.encode([half_of(line, 1 + draw) for line in lines]) for draw in range(DRAWS)])
    slow = ((asked @ vectors.T).argmax(axis=2) == at).sum(axis=0)
    np.testing.assert_array_equal(found.half, np.concatenate([slow, slow]))
    assert 0 < slow.sum() < DRAWS * 20
