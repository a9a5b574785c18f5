"""When training stops, what it keeps, what it writes down, and in which precision it works."""

import contextlib
import itertools
import re

import numpy as np
import pytest
import torch

from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.training.job import read_log, train
from bitextmine.training.model.forward import layer_precision, product_precision
from bitextmine.training.recipe import Training
from bitextmine.training.steps import TrainingRun, rate_share, validate

LAYER = {"model__layers": 1, "model__dim": 16, "model__heads": 2, "model__ffn": 32}


def test_cycles_end_in_the_mean_of_the_weights_at_their_ends(make_recipe, begin, monkeypatch):
    def weights_by_step(training):
        found = {}
        for entry in training.entries():
            training.optimizer.catch_up_all()
            found[entry["step"]] = [weight.detach().clone() for weight in training.learned]
        return found

    settings = {"train__steps": 20, "train__cycles": 3, "model__spelling": True}
    averaged = weights_by_step(begin(make_recipe(**settings)))
    monkeypatch.setattr(TrainingRun, "_end_cycle", lambda self: None)
    each = weights_by_step(begin(make_recipe(**settings)))
    for number, weight in enumerate(averaged[20]):
        mean = np.mean([each[end][number].numpy() for end in (7, 14, 20)], axis=0)
        assert np.allclose(weight.numpy(), mean, atol=1e-6) and not np.allclose(
            mean, each[20][number].numpy()
        )


def test_weights_that_are_not_finite_never_replace_the_last_good_checkpoint(
    make_recipe, tmp_path, monkeypatch
):
    """A finite loss may have a gradient that is not: the loss tells a step too late."""
    learn = TrainingRun.learn

    def poisoned(self, *args):
        losses = learn(self, *args)
        if self.step == 5:
            with torch.no_grad():
                self.model.embedding.weight[3, 2] = float("nan")
        return losses

    monkeypatch.setattr(TrainingRun, "learn", poisoned)
    recipe = make_recipe(train__checkpoint_seconds=0.0)
    with pytest.raises(BitextmineError, match=r"step 5: weights are no longer finite.*checkpoint stays"):
        train(recipe, tmp_path / "out")
    saved = torch.load(tmp_path / "out" / "work" / "checkpoint.pt", weights_only=True)
    assert saved["step"] == 4
    assert all(bool(torch.isfinite(value).all()) for value in saved["model"].values())
    assert not (tmp_path / "out" / "config.json").exists()
    monkeypatch.undo()
    train(recipe, tmp_path / "out")  # goes on from there


def test_a_full_disk_leaves_the_last_checkpoint(make_recipe, tmp_path, monkeypatch, full_disk):
    recipe, full = make_recipe(train__checkpoint_seconds=0.0), contextlib.ExitStack()
    learn = TrainingRun.learn

    def then_full(self, *args):
        losses = learn(self, *args)
        if self.step == 6:
            full.enter_context(full_disk(2000))
        return losses

    said = r"checkpoint\.pt: cannot write: .*free some space and run the same command again to go on"
    with monkeypatch.context() as patch, full, pytest.raises(BitextmineError, match=said):
        patch.setattr(TrainingRun, "learn", then_full)
        train(recipe, tmp_path / "out")
    work = tmp_path / "out" / "work"
    assert torch.load(work / "checkpoint.pt", weights_only=True)["step"] == 5
    assert not [path for path in work.iterdir() if path.suffix == ".part" or path.name.startswith(".")]
    train(recipe, tmp_path / "out")
    assert (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_learning_rate_rises_then_falls_as_the_schedule_says(schedule):
    settings = Training(schedule=schedule, warmup=0.1, floor=0.05)
    shares = [rate_share(step, 200, settings) for step in range(200)]
    assert shares[:20] == pytest.approx([(step + 1) / 20 for step in range(20)])
    assert max(shares) <= 1
    assert all(a >= b for a, b in itertools.pairwise(shares[20:]))
    assert shares[-1] == pytest.approx(0.05, abs=0.01)
    assert shares[110] == pytest.approx(0.525, abs=0.01)


def test_p_at_1_is_measured_without_dropout_and_training_goes_on_with_it(make_recipe, begin):
    recipe = make_recipe(**LAYER, model__dropout=0.5)
    run = begin(recipe)
    modes = []
    run.model.layers[0].register_forward_hook(lambda module, *rest: modes.append(module.training))
    assert validate(run.model, run.caches, recipe) == validate(run.model, run.caches, recipe)
    assert modes and not any(modes)
    assert all(module.training for module in run.model.modules())


def test_the_precision_of_the_layers(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert [layer_precision(name, cpu) for name in ("auto", "bfloat16")] == [torch.float32, torch.bfloat16]
    for native, wanted in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda native=native, **_: native)
        assert layer_precision("auto", gpu) == product_precision("auto", gpu) == wanted
    assert layer_precision("float32", gpu) == product_precision("float32", gpu) == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_training_on_a_gpu_learns(make_recipe, tmp_path):
    recipe = make_recipe(
        **LAYER, train__learning_rate=2e-3, train__objective={"contrastive": 1.0, "ugt": 1.0}
    )
    folder = train(recipe, tmp_path / "out", Run(device="cuda"))
    last = read_log(folder / "log.jsonl")[-1]
    assert last["p_at_1"]["mean"] > 50


def test_too_little_text_is_told(make_recipe, tmp_path, sentence_pairs, caplog):
    rows = [f"{en}\t{fr}" for en, fr in sentence_pairs[:400]]
    recipe = make_recipe(rows, train__steps=0, train__batch=256, vocabulary__size=4000)
    with caplog.at_level("INFO"):
        train(recipe, tmp_path / "out")
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for words in (
        r"^the corpora fill a vocabulary of only \d+ pieces, not 4000: .*--vocabulary$",
        r"^only \d steps? \(\d+ pairs, train.batch 256, train.epochs 5\).*--batch.*--epochs$",
        r"^P@1 is not measured: no corpus has 50 held-out pairs .*: give one of 1,000 pairs or more$",
    ):
        assert any(re.search(words, message) for message in warned), warned
