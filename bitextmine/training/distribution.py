"""Divergence from target distributions over a vocabulary, computed blockwise with its gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.head import Head

__all__ = ["Targets", "divergence", "one_piece", "piece_counts", "softmax_divergence"]

BLOCK_ROWS = 256


@dataclasses.dataclass(frozen=True)
class Targets:
    """m sparse distributions over the vocabulary: entries (row, piece, mass), int64, int64, float32.

    A piece may stand in several entries of a row: their masses add up. A row without entries has no target and
    contributes 0.
    """

    rows: int
    row: np.ndarray
    piece: np.ndarray
    mass: np.ndarray

    def mixed(self, piece: np.ndarray, share: float) -> Targets:
        """Gives ``share`` of each row's mass to its ``piece`` (m,) int64; rows where that is -1 stay. A row of
        no other mass gives it all."""
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
    """All mass on one piece per row; piece (m,) int64, -1: no target."""
    rows = np.flatnonzero(piece >= 0)
    return Targets(len(piece), rows, piece[rows], np.ones(len(rows), dtype=np.float32))


def piece_counts(pieces: Pieces) -> Targets:
    """Eq. 3: each piece of a sentence with its share of the sentence's pieces."""
    lengths = pieces.lengths
    row = np.repeat(np.arange(len(pieces)), lengths)
    return Targets(len(pieces), row, pieces.ids.astype(np.int64), (1 / lengths[row]).astype(np.float32))


def divergence(
    head: Head,
    embedding: Tensor,
    states: Tensor,
    targets: Targets,
    weights: np.ndarray | float,
    bottleneck: Tensor | None = None,
) -> Tensor:
    """Sum over rows of weight x D(target || softmax(head(states) E^T + bias)), a scalar, with gradients for the
    states (m, d), the head and the piece vectors E (V, d). With a bottleneck B (d, b) the vectors are (V, b), and E is
    their product with B^T."""
    each = np.broadcast_to(np.asarray(weights, dtype=np.float32), (targets.rows,))
    hidden = head(states)
    if bottleneck is not None:
        hidden = hidden @ bottleneck
    return softmax_divergence(hidden, embedding, head.bias, targets, each, head.precision)


def softmax_divergence(
    hidden: Tensor,
    embedding: Tensor,
    bias: Tensor,
    targets: Targets,
    weights: np.ndarray,
    precision: torch.dtype = torch.float32,
) -> Tensor:
    """sum_i weight_i sum_w q_iw (log q_iw - log p_iw), a scalar, with p = softmax(hidden E^T + bias).

    hidden (m, d), embedding (V, d), bias (V,), float32; weights (m,) float32. A row without target adds 0.
    precision is that of the products; the softmax and its sums are float32. The gradient p - q is multiplied out
    block by block in the forward pass, so that no m x V matrix is ever kept and none is computed twice.
    """
    out: Tensor = _SoftmaxDivergence.apply(hidden, embedding, bias, targets, weights, precision)  # type: ignore[no-untyped-call]
    return out


class _SoftmaxDivergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        embedding: Tensor,
        bias: Tensor,
        targets: Targets,
        weights: np.ndarray,
        precision: torch.dtype,
    ) -> Tensor:
        low = embedding.to(precision)
        grad_hidden, grad_bias = torch.zeros_like(hidden), torch.zeros_like(bias)
        grad_embedding = torch.zeros_like(embedding)
        loss = hidden.new_zeros(()) - float((weights * _entropy(targets)).sum())
        for block in _blocks(targets, weights, hidden.device):
            rows = hidden[block.slice].to(precision)
            logits = (rows @ low.T).float().add_(bias)
            lse = logits.logsumexp(1)
            loss += (block.mass * (lse[block.row] - logits[block.row, block.piece])).sum()
            total = lse.new_zeros(len(lse)).index_add_(0, block.row, block.mass)
            logits.sub_(lse[:, None]).exp_().mul_(total[:, None])
            logits.index_put_((block.row, block.piece), -block.mass, accumulate=True)
            back = logits.to(precision)
            grad_hidden[block.slice] = (back @ low).float()
            grad_embedding += (back.T @ rows).float()
            grad_bias += logits.sum(0)
        ctx.save_for_backward(grad_hidden, grad_embedding, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad_hidden, grad_embedding, grad_bias = ctx.saved_tensors
        return grad_hidden * grads[0], grad_embedding * grads[0], grad_bias * grads[0], None, None, None


@dataclasses.dataclass(frozen=True)
class _RowBlock:
    slice: slice
    row: Tensor  # within the block
    piece: Tensor
    mass: Tensor  # times the row's weight


def _blocks(targets: Targets, weights: np.ndarray, device: torch.device) -> Iterator[_RowBlock]:
    mass = targets.mass * weights[targets.row]
    order = np.argsort(targets.row, kind="stable")
    row = targets.row[order]
    for start in range(0, targets.rows, BLOCK_ROWS):
        part = order[np.searchsorted(row, start) : np.searchsorted(row, start + BLOCK_ROWS)]
        yield _RowBlock(
            slice(start, min(start + BLOCK_ROWS, targets.rows)),
            torch.from_numpy(targets.row[part] - start).to(device),
            torch.from_numpy(targets.piece[part]).to(device),
            torch.from_numpy(mass[part]).to(device),
        )


def _entropy(targets: Targets) -> np.ndarray:
    """(m,) float32, -sum q log q per row, entries of one piece added up first."""
    if not len(targets.row):
        return np.zeros(targets.rows, dtype=np.float32)
    key = targets.row * (int(targets.piece.max()) + 1) + targets.piece
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    mass = np.bincount(inverse, weights=targets.mass)
    entropy = np.bincount(
        targets.row[first], weights=-mass * np.log(np.maximum(mass, 1e-30)), minlength=targets.rows
    )
    return entropy.astype(np.float32)
