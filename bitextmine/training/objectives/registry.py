"""Objectives: modules that turn a step's views of a batch into losses, and their weighted sum in a run."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from torch import Tensor, nn

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.training.losses import Head
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.views import Views
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.recipe import Recipe, Teacher, Training


class Setup:
    """The settings that objectives are made from, and a head that they share.

    teacher_dim: dimensions of the teacher's vectors; teacher_pieces: (V, d) float32, its piece vectors, if needed.
    """

    def __init__(
        self,
        training: Training,
        config: EncoderConfig,
        teacher: Teacher | None = None,
        teacher_dim: int = 0,
        teacher_pieces: np.ndarray | None = None,
    ) -> None:
        self.training, self.config = training, config
        self.teacher, self.teacher_dim = teacher or Teacher(), teacher_dim
        self.teacher_pieces = teacher_pieces
        self.heads: tuple[Head, ...] = ()  # one, once an objective has asked for it

    def head(self) -> Head:
        """Return the map from states to a distribution over pieces, made on first use."""
        if not self.heads:
            self.heads = (Head(self.config, self.training),)
        return self.heads[0]


class Objective(nn.Module):
    """An objective of a run; its parameters are learned beside the encoder. `catalogue` declares it for recipes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def forward(self, views: Views) -> Tensor:
        """Return the loss of a step, a scalar with gradients.

        Of several processes each sees its share of the batch, and the losses are summed: one over single pairs is
        divided by ``views.pairs``; one over the whole batch takes vectors from ``views.gather`` and goes through
        ``views.shared``.
        """
        raise NotImplementedError


class Objectives(nn.Module):
    """A recipe's objectives and their weights; holds what they learn beside the model.

    content (V,) bool: the pieces worth predicting.
    """

    def __init__(self, recipe: Recipe, setup: Setup, content: np.ndarray) -> None:
        super().__init__()
        self.settings, self.content = recipe.train, content
        self.weights = dict(recipe.train.objective)
        self.parts = nn.ModuleDict({name: objective_class(name)(setup) for name in self.weights})
        self.heads = setup.heads

    def forward(
        self,
        model: SentenceModel,
        batch: TokenPairs | None,
        step: int,
        world: World = ALONE,
        lesson: TokenPairs | None = None,
    ) -> dict[str, Tensor]:
        """Return the loss of each objective, not weighted, as scalars with gradients.

        ``batch`` is None if all objectives are taught, ``lesson`` (the taught pairs) while none is. Of several
        processes each returns a part, and the parts add up to the losses.
        """
        seen = {
            taught: Views(model, found, self.settings, self.content, step, world)
            for taught, found in ((False, batch), (True, lesson))
            if found is not None
        }
        return {
            name: part(seen[OBJECTIVES[name].taught])
            for name, part in self.parts.items()
            if OBJECTIVES[name].taught in seen
        }


def objective_class(name: str) -> type[Objective]:
    """Return the class that `catalogue` declares by that name."""
    declared = OBJECTIVES[name]
    module = import_module(f"bitextmine.training.objectives.{declared.module}")
    cls: type[Objective] = getattr(module, declared.cls)
    return cls
