"""The generative objectives of Mao et al. 2021 and their precursors, which predict pieces.

Each is the Kullback-Leibler divergence of the model's distribution over the vocabulary from a target distribution; they
differ in the targets. All but `mlm` read one distribution per sentence, from its pooled state. Every target sums to 1:
counts of a repeated piece are added, and targets come from unmasked sentences.
"""

import numpy as np
from torch import Tensor

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.losses import Targets, one_piece, piece_counts, softmax_divergence
from bitextmine.training.objectives.registry import Objective, Setup, Views


class Generative(Objective):
    """An objective with a head, which all generative objectives of a run share."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.head = setup.head()

    def divergence(
        self, views: Views, states: Tensor, targets: Targets, weights: np.ndarray | float = 1.0
    ) -> Tensor:
        """Return the weighted sum of the rows' divergences, per pair of the step's batch."""
        model, head, hidden = views.model, self.head, self.head(states)
        if model.config.bottleneck:  # instead of widening all piece vectors
            hidden = hidden @ model.bottleneck.weight
        each = np.broadcast_to(np.asarray(weights / views.pairs, dtype=np.float32), (targets.rows,))
        return softmax_divergence(hidden, model.embedding.weight, head.bias, targets, each, head.precision)


class Mlm(Generative):
    """Masked language model (Devlin et al. 2019): masked pieces from the states at their positions.

    The mean over a pair's masked pieces, then over pairs.
    """

    def _loss(self, views: Views) -> Tensor:
        masked = views.bert_masked
        counts = np.bincount(masked.row, minlength=len(views.batch))
        share = 1 / counts[masked.row]
        return self.divergence(views, masked.states, one_piece(masked.piece), share)


class Smlm(Generative):
    """Single-word masked language model (Eq. 1; Sabet et al. 2019).

    The one masked piece, from the masked sentence and from its translation. The side is drawn per pair, which halves
    the work; the expectation is half of Eq. 1's sum over both sides.
    """

    def _loss(self, views: Views) -> Tensor:
        masked = views.one_masked
        return self.divergence(views, masked.vectors, one_piece(np.tile(masked.piece, 2)))


class Xtr(Generative):
    """Cross-lingual token-level reconstruction (Eq. 2 and 3): the pieces of the other side, with their shares of it."""

    def _loss(self, views: Views) -> Tensor:
        return self.divergence(views, views.one_masked.vectors, piece_counts(_other_side(views)))


class Ugt(Generative):
    """Unified generative task (Eq. 2 with Eq. 4).

    As `Xtr`, but for the masked sentence half of the mass is on the masked piece, half on the translation's pieces.
    """

    def _loss(self, views: Views) -> Tensor:
        masked = views.one_masked
        n = len(views.batch)
        piece = np.full(2 * n, -1, dtype=np.int64)
        piece[np.arange(n) + n * masked.side] = masked.piece
        targets = piece_counts(_other_side(views)).mixed(piece, 0.5)
        return self.divergence(views, masked.vectors, targets)


def _other_side(views: Views) -> Pieces:
    """Return the translations of 2n sentences, sources first."""
    return Pieces.join([views.batch.tgt, views.batch.src])
