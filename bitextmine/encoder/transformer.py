"""Encoding with layers: the forward pass of `SentenceModel` as inference wants it, on CPU and GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.batching import runs
from bitextmine.encoder.columns.lengths import length_table
from bitextmine.encoder.columns.order import steps, wave
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import with_length
from bitextmine.encoder.network import TorchNetwork
from bitextmine.encoder.weights import BOTTLENECK, CHARACTERS, PIECES, SCALE, piece_vectors

__all__ = ["Transformer"]

MOST_ROWS = 1 << 15  # sentences that attention is asked for at a time


class Transformer(TorchNetwork):
    """The network of a model with layers (on a GPU also of one without): no padding and no masks.

    A batch is one flat row of pieces, on which all but the attention works; attention takes one run of sentences of
    equal length after another. Sums, norms and what is carried from layer to layer stay float32.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, np.ndarray],
        device: str = "cpu",
        precision: str = "auto",
    ) -> None:
        super().__init__(config.dim, device, precision)
        self.config = config
        weights = {**weights, PIECES: piece_vectors(weights)}
        weights.pop(SCALE, None)
        self._characters, self._table = (
            torch.from_numpy(array).to(self._device)
            for array in (weights.pop(CHARACTERS, np.zeros(0, dtype=np.uint8)), length_table().copy())
        )
        self._wave = torch.from_numpy(wave().copy()).to(self._device)
        self._parameters = sum(array.size for array in weights.values())
        self._weights = {
            name: torch.from_numpy(array).to(self._device, self._low if _is_matrix(name) else torch.float32)
            for name, array in weights.items()
        }

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """ids (total pieces,) int32, lengths (n,) sorted and above 0 -> (n, dim) float32 unit rows."""
        spans, at = [], 0  # (first piece, last piece, rows, length) of each run of equal lengths
        for rows, length in runs(lengths):
            spans.append((at, at + rows * length, rows, length))
            at += rows * length
        w, dim = self._weights, self.config.piece_dim
        hidden = functional.embedding(ids, w[PIECES])
        if self.config.bottleneck:
            hidden = functional.linear(hidden.to(self._low), w[BOTTLENECK]).float()
        if self.config.layers:
            for begin, end, rows, length in spans:
                hidden[begin:end].view(rows, length, dim).add_(w["positions.weight"][:length])
            for i in (i % self.config.own_layers for i in range(self.config.layers)):
                qkv = self._linear(self._norm(hidden, f"layers.{i}.attention_norm"), f"layers.{i}.qkv")
                hidden += self._linear(self._attend(qkv, spans), f"layers.{i}.out")
                up = self._linear(self._norm(hidden, f"layers.{i}.ffn_norm"), f"layers.{i}.up")
                hidden += self._linear(functional.gelu(up), f"layers.{i}.down")
            hidden = functional.layer_norm(hidden, (dim,), w["norm.weight"], w["norm.bias"])
        share = self.config.length_share
        columns = self.config.order_columns
        sums = torch.empty((len(lengths), dim + columns), device=self._device)
        characters = torch.empty(len(lengths), dtype=torch.int64, device=self._device)
        row = 0
        for begin, end, rows, length in spans:
            states = hidden[begin:end].view(rows, length, dim)
            torch.sum(states, 1, out=sums[row : row + rows, :dim])
            if columns:
                places = steps(torch.arange(length, device=self._device), length)
                times = self._wave[places] * self.config.order_weight
                sums[row : row + rows, dim:] = (states[:, :, :columns] * times[None, :, None]).sum(1)
            if share:
                each = self._characters[ids[begin:end].long()].view(rows, length)
                torch.sum(each, 1, dtype=torch.int64, out=characters[row : row + rows])
            row += rows
        # Only the direction of a sum counts, so that it need not become a mean first.
        units = functional.normalize(sums, dim=1, eps=1e-12)
        return with_length(units, characters, share, self._table) if share else units

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(hidden, (self.dim,), weight, bias).to(self._low)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attend(self, qkv: Tensor, spans: list[tuple[int, int, int, int]]) -> Tensor:
        """qkv (total pieces, 3 dim) -> (total pieces, dim), each sentence attending to itself."""
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
        layers = self.config.layers
        kind = f"transformer of {layers} layers" if layers else "mean of subword vectors"
        return {"kind": f"encoder ({kind})", **self.config.describe(), "parameters": self._parameters}


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """scaled_dot_product_attention() of (rows, heads, length, size), whose kernels on a GPU fail above 65,535 rows."""
    if len(q) <= MOST_ROWS:
        return functional.scaled_dot_product_attention(q, k, v)
    parts = zip(q.split(MOST_ROWS), k.split(MOST_ROWS), v.split(MOST_ROWS), strict=True)
    return torch.cat([functional.scaled_dot_product_attention(*part) for part in parts])


def _is_matrix(name: str) -> bool:
    """Whether a tensor belongs to a matrix product: its precision is the lower one, biases included."""
    return name.split(".")[-2] in ("bottleneck", "qkv", "out", "up", "down")
