"""Several processes train what one would: two of them on the CPU, started by torchrun."""

import json
import subprocess
import sys

import pytest
import torch

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.run import Run
from bitextmine.training import parallel
from bitextmine.training.outputs import read_log
from bitextmine.training.parallel import World, join_world
from bitextmine.training.recipe.load import load_recipe
from bitextmine.training.trainer import train

# Parts over sentences and over the batch, of a teacher too, a learned number, and shares of different sizes; no
# dropout, which would differ between processes.
SETTINGS = {
    "model.layers": 1,
    "model.dim": 16,
    "model.heads": 2,
    "model.ffn": 32,
    "model.dropout": 0.0,
    "train.objective": {
        "contrastive": 1.0,
        "mlm": 0.5,
        "smlm": 0.5,
        "ugt": 1.0,
        "align": 2.0,
        "sim": 2.0,
        "edited": 0.5,
        **dict.fromkeys(("distil", "mcl", "mcl_bool", "mcl_ce", "structure"), 1.0),
    },
    "teacher.lines": 300,
    "teacher.batch": 33,
    "train.precision": "float32",
    "train.batch": 33,
    "train.steps": 12,
    "train.valid_every": 1,
    "train.checkpoint_seconds": 0.0,
}


STAGES = ("1-assistant", "2-pieces", "3-student")


@pytest.fixture
def torchrun(bitextmine, tmp_path):
    """Runs `torchrun -m bitextmine train recipe.json --out OUT` with two processes in tmp_path."""

    def start(out, models=1, code=0, **env):
        run = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        train = ("-m", "bitextmine", "train", "recipe.json", "--out", out, "--device", "cpu")
        environment = bitextmine.environment({"OMP_NUM_THREADS": "1", **env})
        done = subprocess.run(
            [*run, *train], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert bool(done.returncode) == bool(code), done.stderr
        if not code:
            assert done.stderr.count("a model of 150 pieces") == models, "only the first process says things"
        return done

    return start


def entries(folder):
    found = read_log(folder / "log.jsonl")
    return [entry for entry in found if "loss" in entry]


def write_recipe(make_recipe, folder, settings):
    recipe = make_recipe(**{key.replace(".", "__"): value for key, value in settings.items()})
    content = recipe.to_json()
    content["teacher"]["model"] = recipe.teacher.model
    (folder / "recipe.json").write_text(json.dumps(content))
    return folder / "recipe.json"


@pytest.mark.timeout(900)  # five processes, however busy the machine
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_two_processes_have_the_losses_of_one_and_resume(
    bitextmine, torchrun, make_recipe, tmp_path, tiny_model
):
    """The command of the page; one of the two processes killed, the same command resumes."""
    recipe = write_recipe(make_recipe, tmp_path, {**SETTINGS, "teacher.model": str(tiny_model)})
    train(load_recipe(recipe, folder=tmp_path), tmp_path / "one", Run(device="cpu"))
    # A process that touches the work folder for the so-manieth time kills itself; torchrun then ends the other one.
    bitextmine.start_to_die(tmp_path / "hooks", 1 << 30, "--version", stdout=subprocess.DEVNULL).wait()
    die = {"PYTHONPATH": str(tmp_path / "hooks"), "DIE_AT": "27", "DIE_OF": "9", "DIE_IN": "two/work"}
    torchrun("two", code=1, **die)
    assert (tmp_path / "two" / "work" / "checkpoint.pt").exists()
    assert not (tmp_path / "two" / "model.safetensors").exists()
    assert "resuming after step" in torchrun("two").stderr
    one, two = entries(tmp_path / "one"), entries(tmp_path / "two")
    assert [entry["step"] for entry in two] == list(range(1, 13)), "every step once: one process writes"
    for a, b in zip(one, two, strict=True):
        for name in ("loss", *SETTINGS["train.objective"]):
            assert b[name] == pytest.approx(a[name], rel=1e-4, abs=1e-5), (a["step"], name)
    weights = [
        torch.load(tmp_path / out / "work" / "checkpoint.pt", weights_only=True) for out in ("one", "two")
    ]
    assert weights[0]["pairs"] == weights[1]["pairs"] == 12 * 33
    for part in ("model", "objectives"):
        for name, value in weights[0][part].items():
            torch.testing.assert_close(weights[1][part][name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.timeout(900)  # three processes, however busy the machine
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_two_processes_go_through_the_stages_of_distillation_as_one_does(
    torchrun, make_recipe, tmp_path, tiny_model
):
    """Each stage begins where the one before it ended."""
    settings = {
        **SETTINGS,
        "teacher.model": str(tiny_model),
        "train.objective": {"contrastive": 1.0},  # the default, which [distil] asks for
        "train.steps": 4,
        "model.layers": 2,
        "model.bottleneck": 6,
        "model.recurrent": 1,
        "distil.epochs": [1.0, 1.0, 1.0, 1.0],
    }
    train(
        load_recipe(write_recipe(make_recipe, tmp_path, settings), folder=tmp_path),
        tmp_path / "one",
        Run(device="cpu"),
    )
    torchrun("two", models=4)
    for folder in (*(f"work/stages/{name}" for name in STAGES), "."):
        one, two = (entries(tmp_path / out / folder) for out in ("one", "two"))
        assert [entry["step"] for entry in one] == [entry["step"] for entry in two] == [1, 2, 3, 4]
        for a, b in zip(one, two, strict=True):
            # Stage 2 starts at the best there is, where all that is left of the gradient is rounding, and AdamW makes
            # steps of its sign.
            close = 1e-4 if "1-" in folder else 1e-2
            for name in a.keys() - {"pairs_per_second", "p_at_1"}:
                assert b[name] == pytest.approx(a[name], rel=close, abs=1e-5), (folder, a["step"], name)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [7, 8, 100])
def test_shares_are_all_rows_once_and_nearly_equal(n, size):
    shares = [range(n)[World(rank, size).share(n)] for rank in range(size)]
    assert [row for share in shares for row in share] == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_batch_smaller_than_the_processes_is_an_error(make_recipe, begin):
    with pytest.raises(
        BitextmineError, match=r"train\.batch: a batch of 2 pairs cannot be shared by 3 processes"
    ):
        begin(make_recipe(train__batch=2), World(0, 3))


def test_one_gpu_is_not_for_several_processes(monkeypatch):
    for name, value in (("TORCHELASTIC_RUN_ID", "x"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(parallel, "pick_device", torch.device)
    with (
        pytest.raises(UsageError, match=r"'cuda:0': torchrun starts 2 processes.*use cuda or auto"),
        join_world("cuda:0"),
    ):
        pass
