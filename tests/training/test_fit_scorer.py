"""The scorer of `mine --rescore`, fitted to what a tiny encoder mines of the pairs that its training held out."""

import dataclasses

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.scorer import Scorer
from bitextmine.training.fit_scorer import fit_scorer
from bitextmine.training.job import train
from bitextmine.training.options import Fitting
from bitextmine.training.recipe import load_recipe

SMALL = Fitting(corpora={"a.": 1.0, "b.": 2.0}, held_out=50, draws=2)


@pytest.fixture(scope="module")
def trained(sentence_pairs, tmp_path_factory):
    """A folder with a recipe of three corpora, the last of them small, and model/, which was trained by it."""
    folder = tmp_path_factory.mktemp("trained")
    tables = []
    for name, start, stop in (("a", 0, 1200), ("b", 1200, 2400), ("c", 2400, 2600)):
        rows = "".join(f"{en}\t{fr}\n" for en, fr in sentence_pairs[start:stop])
        (folder / f"{name}.en-fr.tsv").write_text(rows, encoding="utf-8")
        tables.append(f'[[data.corpora]]\npairs = "{name}.en-fr.tsv"\nlangs = ["en", "fr"]\n')
    (folder / "recipe.toml").write_text(
        "".join(tables) + "[vocabulary]\nsize = 150\n[model]\ndim = 24\n[train]\nbatch = 64\nsteps = 80\n"
    )
    train(load_recipe(folder / "recipe.toml"), folder / "model")
    return folder


@pytest.fixture
def recipe(trained):
    return load_recipe(trained / "recipe.toml")


@pytest.fixture
def few_steps(monkeypatch):
    """Fit a smaller network in a tenth of the time."""
    monkeypatch.setattr("bitextmine.training.fit_scorer.PIECE_FIT", (8, 60, 0.1, 1e-2))
    monkeypatch.setattr("bitextmine.training.fit_scorer.DISTRACTORS", (300,))


def test_it_is_fitted_measured_and_written(trained, recipe, few_steps, tmp_path):
    out = tmp_path / "scorer.safetensors"
    place, scorer, tasks = fit_scorer(trained / "model", recipe, trained / "model", out, SMALL)
    assert [task.corpus for task in tasks] == ["a.en-fr.tsv"] * 2 + ["b.en-fr.tsv"] * 2
    for task in tasks:
        assert task.gold == 60 and 30 < task.right <= 60 < task.candidates <= 360
        assert task.f1_by_scorer > max(60, task.f1_by_margin)
    assert len(set(tasks)) == 4, "other distractors each time"
    written = Scorer.read(out)
    assert (place, written.hash) == (out, scorer.hash)
    with pytest.raises(BitextmineError, match="the file exists"):
        fit_scorer(trained / "model", recipe, trained / "model", out, SMALL)
    before = out.read_bytes()
    fit_scorer(trained / "model", recipe, trained / "model", out, SMALL, force=True)
    assert out.read_bytes() == before
    other = dataclasses.replace(SMALL, draws=1)
    _, again, _ = fit_scorer(trained / "model", recipe, None, tmp_path / "other", other)
    assert again.hash != written.hash


def test_the_command_prints_what_it_measured(trained, bitextmine, tmp_path):
    """By the recipe that the training wrote."""
    run = ("encoder", "fit-scorer", "model", "--held-out", "50", "--draws", "1", "--corpora", "a.")
    lines = bitextmine(*run, "--out", tmp_path / "scorer", cwd=trained).out.splitlines()
    assert lines[0] == "| corpus | candidates | right | F1 by margin | F1 by the scorer |"
    [row] = [line.strip("| ").split(" | ") for line in lines[2:-2]]
    assert row[0] == "a.en-fr.tsv" and float(row[4]) > 60
    assert lines[-1] == f"{tmp_path / 'scorer'}: scorer {Scorer.read(tmp_path / 'scorer').hash}"


def test_an_encoder_that_finds_nothing(trained, recipe, few_steps, monkeypatch, tmp_path):
    def wrong(found):
        pairs = retrieve(found)
        kept = pairs.src != pairs.tgt
        return ScoredPairs(pairs.src[kept], pairs.tgt[kept], pairs.score[kept])

    monkeypatch.setattr("bitextmine.training.fit_scorer.retrieve", wrong)
    with pytest.raises(BitextmineError, match="model: the encoder finds none of the held-out pairs"):
        fit_scorer(trained / "model", recipe, None, tmp_path / "x", SMALL)
    assert not (tmp_path / "x").exists()


def test_what_it_refuses(trained, recipe, tmp_path):
    def fit(model=trained / "model", **changes):
        fitting = dataclasses.replace(SMALL, **changes)
        fit_scorer(trained / "model", recipe, model, tmp_path / "x", fitting)

    with pytest.raises(BitextmineError, match=r"--corpora a\.,b\.: none of them has 500 held-out pairs"):
        fit(held_out=500)
    with pytest.raises(BitextmineError, match=r"not the vocabulary of europe5; .*--model"):
        fit(model="europe5")
    elsewhere = dataclasses.replace(recipe, base=tmp_path)
    with pytest.raises(BitextmineError, match=r"a\.en-fr\.tsv: no such file; .*--data FOLDER"):
        fit_scorer(trained / "model", elsewhere, None, tmp_path / "x", SMALL)
    assert not (tmp_path / "x").exists()
