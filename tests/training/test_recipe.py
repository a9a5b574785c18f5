"""Recipes: defaults, overrides, and errors that name the key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.training.recipe import load_recipe, recipe_from_pairs

RECIPES = Path(__file__).resolve().parents[2] / "train" / "recipes"
GOOD = '[[data.corpora]]\npairs = "a.en-fr.tsv"\nlangs = ["en", "fr"]\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_recipes_of_the_project_are_valid(path: Path) -> None:
    assert load_recipe(path).data.corpora


def test_flags_win_over_the_recipe_and_the_digest_follows(tmp_path: Path) -> None:
    path = write(tmp_path / "r.toml", GOOD + "[train]\nbatch = 64\n")
    recipe = load_recipe(path)
    assert (recipe.train.batch, recipe.path("x")) == (64, tmp_path / "x")
    other = load_recipe(path, {"train.batch": 32, "model.dim": 8}, folder=tmp_path / "data")
    assert (other.train.batch, other.model.dim, other.path("x")) == (32, 8, tmp_path / "data" / "x")
    assert other.digest() != recipe.digest() == load_recipe(path, folder=tmp_path / "data").digest()
    assert recipe.digest() == load_recipe(path, {"train.checkpoint_seconds": 5}).digest()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[train\n", "not valid TOML"),
        (GOOD + "[train]\nbach = 3\n", "unknown key 'train.bach'"),
        (GOOD + "[tarin]\n", "unknown key 'tarin'"),
        (
            GOOD + '[train]\nbatch = "many"\n',
            "train.batch: found 'many'; it must be a whole number, at least 2",
        ),
        (GOOD + "[train]\nbatch = true\n", "train.batch: found True"),
        (GOOD + "[train]\nbatch = 1\n", "train.batch"),
        (GOOD + "[train]\ntemperature = 0.0\n", "train.temperature"),
        (
            GOOD + "[model]\nlayers = 2\ndim = 100\nheads = 8\n",
            "model.heads: 8 does not divide model.dim 100",
        ),
        (GOOD + '[vocabulary]\ntype = "word"\n', "vocabulary.type"),
        ("[train]\nbatch = 4\n", "data.corpora: names no corpus"),
        ('[[data.corpora]]\nlangs = ["en", "fr"]\n', "data.corpora 1"),
        ('[[data.corpora]]\npairs = "a"\nlangs = ["en"]\n', "langs"),
        ('[[data.corpora]]\npairs = "a"\n', "langs"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "r.toml", text)
    with pytest.raises(BitextmineError) as e:
        load_recipe(path)
    assert said in str(e.value) and str(path) in str(e.value)


def test_languages_come_from_the_name() -> None:
    recipe = recipe_from_pairs(["some/news.v2.en-fr.tsv.gz"])
    assert recipe.data.corpora[0].langs == ("en", "fr")
    for name, langs in (
        ("news.en-pt-BR.tsv", ("en", "pt-BR")),
        ("news.pt-BR-en.tsv.zst", ("pt-BR", "en")),
        ("a-b.zh_Hans-de.tsv", ("zh_Hans", "de")),
        ("en-GB-fr-FR.tsv", ("en-GB", "fr-FR")),
        ("news.EN-FR.tsv", ("EN", "FR")),
    ):
        assert recipe_from_pairs([name]).data.corpora[0].langs == langs
    for name in ("news.tsv", "news.pt-BR.tsv", "my-own-data.tsv", "all-in-one.tsv"):
        with pytest.raises(BitextmineError, match="does not tell its two languages"):
            recipe_from_pairs([name])


def test_a_table_must_be_one_and_an_override_names_a_key(tmp_path: Path) -> None:
    path = write(tmp_path / "r.toml", "train = 5\n" + GOOD)
    for overrides in ({}, {"train.batch": 64}):
        with pytest.raises(BitextmineError, match="train: found 5; it must be a table"):
            load_recipe(path, overrides)
    for key in ("train", "model."):
        with pytest.raises(UsageError, match=r"--set .*name a key, as train\.batch="):
            recipe_from_pairs(["a.en-fr.tsv"], {key: 5})
    with pytest.raises(UsageError, match="unknown key 'tarin'"):
        recipe_from_pairs(["a.en-fr.tsv"], {"tarin": 5})


def test_an_unknown_objective_lists_the_known(tmp_path: Path) -> None:
    from bitextmine.training.recipe import check_objectives

    with pytest.raises(BitextmineError, match="'magic' is not one of contrastive"):
        check_objectives(recipe_from_pairs(["a.en-fr.tsv"], {"train.objective": {"magic": 1.0}}))


def test_every_objective_that_recipes_know_can_be_made() -> None:
    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.training.objectives.catalogue import OBJECTIVES, objectives_in_words
    from bitextmine.training.objectives.registry import Objective, Setup, objective_class
    from bitextmine.training.recipe import Training, recipe_template

    for name in OBJECTIVES:
        assert isinstance(objective_class(name)(Setup(Training(), EncoderConfig(9, 8, 0))), Objective)
        assert name in objectives_in_words()
    assert objectives_in_words() in " ".join(recipe_template().replace("\n# ", " ").split())
    assert "predict pieces (mlm only with layers); align, sim" in objectives_in_words()


def test_recipes_are_read_without_torch() -> None:
    """So that a bad one is told at once."""
    code = "import sys, bitextmine.training.recipe, bitextmine.training.recipe; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
