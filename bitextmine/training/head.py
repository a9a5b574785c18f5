"""What stands between a state and a distribution over the vocabulary, in training only."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.config import EncoderConfig
from bitextmine.training.precision import product_precision
from bitextmine.training.recipe import Training

__all__ = ["Head"]


class Head(nn.Module):
    """Linear, GELU, LayerNorm, then the tied softmax's bias (paper, section 3.1: the fully connected layer keeps
    the generative task's needs out of the sentence vector, which is taken before it)."""

    def __init__(self, config: EncoderConfig, training: Training) -> None:
        super().__init__()
        self.linear = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self._precision = training.precision

    @property
    def precision(self) -> torch.dtype:
        """Of the products with the piece vectors, on the device that this is on."""
        return product_precision(self._precision, self.bias.device)

    def start_at(self, frequencies: np.ndarray) -> None:
        """Sets the bias to the logarithm of ``frequencies`` (V,), so that before any training the distribution is
        close to theirs.

        The piece vectors are tied to the output: otherwise the first thing they learn is how common their piece is,
        which all of a sentence vector's pieces then share.
        """
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(np.log(frequencies)))

    def forward(self, states: Tensor) -> Tensor:
        """(m, d) -> (m, d), to be multiplied with the piece vectors."""
        return self.norm(nn.functional.gelu(self.linear(states)))
