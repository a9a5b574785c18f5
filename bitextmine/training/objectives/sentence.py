"""Sentence-level objectives: in-batch softmax on cosine, and alignment and similarity of Mao et al. 2021."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.forward import product_precision
from bitextmine.training.losses import symmetric_softmax_loss
from bitextmine.training.objectives.registry import Objective, Setup, Views

# Eq. 6 is infinite where two probabilities differ by 1; at this distance from it the loss is 9.2 and finite.
SATURATED = 1e-4


class Contrastive(Objective):
    """Softmax over the batch of cosine / temperature, in both directions.

    With an optional additive margin on the true pairs (Yang et al. 2019). The batch's other pairs are the negatives,
    except those with the same source or target sentence.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        training = setup.training
        self.margin = training.margin
        self.precision = training.precision
        # A buffer, as in the checkpoints of earlier versions, which could learn it.
        self.log_temperature: Tensor
        self.register_buffer("log_temperature", torch.tensor(math.log(training.temperature)))

    def _loss(self, views: Views) -> Tensor:
        vectors = unit_vectors(views.gather(views.vectors))
        n = views.pairs
        # Below 0.01 float32's exponentials would underflow.
        temperature = float(self.log_temperature.clamp(math.log(0.01), 0.0).exp())
        precision = product_precision(self.precision, vectors.device)
        masked = false_negatives(views.keys)
        loss = symmetric_softmax_loss(vectors[:n], vectors[n:], temperature, masked, precision, self.margin)
        return views.shared(loss)


class Edited(Objective):
    """Softmax over a sentence's translation and a changed copy of it, of cosine / temperature."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.temperature = setup.training.temperature

    def _loss(self, views: Views) -> Tensor:
        edited, n = views.edited, len(views.batch)
        vectors = unit_vectors(views.vectors)
        sides = vectors[:n], vectors[n:]
        rows = torch.from_numpy(edited.rows).to(vectors.device)
        original, other = sides[edited.side][rows], sides[1 - edited.side][rows]
        nearer = ((unit_vectors(edited.vectors) - original) * other).sum(1)
        return functional.softplus(nearer / self.temperature).sum() / views.pairs


def false_negatives(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows i and columns j (m,), i != j, whose source i and target j are no true negatives.

    Source i is also source j, or target i is also target j; keys (2, n). Sorted by i, then j.
    """
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


class Align(Objective):
    """Eq. 5 on the pooled states of the batch with one piece of each pair masked."""

    def _loss(self, views: Views) -> Tensor:
        n = views.pairs
        vectors = views.gather(views.one_masked.vectors.float())
        return views.shared(align_loss(vectors[:n], vectors[n:]))


class Sim(Objective):
    """Eq. 6 on the same states."""

    def _loss(self, views: Views) -> Tensor:
        n = views.pairs
        vectors = views.gather(views.one_masked.vectors.float())
        return views.shared(sim_loss(vectors[:n], vectors[n:]))


def align_loss(u: Tensor, v: Tensor) -> Tensor:
    """Return Eq. 5, the mean over j: inner products of u, v (n, d) float32, softmax over the batch both ways."""
    scores = u @ v.T
    own = scores.diagonal()
    return (scores.logsumexp(1) + scores.logsumexp(0) - 2 * own).mean()


def sim_loss(u: Tensor, v: Tensor) -> Tensor:
    """Return Eq. 6, the mean over j1 of the sum over j2 of -log cos(pi/2 (p - q)); u, v (n, d) float32.

    p and q are the row-wise softmax probabilities of the similarities among the sources and among the targets.
    """
    p, q = (u @ u.T).softmax(1), (v @ v.T).softmax(1)
    difference = (p - q).clamp(-1 + SATURATED, 1 - SATURATED)
    return -torch.log(torch.cos(math.pi / 2 * difference)).sum(1).mean()
