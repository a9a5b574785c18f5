"""`bitextmine.train`, and the options that the command ``train`` shares with it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from bitextmine.arguments import a_path, take_options
from bitextmine.errors import UsageError
from bitextmine.files.source import TwoFiles
from bitextmine.run import Run
from bitextmine.training.recipe import Recipe, load_recipe, start_name

Pairs = str | os.PathLike[str] | TwoFiles | tuple[str | os.PathLike[str], str | os.PathLike[str]]


@dataclass(frozen=True)
class TrainOptions:
    """The text that an encoder is trained on, and how.

    Attributes:
        recipe: a TOML file, the recipe.json of a model, the name of a built-in recipe, or a `Recipe`, which takes no
            other settings.
        pairs: files named after their languages (pairs.en-fr.tsv), or two files each, ("pairs.en", "pairs.fr"), in
            place of the recipe's.
        start: an encoder to start from.
        settings: keys of the recipe, such as ``{"train.epochs": 3}``.
        data: the folder of the recipe's corpora.
    """

    recipe: str | os.PathLike[str] | Recipe | None = None
    pairs: str | os.PathLike[str] | Sequence[Pairs] = ()
    start: str | os.PathLike[str] | None = None
    settings: Mapping[str, Any] | None = None
    data: str | os.PathLike[str] | None = None

    def plan(self) -> Recipe:
        """Return the complete recipe.

        Raises:
            UsageError: neither a recipe nor pairs, or options that contradict each other.
            BitextmineError: the recipe or the encoder to start from is at fault.
        """
        given = [self.pairs] if isinstance(self.pairs, (str, os.PathLike)) else list(self.pairs)
        settings = dict(self.settings or {})
        if isinstance(self.recipe, Recipe):
            if given or settings or self.start is not None or self.data is not None:
                raise UsageError(
                    "train: pairs, start, settings and data belong into the Recipe that is given"
                )
            return self.recipe
        if self.recipe is None and not given:
            raise UsageError("give a recipe, --pairs, or both")
        if self.start is not None:
            settings["model.start_from"] = start_name(self.start)
        plan = load_recipe(
            None if self.recipe is None else os.fspath(self.recipe),
            settings,
            pairs=[_source(one) for one in given],
            folder=None if self.data is None else Path(self.data),
        )
        fixed = [key for key in settings if key.startswith("vocabulary.")]
        if fixed and plan.model.start_from:
            option = "--vocabulary" if fixed[0] == "vocabulary.size" else f"--set {fixed[0]}"
            raise UsageError(f"{option}: --from keeps the vocabulary of its encoder")
        return plan


class TrainKeywords(TypedDict, total=False):
    """`TrainOptions`, and its fields but for the recipe."""

    options: TrainOptions
    pairs: str | os.PathLike[str] | Sequence[Pairs]
    start: str | os.PathLike[str] | None
    settings: Mapping[str, Any] | None
    data: str | os.PathLike[str] | None


def train(
    out: str | os.PathLike[str],
    recipe: str | os.PathLike[str] | Recipe | None = None,
    *,
    run: Run | None = None,
    force: bool = False,
    **options: Unpack[TrainKeywords],
) -> Path:
    """Train an encoder on sentence pairs, as the command ``train`` does, and return its folder, for `load_encoder`.

    The same call resumes an interrupted training.

    Args:
        out: the model folder.
        recipe: a TOML file, the recipe.json of a model, the name of a built-in recipe, or a `Recipe`.
        run: device and progress.
        force: overwrite a finished model or files of other programs.
        options: fields of `TrainOptions`, such as ``pairs`` and ``settings``, or the object as ``options``.

    Raises:
        UsageError: neither a recipe nor pairs.
        BitextmineError: the recipe, the corpora or the disk are at fault.
    """
    given: dict[str, Any] = {**options, **({} if recipe is None else {"recipe": recipe})}
    plan = take_options(TrainOptions, given).plan()

    from bitextmine.training import trainer  # only now: a bad recipe is reported without loading torch

    return trainer.train(plan, Path(a_path("out", out)), run, force=force)


def _source(given: Any) -> str | TwoFiles:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return TwoFiles.join(*(a_path("pairs", side) for side in given))
    return given if isinstance(given, TwoFiles) else os.fspath(a_path("pairs", given))
