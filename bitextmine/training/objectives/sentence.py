"""The objectives that learn from pairs alone: cosines of translations, against other sentences and edited copies."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.data.sampling import drop_pieces
from bitextmine.training.model.forward import product_precision
from bitextmine.training.objectives.registry import Objective, Setup, Views
from bitextmine.training.objectives.softmax import symmetric_softmax_loss


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
        copies = views.copies
        assert copies is not None, "the sampler makes copies for objectives that ask for them"
        pieces = drop_pieces(copies.pieces, views.training.piece_dropout, views.rng(4))
        own = np.flatnonzero(np.isin(copies.rows, views.own_pairs))
        changed = unit_vectors(views.encode(pieces.take(own)))
        rows = torch.from_numpy(np.searchsorted(views.own_pairs, copies.rows[own])).to(changed.device)
        sides = unit_vectors(views.vectors).chunk(2)
        original, translation = sides[copies.side][rows], sides[1 - copies.side][rows]
        nearer = ((changed - original) * translation).sum(1)
        return functional.softplus(nearer / self.temperature).sum() / views.pairs


def false_negatives(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows i and columns j (m,), i != j, whose source i and target j are no true negatives.

    Source i is also source j, or target i is also target j; keys (2, n). Sorted by i, then j.
    """
    n = keys.shape[1]
    codes = []
    for side in keys:
        order = np.argsort(side, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], side[order][1:] != side[order][:-1], [True]]))
        for group in np.flatnonzero(np.diff(starts) > 1):
            same = order[starts[group] : starts[group + 1]]
            codes.append(np.repeat(same, len(same)) * n + np.tile(same, len(same)))
    if not codes:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    i, j = np.divmod(np.unique(np.concatenate(codes)), n)
    return i[i != j], j[i != j]
