"""Divergence of a distribution over pieces from a target, and the head that makes such a distribution."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.sampling import piece_frequencies
from bitextmine.training.model.forward import product_precision
from bitextmine.training.objectives.registry import Setup

ROWS = 256


class Head(nn.Module):
    """Linear, GELU, LayerNorm, and the bias of the softmax tied to the piece vectors; used in training only.

    It keeps the needs of the generative task out of the sentence vector (Mao et al. 2021, section 3.1).
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        config = setup.config
        self.linear = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        # The piece vectors are tied to the output: they would otherwise first learn how common their piece is.
        frequencies = piece_frequencies(setup.caches, config.vocab_size)
        self.bias = nn.Parameter(torch.from_numpy(np.log(frequencies)).float())
        self._precision = setup.training.precision

    @property
    def precision(self) -> torch.dtype:
        """Return the dtype of the products with the piece vectors, on this module's device."""
        return product_precision(self._precision, self.bias.device)

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
    for start in range(0, targets.rows, ROWS):
        stop = min(start + ROWS, targets.rows)
        part = order[np.searchsorted(row, start) : np.searchsorted(row, stop)]
        entries = (targets.row[part] - start, targets.piece[part], mass[part])
        here, piece, share = (torch.from_numpy(column).to(device) for column in entries)
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
