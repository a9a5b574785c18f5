"""The template of a recipe, and the recipes that come with the package."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.training.recipe import (
    Corpus,
    Data,
    Distil,
    Model,
    Recipe,
    Teacher,
    Training,
    Vocabulary,
    check_objectives,
    load_recipe,
    recipe_from_pairs,
    recipe_names,
    recipe_settings,
    recipe_template,
)
from bitextmine.training.recipe.check import key_types

SECTIONS = {
    "data": Data,
    "vocabulary": Vocabulary,
    "model": Model,
    "train": Training,
    "teacher": Teacher,
    "distil": Distil,
}
CORPUS = '[[data.corpora]]\npairs = "a.en-fr.tsv"\nlangs = ["en", "fr"]\n'


def test_the_template_reads_as_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_template(), encoding="utf-8")
    with pytest.raises(BitextmineError, match="names no corpus"):
        load_recipe(path)
    path.write_text(recipe_template() + CORPUS, encoding="utf-8")
    assert load_recipe(path) == dataclasses.replace(
        Recipe(data=Data(corpora=(Corpus(("en", "fr"), "a.en-fr.tsv"),))), base=tmp_path
    )


def test_the_templates_corpus_is_one_when_it_is_uncommented(tmp_path: Path) -> None:
    text = recipe_template()
    start = text.index("# [[data.corpora]]")
    end = text.index("[vocabulary]")
    block = re.sub(r"^# ?", "", text[start:end], flags=re.MULTILINE)
    (corpus,) = tomllib.loads(block)["data"]["corpora"]
    assert set(corpus) == {field.name for field in dataclasses.fields(Corpus)}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_in_the_template_with_its_meaning(section: str) -> None:
    template = recipe_template()
    written = tomllib.loads(template)[section]
    keys = [
        field
        for field in dataclasses.fields(SECTIONS[section])
        if (section, field.name) != ("data", "corpora")
    ]
    assert list(written) == [field.name for field in keys]
    _, _, table = template.partition(f"\n[{section}]")  # two tables may have a key of one name
    for field in keys:
        assert len(field.metadata["doc"]) > 5, field.name
        above = table.split(f"\n{field.name} = ")[0].rsplit("\n\n", 1)[1]
        assert all(line.startswith("# ") for line in above.splitlines()), field.name
        assert field.metadata["doc"].split()[0] in above


text = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@settings(max_examples=40)
@given(name=text, folder=text, size=st.integers(8, 10**6), ratio=st.floats(1, 1e30), fold=st.booleans())
def test_what_a_recipe_sets_reads_as_that_recipe(
    tmp_path_factory: pytest.TempPathFactory, name: str, folder: str, size: int, ratio: float, fold: bool
) -> None:
    recipe = recipe_from_pairs(
        ["a.en-fr.tsv"],
        {
            "vocabulary.tokenizer": name,
            "vocabulary.size": size,
            "vocabulary.fold_case": fold,
            "data.max_ratio": ratio,
            "data.folder": folder,
            "train.objective": {"ugt": 1.5, "sim": 2.0},
        },
    )
    path = tmp_path_factory.mktemp("r") / "recipe.toml"
    path.write_text(recipe_settings(recipe), encoding="utf-8", newline="\n")
    again = load_recipe(path)
    assert again.digest() == recipe.digest()
    assert again.vocabulary == recipe.vocabulary and again.train == recipe.train


def test_recipes_of_the_package_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert {"cpu-quick", "europe5", "paper-bilingual"} <= set(recipe_names())
    monkeypatch.chdir(tmp_path)
    paper = load_recipe("paper-bilingual", {"train.batch": 64})
    assert (paper.model.layers, paper.model.dim, paper.model.heads, paper.model.ffn) == (2, 512, 8, 1024)
    assert (paper.vocabulary.size, paper.model.dropout, paper.model.max_pieces) == (50_000, 0.1, 200)
    assert paper.train.objective == {"ugt": 1.0, "align": 2.0, "sim": 2.0}
    assert (paper.train.batch, load_recipe("paper-bilingual").train.batch) == (64, 128)
    mine = load_recipe("cpu-quick", pairs=["mine/x.de-it.tsv.gz"])
    assert [corpus.langs for corpus in mine.data.corpora] == [("de", "it")]
    assert mine.path("mine/x.de-it.tsv.gz") == Path("mine/x.de-it.tsv.gz")
    assert mine.train == load_recipe("cpu-quick").train
    there = load_recipe("cpu-quick", folder=Path("/there"))
    assert there.path(there.data.corpora[0].name) == Path("/there/europarl.en-fr.tsv.zst")


def test_pairs_of_ones_own_are_taught_on_too(tmp_path: Path) -> None:
    """They take the place of the corpora that a teacher teaches on as well."""
    path = tmp_path / "recipe.toml"
    path.write_text(
        f'{CORPUS}[train]\nobjective = {{ contrastive = 1.0, structure = 1.0 }}\n[teacher]\nmodel = "europe5"\n'
        'languages = ["en"]\nepochs = 0.5\ncorpora = ["a.en-fr.tsv"]\n'
    )
    own, named = ("mine.en-de.tsv", "news.en-fr.tsv"), ["mine.en-de.tsv"]
    assert load_recipe(path).teacher.corpora == ("a.en-fr.tsv",)
    assert load_recipe(path, pairs=own).teacher.corpora == ()
    assert load_recipe(path, {"teacher.corpora": named}, pairs=own).teacher.corpora == tuple(named)
    with pytest.raises(BitextmineError, match="found 'en', which no corpus that it teaches on has"):
        load_recipe(path, pairs=["mine.de-fr.tsv"])
    untaught = {"teacher.model": "", "train.objective": {"contrastive": 1.0}}
    recipe = load_recipe(path, untaught, pairs=["mine.de-fr.tsv"])
    check_objectives(recipe)  # how long the teacher teaches does not count then
    assert recipe.teacher.model == "" and recipe.teacher.epochs > 0


def test_a_name_is_not_a_file_of_that_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cpu-quick").write_text(CORPUS)
    assert load_recipe("cpu-quick").data.corpora[0].pairs.startswith("europarl")
    assert load_recipe("./cpu-quick").data.corpora[0].pairs == "a.en-fr.tsv"
    with pytest.raises(BitextmineError, match=r"cpu-quik: no such file, and not one of .*cpu-quick"):
        load_recipe("cpu-quik")


@pytest.mark.parametrize(
    "key",
    [
        f"{section}.{field.name}"
        for section, cls in SECTIONS.items()
        for field in dataclasses.fields(cls)
        if typing.get_origin(key_types(cls).get(field.name)) is typing.Annotated
    ],
)
def test_a_number_outside_its_limits_is_named(key: str) -> None:
    for value in (-1, float("nan"), float("inf")):
        with pytest.raises(BitextmineError, match=rf"recipe: {re.escape(key)}: (found|expected)"):
            recipe_from_pairs(["a.en-fr.tsv"], {key: value})


@pytest.mark.parametrize(
    "key", ["data.errors", "vocabulary.type", "train.schedule", "train.precision", "train.autocast"]
)
def test_a_word_that_is_not_one_of_the_choices_is_named(key: str) -> None:
    with pytest.raises(BitextmineError, match=rf"recipe: {re.escape(key)}: found 'neither'.* or "):
        recipe_from_pairs(["a.en-fr.tsv"], {key: "neither"})
