"""Our sentence-level objective: symmetric in-batch softmax on cosine."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.objectives.protocol import Objective, Setup
from bitextmine.training.objectives.views import Views
from bitextmine.training.precision import product_precision
from bitextmine.training.softmax import symmetric_softmax_loss

__all__ = ["Contrastive", "false_negatives"]


class Contrastive(Objective):
    """Softmax over the batch of cosine / temperature, both directions, with an optional additive margin on the
    true pairs (Yang et al. 2019) and an optional learned temperature.

    The batch's other pairs are the negatives, except those with the same source or the same target sentence.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        training = setup.training
        self.margin = training.margin
        self.precision = training.precision
        log_temperature = torch.tensor(math.log(training.temperature))
        if training.learn_temperature:
            self.log_temperature = nn.Parameter(log_temperature)
        else:
            self.register_buffer("log_temperature", log_temperature)

    def forward(self, views: Views) -> Tensor:
        vectors = unit_vectors(views.gather(views.vectors))
        n = views.pairs
        # Below 0.01 a learned temperature would make float32's exponentials underflow.
        temperature = self.log_temperature.clamp(math.log(0.01), 0.0).exp()
        precision = product_precision(self.precision, vectors.device)
        loss = symmetric_softmax_loss(
            vectors[:n], vectors[n:], temperature, false_negatives(views.keys), precision, self.margin
        )
        return views.shared(loss)


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
