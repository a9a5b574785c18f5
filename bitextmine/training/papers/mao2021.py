"""The objectives of Mao et al. 2021, "Lightweight Cross-Lingual Sentence Representation Learning".

The generative ones, `Ugt` and its precursors, predict pieces. Each is the Kullback-Leibler divergence of the model's
distribution over the vocabulary, one per sentence, from a target distribution; they differ in the targets. Targets come
from unmasked sentences, and counts of a repeated piece are added. `Align` and `Sim` compare the sentences of a batch.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.sampling import piece_frequencies
from bitextmine.training.model.forward import product_precision
from bitextmine.training.objectives.registry import Objective, Setup, Views

# Eq. 6 is infinite where two probabilities differ by 1; at this distance from it the loss is 9.2 and finite.
SATURATED = 1e-4
# The vocabulary's unknown piece serves as the mask. It is never in a target, unless the text itself has it.
MASK = 0


# --- masking -------------------------------------------------------------------------------------------------


class OneMasked(NamedTuple):
    """A batch in which each pair has one piece masked, on a random side (section 3.2).

    side (n,): 0 source, 1 target; piece (n,) int64: the masked piece (-1: that side has none); vectors (2n, d): the
    pooled states of the sentences, sources first, not normalised.
    """

    side: np.ndarray
    piece: np.ndarray
    vectors: Tensor


class Masking:
    """The masked view of a batch; of the pieces, those with a letter or a digit are worth predicting."""

    def __init__(self, setup: Setup) -> None:
        self.content = np.array([any(map(str.isalnum, piece)) for piece in setup.pieces])

    def one(self, views: Views) -> OneMasked:
        """Return the batch with one piece of each pair masked."""
        whole = views.sentences
        side, position, piece = mask_one(whole, self.content, views.rng(2))
        ids = whole.ids.copy()
        ids[position[position >= 0]] = MASK
        return OneMasked(side, piece, views.encode(Pieces(ids, whole.offsets)))


def mask_one(
    whole: Pieces, content: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose, for 2n sentences (sources first), a side per pair and a piece of that side's sentence.

    Each content piece of the sentence is equally likely; a sentence without any (punctuation only) offers all pieces.
    Returns side (n,) 0 or 1, position (n,) in whole.ids, piece (n,) int64; the last two are -1 for empty sentences.
    """
    n = len(whole) // 2
    side = rng.integers(0, 2, n)
    rows = np.arange(n) + n * side
    starts, ends = whole.offsets[rows], whole.offsets[rows + 1]
    counted = np.concatenate([[0], np.cumsum(content[whole.ids])])
    available = counted[ends] - counted[starts]
    draw = rng.random(n)
    # The j-th content piece of a sentence is where the running count first passes those before it by j + 1.
    wanted = counted[starts] + (draw * available).astype(np.int64) + 1
    by_content = np.searchsorted(counted, wanted, side="left") - 1
    by_any = starts + (draw * (ends - starts)).astype(np.int64)
    position = np.where(ends > starts, np.where(available > 0, by_content, by_any), -1)
    piece = np.where(position >= 0, whole.ids[np.maximum(position, 0)] if len(whole.ids) else -1, -1)
    return side, position, piece.astype(np.int64)


# --- generative objectives -----------------------------------------------------------------------------------


class Head(nn.Module):
    """Linear, GELU, LayerNorm, and the bias of the softmax tied to the piece vectors; used in training only.

    It keeps the needs of the generative task out of the sentence vector (section 3.1).
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        config = setup.config
        self.linear = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        # The piece vectors are tied to the output: they would otherwise first learn how common their piece is.
        frequencies = piece_frequencies(setup.caches, config.vocab_size)
        self.bias = nn.Parameter(torch.from_numpy(np.log(frequencies)).float())

    def forward(self, states: Tensor) -> Tensor:
        """Map states (m, d) to (m, d), to be multiplied with the piece vectors."""
        return self.norm(functional.gelu(self.linear(states)))


class Generative(Objective):
    """Divergence of the pieces that are predicted from the masked sentences: summed over both sides, mean over pairs.

    All generative objectives of a run share the head and the masked sentences.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.head, self.masking = setup.shared(Head), setup.shared(Masking)

    def _loss(self, views: Views) -> Tensor:
        model, masked = views.model, views.once(self.masking.one)
        hidden, table = self.head(masked.vectors), model.embedding.weight
        if model.config.bottleneck:  # instead of widening all piece vectors
            hidden = hidden @ model.bottleneck.weight
        precision = product_precision(views.training.precision, model.device)
        logits = (hidden.to(precision) @ table.to(precision).T).float() + self.head.bias
        targets = torch.zeros_like(logits)
        self._fill(targets, views.batch, masked)
        return functional.kl_div(logits.log_softmax(1), targets, reduction="sum") / len(views.batch)

    def _fill(self, targets: Tensor, batch: TokenPairs, masked: OneMasked) -> None:
        """Write the target distributions into zeros (2n, pieces), sources first."""
        raise NotImplementedError


class Smlm(Generative):
    """Single-word masked language model (Eq. 1; Sabet et al. 2019).

    The one masked piece, from the masked sentence and from its translation. The side is drawn per pair, which halves
    the work; the expectation is half of Eq. 1's sum over both sides.
    """

    def _fill(self, targets: Tensor, batch: TokenPairs, masked: OneMasked) -> None:
        _add(targets, np.arange(len(targets)), np.tile(masked.piece, 2), 1.0)


class Xtr(Generative):
    """Cross-lingual token-level reconstruction (Eq. 2 and 3): the pieces of the other side, with their shares of it."""

    def _fill(self, targets: Tensor, batch: TokenPairs, masked: OneMasked) -> None:
        others = Pieces.join([batch.tgt, batch.src])
        rows = np.repeat(np.arange(len(others)), others.lengths)
        _add(targets, rows, others.ids.astype(np.int64), 1 / others.lengths[rows])


class Ugt(Xtr):
    """Unified generative task (Eq. 2 with Eq. 4).

    As `Xtr`, but for the masked sentence half of the mass is on the masked piece, half on the translation's pieces.
    """

    def _fill(self, targets: Tensor, batch: TokenPairs, masked: OneMasked) -> None:
        super()._fill(targets, batch, masked)
        rows = np.arange(len(batch)) + len(batch) * masked.side
        targets[torch.from_numpy(rows).to(targets.device)] *= 0.5
        _add(targets, rows, masked.piece, 0.5)


def _add(targets: Tensor, rows: np.ndarray, pieces: np.ndarray, mass: np.ndarray | float) -> None:
    """Add mass to entries; a piece of -1 is none."""
    real = pieces >= 0
    shares = np.broadcast_to(np.asarray(mass, dtype=np.float32), rows.shape)[real]
    at = tuple(torch.from_numpy(part[real]).to(targets.device) for part in (rows, pieces))
    targets.index_put_(at, torch.from_numpy(shares.copy()).to(targets.device), accumulate=True)


# --- sentence objectives -------------------------------------------------------------------------------------


class Align(Objective):
    """Eq. 5 on the pooled states of the batch with one piece of each pair masked."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.masking = setup.shared(Masking)

    def _loss(self, views: Views) -> Tensor:
        return align_loss(*views.once(self.masking.one).vectors.float().chunk(2))


class Sim(Align):
    """Eq. 6 on the same states."""

    def _loss(self, views: Views) -> Tensor:
        return sim_loss(*views.once(self.masking.one).vectors.float().chunk(2))


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
