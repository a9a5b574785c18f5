"""Training end to end on made-up sentences: it learns, it resumes, it says what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.train.cache import open_cache
from bitextmine.train.trainer import train

Make = Callable[..., Any]


@pytest.mark.parametrize("layers", [0, 1])
def test_training_learns_to_find_translations(
    make_recipe: Make, tmp_path: Path, sentence_pairs: list[tuple[str, str]], layers: int
) -> None:
    recipe = make_recipe(train__steps=200, model__layers=layers, model__dim=32, model__ffn=64, model__heads=4,
                         train__learning_rate=2e-3)  # fmt: skip
    folder = train(recipe, tmp_path / "out")
    encoder = load_encoder(folder)
    assert encoder.languages == ("en", "fr")
    unseen = sentence_pairs[5000:5200]
    en, fr = (encoder.encode([pair[side] for pair in unseen]) for side in (0, 1))
    assert ((en @ fr.T).argmax(1) == np.arange(200)).mean() > 0.9
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert entries[-1]["step"] == 200 and entries[-1]["p_at_1"]["mean"] > 80
    assert entries[-1]["loss"] < entries[0]["loss"]
    assert "pairs.en-fr.tsv | en-fr | 1,600 | 1,600" in (folder / "README.md").read_text()


RUN = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from bitextmine.train.recipe import load_recipe
from bitextmine.train.trainer import train
train(load_recipe(Path(sys.argv[1])), Path(sys.argv[2]), show_progress=False)
"""


def test_killed_at_any_moment_it_goes_on_and_ends_in_the_same_weights(
    make_recipe: Make, tmp_path: Path
) -> None:
    make_recipe()  # for its corpus
    path = tmp_path / "recipe.toml"
    path.write_text(
        '[[data.corpora]]\npairs = "pairs.en-fr.tsv"\nlangs = ["en", "fr"]\n[vocabulary]\nsize = 150\n'
        "[model]\nlayers = 1\ndim = 16\nheads = 2\nffn = 32\n"
        "[train]\nsteps = 150\nbatch = 64\nvalid_every = 40\ncheckpoint_seconds = 0.0\n"
    )

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", RUN, str(path), str(out)])

    assert start(tmp_path / "whole").wait() == 0
    whole = (tmp_path / "whole" / "model.safetensors").read_bytes()
    kills = 0
    for wanted in (1, 30, 90):
        process = start(tmp_path / "part")
        log = tmp_path / "part" / "work" / "checkpoint.pt"
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and _step(log) < wanted:
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills == 3 and not (tmp_path / "part" / "model.safetensors").exists()
    assert start(tmp_path / "part").wait() == 0
    assert (tmp_path / "part" / "model.safetensors").read_bytes() == whole
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("whole", "part")]
    losses = [
        [(entry["step"], entry["contrastive"]) for entry in map(json.loads, log) if "contrastive" in entry]
        for log in logs
    ]
    assert losses[1][-1] == losses[0][-1]


def _step(checkpoint: Path) -> int:
    import torch

    try:
        return int(torch.load(checkpoint, weights_only=True)["step"])
    except (OSError, RuntimeError, EOFError):
        return -1


def test_a_checkpoint_of_another_recipe_is_refused(make_recipe: Make, tmp_path: Path) -> None:
    train(make_recipe(), tmp_path / "out")
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir() if p.is_file()}
    with pytest.raises(BitextmineError, match="a checkpoint of another recipe"):
        train(make_recipe(train__temperature=0.2, vocabulary__size=90), tmp_path / "out")
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir() if p.is_file()} == before
    (tmp_path / "out" / "work" / "checkpoint.pt").write_bytes(b"PK nothing")
    with pytest.raises(BitextmineError, match="not a readable checkpoint"):
        train(make_recipe(), tmp_path / "out")


def test_a_loss_that_is_not_finite_stops_and_names_the_step(
    make_recipe: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitextmine.train.objectives.contrastive import Contrastive

    call = Contrastive.forward
    count = 0

    def sick(self, views):  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        return call(self, views) * (float("nan") if count == 7 else 1)

    monkeypatch.setattr(Contrastive, "forward", sick)
    with pytest.raises(BitextmineError, match="step 7: the loss is nan"):
        train(make_recipe(train__checkpoint_seconds=0.0), tmp_path / "out")
    import torch

    assert torch.load(tmp_path / "out" / "work" / "checkpoint.pt", weights_only=True)["step"] == 6


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["one column only"], "line 1: one column"),
        (["good line\tbonne ligne", "bad"], "line 2: one column"),
        (["same\tsame"] * 50, "none of its 50 pairs is left after filtering"),
        (["\tempty"] * 50, "none of its 50 pairs is left"),
    ],
)
def test_bad_corpora(make_recipe: Make, tmp_path: Path, rows: list[str], said: str) -> None:
    with pytest.raises(BitextmineError, match=said):
        train(make_recipe(rows), tmp_path / "out")


def test_a_missing_corpus_is_named(make_recipe: Make, tmp_path: Path) -> None:
    recipe = make_recipe()
    (tmp_path / "pairs.en-fr.tsv").unlink()
    with pytest.raises(BitextmineError, match=r"pairs.en-fr.tsv: (no such file|cannot)"):
        train(recipe, tmp_path / "out")


def test_paired_files_give_what_the_tsv_gives_and_must_be_aligned(
    make_recipe: Make, tmp_path: Path, sentence_pairs: list[tuple[str, str]]
) -> None:
    from bitextmine.train.pairs import read_pairs
    from bitextmine.train.recipe import Corpus

    recipe = make_recipe()
    for side, lang in enumerate(("en", "fr")):
        (tmp_path / f"x.{lang}").write_text("".join(pair[side] + "\n" for pair in sentence_pairs[:1600]))
    paired = Corpus(("en", "fr"), src="x.en", tgt="x.fr")
    assert list(read_pairs(recipe, paired)) == list(read_pairs(recipe, recipe.data.corpora[0]))
    for lang in ("en", "fr"):
        lines = (tmp_path / f"x.{lang}").read_text().splitlines()
        (tmp_path / f"x.{lang}").write_text("\n".join(lines[:-5]) + "\n")
        with pytest.raises(BitextmineError, match=r"1595.*1600|1600.*1595"):
            list(read_pairs(recipe, paired))
        (tmp_path / f"x.{lang}").write_text("\n".join(lines) + "\n")


def test_the_cache_filters_counts_and_holds_out_whole_sentences(make_recipe: Make, tmp_path: Path) -> None:
    from bitextmine.train.trainer import _tokenizer

    rows = [f"sentence number {i % 700}\tphrase numéro {i % 700}" for i in range(1400)]
    rows += ["\tno source", "equal\tequal", "short\t" + "very long indeed " * 30]
    recipe = make_recipe(rows, data__valid_pairs=70)
    out = tmp_path / "out"
    (out / "work").mkdir(parents=True)
    cache = open_cache(out / "cache", recipe, recipe.data.corpora[0], _tokenizer(recipe, out / "work"))
    assert cache.counts == {
        "read": 1403,
        "kept": 1400,
        "too short": 1,
        "lengths too different": 1,
        "copied": 1,
    }
    train_keys, valid_keys = (set(cache.keys[0][rows].tolist()) for rows in (cache.train, cache.valid))
    assert valid_keys and not train_keys & valid_keys
    assert len(valid_keys) == len(cache.valid), "one row per held-out sentence"
    assert len(set(cache.keys[0].tolist())) == 700, "equal sentences have equal keys, others others"
