"""The token cache: what it keeps and drops, that it is made once, and what happens when it cannot be made."""

import dataclasses

import numpy as np
import pytest

from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.training.data import cache as cache_module
from bitextmine.training.data.cache import DROPPED, open_caches
from bitextmine.training.data.vocabulary import train_vocabulary
from bitextmine.training.recipe import PairCorpus, load_recipe


@pytest.fixture(scope="module")
def tokenizer(sentence_pairs, tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "tokenizer.model"
    recipe = load_recipe(None, {"vocabulary.size": 200}, pairs=["x.en-fr.tsv"])
    lines = [side for pair in sentence_pairs[:300] for side in pair]
    train_vocabulary(recipe, path, [*lines, *(f"{i} sentence phrase number numéro {i}" for i in range(300))])
    return Tokenizer(path)


def rows_of(cache):
    """The source keys of what is trained on and of what is held out."""
    return tuple(file.take(np.arange(len(file))).keys[0].tolist() for file in (cache.train, cache.valid))


def add_up(cache):
    counts = cache.counts
    return counts["read"] == counts["kept"] + sum(counts[why] for why in DROPPED) and counts["kept"] == len(
        cache.train
    ) + len(cache.valid)


def test_it_filters_counts_and_holds_out(make_recipe, tmp_path, tokenizer, caplog):
    rows = [f"sentence number {i}\tphrase numéro {i}" for i in range(700)]
    rows += rows[:300] + [row.upper() for row in rows[300:310]]  # the same to the vocabulary
    rows += ["\tno source", "equal\tequal", "EQUAL\tequal", "short\t" + "very long indeed " * 30]
    recipe = make_recipe(rows, data__valid_pairs=70, model__max_pieces=20)
    (cache,) = open_caches(tmp_path / "cache", recipe, tokenizer)
    assert cache.counts == {
        "read": 1014, "kept": 700, "too short": 1, "lengths too different": 1, "copied": 2,
        "fragments": 0, "repeated": 310, "sharing a held-out sentence": 0,
    }  # fmt: skip
    assert len(cache.valid) == 35 and add_up(cache)
    assert cache.cut == 1
    train, valid = rows_of(cache)
    assert len(set(train) | set(valid)) == 700, "each once"
    assert "1,014 pairs read, 700 kept (35 of them held out); dropped: 1 too short" in str(cache)
    assert "1 sentence cut to 20 pieces (model.max_pieces)" in caplog.text


def test_fragments_and_balance(make_recipe, tmp_path, tokenizer):
    rows = [f"set alarm number {i}\trègle le réveil numéro {i}" for i in range(400)]
    rows += [f"Sentence number {i}.\tphrase numéro {i}." for i in range(100)]
    recipe = make_recipe(rows, data__valid_pairs=0, data__balance=0.5, train__batch=400)
    (tmp_path / "b.en-de.tsv").write_text("\n".join(f"number {i}\tsatz {i}" for i in range(2000)))
    first = dataclasses.replace(recipe.data.corpora[0], fragments=0.25, weight=2.0)
    corpora = (first, PairCorpus(("en", "de"), pairs="b.en-de.tsv"))
    recipe = dataclasses.replace(recipe, data=dataclasses.replace(recipe.data, corpora=corpora))
    few, many = open_caches(tmp_path / "cache", recipe, tokenizer)
    left = len(few.train)
    assert 150 < left < 250 and few.counts["fragments"] == 500 - left and add_up(few)
    # English has them all. A language of n pairs counts (n / all) ** -0.5, and a batch is smaller than usual.
    whole = left + len(many.train)
    assert few.corpus.weight == pytest.approx(2 * (left / whole) ** -0.5 * 400 / left)
    assert many.corpus.weight == pytest.approx((len(many.train) / whole) ** -0.5)


def test_no_sentence_of_a_held_out_pair_is_trained_on(make_recipe, tmp_path, tokenizer):
    # Every sentence has two translations, and the second corpus has some of the first one's, turned round.
    rows = [f"sentence {i // 2}\tphrase {(i + 1) // 2}" for i in range(400)]
    recipe = make_recipe(rows, data__valid_pairs=15)
    turned = [f"{b}\t{a}" for a, b in (row.split("\t") for row in rows[::3])] + ["new one\ttoute nouvelle"]
    (tmp_path / "b.fr-en.tsv").write_text("\n".join(turned))
    second = PairCorpus(("fr", "en"), pairs="b.fr-en.tsv")
    data = dataclasses.replace(recipe.data, corpora=(*recipe.data.corpora, second))
    recipe = dataclasses.replace(recipe, data=data)
    caches = open_caches(tmp_path / "cache", recipe, tokenizer)
    assert [len(cache.valid) for cache in caches] == [15, 0]
    assert caches[1].counts["repeated"] == len(turned) - 1 and caches[1].counts["kept"] == 1
    assert caches[0].counts["sharing a held-out sentence"] > 0 and all(map(add_up, caches))
    held_out = set(caches[0].valid.take(np.arange(15)).keys.ravel().tolist())
    for cache in caches:
        assert not held_out & set(cache.train.take(np.arange(len(cache.train))).keys.ravel().tolist())


def test_it_is_made_once_and_shared(make_recipe, tmp_path, tokenizer, monkeypatch):
    recipe = make_recipe(data__cache="shared")
    assert recipe.digest() == make_recipe().digest(), "where the cache is changes nothing"
    first = rows_of(open_caches(tmp_path / "one", recipe, tokenizer)[0])
    assert (tmp_path / "shared").is_dir() and not (tmp_path / "one").exists()
    monkeypatch.setattr(cache_module, "PairWriter", None)
    monkeypatch.setattr(cache_module, "choose", None)
    assert rows_of(open_caches(tmp_path / "two", recipe, tokenizer)[0]) == first
    with pytest.raises(TypeError):  # another text
        open_caches(tmp_path, make_recipe(["a\tb"] * 30, data__cache="shared"), tokenizer)


def test_nothing_left(make_recipe, tmp_path, tokenizer):
    for rows, said in (
        (["same\tsame"] * 50, r"pairs.en-fr.tsv: none of its 50 pairs is left .*\(50 copied\)"),
        ([], "pairs.en-fr.tsv: empty: there is no pair to train on"),
    ):
        with pytest.raises(BitextmineError, match=said):
            open_caches(tmp_path / "cache", make_recipe(rows), tokenizer)


def test_a_full_disk(make_recipe, tmp_path, tokenizer, full_disk):
    recipe = make_recipe()
    said = r"cache: cannot write the token cache: .*data.cache"
    with full_disk(10_000), pytest.raises(BitextmineError, match=said):
        open_caches(tmp_path / "cache", recipe, tokenizer)
    assert not any((tmp_path / "cache").iterdir())
    assert len(open_caches(tmp_path / "cache", recipe, tokenizer)[0].train) > 1000
