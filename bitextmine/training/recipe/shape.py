"""The keys that an encoder decides: the recipe of a training that continues from one."""

import dataclasses
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bitextmine.encoder import folder as encoders
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.weights import storage_of
from bitextmine.errors import BitextmineError
from bitextmine.files.json_toml import read_json
from bitextmine.shipped import shipped_folder
from bitextmine.training.recipe.keys import SHAPE, Recipe

# Defaults for training on: a third of the learning rates from random weights, so that the first steps do not undo
# what the encoder knows.
RATES: dict[str, Any] = {"learning_rate": 1e-4, "embedding_learning_rate": 2e-3, "warmup": 0.1}
KEY = "model.start_from (--from)"


def start_name(name: str | os.PathLike[str]) -> str:
    """Return model.start_from for an encoder named on the command line: a packaged name, or an absolute folder."""
    text = os.fspath(name)
    return text if text in encoders.PACKAGED else str(Path(text).absolute())


def start_encoder(recipe: Recipe, name: str) -> tuple[Path, EncoderConfig]:
    """Return folder and configuration of an encoder; BitextmineError if it cannot be trained on.

    Only encoders of 'bitextmine train' can.
    """
    folder = shipped_folder(name) if name in encoders.PACKAGED else recipe.path(name)
    config = folder / encoders.CONFIG
    if not folder.is_dir():
        names = ", ".join(sorted(encoders.PACKAGED))
        problem = "not a folder" if folder.exists() else "no such model folder"
        raise BitextmineError(f"{KEY}: {folder}: {problem}, and not one of the packaged encoders ({names})")
    if not config.is_file() or (folder / "modules.json").is_file():
        kind = foreign_kind(folder)
        problem = f"an encoder of another kind ({kind})" if kind else "no model folder"
        raise BitextmineError(
            f"{KEY}: {folder}: {problem}; only encoders of 'bitextmine train' can be trained on"
        )
    return folder, EncoderConfig.from_json(read_json(config), str(config))


def shaped(recipe: Recipe, config: EncoderConfig, of: str, given: Collection[str] | None = None) -> Recipe:
    """Return the recipe with the keys of SHAPE of an encoder; BitextmineError if one disagrees."""
    shape = {name: getattr(config, name) for name in SHAPE}
    if not config.order_columns:  # then the weight means nothing
        del shape["order_weight"]
    for name, there in shape.items():
        asked = getattr(recipe.model, name)
        if asked != there and (given is None or f"model.{name}" in given):
            raise BitextmineError(
                f"recipe: model.{name} is {asked}, but that of {of} is {there}: leave it out (--from with --pairs "
                "alone, without a recipe, takes the encoder's shape)"
            )
    return dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, **shape))


def with_start(recipe: Recipe, given: Collection[str]) -> Recipe:
    """Return the recipe with the shape and storage of the encoder it starts from, if any, and RATES as defaults.

    given: the keys that were set, as "model.dim"; BitextmineError if one disagrees, or the encoder cannot be trained
    on.
    """
    if not recipe.model.start_from:
        return recipe
    folder, config = start_encoder(recipe, recipe.model.start_from)
    continued = shaped(recipe, config, recipe.model.start_from, given)
    if "model.storage" not in given:
        storage: Any = storage_of(folder / encoders.WEIGHTS)
        continued = dataclasses.replace(
            continued, model=dataclasses.replace(continued.model, storage=storage)
        )
    rates = {name: value for name, value in RATES.items() if f"train.{name}" not in given}
    return dataclasses.replace(continued, train=dataclasses.replace(recipe.train, **rates))
