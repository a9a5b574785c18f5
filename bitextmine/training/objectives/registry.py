"""Objectives: modules that turn a step's views of a batch into losses, and their weighted sum in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
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
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.recipe.keys import Training
from bitextmine.training.teacher import Lessons

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
        """Return the loss of a step, a scalar with gradients; see `Views` for several processes."""
        return self._loss(views)

    def _loss(self, views: Views) -> Tensor:
        raise NotImplementedError

    def begin_lessons(self, lessons: Lessons, encode: Callable[[Pieces], Tensor]) -> None:
        """Prepare for taught pairs, where the model continues from an encoder; encode: returns unit vectors (n, d)."""


class Objectives(nn.Module):
    """A run's objectives and their weights; holds what they learn beside the model."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.settings = setup.training
        self.weights = dict(self.settings.objective)
        self.parts = nn.ModuleDict({name: objective_class(name)(setup) for name in self.weights})

    def begin_lessons(self, lessons: Lessons, encode: Callable[[Pieces], Tensor]) -> None:
        """Prepare all objectives for taught pairs."""
        for part in self.parts.values():
            assert isinstance(part, Objective)
            part.begin_lessons(lessons, encode)

    def forward(
        self,
        model: SentenceModel,
        batch: TokenPairs | None,
        step: int,
        world: World = ALONE,
        lesson: TokenPairs | None = None,
    ) -> dict[str, Tensor]:
        """Return the loss of each objective, not weighted; of several processes each returns a part.

        ``batch`` is None if all objectives are taught, ``lesson`` (the taught pairs) while none is.
        """
        seen = {
            taught: Views(model, pairs, self.settings, step, world)
            for taught, pairs in ((False, batch), (True, lesson))
            if pairs is not None
        }
        return {
            name: part(views)
            for name, part in self.parts.items()
            if (views := seen.get(OBJECTIVES[name].taught))
            and (views.copies is not None or not OBJECTIVES[name].edits)
        }


def objective_class(name: str) -> type[Objective]:
    """Return the class that `catalogue` declares by that name."""
    module = import_module(f"bitextmine.training.{OBJECTIVES[name].module}")
    objective: type[Objective] = getattr(module, name.title().replace("_", ""))
    return objective


class Views:
    """A batch as the objectives of one step see it; views are encoded on first use.

    Of several processes each encodes its share of the pairs: ``batch``, ``whole`` (its sentences, sources first) and
    the views hold that share, ``pairs`` and ``keys`` (2, pairs) are of the whole step. A loss over single pairs is
    summed over the share and divided by ``pairs``; one over the batch takes `gather`ed vectors and goes through
    `shared`. The sum over the processes is then the loss.

    Random choices come from the step's seed, with a stream per view, so that they depend neither on the objectives nor
    on the number of processes.
    """

    def __init__(
        self, model: SentenceModel, batch: TokenPairs, training: Training, step: int, world: World = ALONE
    ) -> None:
        self.model, self.training = model, training
        self.step, self.world = step, world
        self.pairs, self.keys = len(batch), batch.keys
        self._teacher, self.copies = batch.teacher, batch.edited
        self.precision = layer_precision(training.precision, world.device)
        self.sentences = Pieces.join([batch.src, batch.tgt])
        own = np.arange(self.pairs)[world.share(self.pairs)]
        self.own_pairs, self._own_rows = own, np.concatenate([own, own + self.pairs])
        if world.size > 1:
            batch = TokenPairs(batch.src.take(own), batch.tgt.take(own), batch.keys[:, own])
        self.batch = batch
        self.whole = self.own(self.sentences)
        self._made: dict[Any, Any] = {}

    @property
    def teacher(self) -> np.ndarray:
        """Return the teacher's vectors of the step's sentences, (2, pairs, d) float32 with unit rows."""
        assert self._teacher is not None, "only taught pairs have a teacher"
        return self._teacher

    def gather(self, vectors: Tensor) -> Tensor:
        """Return the vectors of the step's pairs (2 pairs, d) from this process's (2m, d), sources first."""
        if self.world.size == 1:
            return vectors
        m = len(self.batch)
        side_by_side = torch.cat([vectors[:m], vectors[m:]], dim=1)
        src, tgt = self.world.gather(side_by_side, self.pairs).chunk(2, dim=1)
        return torch.cat([src, tgt])

    def shared(self, loss: Tensor) -> Tensor:
        """Return this process's share of a loss that every process computes."""
        return loss / self.world.size

    def once(self, make: Callable[[Views], T]) -> T:
        """Return a further view of the batch, made on first use."""
        if make not in self._made:
            self._made[make] = make(self)
        value: T = self._made[make]
        return value

    def own(self, pieces: Pieces) -> Pieces:
        """Return this process's share of the step's sentences, or of changed copies of all of them."""
        return pieces if self.world.size == 1 else pieces.take(self._own_rows)

    def rng(self, stream: int) -> np.random.Generator:
        """Return the random numbers of a view, the same in all processes."""
        return np.random.default_rng([self.training.seed, self.step, stream])

    def encode(self, pieces: Pieces) -> Tensor:
        """Return pooled states (n, d) of sentences, with gradients, not normalised."""
        model, t = self.model, self.training
        if self._teacher is None or not model.config.length_share:
            return sentence_vectors(model, pieces, t.batch_tokens, self.precision)
        # The teacher's cosines are targets for those of the finished model.
        usual, model.length_share_in_training = model.length_share_in_training, model.config.length_share
        try:
            return sentence_vectors(model, pieces, t.batch_tokens, self.precision)
        finally:
            model.length_share_in_training = usual

    @cached_property
    def vectors(self) -> Tensor:
        """Return pooled states (2m, d) of the sentences with some pieces dropped, sources first; not normalised."""
        return self.encode(self.own(drop_pieces(self.sentences, self.training.piece_dropout, self.rng(1))))
