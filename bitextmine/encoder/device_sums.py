"""Encoding without layers on a GPU: the sums of `sums`, in batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.network import TorchNetwork
from bitextmine.encoder.pieces import offsets_of
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import PIECES, SCALE, piece_vectors
from bitextmine.run import Run


class DeviceSums(TorchNetwork):
    """The network of a model without layers in torch, with the arguments of `Transformer`.

    Piece vectors are float32 on the device. On a CPU, `PieceSums` is faster and does the same without torch.
    """

    def __init__(
        self, config: EncoderConfig, weights: Mapping[str, np.ndarray], run: Run, precision: str = "auto"
    ) -> None:
        super().__init__(config.dim, run, precision)
        sums = PieceSums(weights, config)
        self.piece_rows, self._description = sums.piece_rows, sums.describe()
        state = {name: torch.from_numpy(array) for name, array in weights.items() if name != SCALE}
        state[PIECES] = torch.from_numpy(piece_vectors(weights))
        with torch.device("meta"):  # no random initial vectors
            self._model = SentenceModel(config).eval()
        self._model.load_state_dict(state, assign=True)
        self._model.to(self._device)

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        offsets = torch.from_numpy(offsets_of(lengths)).to(self._device)
        return unit_vectors(self._model(ids.long(), offsets))

    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""
        return self._description
