"""Encoding with layers: the forward pass of `SentenceModel`, made for inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.batching import runs
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.network import TorchNetwork
from bitextmine.encoder.weights import BOTTLENECK, PIECES, SCALE, piece_vectors
from bitextmine.run import Run

MOST_ROWS = 1 << 15  # sentences per call of the attention kernel


class Transformer(TorchNetwork):
    """The network of a model with layers, without padding and masks.

    A batch is one flat row of pieces. Only attention sees sentences: it takes one run of equal lengths after another.
    Sums, norms and the states between layers stay float32.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, np.ndarray],
        run: Run | None = None,
        precision: str = "auto",
    ) -> None:
        super().__init__(config.dim, run or Run(device="cpu"), precision)
        self.config = config
        weights = {**weights, PIECES: piece_vectors(weights)}
        weights.pop(SCALE, None)
        self._parameters = sum(array.size for array in weights.values())
        self._weights = {
            name: torch.from_numpy(array).to(self._device, self._low if _is_matrix(name) else torch.float32)
            for name, array in weights.items()
        }

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        spans, at = [], 0  # (first piece, last piece, rows, length) of each run of equal lengths
        for rows, length in runs(lengths):
            spans.append((at, at + rows * length, rows, length))
            at += rows * length
        w, dim = self._weights, self.config.dim
        hidden = functional.embedding(ids, w[PIECES])
        if self.config.bottleneck:
            hidden = functional.linear(hidden.to(self._low), w[BOTTLENECK]).float()
        for begin, end, rows, length in spans:
            hidden[begin:end].view(rows, length, dim).add_(w["positions.weight"][:length])
        for i in (i % self.config.own_layers for i in range(self.config.layers)):
            qkv = self._linear(self._norm(hidden, f"layers.{i}.attention_norm"), f"layers.{i}.qkv")
            hidden += self._linear(self._attend(qkv, spans), f"layers.{i}.out")
            up = self._linear(self._norm(hidden, f"layers.{i}.ffn_norm"), f"layers.{i}.up")
            hidden += self._linear(functional.gelu(up), f"layers.{i}.down")
        hidden = functional.layer_norm(hidden, (dim,), w["norm.weight"], w["norm.bias"])
        sums = torch.cat(
            [hidden[begin:end].view(rows, length, dim).sum(1) for begin, end, rows, length in spans]
        )
        # Only the direction of a sum counts, so that it need not become a mean first.
        return functional.normalize(sums, dim=1, eps=1e-12)

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(hidden, (self.dim,), weight, bias).to(self._low)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attend(self, qkv: Tensor, spans: list[tuple[int, int, int, int]]) -> Tensor:
        """Return (total pieces, dim) of qkv (total pieces, 3 dim), each sentence attending to itself."""
        heads, size = self.config.heads, self.dim // self.config.heads
        out = torch.empty((len(qkv), self.dim), dtype=qkv.dtype, device=qkv.device)
        for begin, end, rows, length in spans:
            split = qkv[begin:end].view(rows, length, 3, heads, size).permute(2, 0, 3, 1, 4)
            if qkv.dtype == torch.bfloat16 and self._device.type == "cpu":
                # For short sentences two plain products are twice as fast as the fused kernel.
                q, k, v = split.reshape(3, rows * heads, length, size)
                weights = torch.bmm(q, k.transpose(1, 2)).mul_(size**-0.5).softmax(-1)
                attended = torch.bmm(weights, v).view(rows, heads, length, size)
            else:
                attended = attend(*split)
            out[begin:end].view(rows, length, heads, size).copy_(attended.transpose(1, 2))
        return out

    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""
        kind = f"encoder (transformer of {self.config.layers} layers)"
        return {"kind": kind, **self.config.describe(), "parameters": self._parameters}


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the attention of (rows, heads, length, size); torch's kernels on a GPU fail above 65,535 rows."""
    parts = zip(q.split(MOST_ROWS), k.split(MOST_ROWS), v.split(MOST_ROWS), strict=True)
    found = [functional.scaled_dot_product_attention(*part) for part in parts]
    return found[0] if len(found) == 1 else torch.cat(found)


def _is_matrix(name: str) -> bool:
    """Return True for a tensor of a matrix product, biases included, which has the lower precision."""
    return name.split(".")[-2] in ("bottleneck", "qkv", "out", "up", "down")
