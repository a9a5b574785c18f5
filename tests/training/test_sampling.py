"""Batches: a permutation a pass, the same wherever a run is resumed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Corpus, Data, Recipe, Training
from bitextmine.training.sampling import Sampler, drop_pieces, permuted, split_table


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_permuted_is_a_permutation(n: int, seed: int) -> None:
    assert sorted(permuted(np.arange(n), n, seed).tolist()) == list(range(n))


def test_permuted_looks_random() -> None:
    order = permuted(np.arange(10_000), 10_000, 7)
    assert abs(np.corrcoef(np.arange(10_000), order)[0, 1]) < 0.05
    assert (permuted(np.arange(10_000), 10_000, 8) == order).mean() < 0.01


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=10), st.floats(0, 0.99), st.integers(0, 99))
def test_drop_pieces_leaves_subsequences_and_empties_no_sentence(
    found: list[list[int]], share: float, seed: int
) -> None:
    left = drop_pieces(Pieces.from_lists(found), share, np.random.default_rng(seed))
    assert len(left) == len(found)
    for i, sentence in enumerate(found):
        kept = left.ids[left.offsets[i] : left.offsets[i + 1]].tolist()
        rest = iter(sentence)
        assert all(piece in rest for piece in kept), "a subsequence"
        assert bool(kept) == bool(sentence)


def test_a_sampler_resumes_anywhere_and_passes_visit_every_pair(
    make_recipe: Callable[..., Any], prepare: Callable[..., Any]
) -> None:
    recipe = make_recipe(train__batch=100)
    _, caches = prepare(recipe)
    n = len(caches[0].train)
    whole = Sampler(caches, recipe)
    batches = [whole.draw(step) for step in range(2 * n // 100)]
    seen = np.concatenate([batch.keys[0] for batch in batches])[:n]
    assert sorted(seen.tolist()) == sorted(caches[0].train.take(np.arange(n)).keys[0].tolist())
    late = Sampler(caches, recipe)
    late.skip(5)
    for step in range(5, 12):
        again = late.draw(step)
        assert (again.keys == batches[step].keys).all() and (again.src.ids == batches[step].src.ids).all()


def test_pieces_come_in_halves_until_the_last_steps(
    make_recipe: Callable[..., Any], prepare: Callable[..., Any]
) -> None:
    recipe = make_recipe(train__batch=100, train__piece_splits=0.5, model__max_pieces=20)
    tokenizer, caches = prepare(recipe)
    plain, split, again = (
        Sampler(caches, recipe),
        *(Sampler(caches, recipe, split_table(tokenizer), split_steps=3) for _ in range(2)),
    )
    again.skip(2)
    for step in range(5):
        a, b = plain.draw(step), split.draw(step)
        assert (a.keys == b.keys).all()
        assert b.src.lengths.max() <= 20 and b.tgt.lengths.max() <= 20
        assert (a.tgt.lengths.sum() < b.tgt.lengths.sum()) == (step < 3)
        if step >= 2:
            assert (again.draw(step).tgt.ids == b.tgt.ids).all()


class Numbered:
    """As a PairFile of n pairs, all with one key."""

    def __init__(self, n: int, key: int) -> None:
        self.n, self.key = n, key

    def __len__(self) -> int:
        return self.n

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        pieces = Pieces.from_lists([[1]] * len(rows))
        return TokenPairs(pieces, pieces, np.full((2, len(rows)), self.key, dtype=np.uint64))


def test_weights_are_how_often_a_pair_is_drawn() -> None:
    corpora = [
        Corpus(("en", "fr"), pairs=name, weight=weight) for name, weight in (("a", 1), ("b", 3), ("c", 0.5))
    ]
    recipe = Recipe(data=Data(corpora=tuple(corpora)), train=Training(batch=10))
    caches: list[Any] = [
        SimpleNamespace(corpus=c, train=Numbered(n, i))
        for i, (c, n) in enumerate(zip(corpora, (400, 200, 800), strict=True))
    ]
    sampler = Sampler(caches, recipe)
    drawn = np.zeros(3)
    for step in range(3000):
        batch = sampler.draw(step)
        drawn[int(batch.keys[0, 0])] += len(batch)
    times = drawn / (400, 200, 800)
    assert np.allclose(times / times[0], (1, 3, 0.5), rtol=0.15)
