"""`bitextmine train`, by the real command, on a few hundred made-up pairs."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

SMALL = ("--dim", "8", "--vocabulary", "150", "--batch", "64", "--epochs", "2")
MODEL = ("config.json", "model.safetensors", "tokenizer.model")


@pytest.fixture
def folder(sentence_pairs, tmp_path) -> Path:
    """A folder with pairs.en-fr.tsv, 600 pairs."""
    rows = (f"{en}\t{fr}\n" for en, fr in sentence_pairs[:600])
    (tmp_path / "pairs.en-fr.tsv").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_from_a_recipe(bitextmine, folder):
    (folder / "recipe.toml").write_text(
        '[[data.corpora]]\npairs = "pairs.en-fr.tsv"\nlangs = ["en", "fr"]\n\n'
        "[vocabulary]\nsize = 150\n\n[model]\ndim = 8\n\n[train]\nbatch = 64\nepochs = 5\n"
    )
    bitextmine(
        "train",
        "recipe.toml",
        "--out",
        "model",
        "--epochs",
        "1",
        "--set",
        "train.temperature=0.1",
        cwd=folder,
    )
    assert all((folder / "model" / name).exists() for name in MODEL)
    assert json.loads((folder / "model" / "config.json").read_text())["dim"] == 8
    used = json.loads((folder / "model" / "recipe.json").read_text())["train"]
    assert (used["epochs"], used["temperature"], used["batch"]) == (1, 0.1, 64)
    assert (folder / "model" / "log.jsonl").read_text()
    assert "encoder" in bitextmine("info", "model", cwd=folder).out


def test_a_recipe_or_pairs(bitextmine, folder):
    assert "--pairs" in bitextmine("train", "--out", "model", code=2, cwd=folder).err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nosuch.toml"], ["nosuch.toml"]),
        (["broken.toml"], ["broken.toml", "TOML"]),
        (["--pairs", "nosuch.en-fr.tsv"], ["nosuch.en-fr.tsv", "no such file"]),
        (["--pairs", "pairs.tsv"], ["pairs.tsv", "languages"]),
        (["--pairs", "untabbed.en-fr.tsv"], ["untabbed.en-fr.tsv", "line 2"]),
    ],
)
def test_errors(bitextmine, folder, args, words):
    (folder / "broken.toml").write_text("model = [\n")
    shutil.copy(folder / "pairs.en-fr.tsv", folder / "pairs.tsv")
    (folder / "untabbed.en-fr.tsv").write_text("One.\tUn.\nTwo. Deux.\n")
    message = bitextmine.fails("train", *args, "--out", "model", *SMALL, cwd=folder)
    assert all(word in message for word in words), message
    assert not (folder / "model" / "config.json").exists()


def test_killed_and_run_again(bitextmine, folder):
    """The run that is left alone in the end gives the same model as one that never was killed."""
    args = [
        "train",
        "--pairs",
        "pairs.en-fr.tsv",
        *SMALL,
        "--epochs",
        "6",
        "--set",
        "train.checkpoint_seconds=0.0",
    ]
    one_thread = {"OMP_NUM_THREADS": "1"}
    bitextmine(*args, "--out", "whole", cwd=folder, env=one_thread)
    for count in (
        3,
        30,
        51,
    ):  # touches of a file in work/: at first before any step, then in the midst of saving
        run = (*args, "--out", "killed")
        died = bitextmine.dies(
            folder / "hooks", count, *run, folder="killed/work", cwd=folder, env=one_thread
        )
        assert died.code == -signal.SIGKILL
        assert not (folder / "killed" / "config.json").exists()
    assert (folder / "killed" / "work" / "checkpoint.pt").exists()
    bitextmine(*args, "--out", "killed", cwd=folder, env=one_thread)
    for name in MODEL:
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes(), name


def test_interrupted_it_says_what_a_rerun_does(bitextmine, folder):
    args = ("train", "--pairs", "pairs.en-fr.tsv", "--out", "model", *SMALL)
    for seconds, at, words in (
        (3600, 1, "trains from the start"),
        (0, 12, "goes on from the last checkpoint"),
    ):
        interrupted = bitextmine.dies(
            folder / "hooks",
            at,
            *args,
            "--set",
            f"train.checkpoint_seconds={seconds}",
            of=signal.SIGINT,
            folder="model/work" if seconds else "model",
            cwd=folder,
        )
        assert interrupted.code == 130, interrupted.err
        assert words in interrupted.err
