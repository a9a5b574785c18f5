"""Recipes: keys, defaults, overrides, the printed template, and errors that name the key."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import Objective, objective_class
from bitextmine.training.recipe import check_objectives, load_recipe, resolve_corpora
from bitextmine.training.recipe.keys import FINITE, SECTIONS, Data, PairCorpus, Recipe
from bitextmine.training.recipe.load import recipe_text

RECIPES = Path(__file__).resolve().parents[2] / "train" / "recipes"
GOOD = '[[data.corpora]]\npairs = "a.en-fr.tsv"\nlangs = ["en", "fr"]\n'


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(RECIPES.parent.rglob("*.toml")), ids=lambda path: path.stem)
def test_the_recipes_of_the_project_are_valid(path):
    assert load_recipe(path).data.corpora


def test_flags_win_over_the_recipe_and_the_digest_follows(tmp_path):
    path = write(tmp_path / "r.toml", GOOD + "[train]\nbatch = 64\n")
    recipe = load_recipe(path)
    assert (recipe.train.batch, recipe.path("x")) == (64, tmp_path / "x")
    other = load_recipe(path, {"train.batch": 32, "model.dim": 8}, folder=tmp_path / "data")
    assert (other.train.batch, other.model.dim, other.path("x")) == (32, 8, tmp_path / "data" / "x")
    assert other.digest() != recipe.digest() == load_recipe(path, folder=tmp_path / "data").digest()
    assert recipe.digest() == load_recipe(path, {"train.checkpoint_seconds": 5}).digest()


def test_the_recipe_of_an_older_model_is_read_without_the_keys_it_has_lost(tmp_path):
    recipe = load_recipe(None, {"train.batch": 32}, pairs=["a.en-fr.tsv"])
    content = recipe.to_json()
    content["data"] |= {"max_ratio": 4.0, "corpora": [{**content["data"]["corpora"][0], "src_vectors": ""}]}
    content["train"] |= {"clip": 1.0, "patience": 3}
    path = write(tmp_path / "recipe.json", json.dumps({**content, "similarity": {"dim": 9}}))
    assert load_recipe(path).digest() == recipe.digest()


def test_patterns_stand_for_files_of_their_languages(tmp_path):
    for name in ("news.en-fr.tsv", "news.en-de.tsv.zst", "news.en-ru.tsv", "law.de-fr.tsv", "mono.fr.txt"):
        (tmp_path / name).touch()
    text = (
        '[data]\nlanguages = ["en", "de", "fr"]\ncorpora = [{ pairs = "*.en-fr.tsv", weight = 2 }, '
        '{ pairs = "*.tsv*", weight = 3 }]\n[teacher]\nmodel = "europe5"\ncorpora = ["news.*"]\n'
        "[train]\nobjective = { contrastive = 1, structure = 1 }\n"
    )
    recipe = resolve_corpora(load_recipe(write(tmp_path / "r.toml", text)))
    assert [(c.pairs, c.langs, c.weight) for c in recipe.data.corpora] == [
        ("news.en-fr.tsv", ("en", "fr"), 2),
        ("law.de-fr.tsv", ("de", "fr"), 3),
        ("news.en-de.tsv.zst", ("en", "de"), 3),
    ]
    assert [recipe.teacher.teaches_on(c) for c in recipe.data.corpora] == [True, False, True]
    assert resolve_corpora(recipe).digest() == recipe.digest()
    with pytest.raises(BitextmineError, match="no such file in"):
        resolve_corpora(load_recipe(tmp_path / "r.toml", folder=tmp_path / "r.toml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[train\n", "not valid TOML"),
        (GOOD + "[train]\nbach = 3\n", "unknown key 'train.bach'"),
        (GOOD + "[tarin]\n", "unknown key 'tarin'"),
        (GOOD + '[train]\nbatch = "many"\n', "train.batch: found 'many': expected `int`, got `str`"),
        ("train = 5\n" + GOOD, "train: found 5: expected `object`"),
        ("[train]\nbatch = 4\n", "data.corpora: names no corpus"),
        ('[[data.corpora]]\nlangs = ["en", "fr"]\n', "data.corpora 1"),
        ('[[data.corpora]]\npairs = "a"\n', "langs"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path, text, said):
    path = write(tmp_path / "r.toml", text)
    with pytest.raises(BitextmineError) as e:
        load_recipe(path)
    assert said in str(e.value) and str(path) in str(e.value)


def test_languages_come_from_the_name():
    recipe = load_recipe(None, pairs=["some/news.v2.en-fr.tsv.gz"])
    assert recipe.data.corpora[0].langs == ("en", "fr")
    for name, langs in (
        ("news.en-pt-BR.tsv", ("en", "pt-BR")),
        ("news.pt-BR-en.tsv.zst", ("pt-BR", "en")),
        ("a-b.zh_Hans-de.tsv", ("zh_Hans", "de")),
        ("en-GB-fr-FR.tsv", ("en-GB", "fr-FR")),
        ("news.EN-FR.tsv", ("EN", "FR")),
    ):
        assert load_recipe(None, pairs=[name]).data.corpora[0].langs == langs
    for name in ("news.tsv", "news.pt-BR.tsv", "my-own-data.tsv", "all-in-one.tsv"):
        with pytest.raises(BitextmineError, match="does not tell its two languages"):
            load_recipe(None, pairs=[name])


def test_objectives_are_checked_described_and_made():
    with pytest.raises(BitextmineError, match="'magic' is not one of contrastive"):
        check_objectives(load_recipe(None, {"train.objective": {"magic": 1.0}}, pairs=["a.en-fr.tsv"]))
    described = above("train", "objective")
    for name in OBJECTIVES:
        assert issubclass(objective_class(name), Objective)
        assert re.search(rf"\b{name}\b", described)


def test_recipes_are_read_without_torch():
    """So that a bad one is told at once."""
    code = "import sys, bitextmine.training.recipe; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_template_reads_as_the_defaults(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text(), encoding="utf-8")
    with pytest.raises(BitextmineError, match="names no corpus"):
        load_recipe(path)
    path.write_text(recipe_text() + GOOD, encoding="utf-8")
    assert load_recipe(path) == dataclasses.replace(
        Recipe(data=Data(corpora=(PairCorpus(("en", "fr"), "a.en-fr.tsv"),))), base=tmp_path
    )


def above(section, key):
    """Return the template's comment on a key."""
    table = recipe_text().partition(f"\n[{section}]")[2]  # two tables may have a key of one name
    lines = table.split(f"\n{key} = ")[0].rsplit("\n\n", 1)[1].splitlines()
    assert all(line.startswith("# ") for line in lines)
    return " ".join(line[2:] for line in lines)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_in_the_template_with_its_meaning_and_limits(section):
    keys = key_types(type(getattr(Recipe(), section)))
    keys.pop("corpora", None) if section == "data" else None
    assert list(tomllib.loads(recipe_text())[section]) == list(keys)
    for name, kind in keys.items():
        said = above(section, name)
        assert len(said) > 5
        if typing.get_origin(kind) is typing.Annotated:
            assert said.endswith(f"({limits(kind)})")


LIMITS = {"ge": "at least {:,}", "le": "at most {:,}", "gt": "above {:,}", "lt": "below {:,}"}


def key_types(cls):
    return typing.get_type_hints(cls, include_extras=True)


def limits(kind):
    meta = typing.get_args(kind)[1]
    found = ((said, getattr(meta, name)) for name, said in LIMITS.items())
    return ", ".join(said.format(limit) for said, limit in found if limit not in (None, FINITE))


def test_pairs_of_ones_own_are_taught_on_too(tmp_path):
    """They take the place of the corpora that a teacher teaches on as well."""
    path = tmp_path / "recipe.toml"
    path.write_text(
        f'{GOOD}[train]\nobjective = {{ contrastive = 1.0, structure = 1.0 }}\n[teacher]\nmodel = "europe5"\n'
        'languages = ["en"]\nepochs = 0.5\ncorpora = ["a.en-fr.tsv"]\n'
    )
    own, named = ("mine.en-de.tsv", "news.en-fr.tsv"), ["mine.en-de.tsv"]
    assert load_recipe(path).teacher.corpora == ("a.en-fr.tsv",)
    assert load_recipe(path, pairs=own).teacher.corpora == ()
    assert load_recipe(path, {"teacher.corpora": named}, pairs=own).teacher.corpora == tuple(named)
    with pytest.raises(BitextmineError, match="found 'en', which no corpus that it teaches on has"):
        load_recipe(path, pairs=["mine.de-fr.tsv"])


def test_a_name_is_not_a_file_of_that_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("cpu-quick").write_text(GOOD)
    assert load_recipe("cpu-quick").data.corpora[0].pairs.startswith("europarl")
    assert load_recipe("./cpu-quick").data.corpora[0].pairs == "a.en-fr.tsv"
    with pytest.raises(BitextmineError, match=r"cpu-quik: no such file, and not one of .*cpu-quick"):
        load_recipe("cpu-quik")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_value_outside_its_limits_is_named(section):
    for name, kind in key_types(type(getattr(Recipe(), section))).items():
        annotated = typing.get_origin(kind) is typing.Annotated
        wrong = (-1, float("nan"), float("inf")) if annotated else ("neither",)
        for value in wrong if annotated or typing.get_origin(kind) is typing.Literal else ():
            with pytest.raises(BitextmineError, match=rf"recipe: {section}\.{name}: found"):
                load_recipe(None, {f"{section}.{name}": value}, pairs=["a.en-fr.tsv"])


# Settings, for an encoder of 16 dimensions, and words of the message.
WRONG = """
model.layers = 2; model.dim = 100; model.heads = 8 -> model: heads must divide dim, found heads 8 and dim 100
model.layers = 2; model.recurrent = 3 -> model: 3 recurrent of 2 layers
model.layers = 2; model.bottleneck = 16 -> model: bottleneck 16 with dim 16
model.ngrams = 5 -> model.ngrams: found 5 without model.spelling
model.spelling = true; train.objective = { ugt = 1 } -> model.spelling: not with 'ugt'
model.length_share = 0.1; model.layers = 1 -> model: length_share 0.1 with 1 layer
model.length_share = 0.1; model.dim = 8 -> leave none of dim 8 to the pieces
train.length_share_in_training = 0.1 -> without model.length_share
model.dim = 18; model.storage = "int4" -> multiple of 4 columns for the pieces, found 18
reduce.order_columns = 4 -> reduce.order_columns: found 4 without reduce.dim
reduce.dim = 20 -> reduce.dim: 20 leaves 20 columns to the pieces, which are trained with 16
reduce.dim = 8; model.layers = 1 -> reduce.dim: found with model.layers 1
reduce.repeat_damping = 0.5; model.layers = 1 -> reduce.repeat_damping: found with model.layers 1
reduce.dim = 8; reduce.order_columns = 5 -> reduce: model: 5 order_columns
teacher.model = ""; train.objective = { structure = 1 } -> 'structure' needs a teacher
teacher.model = "x" -> no objective learns from it
teacher.model = "x"; teacher.epochs = 0.5; train.objective = { mcl = 1 } -> but nothing is learned before
teacher.model = "precomputed"; train.objective = { mcl = 1 } -> 'precomputed' encodes nothing
teacher.corpora = ["other.tsv"] -> teacher.corpora: 'other.tsv' is not among data.corpora
teacher.model = "x"; teacher.languages = ["de"] -> found 'de', which no corpus that it teaches on has
"""


@pytest.mark.parametrize("row", WRONG.strip().splitlines())
def test_keys_that_disagree_are_named(row):
    wrong, said = row.split(" -> ")
    tables = tomllib.loads(wrong.replace("; ", "\n"))
    overrides = {f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()}
    with pytest.raises(BitextmineError, match=re.escape(said)):
        check_objectives(load_recipe(None, {"model.dim": 16, **overrides}, pairs=["a.en-fr.tsv"]))
