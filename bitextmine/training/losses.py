"""Losses computed blockwise, with their gradients in the forward pass: in-batch softmax, and divergence over pieces."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.forward import product_precision
from bitextmine.training.recipe import Training

SOFTMAX_ROWS, DIVERGENCE_ROWS = 512, 256
# Exponentials (4 bytes each) that stay in memory between the two passes; more are computed twice.
KEPT = 1 << 30


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

    The exponentials serve both directions, and up to KEPT of them are computed once: cosines do not exceed 1, so
    exp((s - 1)/t) needs no maximum per row. In float32 it underflows only if the cosine is 103 t below 1; for t = 0.05
    it never does.

    Args:
        src: (n, d).
        tgt: (n, d).
        temperature: t.
        masked: rows and columns (m,) int64, sorted by row, of the pairs (never i = j) left out of both sums.
        precision: dtype of the n x n products; the diagonal and all sums are float32.
        margin: subtracted from the cosines of true pairs.
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
            edges = np.searchsorted(masked[0], np.arange(0, n + SOFTMAX_ROWS, SOFTMAX_ROWS))
            for block, (a, b) in enumerate(itertools.pairwise(edges)):
                rows = torch.from_numpy(masked[0][a:b] - block * SOFTMAX_ROWS).to(src.device)
                cut.append((rows, torch.from_numpy(masked[1][a:b]).to(src.device)))
        kept = n * n <= KEPT
        weights = src.new_empty(n if kept else min(n, SOFTMAX_ROWS), n)

        def exponentials(start: int) -> Tensor:
            part = weights[start : start + SOFTMAX_ROWS] if kept else weights[: n - start]
            part.copy_(low_src[start : start + SOFTMAX_ROWS] @ columns)
            part.sub_(1).mul_(1 / temperature).exp_()
            if cut:
                part[cut[start // SOFTMAX_ROWS]] = 0
            # In low precision the diagonal is the one place where an error matters.
            part.diagonal(start).copy_(on_diagonal[start : start + len(part)])
            return part

        row_sum, column_sum = src.new_empty(n), src.new_zeros(n)
        for start in range(0, n, SOFTMAX_ROWS):
            part = exponentials(start)
            row_sum[start : start + len(part)] = part.sum(1)
            column_sum += part.sum(0)
        loss = ((1 - diagonal) / temperature + (row_sum.log() + column_sum.log()) / 2).mean()
        grad_src, grad_tgt = torch.empty_like(src), torch.zeros_like(tgt)
        by_row, by_column = 1 / row_sum, 1 / column_sum
        for start in range(0, n, SOFTMAX_ROWS):
            part = weights[start : start + SOFTMAX_ROWS] if kept else exponentials(start)
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


# --- distributions over the vocabulary ---------------------------------------------------------------------


class Head(nn.Module):
    """Linear, GELU, LayerNorm, and the bias of the softmax tied to the piece vectors; used in training only.

    It keeps the needs of the generative task out of the sentence vector (Mao et al. 2021, section 3.1).
    """

    def __init__(self, config: EncoderConfig, training: Training) -> None:
        super().__init__()
        self.linear = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self._precision = training.precision

    @property
    def precision(self) -> torch.dtype:
        """Return the dtype of the products with the piece vectors, on this module's device."""
        return product_precision(self._precision, self.bias.device)

    def start_at(self, frequencies: np.ndarray) -> None:
        """Set the bias to the logarithm of ``frequencies`` (V,).

        The piece vectors are tied to the output: they would otherwise first learn how common their piece is.
        """
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(np.log(frequencies)))

    def forward(self, states: Tensor) -> Tensor:
        """Map states (m, d) to (m, d), to be multiplied with the piece vectors."""
        return self.norm(nn.functional.gelu(self.linear(states)))


@dataclasses.dataclass(frozen=True)
class Targets:
    """Sparse distributions over the vocabulary: entries (row, piece, mass), int64, int64, float32.

    The masses of a piece's entries in a row add up. A row without entries has no target and contributes 0.
    """

    rows: int
    row: np.ndarray
    piece: np.ndarray
    mass: np.ndarray

    def mixed(self, piece: np.ndarray, share: float) -> Targets:
        """Return the targets with ``share`` of each row's mass on its ``piece`` (m,) int64.

        Rows where that is -1 stay as they are; a row without other mass puts all of it there.
        """
        rows = np.flatnonzero(piece >= 0)
        has = np.zeros(self.rows, dtype=bool)
        has[self.row] = True
        given = np.zeros(self.rows, dtype=np.float32)
        given[rows] = np.where(has[rows], share, 1.0)
        return Targets(
            self.rows,
            np.concatenate([self.row, rows]),
            np.concatenate([self.piece, piece[rows]]),
            np.concatenate([self.mass * (1 - given[self.row]), given[rows]]).astype(np.float32),
        )


def one_piece(piece: np.ndarray) -> Targets:
    """Return targets with all mass on one piece per row; piece (m,) int64, -1: no target."""
    rows = np.flatnonzero(piece >= 0)
    return Targets(len(piece), rows, piece[rows], np.ones(len(rows), dtype=np.float32))


def piece_counts(pieces: Pieces) -> Targets:
    """Return, for each sentence, its pieces with their shares of it (Eq. 3)."""
    lengths = pieces.lengths
    row = np.repeat(np.arange(len(pieces)), lengths)
    return Targets(len(pieces), row, pieces.ids.astype(np.int64), (1 / lengths[row]).astype(np.float32))


def softmax_divergence(
    hidden: Tensor,
    embedding: Tensor,
    bias: Tensor,
    targets: Targets,
    weights: np.ndarray,
    precision: torch.dtype = torch.float32,
) -> Tensor:
    """Return sum_i weight_i sum_w q_iw (log q_iw - log p_iw), a scalar, with p = softmax(hidden E^T + bias).

    The gradient p - q is multiplied out block by block in the forward pass, so that no m x V matrix is kept and none
    is computed twice. Shapes, all float32: hidden (m, d), embedding (V, d), bias (V,), weights (m,). ``precision`` is
    the dtype of the products alone. A row without target adds 0.
    """
    how = targets, weights, precision
    out: Tensor = _SoftmaxDivergence.apply(hidden, embedding, bias, how)  # type: ignore[no-untyped-call]
    return out


class _SoftmaxDivergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        embedding: Tensor,
        bias: Tensor,
        how: tuple[Targets, np.ndarray, torch.dtype],
    ) -> Tensor:
        targets, weights, precision = how
        low = embedding.to(precision)
        grad_hidden, grad_bias = torch.zeros_like(hidden), torch.zeros_like(bias)
        grad_embedding = torch.zeros_like(embedding)
        loss = hidden.new_zeros(()) - float((weights * _entropy(targets)).sum())
        for at, row, piece, mass in _blocks(targets, weights, hidden.device):
            rows = hidden[at].to(precision)
            logits = (rows @ low.T).float().add_(bias)
            lse = logits.logsumexp(1)
            loss += (mass * (lse[row] - logits[row, piece])).sum()
            total = lse.new_zeros(len(lse)).index_add_(0, row, mass)
            logits.sub_(lse[:, None]).exp_().mul_(total[:, None])
            logits.index_put_((row, piece), -mass, accumulate=True)
            back = logits.to(precision)
            grad_hidden[at] = (back @ low).float()
            grad_embedding += (back.T @ rows).float()
            grad_bias += logits.sum(0)
        ctx.save_for_backward(grad_hidden, grad_embedding, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad_hidden, grad_embedding, grad_bias = ctx.saved_tensors
        return grad_hidden * grads[0], grad_embedding * grads[0], grad_bias * grads[0], None


def _blocks(
    targets: Targets, weights: np.ndarray, device: torch.device
) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield blocks of rows; row within the block, piece, and mass times the row's weight of their targets."""
    mass = targets.mass * weights[targets.row]
    order = np.argsort(targets.row, kind="stable")
    row = targets.row[order]
    for start in range(0, targets.rows, DIVERGENCE_ROWS):
        stop = min(start + DIVERGENCE_ROWS, targets.rows)
        part = order[np.searchsorted(row, start) : np.searchsorted(row, stop)]
        entries = (targets.row[part] - start, targets.piece[part], mass[part])
        here, piece, share = (torch.from_numpy(one).to(device) for one in entries)
        yield slice(start, stop), here, piece, share


def _entropy(targets: Targets) -> np.ndarray:
    """Return (m,) float32, -sum q log q per row, entries of one piece added up first."""
    if not len(targets.row):
        return np.zeros(targets.rows, dtype=np.float32)
    key = targets.row * (int(targets.piece.max()) + 1) + targets.piece
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    mass = np.bincount(inverse, weights=targets.mass)
    entropy = np.bincount(
        targets.row[first], weights=-mass * np.log(np.maximum(mass, 1e-30)), minlength=targets.rows
    )
    return entropy.astype(np.float32)
