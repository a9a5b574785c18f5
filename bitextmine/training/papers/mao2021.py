"""The objectives of Mao et al. 2021, "Lightweight Cross-Lingual Sentence Representation Learning".

The generative ones, and their precursors, predict pieces. Each is the Kullback-Leibler divergence of the model's
distribution over the vocabulary from a target distribution; they differ in the targets. All but `Mlm` read one
distribution per sentence, from its pooled state. Every target sums to 1: counts of a repeated piece are added, and
targets come from unmasked sentences. `Align` and `Sim` compare the sentences of a batch.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.model.forward import autocast, length_batches, tensor
from bitextmine.training.objectives.registry import Objective, Setup, Views
from bitextmine.training.papers.divergence import Head, Targets, one_piece, piece_counts, softmax_divergence

# Eq. 6 is infinite where two probabilities differ by 1; at this distance from it the loss is 9.2 and finite.
SATURATED = 1e-4
# The vocabulary's unknown piece serves as the mask. It is never in a target (targets come from unmasked sentences),
# unless the text itself has it.
MASK = 0


class OneMasked(NamedTuple):
    """A batch in which each pair has one piece masked, on a random side (Mao et al. 2021, section 3.2).

    side (n,): 0 source, 1 target; piece (n,) int64: the masked piece (-1: that side has none); pieces: 2n sentences,
    sources first; vectors (2n, d): their pooled states, not normalised.
    """

    side: np.ndarray
    piece: np.ndarray
    pieces: Pieces
    vectors: Tensor


class MaskedPieces(NamedTuple):
    """BERT-style masking: states (m, d) at the chosen positions, masked pieces (m,) int64, pairs row (m,) int64."""

    states: Tensor
    piece: np.ndarray
    row: np.ndarray


class Masking:
    """The masked views of a batch; of the pieces, those with a letter or a digit are worth predicting."""

    def __init__(self, setup: Setup) -> None:
        self.content = np.array([any(map(str.isalnum, piece)) for piece in setup.pieces])

    def one(self, views: Views) -> OneMasked:
        """Return the batch with one piece of each pair masked."""
        whole = views.sentences
        side, position, piece = mask_one(whole, self.content, views.rng(2))
        ids = whole.ids.copy()
        ids[position[position >= 0]] = MASK
        pieces = views.own(Pieces(ids, whole.offsets))
        return OneMasked(side[views.own_pairs], piece[views.own_pairs], pieces, views.encode(pieces))

    def like_bert(self, views: Views) -> MaskedPieces:
        """Return the batch masked as BERT does."""
        whole = views.sentences
        ids, positions = mask_like_bert(whole, self.content, views.rng(3))
        pieces = views.own(Pieces(ids, whole.offsets))
        if views.world.size > 1:
            chosen = np.zeros(len(ids), dtype=np.int32)
            chosen[positions] = 1
            positions = np.flatnonzero(views.own(Pieces(chosen, whole.offsets)).ids)
        states = piece_states(views.model, pieces, positions, views.training.batch_tokens, views.precision)
        row = np.searchsorted(views.whole.offsets, positions, side="right") - 1
        return MaskedPieces(states, views.whole.ids[positions].astype(np.int64), row % len(views.batch))


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


def mask_like_bert(
    whole: Pieces, content: np.ndarray, rng: np.random.Generator, share: float = 0.15
) -> tuple[np.ndarray, np.ndarray]:
    """Mask like BERT (Devlin et al. 2019); return the new ids and the chosen positions.

    Of 15% of the pieces 80% become MASK, 10% a random piece and 10% stay; each sentence with pieces has at least one.
    """
    chosen = rng.random(len(whole.ids)) < share
    starts = whole.offsets[:-1][whole.lengths > 0]
    if len(starts):
        lengths = whole.lengths[whole.lengths > 0]
        none = ~np.logical_or.reduceat(chosen, starts)
        chosen[(starts + (rng.random(len(starts)) * lengths).astype(np.int64))[none]] = True
    positions = np.flatnonzero(chosen)
    ids = whole.ids.copy()
    fate = rng.random(len(positions))
    ids[positions[fate < 0.8]] = MASK
    swapped = positions[(fate >= 0.8) & (fate < 0.9)]
    ids[swapped] = rng.integers(0, len(content), len(swapped))
    return ids, positions


def piece_states(
    model: SentenceModel,
    pieces: Pieces,
    positions: np.ndarray,
    batch_tokens: int,
    precision: torch.dtype = torch.float32,
) -> Tensor:
    """Return (m, dim) float32 states at ``positions`` (m,) int64, increasing, in pieces.ids."""
    device = model.device
    number = np.full(len(pieces.ids), -1)  # of the state wanted of each piece
    number[positions] = np.arange(len(positions))
    numbers = Pieces(number, pieces.offsets)
    parts, order = [], []
    for chosen in length_batches(pieces.lengths, batch_tokens):
        part, wanted = pieces.take(chosen), numbers.take(chosen).ids
        inside = np.arange(max(1, int(part.lengths.max())))[None, :] < part.lengths[:, None]
        padded = np.zeros(inside.shape, dtype=np.int64)
        padded[inside] = part.ids
        row, column = (at[wanted >= 0] for at in np.nonzero(inside))
        with autocast(device, precision):
            states = model.states(tensor(padded, device), tensor(inside, device), bool(inside.all()))
        parts.append(states[tensor(row, device), tensor(column, device)])
        order.append(wanted[wanted >= 0])
    return torch.cat(parts)[tensor(np.argsort(np.concatenate(order), kind="stable"), device)]


class Generative(Objective):
    """An objective with a head, which all generative objectives of a run share."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.head, self.masking = setup.shared(Head), setup.shared(Masking)

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
        masked = views.once(self.masking.like_bert)
        counts = np.bincount(masked.row, minlength=len(views.batch))
        share = 1 / counts[masked.row]
        return self.divergence(views, masked.states, one_piece(masked.piece), share)


class Smlm(Generative):
    """Single-word masked language model (Eq. 1; Sabet et al. 2019).

    The one masked piece, from the masked sentence and from its translation. The side is drawn per pair, which halves
    the work; the expectation is half of Eq. 1's sum over both sides.
    """

    def _loss(self, views: Views) -> Tensor:
        masked = views.once(self.masking.one)
        return self.divergence(views, masked.vectors, one_piece(np.tile(masked.piece, 2)))


class Xtr(Generative):
    """Cross-lingual token-level reconstruction (Eq. 2 and 3): the pieces of the other side, with their shares of it."""

    def _loss(self, views: Views) -> Tensor:
        return self.divergence(views, views.once(self.masking.one).vectors, piece_counts(_other_side(views)))


class Ugt(Generative):
    """Unified generative task (Eq. 2 with Eq. 4).

    As `Xtr`, but for the masked sentence half of the mass is on the masked piece, half on the translation's pieces.
    """

    def _loss(self, views: Views) -> Tensor:
        masked = views.once(self.masking.one)
        n = len(views.batch)
        piece = np.full(2 * n, -1, dtype=np.int64)
        piece[np.arange(n) + n * masked.side] = masked.piece
        targets = piece_counts(_other_side(views)).mixed(piece, 0.5)
        return self.divergence(views, masked.vectors, targets)


def _other_side(views: Views) -> Pieces:
    """Return the translations of 2n sentences, sources first."""
    return Pieces.join([views.batch.tgt, views.batch.src])


class Align(Objective):
    """Eq. 5 on the pooled states of the batch with one piece of each pair masked."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.masking = setup.shared(Masking)

    def _loss(self, views: Views) -> Tensor:
        vectors = views.gather(views.once(self.masking.one).vectors.float())
        return views.shared(self._compare(*vectors.chunk(2)))

    def _compare(self, src: Tensor, tgt: Tensor) -> Tensor:
        return align_loss(src, tgt)


class Sim(Align):
    """Eq. 6 on the same states."""

    def _compare(self, src: Tensor, tgt: Tensor) -> Tensor:
        return sim_loss(src, tgt)


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
