"""Complete recipes that continue from an encoder with the keys that the encoder decides."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import CONFIG, PACKAGED, WEIGHTS, packaged
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.weights import storage_of
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json
from bitextmine.training.recipe.keys import Model, Recipe

# Defaults for training on: a third of the learning rates from random weights, so that the first steps do not undo
# what the encoder knows.
RATES: dict[str, Any] = {"learning_rate": 1e-4, "embedding_learning_rate": 2e-3, "warmup": 0.1}
# Dropout belongs to the training, not to the weights.
SHAPE = tuple(
    field.name
    for field in dataclasses.fields(Model)
    if field.name in {other.name for other in dataclasses.fields(EncoderConfig)} - {"dropout"}
)


def start_name(name: str | os.PathLike[str]) -> str:
    """Return model.start_from for an encoder named on the command line: a packaged name, or an absolute folder."""
    text = os.fspath(name)
    return text if text in PACKAGED else str(Path(text).absolute())


def start_folder(recipe: Recipe) -> Path:
    """Return the folder of model.start_from; BitextmineError if it does not exist."""
    name = recipe.model.start_from
    if name in PACKAGED:
        return packaged(name)
    folder = recipe.path(name)
    if not folder.is_dir():
        found = "not a folder" if folder.exists() else "no such model folder"
        raise BitextmineError(
            f"model.start_from (--from): {folder}: {found}, and not one of the packaged encoders "
            f"({', '.join(sorted(PACKAGED))})"
        )
    return folder


def start_config(recipe: Recipe) -> EncoderConfig:
    """Return the configuration of model.start_from; BitextmineError unless 'bitextmine train' made that encoder."""
    folder = start_folder(recipe)
    if not (folder / CONFIG).is_file() or (folder / "modules.json").is_file():
        kind = foreign_kind(folder)
        found = f"an encoder of another kind ({kind})" if kind else "no model folder"
        raise BitextmineError(
            f"model.start_from (--from): {folder}: {found}; only encoders of 'bitextmine train' can be trained on"
        )
    return EncoderConfig.from_json(read_json(folder / CONFIG), str(folder / CONFIG))


def check_shape(
    recipe: Recipe, shape: Mapping[str, Any], of: str, given: Collection[str] | None = None
) -> None:
    """Raise BitextmineError if one of the keys ``given`` (None: any) disagrees with the shape of the encoder ``of``."""
    for name, there in shape.items():
        asked = getattr(recipe.model, name)
        if asked != there and (given is None or f"model.{name}" in given):
            raise BitextmineError(
                f"recipe: model.{name} is {asked}, but that of {of} is {there}: leave it out (--from with --pairs "
                "alone, without a recipe, takes the encoder's shape)"
            )


def with_start(recipe: Recipe, given: Collection[str]) -> Recipe:
    """Return the recipe with the shape and storage of the encoder it starts from, and RATES as defaults.

    Args:
        recipe: returned unchanged if it starts from random weights.
        given: the keys that were set, as "model.dim".

    Raises:
        BitextmineError: a given key disagrees with the encoder, or the encoder cannot be trained on.
    """
    if not recipe.model.start_from:
        return recipe
    kept = shape_of(start_config(recipe))
    check_shape(recipe, kept, recipe.model.start_from, given)
    if "model.storage" not in given:
        kept["storage"] = storage_of(start_folder(recipe) / WEIGHTS)
    rates = {name: value for name, value in RATES.items() if f"train.{name}" not in given}
    return dataclasses.replace(
        recipe,
        model=dataclasses.replace(recipe.model, **kept),
        train=dataclasses.replace(recipe.train, **rates),
    )


def with_assistant(recipe: Recipe, given: Collection[str]) -> Recipe:
    """Return the recipe with the shape of its distil.assistant, but for what makes the student smaller."""
    name = recipe.distil.assistant
    if not name:
        return recipe
    try:
        config = start_config(
            dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, start_from=name))
        )
    except BitextmineError as e:
        said = str(e).replace("model.start_from (--from): ", "")
        raise BitextmineError(f"recipe: distil.assistant: {said}") from None
    shape = {key: value for key, value in shape_of(config).items() if key not in ("bottleneck", "recurrent")}
    check_shape(recipe, shape, f"distil.assistant {name}", given)
    return dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, **shape))


def shape_of(config: EncoderConfig) -> dict[str, Any]:
    """Return the keys in SHAPE that mean something: order_weight does only with order columns."""
    return {name: getattr(config, name) for name in SHAPE if config.order_columns or name != "order_weight"}
