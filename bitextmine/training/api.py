"""`bitextmine.train`, and the options that the command ``train`` shares with it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitextmine.arguments import a_path
from bitextmine.declarations import keywords
from bitextmine.errors import UsageError
from bitextmine.files.source import TwoFiles
from bitextmine.run import Run
from bitextmine.training.options import TrainOptions
from bitextmine.training.recipe import Recipe, load_recipe, start_name

Pairs = str | os.PathLike[str] | TwoFiles | tuple[str | os.PathLike[str], str | os.PathLike[str]]


@keywords
def train(
    out: str | os.PathLike[str],
    recipe: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    options: TrainOptions,
    run: Run,
) -> Path:
    """Train an encoder on sentence pairs, as the command ``train`` does, and return its folder, for `load_encoder`.

    The same call resumes an interrupted training.

    Args:
        out: the model folder.
        recipe: a TOML file, the recipe.json of a model, or the name of a built-in recipe.
        force: overwrite a finished model or files of other programs.
        options: or its fields, such as ``pairs`` and ``settings``.
        run: or its fields, such as ``device``.

    Raises:
        UsageError: neither a recipe nor pairs.
        BitextmineError: the recipe, the corpora or the disk are at fault.
    """
    plan = plan_of(options if recipe is None else replace(options, recipe=recipe))

    from bitextmine.training import job  # only now: a bad recipe is reported without loading torch

    return job.train(plan, Path(a_path("out", out)), run, force=force)


def plan_of(options: TrainOptions) -> Recipe:
    """Return the complete recipe.

    Raises:
        UsageError: neither a recipe nor pairs, or options that contradict each other.
        BitextmineError: the recipe or the encoder to start from is at fault.
    """
    recipe, start, data, pairs = options.recipe, options.start, options.data, options.pairs
    pairs = [pairs] if isinstance(pairs, (str, os.PathLike)) else list(pairs)
    settings = dict(options.settings or {})
    if recipe is None and not pairs:
        raise UsageError("give a recipe, --pairs, or both")
    if start is not None:
        settings["model.start_from"] = start_name(start)
    plan = load_recipe(
        None if recipe is None else os.fspath(recipe),
        settings,
        pairs=[_source(given) for given in pairs],
        folder=None if data is None else Path(data),
    )
    fixed = [key for key in settings if key.startswith("vocabulary.")]
    if fixed and plan.model.start_from:
        option = "--vocabulary" if fixed[0] == "vocabulary.size" else f"--set {fixed[0]}"
        raise UsageError(f"{option}: --from keeps the vocabulary of its encoder")
    return plan


def _source(given: Any) -> str | TwoFiles:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return TwoFiles.join(*(a_path("pairs", side) for side in given))
    return given if isinstance(given, TwoFiles) else os.fspath(a_path("pairs", given))
