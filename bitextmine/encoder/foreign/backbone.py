"""Encoding with a model of sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.network import BATCH_TOKENS, TorchNetwork
from bitextmine.run import Run


class Backbone(TorchNetwork):
    """A SentenceTransformer; matrix products of its first module run in ``precision``, all else in float32."""

    # Its feed-forward part is padded and wide: larger batches leave the cache (index/performance.md).
    batch_tokens: Mapping[str, int] = {**BATCH_TOKENS, "cpu": 1_024}

    def __init__(self, model: Any, run: Run, precision: str) -> None:
        super().__init__(int(model.get_embedding_dimension()), run, precision)
        self._model = model.to(self._device)

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        first, *rest = self._model
        on_device = torch.from_numpy(lengths).to(self._device)
        starts = on_device.cumsum(0) - on_device
        if type(first).__name__ == "StaticEmbedding":
            features = {"input_ids": ids.long(), "offsets": starts}
        else:
            inside = torch.arange(int(lengths[0]), device=self._device)[None, :] < on_device[:, None]
            padding = first.tokenizer.pad_token_id or 0
            padded = torch.full(inside.shape, padding, dtype=torch.int64, device=self._device)
            # By position, not by mask: a mask would have the GPU tell how many there are, and wait for that.
            row = torch.repeat_interleave(on_device, output_size=len(ids))
            padded[row, torch.arange(len(ids), device=self._device) - starts[row]] = ids.long()
            features = {"input_ids": padded, "attention_mask": inside.long()}
        with torch.autocast(self._device.type, dtype=self._low, enabled=self.precision != "float32"):
            features = first(features)
        features = {
            name: value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
            for name, value in features.items()
        }
        for module in rest:
            features = module(features)
        return functional.normalize(features["sentence_embedding"], dim=1, eps=1e-12)

    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""
        config = getattr(self._model[0], "config", None)
        return {
            "kind": f"encoder ({getattr(config, 'model_type', 'static embedding')} of sentence-transformers)",
            "dim": self.dim,
            "layers": int(getattr(config, "num_hidden_layers", 0)),
            "vocab_size": int(getattr(config, "vocab_size", 0)) or self._model[0].tokenizer.get_vocab_size(),
            "parameters": sum(p.numel() for p in self._model.parameters()),
        }
