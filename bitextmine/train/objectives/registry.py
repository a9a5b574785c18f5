"""Objectives by name, and their weighted sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor, nn

from bitextmine.encoder.model import SentenceModel
from bitextmine.errors import BitextmineError
from bitextmine.train.head import Head
from bitextmine.train.objectives.contrastive import Contrastive
from bitextmine.train.objectives.generative import Mlm, Smlm, Ugt, Xtr
from bitextmine.train.objectives.sentence import Align, Sim
from bitextmine.train.objectives.views import ALONE, Views
from bitextmine.train.parallel import World
from bitextmine.train.recipe import Recipe, Training
from bitextmine.train.sampling import Batch

__all__ = ["OBJECTIVES", "Objectives", "check_objectives", "make_objectives"]

# A new objective is a module that takes the step's views, and a line here. The head is made when it is first
# asked for, and shared.
OBJECTIVES: dict[str, Callable[[Training, Callable[[], Head]], nn.Module]] = {
    "contrastive": lambda training, head: Contrastive(training),
    "mlm": lambda training, head: Mlm(head()),
    "smlm": lambda training, head: Smlm(head()),
    "xtr": lambda training, head: Xtr(head()),
    "ugt": lambda training, head: Ugt(head()),
    "align": lambda training, head: Align(),
    "sim": lambda training, head: Sim(),
}


class Objectives(nn.Module):
    """The weighted sum of a recipe's objectives; holds what they learn beside the model."""

    def __init__(self, recipe: Recipe, model: SentenceModel, content: np.ndarray) -> None:
        super().__init__()
        self.training_settings, self.content = recipe.train, content
        heads: list[Head] = []

        def head() -> Head:
            if not heads:
                heads.append(Head(model.config, recipe.train))
            return heads[0]

        self.weights = dict(recipe.train.objective)
        self.parts = nn.ModuleDict({name: OBJECTIVES[name](recipe.train, head) for name in self.weights})
        self.heads = tuple(heads)  # of those objectives that predict pieces: one, which they share, or none

    def forward(
        self, model: SentenceModel, batch: Batch, step: int, world: World = ALONE
    ) -> dict[str, Tensor]:
        """The loss of each objective, not yet weighed, as scalars with gradients; of several processes each has a
        part, and the parts add up to the losses."""
        views = Views(model, batch, self.training_settings, self.content, step, world)
        return {name: part(views) for name, part in self.parts.items()}


def make_objectives(recipe: Recipe, model: SentenceModel, content: np.ndarray) -> Objectives:
    """The recipe's objectives; content (V,) bool tells the pieces worth predicting.

    Raises BitextmineError as `check_objectives` does.
    """
    check_objectives(recipe)
    return Objectives(recipe, model, content)


def check_objectives(recipe: Recipe) -> None:
    """Raises BitextmineError for a name that is no objective, a weight that is not above 0, `mlm` without
    layers, hard negatives without `contrastive`, and spelling or length_share with anything else."""
    m = recipe.model
    for name, weight in recipe.train.objective.items():
        if name not in OBJECTIVES:
            raise BitextmineError(f"recipe: train.objective: {name!r} is not one of {', '.join(OBJECTIVES)}")
        if not 0 < weight < float("inf"):
            raise BitextmineError(
                f"recipe: train.objective.{name}: weight {weight}; it must be a number above 0"
            )
    if "mlm" in recipe.train.objective and not m.layers:
        raise BitextmineError(
            "recipe: train.objective: 'mlm' needs model.layers of at least 1: "
            "without layers no state knows its neighbours"
        )
    if others := sorted(set(recipe.train.objective) - {"contrastive"}):
        for key, found in (("spelling", m.spelling), ("length_share", m.length_share)):
            if found:
                raise BitextmineError(
                    f"recipe: model.{key}: not with {others[0]!r}: only 'contrastive' can have it"
                )
    if recipe.train.hard_negatives and "contrastive" not in recipe.train.objective:
        raise BitextmineError(
            "recipe: train.hard_negatives: only 'contrastive' has negatives; add it to train.objective, or leave "
            "this at 0"
        )
