"""Multi-stage distillation: one recipe runs all stages, killed at any moment it goes on, and what is wrong is told."""

import dataclasses
import signal

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
from bitextmine.training.job import train
from bitextmine.training.objectives.registry import Objectives, Setup
from bitextmine.training.papers import ding2022
from bitextmine.training.papers.stages import stages
from bitextmine.training.recipe import load_recipe
from bitextmine.training.recipe.keys import Distillation, Teacher

from ...encoder.conftest import unrolled

SHAPE = {"dim": 32, "layers": 2, "heads": 4, "ffn": 48, "recurrent": 1, "bottleneck": 12}
RECIPE = (
    '[data]\nvalid_pairs = 60\ncorpora = [{{ pairs = "pairs.en-fr.tsv" }}]\n[vocabulary]\nsize = 150\n'
    "[model]\n" + "".join(f"{key} = {value}\n" for key, value in SHAPE.items()) + "[train]\nsteps = {steps}\n"
    "batch = 64\nlearning_rate = 2e-3\nvalid_every = 1000\ncheckpoint_seconds = 0.0\n"
    '[teacher]\nmodel = "{teacher}"\nlines = 300\nbatch = 32\n[distil]\nepochs = [1, 1, 1, 1]\n'
)


def write_recipe(folder, teacher, steps):
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(teacher=teacher, steps=steps), encoding="utf-8")
    return path


@pytest.mark.timeout(1800)  # many processes, however busy the machine
def test_killed_in_any_stage_it_goes_on_and_ends_in_the_same_weights(
    make_recipe, run_to_die, tmp_path, tiny_model
):
    make_recipe()  # for its corpus
    path, part = write_recipe(tmp_path, tiny_model, steps=4), tmp_path / "part"
    assert run_to_die(path, tmp_path / "whole") == 0
    # A whole run is the teacher's embedding and four checkpoints, four checkpoints, the assistant's embedding and four,
    # four: killed in each of the four stages, and while vectors are made.
    reached = []
    for events in (1, 7, 8, 3):
        assert run_to_die(path, part, events) == -signal.SIGKILL
        reached.append(sorted(path.name for path in (part / "work" / "stages").iterdir()))
        assert not (part / "config.json").exists()
    assert reached[0] == ["1-assistant"] and "2-pieces" in reached[1] and "3-student" not in reached[1], (
        reached
    )
    assert "3-student" in reached[2] and (part / "work" / "checkpoint.pt").exists()
    assert run_to_die(path, part) == 0
    for file in ("model.safetensors", "config.json", "work/stages/1-assistant/model.safetensors"):
        assert (part / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    config, _ = read_folder(tmp_path / "whole")
    assert {name: getattr(config, name) for name in SHAPE} == SHAPE


def test_all_stages_make_a_smaller_student_that_does_as_its_teacher(
    make_recipe, tmp_path, tiny_model, p_at_1
):
    make_recipe()
    path = write_recipe(tmp_path, tiny_model, steps=70)
    folder = train(load_recipe(path, {"train.checkpoint_seconds": 60.0}), tmp_path / "out")
    for made in (folder / "work" / "stages" / "1-assistant", folder):
        assert p_at_1(load_encoder(made).encode, 100) > 0.5
    said = [load_encoder(made).describe() for made in (folder, folder / "work" / "stages" / "1-assistant")]
    assert said[0]["parameters"] < 0.65 * said[1]["parameters"]
    # The student began as the assistant's first layer, with the nearest piece vectors that there can be.
    assistant, student = (folder / "work" / "stages" / name for name in ("1-assistant", "student"))
    (large, _), (small, _) = read_folder(assistant), read_folder(student)
    wide, narrow = (read_weights(c, f / WEIGHTS) for c, f in ((large, assistant), (small, student)))
    assert (narrow["layers.0.qkv.weight"] == wide["layers.0.qkv.weight"]).all()
    assert "layers.1.qkv.weight" in wide and "layers.1.qkv.weight" not in narrow
    table, near = wide["embedding.weight"], unrolled(small, narrow)[1]["embedding.weight"]
    assert np.linalg.matrix_rank(near, tol=1e-4) == 12
    assert np.square(table - near).sum() < 0.8 * np.square(table).sum()
    # Stage 2 made them still nearer on the text (its first loss and its last).
    log = (folder / "work" / "stages" / "2-pieces" / "log.jsonl").read_text()
    assert '"embedding"' in log


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


@pytest.mark.parametrize(
    ("epochs", "shape", "said"),
    [
        ((5, 1, 3, 2), {"bottleneck": 12}, [1, 2, 3, 4]),
        ((5, 1, 3, 2), {"recurrent": 1}, [1, 3, 4]),
        ((5, 1, 3, 0), {}, [1, 3]),
        ((5, 0, 0, 0), {"bottleneck": 12}, [1]),
    ],
)
def test_a_recipe_with_stages_is_these_trainings(epochs, shape, said, tmp_path):
    settings = {"model.dim": 32, "model.layers": 2, **{f"model.{key}": value for key, value in shape.items()}}
    recipe = load_recipe(None, settings, pairs=["x.en-fr.tsv"])
    recipe = dataclasses.replace(
        recipe,
        distil=Distillation(epochs, "ce"),
        teacher=Teacher("minilm", ("en",)),
        model=dataclasses.replace(recipe.model, storage="int8"),
    )
    found = stages(recipe, tmp_path / "out")
    numbers = [int(stage.title.split()[1]) for stage in found]
    assert numbers == said
    assert found[-1].out == tmp_path / "out" and found[-1].recipe.model.storage == "int8"
    assert all(stage.recipe.model.storage == "float32" for stage in found[:-1])
    for number, stage in zip(numbers, found, strict=True):
        made, first = stage.recipe, number == 1
        assert made.train.epochs == epochs[number - 1]
        objective = {2: {"embedding": 1.0}, 4: {"distil": 1.0, "mcl_ce": 1.0}}
        assert made.train.objective == objective.get(number, {"distil": 1.0})
        assistant = str(tmp_path / "out" / "work" / "stages" / "1-assistant")
        assert made.teacher.model == (assistant if number in (2, 3) else "minilm")
        for key in ("bottleneck", "recurrent"):
            assert getattr(made.model, key) == (0 if first else shape.get(key, 0))
