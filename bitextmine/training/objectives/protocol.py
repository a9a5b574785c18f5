"""What an objective is: a module that turns a step's views of a batch into a loss."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from bitextmine.encoder.config import EncoderConfig
from bitextmine.training.head import Head
from bitextmine.training.objectives.views import Views
from bitextmine.training.recipe import Teacher, Training

__all__ = ["Objective", "Setup"]


class Setup:
    """What the objectives of a run are made of: its settings, the shape of its encoder, and a head that they share;
    with a teacher its settings, the numbers in its vectors, and (V, d) float32 those of its pieces, if asked for."""

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
        """From states to a distribution over pieces; made when it is first asked for."""
        if not self.heads:
            self.heads = (Head(self.config, self.training),)
        return self.heads[0]


class Objective(nn.Module):
    """An objective of a run; what it learns beside the encoder are its parameters.

    `catalogue` names it for recipes, and says what it asks of them.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def forward(self, views: Views) -> Tensor:
        """The loss of a step, a scalar with gradients.

        Of several processes each sees its share of the batch, and the sum of what they return is the loss: one over
        single pairs is divided by ``views.pairs``, one over the whole batch takes vectors from ``views.gather`` and
        goes through ``views.shared``.
        """
        raise NotImplementedError
