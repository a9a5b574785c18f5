"""Recipes by the real command: the template, the ones in the package, and what wins over what."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

TINY = ("--dim", "8", "--vocabulary", "150", "--batch", "64", "--epochs", "1")


@pytest.fixture
def folder(sentence_pairs, tmp_path) -> Path:
    """A folder with mine.en-fr.tsv, 600 pairs."""
    rows = (f"{en}\t{fr}\n" for en, fr in sentence_pairs[:600])
    (tmp_path / "mine.en-fr.tsv").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_the_template_can_be_saved_filled_in_and_used(bitextmine, folder):
    template = bitextmine("train", "--print-recipe", cwd=folder).out
    assert len(tomllib.loads(template)["train"]) > 20
    corpus = '[[data.corpora]]\nlangs = ["en", "fr"]\npairs = "mine.en-fr.tsv"\n'
    (folder / "recipe.toml").write_text(template + corpus)
    bitextmine("train", "recipe.toml", "--out", "model", *TINY, cwd=folder)
    used = json.loads((folder / "model" / "recipe.json").read_text())
    assert (used["model"]["dim"], used["train"]["batch"], used["train"]["temperature"]) == (8, 64, 0.05)


@pytest.mark.parametrize("name", ["cpu-quick", "europe5", "paper-bilingual"])
def test_a_recipe_of_the_package_is_printed_by_name(bitextmine, root, tmp_path, name):
    printed = bitextmine("train", "--print-recipe", name, cwd=tmp_path).out
    assert printed == (root / "train" / "recipes" / f"{name}.toml").read_text()
    assert bitextmine("train", name, "--print-recipe", cwd=tmp_path).out == printed
    assert tomllib.loads(printed)["data"]["corpora"]


def test_a_recipe_by_name_with_pairs_of_ones_own(bitextmine, folder):
    bitextmine("train", "cpu-quick", "--pairs", "mine.en-fr.tsv", "--out", "model", *TINY, cwd=folder)
    used = json.loads((folder / "model" / "recipe.json").read_text())
    assert [corpus["pairs"] for corpus in used["data"]["corpora"]] == ["mine.en-fr.tsv"]
    assert (used["train"]["valid_every"], used["model"]["dim"]) == (250, 8)
    assert "mine.en-fr.tsv | en-fr | 600" in (folder / "model" / "README.md").read_text()


def test_without_its_corpora_a_recipe_says_how_to_name_others(bitextmine, folder):
    message = bitextmine.fails("train", "cpu-quick", "--out", "model", cwd=folder)
    assert all(
        word in message for word in ("europarl.en-fr.tsv.zst", "--data FOLDER", "train --pairs FILE")
    ), message
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["cpu-quik"], 1, ["cpu-quik", "cpu-quick", "paper-bilingual"]),
        (["cpu-quick", "--set", "train.nosuch=1"], 2, ["train.nosuch"]),
        (["paper-bilingual", "--set", "model.heads=7"], 1, ["model.heads", "7", "512"]),
        (["paper-bilingual", "--set", "train.warmup=2.0"], 1, ["train.warmup", "at most 1"]),
        (["cpu-quick", "--set", "train.objective.magic=1.0"], 2, ["train.objective"]),
        (["cpu-quick", "--set", "train.objective={mlm=1.0}"], 1, ["mlm", "model.layers"]),
    ],
)
def test_errors_name_the_key(bitextmine, folder, args, code, words):
    said = bitextmine(
        "train", *args, "--pairs", "mine.en-fr.tsv", "--out", "model", code=code, cwd=folder
    ).err
    assert "Traceback" not in said
    assert all(word in said for word in words), said
    assert not (folder / "model").exists()


def test_print_recipe_of_an_unknown_name(bitextmine, tmp_path):
    assert "paper-bilingual" in bitextmine.fails("train", "--print-recipe", "nosuch", cwd=tmp_path)
