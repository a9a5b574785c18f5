"""Learning the form for similarity: the loss against a slow oracle, what the factors come to, and the commands."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.forms import AXES, FACTORS, SIMILARITY
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Corpus, Similarity
from bitextmine.training.similarity import agreement_loss, fit_form
from bitextmine.training.teacher.lessons import Lessons, Taught, TaughtPairs
from bitextmine.training.teacher.source import TeacherSource
from bitextmine.training.trainer import train

Make = Callable[..., Any]


def units(seed: int, n: int, d: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def slow_loss(src: np.ndarray, tgt: np.ndarray, teacher: np.ndarray, t: float, scale: float) -> float:
    n, total = len(src), 0.0
    for a, b in ((src, src), (tgt, tgt), (src, tgt), (tgt, src)):
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            p = np.array([math.exp(teacher[i] @ teacher[j] / t) for j in rest])
            q = np.array([math.exp(scale * (a[i] @ b[j]) / t) for j in rest])
            p, q = p / p.sum(), q / q.sum()
            total += float((p * np.log(p / q)).sum())
    return total / (4 * n)


@pytest.mark.parametrize("size", [(3, 2, 5), (9, 4, 4), (40, 6, 3)])
def test_the_loss_is_that_of_the_oracle_and_so_is_its_gradient(size: tuple[int, int, int]) -> None:
    n, d, e = size
    src, tgt, teacher = units(1, n, d), units(2, n, d), units(3, n, e)
    a = torch.tensor(src, requires_grad=True)
    loss = agreement_loss(a, torch.tensor(tgt), torch.tensor(teacher), 0.2, 1.5)
    assert float(loss.detach()) == pytest.approx(slow_loss(src, tgt, teacher, 0.2, 1.5), rel=1e-6)
    loss.backward()  # type: ignore[no-untyped-call]
    assert a.grad is not None
    up, down = src.copy(), src.copy()
    up[1, 0] += 1e-6
    down[1, 0] -= 1e-6
    slope = (slow_loss(up, tgt, teacher, 0.2, 1.5) - slow_loss(down, tgt, teacher, 0.2, 1.5)) / 2e-6
    assert float(a.grad[1, 0]) == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_one_that_agrees_has_nothing_to_learn() -> None:
    rows = torch.tensor(units(1, 12, 4))
    assert float(agreement_loss(rows, rows, rows, 0.1)) == pytest.approx(0, abs=1e-9)


TOPICS, NOISE, DIM = 20, 10, 16


@dataclasses.dataclass(frozen=True)
class Table:
    """Vectors that are there already, for `TaughtPairs`."""

    matrix: np.ndarray

    def rows(self, places: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.matrix[places].astype(np.float32)
        return found


def lessons(pairs: int = 1500, seed: int = 4) -> tuple[np.ndarray, Lessons]:
    """Sentences of two pieces that say what they are about and three that say nothing; the teacher hears the former.
    With the vectors (rows, d) of the pieces, those that say nothing as long as the others."""
    rng = np.random.default_rng(seed)
    vectors = units(seed, TOPICS + NOISE, DIM)
    about = rng.integers(0, TOPICS, (pairs, 2))
    sides = [np.concatenate([about, rng.integers(TOPICS, TOPICS + NOISE, (pairs, 3))], axis=1) for _ in "ab"]
    pieces = [
        Pieces(side.astype(np.int32).ravel(), np.arange(0, 5 * pairs + 1, 5, dtype=np.int64))
        for side in sides
    ]
    heard = vectors[about].sum(axis=1)
    places = np.arange(pairs)
    keys = np.arange(2 * pairs, dtype=np.uint64).reshape(2, pairs)
    taught = TaughtPairs(TokenPairs(*pieces, keys), (Table(heard), Table(heard)), np.stack([places, places]))
    corpus = Corpus(("en", "fr"), "x.en-fr.tsv")
    return vectors.astype(np.float32), Lessons(TeacherSource("ear", "0", None), DIM, [Taught(corpus, taught)])


def test_pieces_that_say_nothing_come_to_count_less() -> None:
    vectors, taught = lessons()
    plan = Similarity(steps=120, batch=256, learning_rate=0.05, whiten=0.0)
    found = fit_form(vectors, taught, None, 200, plan, show_progress=False)
    factors = found.arrays[FACTORS]
    assert factors[TOPICS:].max() < 0.5 * factors[:TOPICS].min()
    assert found.after > found.before + 0.05
    assert (found.lines, found.held_out) == (1350, 150)
    # Without whitening the axes only turn.
    axes = found.arrays[AXES]
    np.testing.assert_allclose(axes.T @ axes, np.eye(DIM), atol=1e-5)


def test_it_is_the_same_every_time_and_another_by_another_seed() -> None:
    vectors, taught = lessons()
    plan = Similarity(steps=5, batch=64)
    one, two, other = (
        fit_form(vectors, taught, None, 200, plan, seed=seed, show_progress=False).arrays
        for seed in (1, 1, 2)
    )
    for name in (AXES, FACTORS):
        np.testing.assert_array_equal(one[name], two[name])
    assert (one[FACTORS] != other[FACTORS]).any()


def test_whitening_evens_out_the_axes() -> None:
    vectors, taught = lessons()
    vectors[:, 0] += 1.0  # all sentences are alike along one axis
    made = [
        fit_form(vectors, taught, None, 200, Similarity(steps=1, batch=64, whiten=power), show_progress=False)
        for power in (0.0, 1.0)
    ]
    spread = []
    for one in made:
        ids = taught.corpora[0].train.pairs.src.ids.reshape(-1, 5)
        sums = vectors[ids].sum(axis=1)
        rows = (sums / np.linalg.norm(sums, axis=1, keepdims=True)) @ one.arrays[AXES]
        moments = np.sort(np.linalg.eigvalsh(rows.T @ rows))
        spread.append(moments[-1] / moments[0])
    assert spread[0] > 10
    assert spread[1] < 3


def test_a_batch_is_no_larger_than_what_there_is_and_few_pairs_are_told() -> None:
    vectors, taught = lessons(pairs=120)
    plan = Similarity(steps=2, batch=1024)
    assert fit_form(vectors, taught, None, 200, plan, show_progress=False).lines == 108
    vectors, taught = lessons(pairs=99)
    with pytest.raises(
        BitextmineError, match="teaches on 99 pairs, and a form for similarity needs 100 or more"
    ):
        fit_form(vectors, taught, None, 200, plan, show_progress=False)


def test_factors_that_no_file_could_hold_are_an_error() -> None:
    vectors, taught = lessons()
    with pytest.raises(BitextmineError, match=r"try a lower similarity\.learning_rate"):
        fit_form(
            vectors, taught, None, 200, Similarity(steps=30, batch=64, learning_rate=1e4), show_progress=False
        )


def test_a_form_that_gains_nothing_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    vectors, taught = lessons()
    plan = Similarity(steps=1, batch=64, whiten=0.0, learning_rate=1e-6)
    fit_form(vectors, taught, None, 200, plan, show_progress=False)
    assert "nothing is gained by it" in caplog.text


@pytest.fixture
def taught_recipe(make_recipe: Make) -> Make:
    return lambda **more: make_recipe(
        **{
            "teacher__model": "default",
            "teacher__lines": 400,
            "similarity__steps": 6,
            "similarity__batch": 64,
            **more,
        }
    )


def test_training_ends_with_it_and_is_otherwise_the_same(taught_recipe: Make, tmp_path: Path) -> None:
    with_it = train(taught_recipe(), tmp_path / "with", show_progress=False)
    without = train(
        taught_recipe(similarity__steps=0, teacher__model=""), tmp_path / "without", show_progress=False
    )
    name = "model.safetensors"
    assert (with_it / name).read_bytes() == (without / name).read_bytes()
    assert (with_it / SIMILARITY).exists()
    card = (with_it / "README.md").read_text(encoding="utf-8")
    assert "Its form for similarity was learned of default from 3" in card
    assert "taught by" not in card, "nothing else was learned of it"
    assert not (without / SIMILARITY).exists()
    similar = load_encoder(f"{with_it}:similarity")
    assert similar.encode(["the old map"]).shape == (1, 16)
    # A run whose last file is missing makes it again.
    made = (with_it / SIMILARITY).read_bytes()
    (with_it / SIMILARITY).unlink()
    train(taught_recipe(), with_it, show_progress=False)
    assert (with_it / SIMILARITY).read_bytes() == made


def test_the_command_gives_a_trained_encoder_one(encoder: Make, taught_recipe: Make, tmp_path: Path) -> None:
    train(taught_recipe(similarity__steps=0, teacher__model=""), tmp_path / "model", show_progress=False)
    recipe = tmp_path / "recipe.toml"
    settings = json.loads((tmp_path / "model" / "recipe.json").read_text(encoding="utf-8"))
    recipe.write_text(
        f"[vocabulary]\nsize = {settings['vocabulary']['size']}\n[model]\ndim = 16\n[data]\nvalid_pairs = 60\n"
        '[teacher]\nmodel = "default"\nlines = 400\n[similarity]\nbatch = 64\nsteps = 6\n'
        '[[data.corpora]]\npairs = "pairs.en-fr.tsv"\nlangs = ["en", "fr"]\n',
        encoding="utf-8",
    )
    run = ("fit-similarity", "model", "--recipe", recipe)
    assert "learned from 3" in encoder(*run, cwd=tmp_path).out
    made = (tmp_path / "model" / SIMILARITY).read_bytes()
    assert "it is there already" in encoder(*run, cwd=tmp_path, code=1).err
    encoder(*run, "--force", "--set", "similarity.whiten=0", cwd=tmp_path)
    assert (tmp_path / "model" / SIMILARITY).read_bytes() != made
    for setting, said in (
        ("similarity.steps=0", "similarity.steps: found 0"),
        ("teacher.lines=90", "a form for similarity needs 100 or more"),
        ("similarity.whiten=2", "similarity.whiten"),
        ("teacher.model=missing", "teacher.model"),
    ):
        failed = encoder(*run, "--force", "--set", setting, cwd=tmp_path, code=None)
        assert failed.code in (1, 2)
        assert said in failed.err


@pytest.mark.parametrize("model", ["europe5", "default", "org/name@v1"])
def test_encoders_that_are_not_the_users_own_are_left_alone(
    encoder: Make, model: str, tmp_path: Path
) -> None:
    failed = encoder("fit-similarity", model, "--recipe", "europe5", "--force", cwd=tmp_path, code=None)
    assert failed.code
    assert "name a model folder of your own" in failed.err


def test_a_training_is_not_lost_for_a_form_that_cannot_be_made(
    taught_recipe: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = train(taught_recipe(similarity__learning_rate=1e4), tmp_path / "model", show_progress=False)
    assert "the model has no form for similarity" in caplog.text
    assert load_encoder(made).encode("the old map").shape == (16,)
    assert not (made / SIMILARITY).exists()


def test_too_little_to_teach_is_told_before_the_training(taught_recipe: Make, tmp_path: Path) -> None:
    with pytest.raises(BitextmineError, match="needs 100 or more"):
        train(taught_recipe(teacher__lines=60), tmp_path / "model", show_progress=False)
    assert not (tmp_path / "model" / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"teacher__model": ""}, "similarity.steps: found 6 without a teacher"),
        ({"model__layers": 1, "model__heads": 4}, "similarity.steps: found 6 with model.layers 1"),
    ],
)
def test_recipes_that_cannot_have_one(taught_recipe: Make, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BitextmineError, match=said):
        taught_recipe(**settings)
