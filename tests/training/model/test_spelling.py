"""Vectors that know how pieces are spelled: sums as they are defined, and a finished model that has the same."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.extra_columns import COLUMNS, piece_characters
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.ngrams import LENGTHS, SPACE, folded
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import CHARACTERS, read_weights
from bitextmine.shipped import shipped_folder
from bitextmine.training.job import train
from bitextmine.training.model.spelling import (
    ACROSS_WEIGHT,
    MEAN_WEIGHT,
    SpelledVectors,
    commonest_ngrams,
    finished,
    piece_ngrams,
)
from bitextmine.training.steps import validate

from ...encoder.conftest import save_folder

# A vocabulary with like-spelled pieces in it; one made of the little text here has none.
PACKAGED = Tokenizer(shipped_folder("europe5") / TOKENIZER)
PIECES = ["", f"{SPACE}parl", "parlament", "Parlàment", "ament", "12345", f"{SPACE}a", "a,b", "parlement"]


def model(ngrams=0, dim=7):
    torch.manual_seed(1)
    made = SentenceModel(EncoderConfig(len(PIECES), dim, layers=0, ngrams=ngrams))
    made.initialise(0.5)
    return made


def slow_ngrams(piece):
    plain = folded(piece)
    found = {plain[i : i + n] for n in (*LENGTHS, len(plain)) if n >= 4 for i in range(len(plain) - n + 1)}
    return {ngram for ngram in found if ngram.lstrip(SPACE).isalpha() and SPACE not in ngram[1:]}


def test_ngrams_of_pieces_without_case_and_accents():
    names, lists = piece_ngrams(PIECES)
    each = [slow_ngrams(piece) for piece in PIECES]
    assert names == sorted(n for n in set.union(*each) if sum(n in found for found in each) > 1)
    for i, found in enumerate(each):
        own = lists.ids[lists.offsets[i] : lists.offsets[i + 1]]
        assert sorted(names[n] for n in own) == sorted(found & set(names))
    assert "parlament" in names, "the same word with and without an accent"


def test_names_share_ngrams_across_scripts():
    names, lists = piece_ngrams([f"{SPACE}обама", f"{SPACE}obama", f"{SPACE}łódź", f"{SPACE}lodz"])
    each = [{names[n] for n in lists.ids[lists.offsets[i] : lists.offsets[i + 1]]} for i in range(len(lists))]
    assert {f"{SPACE}obama", "bama"} <= each[0] & each[1]
    assert f"{SPACE}lodz" in each[2] & each[3]


@given(st.lists(st.lists(st.integers(0, len(PIECES) + 1), max_size=6), max_size=5))
def test_sums_of_own_vectors_and_the_means_of_ngrams(found):
    across = ["parl", f"{SPACE}par"]
    made = model(ngrams=2)
    vectors = SpelledVectors(made.embedding, *piece_ngrams(PIECES), across)
    made.embedding = vectors
    names, lists = piece_ngrams(PIECES)
    order = [*across, *(name for name in names if name not in across)]
    own, grams = vectors.own.detach().double().numpy(), vectors.ngrams.detach().double().numpy()
    rows = []
    for i in range(len(PIECES)):
        mine = [order.index(names[n]) for n in lists.ids[lists.offsets[i] : lists.offsets[i + 1]]]
        rows.append(own[i] + (MEAN_WEIGHT * np.mean(grams[mine], axis=0) if mine else 0))
    rows += [ACROSS_WEIGHT * grams[g] for g in range(2)]
    pieces = Pieces.from_lists(found)
    with torch.no_grad():
        sums = made(torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets)).numpy()
        done = finished(made)
        plain = done(torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets)).numpy()
    for i, sentence in enumerate(found):
        expected = np.sum([rows[p] for p in sentence], axis=0) if sentence else np.zeros(7)
        np.testing.assert_allclose(sums[i], expected, atol=1e-5)
    np.testing.assert_allclose(plain, sums, atol=1e-5)
    np.testing.assert_allclose(done.embedding.weight.detach().numpy(), rows, atol=1e-6)


def test_the_commonest_across_cuts(make_recipe, prepare):
    tokenizer, caches = prepare(make_recipe(), PACKAGED)
    pieces = tokenizer.pieces()
    shared = piece_ngrams(pieces)[0]
    found = commonest_ngrams(caches, pieces, shared, 3)
    assert len(set(found)) == 3 and found == commonest_ngrams(caches, pieces, shared, 25)[:3]
    everything = caches[0].train.take(np.arange(len(caches[0].train)))
    names = set(shared)
    counts: Counter[str] = Counter()
    for side in (everything.src, everything.tgt):
        for sentence in np.split(side.ids, side.offsets[1:-1]):
            counts.update(ngram for ngram in slow_across([pieces[p] for p in sentence]) if ngram in names)
    ranked = sorted(counts.values(), reverse=True)
    assert [counts[ngram] for ngram in found] == ranked[:3] and ranked[2] > 0


def slow_across(sentence):
    """The n-grams whose first and last letter are in different pieces of a word."""
    characters: list[tuple[str, int] | None] = []
    for place, piece in enumerate(sentence):
        for c in folded(piece) or "?":
            if c == SPACE:
                characters.append(None)
            characters.append((c, place) if c == SPACE or c.isalpha() else None)
    windows = [characters[i : i + n] for n in LENGTHS for i in range(len(characters) - n + 1)]
    whole = [[found for found in window if found] for window in windows if None not in window]
    return ["".join(c for c, _ in window) for window in whole if window[0][1] != window[-1][1]]


def test_training_and_validation_see_what_the_finished_model_sees(make_recipe, begin, tmp_path):
    recipe = make_recipe(model__spelling=True, model__ngrams=50, model__max_pieces=10, train__steps=12)
    run = begin(recipe, PACKAGED)
    tokenizer = run.tokenizer
    batch = run.sampler.draw(0)
    assert max(batch.src.ids.max(), batch.tgt.ids.max()) >= tokenizer.vocab_size
    assert max(batch.src.lengths.max(), batch.tgt.lengths.max()) == 10
    for _ in run.entries():
        pass
    save_folder(tmp_path / "m", finished(run.model), tokenizer.path, ngrams=run.ngram_names, dtype="float32")
    encoder = load_encoder(tmp_path / "m")
    cache = run.caches[0]
    pairs = cache.valid.take(np.arange(len(cache.valid)))
    names = tokenizer.pieces()
    lines = [
        ["".join(names[i] for i in ids).replace(SPACE, " ") for ids in np.split(side.ids, side.offsets[1:-1])]
        for side in (pairs.src, pairs.tgt)
    ]
    similar = encoder.encode(lines[0]) @ encoder.encode(lines[1]).T
    hits = [
        np.mean([best[i] == i or key[best[i]] == key[i] for i in range(len(key))])
        for best, key in ((similar.argmax(1), pairs.keys[1]), (similar.argmax(0), pairs.keys[0]))
    ]
    found = validate(run.model, run.caches, recipe, run.ngrams)["mean"]
    assert found == pytest.approx(50 * sum(hits), abs=1.0), "but for ties between cut sentences"
    assert found != validate(run.model, run.caches, recipe, None)["mean"], "without n-grams it is another"


@pytest.mark.parametrize("spelling", [False, True])
def test_the_finished_model_has_its_own_share_for_the_length(make_recipe, begin, tmp_path, spelling):
    columns = {"model__dim": 40, "model__length_share": 0.2, "train__length_share_in_training": 0.4}
    recipe = make_recipe(**columns, model__spelling=spelling, train__steps=20)
    out = train(recipe, tmp_path / "out")
    config, tokenizer = read_folder(out)
    assert (config.length_share, config.dim, config.piece_dim) == (0.2, 40, 40 - COLUMNS)
    assert (read_weights(config, out / WEIGHTS)[CHARACTERS] == piece_characters(tokenizer.pieces())).all()

    run = begin(recipe)
    ids, offsets = torch.arange(9), torch.tensor([0, 4, 9])
    with torch.no_grad():
        shares = [
            run.model.train(training)(ids, offsets)[:, -COLUMNS:].square().sum(1).numpy()
            for training in (True, False)
        ]
    np.testing.assert_allclose(shares, [[0.4, 0.4], [0.2, 0.2]], atol=1e-5)
