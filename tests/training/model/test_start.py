"""Training on from an encoder: the same vectors before the first step, better ones after some."""

import dataclasses
import logging
import random
import shutil

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import TOKENIZER, read_folder
from bitextmine.encoder.model import unit_vectors
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.exporting import export_encoder
from bitextmine.shipped import shipped_folder
from bitextmine.training.data.cache import open_caches
from bitextmine.training.data.vocabulary import check_unknown, open_vocabulary, unknown_shares
from bitextmine.training.job import train
from bitextmine.training.model.forward import sentence_vectors
from bitextmine.training.model.spelling import finished
from bitextmine.training.model.start import open_start
from bitextmine.training.recipe import load_recipe
from bitextmine.training.steps import TrainingRun


def from_(make_recipe, tmp_path, start, **overrides):
    """A recipe over the pairs of `make_recipe` that trains on from an encoder."""
    make_recipe()
    settings = {
        "model.start_from": start,
        "train.batch": 64,
        "train.steps": 40,
        "data.valid_pairs": 60,
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    return load_recipe(None, settings, pairs=["pairs.en-fr.tsv"], folder=tmp_path)


def begun(recipe, work):
    """A run of that recipe before its first step."""
    work.mkdir(parents=True, exist_ok=True)
    start = open_start(recipe)
    tokenizer = open_vocabulary(recipe, work, start)
    return TrainingRun(recipe, open_caches(work / "cache", recipe, tokenizer), tokenizer, start=start)


def vectors_of(run, tokenizer, lines):
    pieces, _ = tokenizer.encode(lines, run.recipe.model.max_pieces)
    if run.ngrams is not None:
        pieces = run.ngrams.extend(pieces)
    found = unit_vectors(sentence_vectors(finished(run.model).eval(), pieces))
    return np.asarray(found.detach().numpy())


LINES = [
    "la séance est levée",
    "a",
    "Les commissaires se réunissent à Strasbourg.",
    "Donaudampfschifffahrt",
    "",
]


def test_before_the_first_step_the_vectors_are_those_of_the_packaged_encoder(make_recipe, tmp_path):
    """europe5: four bits, n-grams of two, columns for order and length."""
    run = begun(from_(make_recipe, tmp_path, "europe5"), tmp_path / "work")
    found = vectors_of(run, Tokenizer(shipped_folder("europe5") / TOKENIZER), LINES)
    np.testing.assert_allclose(found, load_encoder("europe5").encode(LINES), atol=2e-6)
    assert run.model.config.order_columns == load_encoder("europe5").describe()["order_columns"]


@pytest.mark.parametrize("layers", [0, 1])
def test_what_training_made_can_be_trained_on(make_recipe, tmp_path, p_at_1, layers):
    """Hardly trained first; the second training finds its shape in the encoder, and makes it better."""
    first = train(
        make_recipe(model__layers=layers, model__heads=2, model__ffn=32, train__steps=10), tmp_path / "a"
    )
    rates = {"train__embedding_learning_rate": 6e-3, "train__learning_rate": 2e-3}
    recipe = from_(make_recipe, tmp_path, str(first), train__steps=150, **rates)
    assert (recipe.model.dim, recipe.model.layers) == (16, layers)
    run = begun(recipe, tmp_path / "work")
    with pytest.MonkeyPatch.context() as patch:  # where the processor has bfloat16, too
        patch.setattr("bitextmine.encoder.network.pick_precision", lambda kind: "float32")
        expected = load_encoder(first, "cpu").encode(LINES)
    np.testing.assert_allclose(vectors_of(run, Tokenizer(first / TOKENIZER), LINES), expected, atol=2e-3)
    second = train(recipe, tmp_path / "b")
    assert (second / TOKENIZER).read_bytes() == (first / TOKENIZER).read_bytes()
    assert "continuing from the encoder a" in (second / "README.md").read_text()
    right = [p_at_1(load_encoder(folder).encode) for folder in (first, second)]
    assert right[1] > max(0.8, right[0] + 0.2)


def test_what_disagrees_with_the_encoder_is_named(make_recipe, tmp_path):
    dim = read_folder(shipped_folder("europe5"))[0].dim
    with pytest.raises(BitextmineError, match=rf"model\.dim is 64.*europe5.*is {dim}: leave it out"):
        from_(make_recipe, tmp_path, "europe5", model__dim=64)
    with pytest.raises(BitextmineError, match=r"model\.layers is 2.*is 0"):
        from_(make_recipe, tmp_path, "europe5", model__layers=2)
    with pytest.raises(BitextmineError, match=r"nosuch: no such model folder.*europe5"):
        from_(make_recipe, tmp_path, "nosuch")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BitextmineError, match="no model folder; only encoders of 'bitextmine train'"):
        from_(make_recipe, tmp_path, str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(BitextmineError, match="not a bitextmine encoder"):
        from_(make_recipe, tmp_path, str(tmp_path / "empty"))


def test_an_exported_encoder_can_be_trained_on(make_recipe, tmp_path):
    exported = str(export_encoder("europe5", tmp_path / "exported"))
    assert from_(make_recipe, tmp_path, exported).model.dim == read_folder(shipped_folder("europe5"))[0].dim


def test_a_checkpoint_of_another_start_is_refused(make_recipe, tmp_path):
    """The path of the encoder does not count, its content does."""
    a = train(make_recipe(train__steps=2), tmp_path / "a")
    b = train(make_recipe(train__steps=3), tmp_path / "b")
    moved = tmp_path / "moved"
    shutil.copytree(a, moved)
    out = tmp_path / "out"
    train(from_(make_recipe, tmp_path, str(a), train__steps=3), out)
    train(from_(make_recipe, tmp_path, str(moved), train__steps=3), out)
    with pytest.raises(BitextmineError, match="a checkpoint of another recipe"):
        train(from_(make_recipe, tmp_path, str(b), train__steps=3), out)


def test_a_language_is_known_from_enough_pairs_on(make_recipe, tmp_path):
    start = open_start(from_(make_recipe, tmp_path, "europe5"))
    few = start.continued({"en": 6_526, "zh": 1_526, "pl": 5_000}, 0.1)
    assert set(few.languages) == {*start.config.languages, "pl"}
    assert few.pairs == {"en": 6_526, "pl": 5_000, "zh": 1_526}
    more = dataclasses.replace(start, config=few).continued({"zh": 4_000}, 0.1)
    assert "zh" in more.languages and more.pairs["zh"] == 5_526
    assert EncoderConfig.from_json(more.to_json(), "config.json") == more


def test_text_that_the_vocabulary_does_not_know_is_named(tmp_path, caplog):
    # Any letters will do: Chinese ones are unknown, Estonian-like words are cut into known pieces.
    rng = random.Random(3)
    english = ["the vote will take place tomorrow at noon", "we thank the rapporteur"]
    for lang, line in (
        ("zh", lambda: "".join(rng.choices("会议明天中午投票我们感谢报告员", k=12))),
        ("et", lambda: " ".join("".join(rng.choices("äüktsvaeiu", k=8)) for _ in range(5))),
        ("fr", lambda: "le vote aura lieu demain à midi, nous remercions le rapporteur"),
    ):
        rows = "".join(f"{rng.choice(english)} {i}\t{line()} {i}\n" for i in range(300))
        (tmp_path / f"pairs.en-{lang}.tsv").write_text(rows, encoding="utf-8")
    names = [f"pairs.en-{lang}.tsv" for lang in ("zh", "et", "fr")]
    settings = {"model.start_from": "europe5", "data.valid_pairs": 0}
    recipe = load_recipe(None, settings, pairs=names, folder=tmp_path)
    start = open_start(recipe)
    tokenizer = Tokenizer(start.folder / TOKENIZER)
    shares = unknown_shares(open_caches(tmp_path / "cache", recipe, tokenizer), tokenizer)
    assert shares["zh"] > 0.5 and shares["en"] == shares["fr"] == shares["et"] == 0
    with pytest.raises(BitextmineError, match=r"zh: .* nothing is learned from them"):
        train(recipe, tmp_path / "model")
    assert not (tmp_path / "model" / "config.json").exists()
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        check_unknown(start, {**shares, "zh": 0.1})
    assert ["zh: 10%" in record.message for record in caplog.records] == [True]


def test_an_encoder_keeps_its_transliteration(make_recipe, tmp_path):
    """Names of several scripts have one vector, in the trained encoder and in one that continues from it."""
    recipe = make_recipe(model__transliterate=True)
    train(recipe, tmp_path / "first")
    train(from_(make_recipe, tmp_path, str(tmp_path / "first")), tmp_path / "second")
    for name in ("first", "second"):
        encoder = load_encoder(tmp_path / name)
        latin, cyrillic = encoder.encode(["obama marina", "Обама Марина"])
        np.testing.assert_array_equal(latin, cyrillic)
