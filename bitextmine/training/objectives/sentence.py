"""The sentence-level objectives of Mao et al. 2021: alignment (Eq. 5) and similarity (Eq. 6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bitextmine.training.objectives.protocol import Objective
from bitextmine.training.objectives.views import Views

__all__ = ["Align", "Sim", "align_loss", "sim_loss"]

# Eq. 6 is infinite where two probabilities differ by 1; at this distance from it the loss is 9.2 and finite.
SATURATED = 1e-4


class Align(Objective):
    """Eq. 5 on the pooled states of the batch with one piece of each pair masked."""

    def forward(self, views: Views) -> Tensor:
        n = views.pairs
        vectors = views.gather(views.one_masked.vectors.float())
        return views.shared(align_loss(vectors[:n], vectors[n:]))


class Sim(Objective):
    """Eq. 6 on the same."""

    def forward(self, views: Views) -> Tensor:
        n = views.pairs
        vectors = views.gather(views.one_masked.vectors.float())
        return views.shared(sim_loss(vectors[:n], vectors[n:]))


def align_loss(u: Tensor, v: Tensor) -> Tensor:
    """Eq. 5, mean over j: u, v (n, d) float32, inner products, softmax over the batch in both directions."""
    scores = u @ v.T
    own = scores.diagonal()
    return (scores.logsumexp(1) + scores.logsumexp(0) - 2 * own).mean()


def sim_loss(u: Tensor, v: Tensor) -> Tensor:
    """Eq. 6, mean over j1 of the sum over j2: how far the batch's similarities among the sources differ from those
    among the targets, as -log cos(pi/2 (p - q)) of the row-wise softmax probabilities. u, v (n, d) float32."""
    p, q = (u @ u.T).softmax(1), (v @ v.T).softmax(1)
    difference = (p - q).clamp(-1 + SATURATED, 1 - SATURATED)
    return -torch.log(torch.cos(math.pi / 2 * difference)).sum(1).mean()
