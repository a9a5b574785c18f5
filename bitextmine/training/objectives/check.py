"""Whether a recipe's objectives are ones that there are, and go with the rest of it."""

from __future__ import annotations

from collections.abc import Iterable

from bitextmine.errors import BitextmineError
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.recipe import Recipe

__all__ = ["check_objectives"]


def check_objectives(recipe: Recipe) -> None:
    """Raises BitextmineError for a name that is no objective, a weight that is not above 0, an objective that needs
    layers without any, hard negatives without an objective that has negatives, and spelling, order_columns or
    length_share with one that reads more of a sentence than cosines tell; an objective that needs a teacher without
    one, a teacher without such an objective, and a teacher with passes of its own where nothing is learned before."""
    m = recipe.model
    for name, weight in recipe.train.objective.items():
        if name not in OBJECTIVES:
            raise BitextmineError(f"recipe: train.objective: {name!r} is not one of {', '.join(OBJECTIVES)}")
        if not 0 < weight < float("inf"):
            raise BitextmineError(
                f"recipe: train.objective.{name}: weight {weight}; it must be a number above 0"
            )
    chosen = {name: OBJECTIVES[name] for name in sorted(recipe.train.objective)}
    for name, declared in chosen.items():
        if declared.needs_layers and not m.layers:
            raise BitextmineError(
                f"recipe: train.objective: {name!r} needs model.layers of at least 1: {declared.needs_layers}"
            )
    teaching = [name for name, declared in OBJECTIVES.items() if declared.taught or declared.pieces]
    asked = [name for name in chosen if name in teaching]
    if asked and not recipe.teacher.model:
        raise BitextmineError(
            f"recipe: train.objective: {asked[0]!r} needs a teacher: name an encoder as teacher.model, or leave "
            "what is learned of one out of train.objective"
        )
    if recipe.teacher.model and not asked:
        raise BitextmineError(
            f"recipe: teacher.model: found {recipe.teacher.model!r}, but nothing in train.objective learns of it: add "
            f"{_named(teaching)} or leave teacher.model empty"
        )
    at_once = [name for name, declared in chosen.items() if not declared.taught]
    if recipe.teacher.model and recipe.teacher.epochs and len(at_once) in (0, len(chosen)):
        raise BitextmineError(
            f"recipe: teacher.epochs: found {recipe.teacher.epochs:g}, but "
            + ("nothing is learned before" if not at_once else "nothing is learned of it after that")
            + ": leave it at 0, or have train.objective name one of each kind"
        )
    others = [name for name, declared in chosen.items() if not declared.cosines]
    for key, found in (
        ("spelling", m.spelling),
        ("order_columns", m.order_columns),
        ("length_share", m.length_share),
    ):
        if found and others:
            able = _named(name for name, declared in OBJECTIVES.items() if declared.cosines)
            raise BitextmineError(f"recipe: model.{key}: not with {others[0]!r}: only {able} can have it")
    if recipe.train.hard_negatives and not any(declared.negatives for declared in chosen.values()):
        able = _named(name for name, declared in OBJECTIVES.items() if declared.negatives)
        raise BitextmineError(
            f"recipe: train.hard_negatives: only {able} has negatives; add it to train.objective, or leave this at 0"
        )


def _named(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names)
