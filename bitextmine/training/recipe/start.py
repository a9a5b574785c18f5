"""A recipe that trains on from an encoder: what of its keys that encoder decides."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import CONFIG, PACKAGED, WEIGHTS, packaged
from bitextmine.encoder.foreign import read_foreign
from bitextmine.encoder.weights import storage_of
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json
from bitextmine.training.recipe.keys import Model, Recipe

__all__ = [
    "RATES",
    "disagreement",
    "start_config",
    "start_folder",
    "start_name",
    "with_assistant",
    "with_start",
]

# What a recipe that does not say otherwise trains with from trained weights: learning rates a third of those from
# random ones, so that the first steps do not undo what is known.
RATES: dict[str, Any] = {"learning_rate": 1e-4, "embedding_learning_rate": 2e-3, "warmup": 0.1}
# Dropout is of the training, not of the weights.
SHAPE = tuple(
    field.name
    for field in dataclasses.fields(Model)
    if field.name in {other.name for other in dataclasses.fields(EncoderConfig)} - {"dropout"}
)


def _shape(config: EncoderConfig) -> list[str]:
    """Which of SHAPE say something: the weight of order columns where there are any."""
    return [name for name in SHAPE if config.order_columns or name != "order_weight"]


def start_name(name: str | os.PathLike[str]) -> str:
    """What model.start_from is for an encoder that someone names here: that of the package, or a folder wherever the
    recipe lies."""
    text = os.fspath(name)
    return text if text in PACKAGED else str(Path(text).absolute())


def start_folder(recipe: Recipe) -> Path:
    """The folder of model.start_from. Raises BitextmineError where there is none."""
    name = recipe.model.start_from
    if name in PACKAGED:
        return packaged(name)
    folder = recipe.path(name)
    if not folder.is_dir():
        what = "not a folder" if folder.exists() else "no such model folder"
        raise BitextmineError(
            f"model.start_from (--from): {folder}: {what}, and not one of the packaged encoders "
            f"({', '.join(sorted(PACKAGED))})"
        )
    return folder


def start_config(recipe: Recipe) -> EncoderConfig:
    """What the encoder of model.start_from is. Raises BitextmineError for one that 'bitextmine train' did not make."""
    folder = start_folder(recipe)
    if not (folder / CONFIG).is_file() or (folder / "modules.json").is_file():
        foreign = read_foreign(folder)
        made_by = f"an encoder of another kind ({type(foreign).__name__})" if foreign else "no model folder"
        raise BitextmineError(
            f"model.start_from (--from): {folder}: {made_by}; only encoders of 'bitextmine train' can be trained on"
        )
    return EncoderConfig.from_json(read_json(folder / CONFIG), str(folder / CONFIG))


def disagreement(recipe: Recipe, config: EncoderConfig, given: Collection[str] = SHAPE) -> str:
    """Of the model's keys in ``given`` the first that has another value than the encoder, in words; "" for none."""
    for name in _shape(config):
        asked, there = getattr(recipe.model, name), getattr(config, name)
        if name in given and asked != there:
            return (
                f"model.{name} is {asked}, but that of {recipe.model.start_from}, which training starts from, is "
                f"{there}: leave it out (--from with --pairs alone, without a recipe, takes the encoder's shape)"
            )
    return ""


def with_assistant(recipe: Recipe, given: Collection[str]) -> Recipe:
    """The recipe with the shape of the assistant that it begins with, if it names one, but for what makes a student
    smaller. Raises BitextmineError as `with_start` does."""
    if not recipe.distil.assistant:
        return recipe
    begun = dataclasses.replace(recipe.model, start_from=recipe.distil.assistant)
    try:
        config = start_config(dataclasses.replace(recipe, model=begun))
    except BitextmineError as e:
        raise BitextmineError(
            f"recipe: distil.assistant: {e}".replace("model.start_from (--from): ", "")
        ) from None
    shape = {
        name: getattr(config, name) for name in _shape(config) if name not in ("bottleneck", "recurrent")
    }
    for name, there in shape.items():
        asked = getattr(recipe.model, name)
        if f"model.{name}" in given and asked != there:
            raise BitextmineError(
                f"recipe: model.{name} is {asked}, but that of distil.assistant {recipe.distil.assistant} is {there}: "
                "leave it out"
            )
    return dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, **shape))


def with_start(recipe: Recipe, given: Collection[str]) -> Recipe:
    """The recipe with the shape and storage of the encoder that it starts from, if it does, and with RATES where it
    names none.

    given: the keys that somebody set, as "model.dim". Raises BitextmineError for one that disagrees with the encoder,
    and for an encoder that cannot be trained on.
    """
    if not recipe.model.start_from:
        return recipe
    config = start_config(recipe)
    names = [key.removeprefix("model.") for key in given if key.startswith("model.")]
    if wrong := disagreement(recipe, config, names):
        raise BitextmineError(f"recipe: {wrong}")
    kept: dict[str, Any] = {name: getattr(config, name) for name in _shape(config)}
    if "model.storage" not in given:
        kept["storage"] = storage_of(start_folder(recipe) / WEIGHTS)
    rates = {name: value for name, value in RATES.items() if f"train.{name}" not in given}
    return dataclasses.replace(
        recipe,
        model=dataclasses.replace(recipe.model, **kept),
        train=dataclasses.replace(recipe.train, **rates),
    )
