"""Multi-stage distillation: the trainings that a recipe with [distil] stands for, one after another.

After Ding et al. 2022, "Multi-stage Distillation Framework for Cross-Lingual Semantic Similarity Matching": a teacher
teaches a large assistant (Eq. 2), the student's piece vectors are aligned with the assistant's (Eq. 3), the assistant
teaches the student (Eq. 4), and the teacher teaches it with contrast (Eq. 5 to 9). Each stage is an ordinary recipe,
made here, which begins with what the one before it left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bitextmine.encoder.folder import CONFIG, TOKENIZER, WEIGHTS, read_folder, write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import BOTTLENECK, PIECES, SCALE, piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.training.cache import PairCache
from bitextmine.training.frequencies import piece_frequencies
from bitextmine.training.recipe import Distil, Model, Recipe
from bitextmine.training.reducing import principal_axes

__all__ = ["Stage", "check_assistant", "stages", "write_student"]

STUDENT = "student"
FOLDERS = {1: "1-assistant", 2: "2-pieces", 3: "3-student", 4: "4-contrast"}
CONTRAST = {"soft": {"mcl": 1.0}, "bool": {"mcl_bool": 1.0}, "ce": {"mcl_ce": 1.0}, "none": {}}


@dataclasses.dataclass(frozen=True)
class Stage:
    """A training: which, of what, into where; made_of: the assistant that its student is first to be made of."""

    number: int
    recipe: Recipe
    out: Path
    made_of: Path | None = None


def stages(recipe: Recipe, out: Path, work: Path) -> list[Stage]:
    """The trainings of a recipe with distil.epochs; the last is into ``out``, those before it into folders in ``work``,
    which keep their weights as they are."""
    plan = recipe.distil
    whole = dataclasses.replace(recipe.model, bottleneck=0, recurrent=0)
    asked = dataclasses.replace(recipe.model, layers=plan.layers or recipe.model.layers)
    smaller = asked != whole
    wanted = [
        number for number, epochs in enumerate(plan.epochs, 1) if epochs and (number != 2 or asked.bottleneck)
    ]
    found: list[Stage] = []
    assistant = recipe.path(plan.assistant) if plan.assistant else None
    before = assistant
    for number in wanted:
        last = number == wanted[-1]
        folder = out if last else work / "stages" / FOLDERS[number]
        made_of = None
        if number > 1 and (not found or found[-1].number == 1):
            assert assistant is not None
            before = work / "stages" / STUDENT if smaller else assistant
            made_of = assistant if smaller else None
        objective = {
            1: {"distil": 1.0},
            2: {"embedding": 1.0},
            3: {"distil": 1.0},
            4: {"distil": 1.0, **CONTRAST[plan.contrast]},
        }[number]
        teacher = recipe.teacher
        if number in (2, 3):
            teacher = dataclasses.replace(teacher, model=str(assistant), languages=())
        model = whole if number == 1 else asked
        model = dataclasses.replace(
            model,
            start_from="" if before is None else str(before.absolute()),
            storage=asked.storage if last else "float32",
        )
        made = dataclasses.replace(
            recipe,
            model=model,
            train=dataclasses.replace(recipe.train, objective=objective, epochs=plan.epochs[number - 1]),
            teacher=teacher,
            # A change to what comes later makes no other stage of this.
            distil=plan if last else Distil(),
            data=dataclasses.replace(recipe.data, cache=_cache(recipe, work)),
            vocabulary=recipe.vocabulary
            if before is None
            else dataclasses.replace(recipe.vocabulary, tokenizer="", grow=0),
        )
        found.append(Stage(number, made, folder, made_of))
        before = folder
        if number == 1:
            assistant = folder
    return found


def _cache(recipe: Recipe, work: Path) -> str:
    """One for all stages."""
    return recipe.data.cache or str((work / "cache").absolute())


def write_student(
    assistant: Path, model: Model, caches: Sequence[PairCache], tokenizer: Tokenizer, folder: Path
) -> None:
    """Makes the student of an assistant: the first layers where model.recurrent or model.layers ask for so few, and
    with model.bottleneck the piece vectors of so many numbers, and the matrix, that come nearest to the assistant's by
    the squares of the differences, each piece as often as it occurs (the axes of its vectors' second moments).

    Raises BitextmineError for an assistant that cannot be read.
    """
    config, _ = read_folder(assistant)
    weights = dict(read_weights(config, assistant / WEIGHTS))
    made = dataclasses.replace(
        config, layers=model.layers, bottleneck=model.bottleneck, recurrent=model.recurrent
    )
    vectors = piece_vectors(weights)
    weights.pop(SCALE, None)
    if model.bottleneck:
        often = piece_frequencies(caches, tokenizer.vocab_size)
        wide = vectors.astype(np.float64)
        axes, _ = principal_axes(wide.T @ (wide * often[:, None]), model.bottleneck)
        vectors, weights[BOTTLENECK] = vectors @ axes, axes
    weights[PIECES] = vectors
    dropped = tuple(f"layers.{i}." for i in range(made.own_layers, config.layers))
    kept = {name: array for name, array in weights.items() if not name.startswith(dropped or ("\0",))}
    write_folder(folder, made, kept, assistant / TOKENIZER, dtype="float32")


def check_assistant(recipe: Recipe, folder: Path) -> None:
    """Raises BitextmineError for an assistant that no student of the recipe can be made of."""
    config, _ = read_folder(folder)
    if config.bottleneck or config.recurrent:
        raise BitextmineError(
            f"recipe: distil.assistant: {folder / CONFIG}: it has bottleneck {config.bottleneck} and recurrent "
            f"{config.recurrent} itself: an assistant is a model whose layers are all different"
        )
