"""`bitextmine train`, on a few hundred made-up pairs."""

import json
import signal
import tomllib

import pytest

SMALL = ("--dim", "8", "--vocabulary", "150", "--batch", "64", "--epochs", "1")
MODEL = ("config.json", "model.safetensors", "tokenizer.model")
TRAIN = ("train", "--pairs", "pairs.en-fr.tsv", "--out", "model", *SMALL)


@pytest.fixture(autouse=True)
def folder(sentence_pairs, tmp_path):
    """A folder with pairs.en-fr.tsv, 400 pairs."""
    rows = (f"{en}\t{fr}\n" for en, fr in sentence_pairs[:400])
    (tmp_path / "pairs.en-fr.tsv").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def recipe_of(model):
    return json.loads((model / "recipe.json").read_text())


def test_options_override_a_recipe(bm, folder):
    """The recipe is the printed template with a corpus."""
    template = bm("train", "--print-recipe").out
    assert len(tomllib.loads(template)["train"]) > 20
    corpus = '[[data.corpora]]\nlangs = ["en", "fr"]\npairs = "pairs.en-fr.tsv"\n'
    (folder / "recipe.toml").write_text(template + corpus)
    bm("train", "recipe.toml", "--out", "model", *SMALL, "--set", "train.temperature=0.1")
    assert all((folder / "model" / name).exists() for name in (*MODEL, "log.jsonl"))
    assert json.loads((folder / "model" / "config.json").read_text())["dim"] == 8
    used = recipe_of(folder / "model")["train"]
    assert (used["epochs"], used["temperature"], used["batch"]) == (1, 0.1, 64)
    assert "encoder" in bm("info", "model").out


def test_printing_a_builtin_recipe(bm, root):
    printed = bm("train", "--print-recipe", "world56").out
    assert printed == (root / "train" / "recipes" / "world56.toml").read_text()
    assert bm("train", "world56", "--print-recipe").out == printed


def test_a_builtin_recipe_with_other_pairs(bm, folder):
    bm("train", "cpu-quick", *TRAIN[1:])
    used = recipe_of(folder / "model")
    assert [corpus["pairs"] for corpus in used["data"]["corpora"]] == ["pairs.en-fr.tsv"]
    assert (used["train"]["valid_every"], used["model"]["dim"]) == (250, 8)
    assert "pairs.en-fr.tsv | en-fr | 400" in (folder / "model" / "README.md").read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nosuch.toml"], 1, ["nosuch.toml"]),
        (["nested.toml"], 1, ["nested.toml"]),
        (["--pairs", "nosuch.en-fr.tsv"], 1, ["nosuch.en-fr.tsv", "no such file"]),
        (["--pairs", "untabbed.en-fr.tsv"], 1, ["untabbed.en-fr.tsv", "line 2"]),
        (["--pairs", "late.en-fr.tsv"], 1, ["late.en-fr.tsv", "line 1001"]),
        (["--pairs", "late.en-fr.tsv", "--from", "europe5"], 1, ["late.en-fr.tsv", "line 1001"]),
        (["--pairs", "blank.en-fr.tsv"], 1, ["the corpora contain no text"]),
        (["--pairs", "copied.en-fr.tsv"], 1, ["none of its 9 pairs is left after filtering (9 copied)"]),
        (["cpu-quick"], 1, ["europarl.en-fr.tsv.zst", "--data", "--pairs"]),
        (["--print-recipe", "nosuch"], 1, ["paper-bilingual"]),
        (["cpu-quick", "--set", "train.objective={foo=1}"], 2, ["'foo' is not one of contrastive"]),
        (["cpu-quick", "--set", "train.objective.distil=1"], 2, ["unknown key 'train.objective.distil'"]),
        (["cpu-quick", "--pairs", "nosuch.tsv"], 1, ["error: nosuch.tsv: its name does not tell"]),
        (["cpu-quick", "--set", f"train.temperature={'[' * 50_000}"], 2, ["train.temperature"]),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_recipes_and_pairs(bm, folder, args, code, words):
    (folder / "nested.toml").write_text(f"data = {'[' * 100_000}{']' * 100_000}\n")

    (folder / "untabbed.en-fr.tsv").write_text("One.\tUn.\nTwo. Deux.\n")
    (folder / "late.en-fr.tsv").write_text("One.\tUn.\n" * 1000 + "Two. Deux.\n")
    (folder / "blank.en-fr.tsv").write_text(" \t \n")
    (folder / "copied.en-fr.tsv").write_text("One.\tOne.\n" * 9)
    said = bm("train", *args, "--out", "model", code=code).err
    assert "Traceback" not in said
    assert all(word in said for word in words), said
    assert not (folder / "model").exists()


def test_killed_and_run_again(bm, folder):
    args = (*TRAIN[:3], *SMALL, "--epochs", "2", "--set", "train.checkpoint_seconds=0.0")
    one_thread = {"OMP_NUM_THREADS": "1"}
    bm(*args, "--out", "whole", env=one_thread)
    # Touches of files there: before the first step, then of the token cache, then while saving.
    for place, count in (("work", 3), ("work/cache", 2), ("work/cache", 6), ("work/cache", 9), ("work", 15)):
        options = {"folder": f"killed/{place}", "env": {**bm.env, **one_thread}}
        died = bm.dies(folder / "hooks", count, *args, "--out", "killed", **options)
        assert died.code == -signal.SIGKILL
        assert not (folder / "killed" / "config.json").exists()
    assert (folder / "killed" / "work" / "checkpoint.pt").exists()
    bm(*args, "--out", "killed", env=one_thread)
    whole, killed = (
        {path.name: path.read_bytes() for path in (made / "work" / "cache").iterdir()}
        | {name: (made / name).read_bytes() for name in MODEL}
        for made in (folder / "whole", folder / "killed")
    )
    assert killed == whole, "and nothing of the killed runs is left in the cache"


def test_an_existing_model(bm, folder):
    """Foreign files, another recipe and a finished model without a checkpoint need --force; the same recipe has nothing
    left to do."""
    (folder / "model").mkdir()
    (folder / "model" / "README.md").write_text("# My project\n")
    message = bm.refused(*TRAIN)
    assert "model: the folder is not empty" in message and "--force" in message
    bm(*TRAIN, "--force")
    assert "bitextmine encoder" in (folder / "model" / "README.md").read_text()
    bm(*TRAIN)
    assert "a checkpoint of another recipe" in bm.refused(*TRAIN, "--seed", "2")
    (folder / "model" / "work" / "checkpoint.pt").unlink()
    assert "model: the folder is not empty" in bm.refused(*TRAIN)
