"""`bitextmine.train`: what the command ``train`` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitextmine.arguments import a_path
from bitextmine.errors import UsageError
from bitextmine.files.formats.names import TwoFiles
from bitextmine.run import Run
from bitextmine.training.recipe import Recipe, load_recipe, start_name


def train(
    out: str | os.PathLike[str],
    recipe: str | os.PathLike[str] | Recipe | None = None,
    *,
    pairs: str | os.PathLike[str] | Sequence[str | os.PathLike[str] | tuple[str, str]] = (),
    start: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None,
    run: Run | None = None,
    force: bool = False,
) -> Path:
    """Train an encoder on sentence pairs, as the command ``train`` does, and return its folder; the same call resumes.

    Args:
        out: the model folder.
        recipe: a TOML file, a model's recipe.json, a built-in recipe's name, or a `Recipe`, which takes no other
            settings.
        pairs: files named after their languages (pairs.en-fr.tsv), or two files each, ("pairs.en", "pairs.fr").
        start: an encoder to start from.
        settings: keys of the recipe, such as ``{"train.epochs": 3}``.
        data: the folder of the recipe's corpora.
        run: device and progress.
        force: overwrite a finished model or files of other programs.

    Raises:
        UsageError: neither a recipe nor pairs.
        BitextmineError: the recipe, the corpora or the disk are at fault.
    """
    if isinstance(recipe, Recipe):
        if pairs or settings or start is not None or data is not None:
            raise UsageError("train: pairs, start, settings and data belong into the Recipe that is given")
        plan = recipe
    else:
        given = [pairs] if isinstance(pairs, (str, os.PathLike)) else list(pairs)
        if recipe is None and not given:
            raise UsageError("train: give a recipe, pairs, or both")
        overrides = dict(settings or {})
        if start is not None:
            overrides["model.start_from"] = start_name(os.fspath(start))
        name, folder = None if recipe is None else os.fspath(recipe), None if data is None else Path(data)
        plan = load_recipe(name, overrides, pairs=[_source(one) for one in given], folder=folder)

    from bitextmine.training import trainer  # loads torch

    return trainer.train(plan, Path(a_path("out", out)), run, force=force)


def _source(given: Any) -> str | TwoFiles:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        src, tgt = (os.fspath(a_path("pairs", side)) for side in given)
        return TwoFiles((src, tgt))
    return given if isinstance(given, TwoFiles) else os.fspath(a_path("pairs", given))
