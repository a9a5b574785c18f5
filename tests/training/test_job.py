"""Training end to end on made-up sentences: it learns, it resumes, it says what is wrong."""

import signal

import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.files.journal import Journal
from bitextmine.training.job import read_log, train
from bitextmine.training.objectives.cosines import Contrastive
from bitextmine.training.steps import rate_share


@pytest.mark.parametrize(("layers", "smaller"), [(0, 0), (2, 1)])
def test_training_learns_to_find_translations(make_recipe, tmp_path, p_at_1, layers, smaller):
    recipe = make_recipe(
        model__layers=layers,
        model__recurrent=smaller,
        model__bottleneck=12 * smaller,
        model__dim=32,
        model__ffn=64,
        model__heads=4,
        train__steps=90,
        train__valid_every=30,
        train__learning_rate=2e-3,
    )
    folder = train(recipe, tmp_path / "out")
    encoder = load_encoder(folder)
    assert encoder.languages == ("en", "fr")
    assert p_at_1(encoder.encode) > 0.9
    corpora, *entries = read_log(folder / "log.jsonl")
    assert corpora["corpora"][0]["read"] == 1600
    assert [entry["step"] for entry in entries] == [30, 50, 60, 90] and entries[-1]["p_at_1"]["mean"] > 80
    assert entries[-1]["loss"] < entries[0]["loss"] and entries[-1]["pairs_per_second"] > 0
    rate = entries[1]["learning_rate"]
    assert rate == pytest.approx(2e-3 * rate_share(49, 90, recipe.train))
    said = encoder.describe()
    assert (said.get("bottleneck", 0), said.get("recurrent", 0)) == (12 * smaller, smaller)
    card = (folder / "README.md").read_text()
    assert "pairs.en-fr.tsv | en-fr | 1,600 | 1,600" in card and "Signature: `" in card


@pytest.mark.timeout(900)  # five processes, however busy the machine
@pytest.mark.parametrize(
    ("model", "key"),
    [("layers = 1\nheads = 2\nffn = 32", "cycles = 1"), ("spelling = true", "cycles = 3")],
    ids=["layers", "spelling"],
)
def test_killed_at_any_moment_it_goes_on_and_ends_in_the_same_weights(
    make_recipe, run_to_die, tmp_path, model, key
):
    make_recipe()  # for its corpus
    recipe, whole, part = tmp_path / "recipe.toml", tmp_path / "whole", tmp_path / "part"
    recipe.write_text(
        '[[data.corpora]]\npairs = "pairs.en-fr.tsv"\nlangs = ["en", "fr"]\n'
        "[vocabulary]\nsize = 150\n"
        f"[model]\ndim = 16\n{model}\n"
        f"[train]\n{key}\nsteps = 24\nbatch = 64\nvalid_every = 7\ncheckpoint_seconds = 0.0\n"
    )
    assert run_to_die(recipe, whole) == 0
    saved = 0
    for checkpoints in (1, 9):
        assert run_to_die(recipe, part, checkpoints) == -signal.SIGKILL
        saved += checkpoints - 1
        assert _step(part / "work" / "checkpoint.pt") == (saved or -1)
        assert not (part / "model.safetensors").exists()
    assert run_to_die(recipe, part) == 0
    assert (part / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    # Every entry, those that a kill came before among them.
    logs = [_timeless(read_log(folder / "log.jsonl")) for folder in (whole, part)]
    assert logs[0] == logs[1] and any("contrastive" in entry for entry in logs[0])


def test_killed_while_a_teacher_teaches_it_ends_in_the_same_weights(
    make_recipe, run_to_die, tmp_path, tiny_model
):
    """It continues from one encoder and learns from another, as in the stages of a distillation."""
    make_recipe()  # for its corpus
    recipe, whole, part = tmp_path / "recipe.toml", tmp_path / "whole", tmp_path / "part"
    recipe.write_text(
        '[[data.corpora]]\npairs = "pairs.en-fr.tsv"\nlangs = ["en", "fr"]\n'
        f'[model]\nstart_from = "{tiny_model}"\n[teacher]\nmodel = "{tiny_model}"\nlines = 300\n'
        "[train]\nsteps = 4\nbatch = 64\nvalid_every = 100\ncheckpoint_seconds = 0.0\nobjective = { distil = 1.0 }\n"
    )
    assert run_to_die(recipe, whole) == 0
    for events in (1, 3):  # the vectors of the teacher, the second checkpoint
        assert run_to_die(recipe, part, events) == -signal.SIGKILL
    assert _step(part / "work" / "checkpoint.pt") == 1
    assert run_to_die(recipe, part) == 0
    assert (part / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def _timeless(entries):
    return [{key: value for key, value in entry.items() if key != "pairs_per_second"} for entry in entries]


def _step(checkpoint):
    try:
        return int(torch.load(checkpoint, weights_only=True)["step"])
    except (OSError, RuntimeError, EOFError):
        return -1


def test_a_damaged_checkpoint_is_named(make_recipe, tmp_path):
    train(make_recipe(train__steps=2), tmp_path / "out")
    (tmp_path / "out" / "work" / "checkpoint.pt").write_bytes(b"PK nothing")
    with pytest.raises(BitextmineError, match="not a readable checkpoint"):
        train(make_recipe(train__steps=2), tmp_path / "out")


def test_a_folder_that_another_process_trains_into_is_refused(make_recipe, tmp_path):
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    with Journal(work / "journal", "train", {}):
        with pytest.raises(BitextmineError, match="another process trains into this folder"):
            train(make_recipe(), tmp_path / "out")
        assert [path.name for path in work.iterdir()] == ["journal"]
    train(make_recipe(train__steps=2), tmp_path / "out")


def test_a_loss_that_is_not_finite_stops_and_names_the_step(make_recipe, tmp_path, monkeypatch):
    call = Contrastive.forward
    count = 0

    def sick(self, views):
        nonlocal count
        count += 1
        return call(self, views) * (float("nan") if count == 7 else 1)

    monkeypatch.setattr(Contrastive, "forward", sick)
    with pytest.raises(BitextmineError, match="step 7: the loss is nan"):
        train(make_recipe(train__checkpoint_seconds=0.0), tmp_path / "out")
    assert torch.load(tmp_path / "out" / "work" / "checkpoint.pt", weights_only=True)["step"] == 6
