"""What training minimises. An objective is made by name and weighed by the recipe's train.objective table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.encoder import unit_vectors
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.train.forward import sentence_vectors
from bitextmine.train.recipe import Recipe
from bitextmine.train.sampling import Batch, drop_pieces
from bitextmine.train.softmax import symmetric_softmax_loss

__all__ = ["OBJECTIVES", "Contrastive", "Objective", "make_objectives"]


class Objective(Protocol):
    """A part of the loss: a scalar tensor with a gradient, from a model and a batch.

    ``rng`` belongs to the step: what is random in an objective is drawn from it, so that a resumed run
    repeats it.
    """

    def __call__(self, model: SentenceModel, batch: Batch, rng: np.random.Generator) -> Tensor: ...


class Contrastive:
    """Symmetric in-batch softmax on cosine with temperature, both directions; other pairs of the batch are the
    negatives, except those with the same source or the same target sentence."""

    def __init__(self, recipe: Recipe) -> None:
        self.temperature = recipe.train.temperature
        self.piece_dropout = recipe.train.piece_dropout
        self.batch_tokens = recipe.train.batch_tokens
        self.precision = precision(recipe.train.precision)

    def __call__(self, model: SentenceModel, batch: Batch, rng: np.random.Generator) -> Tensor:
        pieces = drop_pieces(Pieces.join([batch.src, batch.tgt]), self.piece_dropout, rng)
        vectors = unit_vectors(sentence_vectors(model, pieces, self.batch_tokens))
        n = len(batch)
        return symmetric_softmax_loss(
            vectors[:n], vectors[n:], self.temperature, false_negatives(batch.keys), self.precision
        )


OBJECTIVES: dict[str, Callable[[Recipe], Objective]] = {"contrastive": Contrastive}


def make_objectives(recipe: Recipe) -> dict[str, tuple[float, Objective]]:
    """The recipe's objectives by name, with their weights; BitextmineError for a name that is none."""
    for name in recipe.train.objective:
        if name not in OBJECTIVES:
            raise BitextmineError(
                f"recipe: train.objective: {name!r} is not one of {', '.join(sorted(OBJECTIVES))}"
            )
    return {name: (weight, OBJECTIVES[name](recipe)) for name, weight in recipe.train.objective.items()}


def precision(name: str) -> torch.dtype:
    """ "auto" is bfloat16 where the processor multiplies it natively, float32 elsewhere."""
    if name == "auto":
        native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
        return torch.bfloat16 if native or torch.cuda.is_available() else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def false_negatives(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """keys (2, n) -> rows i and columns j (m,), i != j, where source i and target j are no true negatives: source
    i is also source j, or target i is also target j. Sorted by i, then j."""
    n = keys.shape[1]
    found = []
    for side in keys:
        order = np.argsort(side, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], side[order][1:] != side[order][:-1], [True]]))
        for group in np.flatnonzero(np.diff(starts) > 1):
            same = order[starts[group] : starts[group + 1]]
            found.append(np.repeat(same, len(same)) * n + np.tile(same, len(same)))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    i, j = np.divmod(np.unique(np.concatenate(found)), n)
    return i[i != j], j[i != j]
