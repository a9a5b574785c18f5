"""Encoding with a stack of LSTMs and the maximum over time."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from bitextmine.encoder.network import TorchNetwork
from bitextmine.run import Run


class Lstm(TorchNetwork):
    """A stack of LSTMs; a vector is the unit-length maximum of the last layer's states over a sentence.

    Args:
        weights: "embed_tokens.weight" (pieces, width) and those of a torch.nn.LSTM behind the prefix "lstm.", float32.
        run: its device, batch_tokens and threads.
        precision: of the matrix products; auto is float32.

    Raises:
        RuntimeError: the weights are not those of one LSTM.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], run: Run, precision: str) -> None:
        table = weights["embed_tokens.weight"]
        hidden = weights["lstm.weight_hh_l0"].shape[1]
        both_ways = "lstm.weight_hh_l0_reverse" in weights
        self._layers = sum(name.startswith("lstm.weight_hh") for name in weights) // (1 + both_ways)
        super().__init__(hidden * (1 + both_ways), run, "float32" if precision == "auto" else precision)
        self._parameters = sum(array.size for array in weights.values())
        self._table = torch.from_numpy(table).to(self._device, self._low)
        lstm = nn.LSTM(table.shape[1], hidden, self._layers, bidirectional=both_ways, batch_first=True)
        others = {name: array for name, array in weights.items() if name != "embed_tokens.weight"}
        lstm.load_state_dict(
            {name.removeprefix("lstm."): torch.from_numpy(array) for name, array in others.items()}
        )
        self._lstm = lstm.to(self._device, self._low).eval().requires_grad_(False)

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        counts = lengths.tolist()
        sentences = functional.embedding(ids.long(), self._table).split(counts)
        packed = pack_padded_sequence(pad_sequence(sentences, batch_first=True), counts, batch_first=True)
        with self._full_precision():
            states = self._lstm(packed)[0]
        states, _ = pad_packed_sequence(states, batch_first=True, padding_value=-torch.inf)
        return functional.normalize(states.amax(1).float(), dim=1, eps=1e-12)

    def _full_precision(self) -> contextlib.AbstractContextManager[None]:
        """Keep cuDNN from rounding products to 10 bits (TF32) in float32."""
        if self._device.type != "cuda":
            return contextlib.nullcontext()
        flags: contextlib.AbstractContextManager[None] = torch.backends.cudnn.flags(
            enabled=True, allow_tf32=False
        )
        return flags

    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""
        return {
            "kind": "encoder (LASER: LSTM, maximum over time)",
            "dim": self.dim,
            "layers": self._layers,
            "vocab_size": len(self._table),
            "parameters": self._parameters,
        }
