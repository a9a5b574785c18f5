"""Objectives: modules that turn a step's views of a batch into losses, and their weighted sum in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from bitextmine.encoder import Encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.cache import PairCache
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.sampling import drop_pieces
from bitextmine.training.model.forward import layer_precision, sentence_vectors
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.recipe.keys import Training

T = TypeVar("T")


@dataclass
class Setup:
    """What objectives are made from: settings, the encoder's configuration and vocabulary, the pairs, the teacher."""

    training: Training
    config: EncoderConfig
    pieces: Sequence[str] = ()
    caches: Sequence[PairCache] = ()
    teacher: Encoder | None = None
    _shared: dict[Any, Any] = field(default_factory=dict)

    def shared(self, make: Callable[[Setup], T]) -> T:
        """Return what ``make`` makes, the same for all objectives that ask for it."""
        if make not in self._shared:
            self._shared[make] = make(self)
        value: T = self._shared[make]
        return value


class Objective(nn.Module):
    """An objective of a run; its parameters are learned beside the encoder. `catalogue` declares it for recipes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def forward(self, views: Views) -> Tensor:
        """Return the loss of a step, a scalar with gradients."""
        return self._loss(views)

    def _loss(self, views: Views) -> Tensor:
        raise NotImplementedError


class Objectives(nn.Module):
    """A run's objectives and their weights; holds what they learn beside the model."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.settings = setup.training
        self.weights = dict(self.settings.objective)
        self.parts = nn.ModuleDict({name: objective_class(name)(setup) for name in self.weights})

    def forward(
        self, model: SentenceModel, batch: TokenPairs | None, step: int, lesson: TokenPairs | None = None
    ) -> dict[str, Tensor]:
        """Return the loss of each objective, not weighted.

        ``batch`` is None if all objectives are taught, ``lesson`` (the taught pairs) while none is.
        """
        seen = {
            taught: Views(model, pairs, self.settings, step)
            for taught, pairs in ((False, batch), (True, lesson))
            if pairs is not None
        }
        return {
            name: part(views)
            for name, part in self.parts.items()
            if (views := seen.get(OBJECTIVES[name].taught))
            and (views.batch.edited is not None or not OBJECTIVES[name].edits)
        }


def objective_class(name: str) -> type[Objective]:
    """Return the class that `catalogue` declares by that name."""
    module = import_module(f"bitextmine.training.{OBJECTIVES[name].module}")
    objective: type[Objective] = getattr(module, name.title().replace("_", ""))
    return objective


class Views:
    """A batch as the objectives of one step see it; views are encoded on first use.

    Random choices come from the step's seed, with a stream per view, so that they do not depend on the objectives.
    """

    def __init__(self, model: SentenceModel, batch: TokenPairs, training: Training, step: int) -> None:
        self.model, self.batch, self.training, self.step = model, batch, training, step
        self.sentences = Pieces.join([batch.src, batch.tgt])  # sources first
        self._made: dict[Any, Any] = {}

    def once(self, make: Callable[[Views], T]) -> T:
        """Return a further view of the batch, made on first use."""
        if make not in self._made:
            self._made[make] = make(self)
        value: T = self._made[make]
        return value

    def rng(self, stream: int) -> np.random.Generator:
        """Return the random numbers of a view."""
        return np.random.default_rng([self.training.seed, self.step, stream])

    def encode(self, pieces: Pieces) -> Tensor:
        """Return pooled states (n, d) of sentences, with gradients, not normalised."""
        model = self.model
        precision = layer_precision(self.training.precision, model.device)
        if self.batch.teacher is None or not model.config.length_share:
            return sentence_vectors(model, pieces, precision)
        # The teacher's cosines are targets for those of the finished model.
        usual, model.length_share_in_training = model.length_share_in_training, model.config.length_share
        try:
            return sentence_vectors(model, pieces, precision)
        finally:
            model.length_share_in_training = usual

    @cached_property
    def vectors(self) -> Tensor:
        """Return pooled states (2n, d) of the sentences with some pieces dropped, sources first; not normalised."""
        return self.encode(drop_pieces(self.sentences, self.training.piece_dropout, self.rng(1)))
