"""The objectives of what ships: cosines of translations, against other sentences, copies and a teacher's."""

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.data.sampling import drop_pieces
from bitextmine.training.model.forward import product_precision
from bitextmine.training.objectives.registry import Objective, Setup, Views

ROWS = 512  # of the softmax at once


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
        vectors = unit_vectors(views.vectors)
        n = len(views.batch)
        # Below 0.01 float32's exponentials would underflow.
        temperature = float(self.log_temperature.clamp(math.log(0.01), 0.0).exp())
        precision = product_precision(self.precision, vectors.device)
        masked = false_negatives(views.batch.keys)
        return symmetric_softmax_loss(vectors[:n], vectors[n:], temperature, masked, precision, self.margin)


class Edited(Objective):
    """Softmax over a sentence's translation and a changed copy of it, of cosine / temperature."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.temperature = setup.training.temperature

    def _loss(self, views: Views) -> Tensor:
        copies = views.batch.edited
        assert copies is not None, "the sampler makes copies for objectives that ask for them"
        pieces = drop_pieces(copies.pieces, views.training.piece_dropout, views.rng(4))
        changed = unit_vectors(views.encode(pieces))
        rows = torch.from_numpy(copies.rows).to(changed.device)
        sides = unit_vectors(views.vectors).chunk(2)
        original, translation = sides[copies.side][rows], sides[1 - copies.side][rows]
        nearer = ((changed - original) * translation).sum(1)
        return functional.softplus(nearer / self.temperature).sum() / len(views.batch)


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


class Taught(Objective):
    """An objective over pairs with a teacher's vectors: a mean over the batch, whatever its size.

    A teacher that reads one language gives both sentences of a pair the vector of that one (Reimers & Gurevych 2020).
    """

    def _loss(self, views: Views) -> Tensor:
        student = unit_vectors(views.vectors)
        assert views.batch.teacher is not None, "only taught pairs have a teacher"
        teacher = torch.from_numpy(np.concatenate(list(views.batch.teacher))).to(student.device)
        return self._compare(student, teacher, views.batch.keys)

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        """Return a scalar from student (2n, d) and teacher (2n, e), unit rows, sources first, and keys (2, n)."""
        raise NotImplementedError


class Structure(Taught):
    """The cosines of all sentences, whatever their language, become the teacher's.

    Similarity-preserving distillation (Tung & Mori 2019), on plain cosines.
    """

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        return cosine_error(student, student, teacher)


def cosine_error(a: Tensor, b: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean over i and j of (cos(teacher_i, teacher_j) - cos(a_i, b_j))^2, of unit rows (n, d).

    The n x n matrices are avoided: the sum of the squares of U U' is that of U' U, which is small.
    """
    squares = ((a.T @ a) * (b.T @ b)).sum()
    products = ((a.T @ teacher) * (b.T @ teacher)).sum()
    constant = (teacher.T @ teacher).square().sum()
    return (squares - 2 * products + constant) / len(a) ** 2


# --- the in-batch softmax ------------------------------------------------------------------------------------


def symmetric_softmax_loss(
    src: Tensor,
    tgt: Tensor,
    temperature: float,
    masked: tuple[np.ndarray, np.ndarray] | None = None,
    precision: torch.dtype = torch.float32,
    margin: float = 0.0,
) -> Tensor:
    """Return the symmetric in-batch softmax loss, a scalar with gradients, of unit rows src and tgt (n, d) float32.

    The mean over i of [-log softmax_j(s_ij)_i - log softmax_j(s_ji)_i] / 2, with s_ij = cos(src_i, tgt_j) / t and s_ii
    = (cos(src_i, tgt_i) - margin) / t.

    The exponentials (n x n) serve both directions and are computed once: cosines do not exceed 1, so exp((s - 1)/t)
    needs no maximum per row. In float32 it underflows only if the cosine is 103 t below 1; for t = 0.05
    it never does.

    ``masked`` holds the rows and columns (m,) int64, sorted by row, of pairs (never i = j) left out of both sums;
    ``precision`` is that of the n x n products, while the diagonal and all sums are float32.
    """
    how = temperature, masked, precision, margin
    out: Tensor = _SymmetricSoftmax.apply(src, tgt, how)  # type: ignore[no-untyped-call]
    return out


class _SymmetricSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: Tensor, tgt: Tensor, how: tuple[Any, ...]) -> Tensor:
        temperature, masked, precision, margin = how
        n = len(src)
        low_src, low_tgt = src.to(precision), tgt.to(precision)
        columns = low_tgt.T.contiguous()
        diagonal = (src * tgt).sum(1) - margin
        on_diagonal = torch.exp((diagonal - 1) / temperature)
        cut: list[tuple[Tensor, Tensor]] = []
        if masked is not None and len(masked[0]):
            edges = np.searchsorted(masked[0], np.arange(0, n + ROWS, ROWS))
            for block, (a, b) in enumerate(itertools.pairwise(edges)):
                rows = torch.from_numpy(masked[0][a:b] - block * ROWS).to(src.device)
                cut.append((rows, torch.from_numpy(masked[1][a:b]).to(src.device)))
        weights = src.new_empty(n, n)
        row_sum, column_sum = src.new_empty(n), src.new_zeros(n)
        for start in range(0, n, ROWS):
            part = weights[start : start + ROWS]
            part.copy_(low_src[start : start + ROWS] @ columns)
            part.sub_(1).mul_(1 / temperature).exp_()
            if cut:
                part[cut[start // ROWS]] = 0
            # In low precision the diagonal is the one place where an error matters.
            part.diagonal(start).copy_(on_diagonal[start : start + len(part)])
            row_sum[start : start + len(part)] = part.sum(1)
            column_sum += part.sum(0)
        loss = ((1 - diagonal) / temperature + (row_sum.log() + column_sum.log()) / 2).mean()
        grad_src, grad_tgt = torch.empty_like(src), torch.zeros_like(tgt)
        by_row, by_column = 1 / row_sum, 1 / column_sum
        for start in range(0, n, ROWS):
            part = weights[start : start + ROWS]
            part.mul_(by_row[start : start + len(part), None] + by_column[None])
            part.diagonal(start).sub_(2)
            low = part.to(precision)
            grad_src[start : start + len(part)] = low @ low_tgt
            grad_tgt += low.T @ low_src[start : start + len(part)]
        scale = 1 / (2 * n * temperature)
        grad_src.mul_(scale)
        grad_tgt.mul_(scale)
        ctx.save_for_backward(grad_src, grad_tgt)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad_src, grad_tgt = ctx.saved_tensors
        return grad_src * grads[0], grad_tgt * grads[0], None
