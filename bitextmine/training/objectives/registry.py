"""The objectives of a run, and their weighted sum."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from torch import Tensor, nn

from bitextmine.encoder.model import SentenceModel
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.check import check_objectives
from bitextmine.training.objectives.protocol import Objective, Setup
from bitextmine.training.objectives.views import Views
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.recipe import Recipe
from bitextmine.training.sampling import Batch

__all__ = ["Objectives", "make_objectives"]


class Objectives(nn.Module):
    """The weighted sum of a recipe's objectives; holds what they learn beside the model."""

    def __init__(
        self,
        recipe: Recipe,
        model: SentenceModel,
        content: np.ndarray,
        teacher_dim: int = 0,
        teacher_pieces: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.training_settings, self.content = recipe.train, content
        self.weights = dict(recipe.train.objective)
        setup = Setup(recipe.train, model.config, recipe.teacher, teacher_dim, teacher_pieces)
        self.parts = nn.ModuleDict({name: objective_class(name)(setup) for name in self.weights})
        self.heads = setup.heads  # of those objectives that predict pieces: one, which they share, or none

    def forward(
        self,
        model: SentenceModel,
        batch: Batch | None,
        step: int,
        world: World = ALONE,
        lesson: Batch | None = None,
    ) -> dict[str, Tensor]:
        """The loss of each objective, not yet weighed, as scalars with gradients; of several processes each has a
        part, and the parts add up to the losses. batch: None where all of them are taught; lesson: what those that
        are taught learn from, None where they do not learn yet."""
        settings, content = self.training_settings, self.content
        seen = {
            taught: Views(model, found, settings, content, step, world)
            for taught, found in ((False, batch), (True, lesson))
            if found is not None
        }
        return {
            name: part(seen[OBJECTIVES[name].taught])
            for name, part in self.parts.items()
            if OBJECTIVES[name].taught in seen
        }


def objective_class(name: str) -> type[Objective]:
    """The class that `catalogue` declares by that name."""
    declared = OBJECTIVES[name]
    module = import_module(f"bitextmine.training.objectives.{declared.module}")
    cls: type[Objective] = getattr(module, declared.cls)
    return cls


def make_objectives(
    recipe: Recipe,
    model: SentenceModel,
    content: np.ndarray,
    teacher_dim: int = 0,
    teacher_pieces: np.ndarray | None = None,
) -> Objectives:
    """The recipe's objectives; content (V,) bool tells the pieces worth predicting; teacher_dim: the numbers in a
    teacher's vectors; teacher_pieces (V, d): those of its pieces, if an objective asks for them.

    Raises BitextmineError as `check_objectives` does.
    """
    check_objectives(recipe)
    return Objectives(recipe, model, content, teacher_dim, teacher_pieces)
