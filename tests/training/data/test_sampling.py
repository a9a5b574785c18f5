"""Batches are the same wherever a run is resumed; dropped and split pieces; piece frequencies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.shipped import shipped_folder
from bitextmine.training.data.edits import Edits
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.sampling import (
    CHOICES,
    ROUNDS,
    PairSource,
    Phases,
    Sampler,
    drop_pieces,
    permuted,
    piece_frequencies,
    split_pieces,
    split_table,
)
from bitextmine.training.recipe import PairCorpus, Recipe, Training


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_permuted_is_a_permutation(n, seed):
    assert sorted(permuted(np.arange(n), n, seed).tolist()) == list(range(n))


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=10), st.floats(0, 0.99), st.integers(0, 99))
def test_drop_pieces_leaves_subsequences_and_empties_no_sentence(found, share, seed):
    left = drop_pieces(Pieces.from_lists(found), share, np.random.default_rng(seed))
    assert len(left) == len(found)
    for i, sentence in enumerate(found):
        kept = left.ids[left.offsets[i] : left.offsets[i + 1]].tolist()
        rest = iter(sentence)
        assert all(piece in rest for piece in kept), "a subsequence"
        assert bool(kept) == bool(sentence)


def test_a_sampler_resumes_anywhere_and_passes_visit_every_pair(make_recipe, prepare):
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


class Numbered:
    """As a PairFile of n pairs, all with one key."""

    def __init__(self, n, key):
        self.n, self.key = n, key

    def __len__(self):
        return self.n

    def take(self, rows, max_pieces=None):
        pieces = Pieces.from_lists([[1]] * len(rows))
        return TokenPairs(pieces, pieces, np.full((2, len(rows)), self.key, dtype=np.uint64))


def test_the_easy_steps_have_neither_edited_copies_nor_joined_pairs(make_recipe, prepare):
    recipe = make_recipe(train__batch=100)
    tokenizer, caches = prepare(recipe)
    sources = [*caches, PairSource(caches[0].corpus, Numbered(3 * len(caches[0].train), 0))]
    edits = Edits(tokenizer.pieces())
    whole, late = (Sampler(sources, recipe, phases=Phases(easy=10), edits=edits) for _ in range(2))
    batches = [whole.draw(step) for step in range(30)]
    assert all(batch.edited is None and batch.keys.all() for batch in batches[:10])
    assert all(batch.edited is not None for batch in batches[10:])
    assert 0 < sum(not batch.keys.any() for batch in batches[10:]) < 20
    late.skip(25)
    assert (late.draw(25).src.ids == batches[25].src.ids).all()


def test_pieces_come_in_halves_until_the_last_steps(make_recipe, prepare):
    recipe = make_recipe(train__batch=100, train__piece_splits=0.5, model__max_pieces=20)
    tokenizer, caches = prepare(recipe)
    plain, split, again = (
        Sampler(caches, recipe),
        *(Sampler(caches, recipe, split_table(tokenizer), Phases(frozenset(range(3)))) for _ in range(2)),
    )
    again.skip(2)
    for step in range(5):
        a, b = plain.draw(step), split.draw(step)
        assert (a.keys == b.keys).all()
        assert b.src.lengths.max() <= 20 and b.tgt.lengths.max() <= 20
        assert (a.tgt.lengths.sum() < b.tgt.lengths.sum()) == (step < 3)
        if step >= 2:
            assert (again.draw(step).tgt.ids == b.tgt.ids).all()


def test_weights_are_how_often_a_pair_is_drawn():
    sources = [
        PairSource(PairCorpus(("en", "fr"), weight=weight), Numbered(n, i))
        for i, (weight, n) in enumerate(((1, 400), (3, 200), (0.5, 800)))
    ]
    sampler = Sampler(sources, Recipe(train=Training(batch=10)))
    drawn = np.zeros(3)
    for step in range(3000):
        batch = sampler.draw(step)
        drawn[int(batch.keys[0, 0])] += len(batch)
    times = drawn / (400, 200, 800)
    assert np.allclose(times / times[0], (1, 3, 0.5), rtol=0.15)


PACKAGED = shipped_folder("europe5") / "tokenizer.model"
TOKENIZER = Tokenizer(PACKAGED)
SPLITS = split_table(TOKENIZER)
PIECES = TOKENIZER.pieces()
SENTENCES = st.lists(st.lists(st.integers(1, len(PIECES) - 1), max_size=8), max_size=10)


def text(pieces, row):
    return "".join(PIECES[i] for i in pieces.ids[pieces.offsets[row] : pieces.offsets[row + 1]])


@given(SENTENCES, st.floats(0, 1), st.integers(0, 99))
def test_the_text_stays(found, share, seed):
    before = Pieces.from_lists(found)
    after = split_pieces(before, SPLITS, share, np.random.default_rng(seed))
    assert after.ids.dtype == before.ids.dtype
    assert [text(after, i) for i in range(len(found))] == [text(before, i) for i in range(len(found))]
    assert (after.lengths >= before.lengths).all()
    assert (after.lengths <= before.lengths * 2**ROUNDS).all()


def test_the_likeliest_halves_are_offered_and_no_blank_alone():
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


def test_frequencies_are_those_of_the_training_text(make_recipe, prepare):
    recipe = make_recipe()
    tokenizer, (cache,) = prepare(recipe)
    pairs = cache.train.take(np.arange(len(cache.train)))
    counts = np.bincount(np.concatenate([pairs.src.ids, pairs.tgt.ids]), minlength=tokenizer.vocab_size)
    found = piece_frequencies([cache], tokenizer.vocab_size)
    assert found.min() > 0
    np.testing.assert_allclose(found.sum(), 1)
    seen = counts > 0
    np.testing.assert_allclose(found[seen] / found[seen].sum(), counts[seen] / counts.sum())
    # A corpus that is drawn twice as often counts twice: here, of the same text, that changes nothing.
    np.testing.assert_allclose(piece_frequencies([cache, cache], tokenizer.vocab_size), found, atol=1e-5)
