"""The symmetric in-batch softmax loss, computed blockwise with its gradient in one go."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["symmetric_softmax_loss"]

BLOCK_ROWS = 512
KEPT = (
    1 << 30
)  # exponentials (4 bytes each) that stay in memory between the two passes; more are computed twice


def symmetric_softmax_loss(
    src: Tensor,
    tgt: Tensor,
    temperature: float | Tensor,
    masked: tuple[np.ndarray, np.ndarray] | None = None,
    precision: torch.dtype = torch.float32,
    margin: float = 0.0,
) -> Tensor:
    """Mean over i of [-log softmax_j(s_ij)_i - log softmax_j(s_ji)_i] / 2, where s_ij = cos(src_i, tgt_j) / t, and
    s_ii = (cos(src_i, tgt_i) - margin) / t.

    src, tgt: (n, d) float32, rows of length 1. masked: rows and columns (m,) int64, sorted by row, of the pairs
    (never i = j) left out of both sums. precision is that of the n x n products; the diagonal and all sums are
    float32. Returns a scalar with a gradient for src, tgt and, if it is a tensor that wants one, the temperature.

    The exponentials serve both directions, and up to KEPT of them are computed once: cosines do not exceed 1, so that
    exp((s - 1)/t) needs no maximum per row. It underflows in float32 only where the cosine is 103 t below 1, for t =
    0.05 never.
    """
    t = torch.as_tensor(temperature, dtype=torch.float32, device=src.device)
    out: Tensor = _SymmetricSoftmax.apply(src, tgt, t, masked, precision, margin)  # type: ignore[no-untyped-call]
    return out


class _SymmetricSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        src: Tensor,
        tgt: Tensor,
        learned: Tensor,
        masked: tuple[np.ndarray, np.ndarray] | None,
        precision: torch.dtype,
        margin: float,
    ) -> Tensor:
        n, temperature = len(src), float(learned)
        low_src, low_tgt = src.to(precision), tgt.to(precision)
        columns = low_tgt.T.contiguous()
        diagonal = (src * tgt).sum(1) - margin
        on_diagonal = torch.exp((diagonal - 1) / temperature)
        cut: list[tuple[Tensor, Tensor]] = []
        if masked is not None and len(masked[0]):
            edges = np.searchsorted(masked[0], np.arange(0, n + BLOCK_ROWS, BLOCK_ROWS))
            for block, (a, b) in enumerate(itertools.pairwise(edges)):
                rows = torch.from_numpy(masked[0][a:b] - block * BLOCK_ROWS).to(src.device)
                cut.append((rows, torch.from_numpy(masked[1][a:b]).to(src.device)))
        kept = n * n <= KEPT
        weights = src.new_empty(n if kept else min(n, BLOCK_ROWS), n)

        def exponentials(start: int) -> Tensor:
            part = weights[start : start + BLOCK_ROWS] if kept else weights[: n - start]
            part.copy_(low_src[start : start + BLOCK_ROWS] @ columns)
            part.sub_(1).mul_(1 / temperature).exp_()
            if cut:
                part[cut[start // BLOCK_ROWS]] = 0
            # In low precision the diagonal is the one place where an error matters.
            part.diagonal(start).copy_(on_diagonal[start : start + len(part)])
            return part

        row_sum, column_sum = src.new_empty(n), src.new_zeros(n)
        for start in range(0, n, BLOCK_ROWS):
            part = exponentials(start)
            row_sum[start : start + len(part)] = part.sum(1)
            column_sum += part.sum(0)
        loss = ((1 - diagonal) / temperature + (row_sum.log() + column_sum.log()) / 2).mean()
        grad_src, grad_tgt = torch.empty_like(src), torch.zeros_like(tgt)
        by_row, by_column = 1 / row_sum, 1 / column_sum
        diagonal_mass = torch.zeros((), dtype=torch.float64, device=src.device)  # a GPU is not waited for
        for start in range(0, n, BLOCK_ROWS):
            part = weights[start : start + BLOCK_ROWS] if kept else exponentials(start)
            part.mul_(by_row[start : start + len(part), None] + by_column[None])
            diagonal_mass += part.diagonal(start).sum()
            part.diagonal(start).sub_(2)
            low = part.to(precision)
            grad_src[start : start + len(part)] = low @ low_tgt
            grad_tgt += low.T @ low_src[start : start + len(part)]
        scale = 1 / (2 * n * temperature)
        grad_src.mul_(scale)
        grad_tgt.mul_(scale)
        # The temperature divides every logit: dL/dt = -sum (dL/ds) s / t, and that sum is src . dL/dsrc, but for the
        # margin, which is in the diagonal's logits and not in src . tgt. What the diagonal weighs was kept for that.
        by_margin = margin * scale * (2 * n - diagonal_mass)
        grad_t = -((src * grad_src).sum() + by_margin.float()) / temperature
        ctx.save_for_backward(grad_src, grad_tgt, grad_t.to(learned))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad_src, grad_tgt, grad_t = ctx.saved_tensors
        return grad_src * grads[0], grad_tgt * grads[0], grad_t * grads[0], None, None, None
