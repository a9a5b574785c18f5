"""Ding et al. 2022: Eq. 3, and the four stages of train/distil.py."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import read_weights
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.objectives.registry import Objectives, Setup
from bitextmine.training.papers import ding2022
from bitextmine.training.recipe import load_recipe

from ...encoder.conftest import unrolled

SHAPE = {"dim": 32, "layers": 2, "heads": 4, "ffn": 48, "recurrent": 1, "bottleneck": 12}
RECIPE = (
    '[data]\nvalid_pairs = 60\ncorpora = [{{ pairs = "pairs.en-fr.tsv" }}]\n[vocabulary]\nsize = 150\n'
    "[model]\n" + "".join(f"{key} = {value}\n" for key, value in SHAPE.items()) + "[train]\nsteps = 70\n"
    "batch = 64\nlearning_rate = 2e-3\nvalid_every = 1000\n"
    '[teacher]\nmodel = "{teacher}"\nlines = 300\nbatch = 32\n'
)


def test_all_stages_make_a_smaller_student_that_does_as_its_teacher(
    make_recipe, tmp_path, tiny_model, p_at_1, root
):
    make_recipe()  # for its corpus
    recipe, out = tmp_path / "recipe.toml", tmp_path / "out"
    recipe.write_text(RECIPE.format(teacher=tiny_model), encoding="utf-8")
    command = [sys.executable, root / "train/distil.py", recipe, "--out", out, "--epochs", "1,1,1,1"]
    subprocess.run(command, check=True, timeout=600)
    assistant, student, last = (out / name for name in ("1-assistant", "student", "4-contrast"))
    for made in (assistant, last):
        assert p_at_1(load_encoder(made).encode, 100) > 0.5
    (large, _), (small, _), (final, _) = map(read_folder, (assistant, student, last))
    assert {name: getattr(final, name) for name in SHAPE} == SHAPE
    said = [load_encoder(made).describe() for made in (last, assistant)]
    assert said[0]["parameters"] < 0.65 * said[1]["parameters"]
    # The student began as the assistant's first layer, with the nearest piece vectors that there can be.
    wide, narrow = (read_weights(c, f / WEIGHTS) for c, f in ((large, assistant), (small, student)))
    assert (narrow["layers.0.qkv.weight"] == wide["layers.0.qkv.weight"]).all()
    assert "layers.1.qkv.weight" in wide and "layers.1.qkv.weight" not in narrow
    table, near = wide["embedding.weight"], unrolled(small, narrow)[1]["embedding.weight"]
    assert np.linalg.matrix_rank(near, tol=1e-4) == 12
    assert np.square(table - near).sum() < 0.8 * np.square(table).sum()
    assert '"embedding"' in (out / "2-pieces" / "log.jsonl").read_text()
    # Finished stages stay as they are; the last one is not taken for that of another objective.
    before = [(made / WEIGHTS).read_bytes() for made in (assistant, student, last)]
    again = subprocess.run([*command, "--contrast", "none"], capture_output=True, text=True, timeout=600)
    assert again.returncode and "checkpoint.pt: a checkpoint of another recipe" in again.stderr
    assert [(made / WEIGHTS).read_bytes() for made in (assistant, student, last)] == before


def test_eq_3_is_the_squares_of_what_is_between_the_piece_vectors(monkeypatch):
    rng = np.random.default_rng(1)
    torch.manual_seed(1)
    model = SentenceModel(EncoderConfig(23, 8, 2, heads=2, ffn=16, bottleneck=3))
    model.initialise(0.5)
    sides = [Pieces.from_lists([rng.integers(1, 23, n).tolist() for n in (3, 1, 5, 2)]) for _ in "st"]
    batch = TokenPairs(sides[0], sides[1], np.arange(8, dtype=np.uint64).reshape(2, 4))
    theirs = rng.standard_normal((23, 8)).astype(np.float32)
    recipe = load_recipe(
        None, {"train.objective": {"embedding": 1.0}, "teacher.model": "x"}, pairs=["x.en-fr.tsv"]
    )
    monkeypatch.setattr(ding2022, "teacher_pieces", lambda *_: theirs)
    objectives = Objectives(Setup(recipe.train, model.config, teacher=object()))
    loss = objectives(model, batch, step=1)["embedding"]
    with torch.no_grad():
        ours = (model.embedding.weight @ model.bottleneck.weight.T).double().numpy()
    expected = 0.0
    for side in sides:
        for a, b in zip(side.offsets[:-1], side.offsets[1:], strict=True):
            ids = side.ids[a:b]
            expected += np.mean([((theirs[i] - ours[i]) ** 2).sum() for i in ids]) / 4
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert model.embedding.weight.grad is not None and model.bottleneck.weight.grad is not None
    assert model.layers[0].qkv.weight.grad is None
