"""Encoding with a model of the transformers library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.network import BATCH_TOKENS, TorchNetwork
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json

__all__ = ["Backbone"]


class Backbone(TorchNetwork):
    """A folder of transformers (config.json, model.safetensors), pooled, with dense layers behind it.

    Weights stay float32; matrix products run in ``precision``. Raises BitextmineError for a folder that is not
    whole, for pickled weights, for an architecture that transformers does not know, and without that library.
    """

    # Its feed-forward part is padded and wide: larger batches leave the cache (index/performance.md).
    batch_tokens: Mapping[str, int] = {**BATCH_TOKENS, "cpu": 1_024}

    def __init__(
        self,
        folder: Path,
        pooling: str,
        dense: Sequence[tuple[np.ndarray, np.ndarray | None, str]],
        device: str,
        precision: str,
    ) -> None:
        self._model = _load(folder)
        hidden = int(self._model.config.hidden_size)
        dim = hidden
        for weight, _, _ in dense:
            if weight.shape[1] != dim:
                raise BitextmineError(
                    f"{folder}: a dense layer takes {weight.shape[1]} numbers, but what comes before it gives {dim}"
                )
            dim = weight.shape[0]
        super().__init__(dim, device, precision)
        self._model.to(self._device)
        self._pooling = pooling
        self._dense = [
            (
                torch.from_numpy(weight).to(self._device),
                None if bias is None else torch.from_numpy(bias).to(self._device),
                activation,
            )
            for weight, bias, activation in dense
        ]

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        on_device = torch.from_numpy(lengths).to(self._device)
        width = int(lengths[0])
        inside = torch.arange(width, device=self._device)[None, :] < on_device[:, None]
        padded = torch.full(inside.shape, self._model.config.pad_token_id or 0, device=self._device)
        # By position, not by mask: a mask would have the GPU tell how many there are, and wait for that.
        place = torch.arange(len(ids), device=self._device)
        row = torch.repeat_interleave(on_device, output_size=len(ids))
        starts = on_device.cumsum(0) - on_device
        padded[row, place - starts[row]] = ids.long()
        low = self.precision != "float32"
        with torch.autocast(self._device.type, dtype=self._low, enabled=low):
            states = self._model(input_ids=padded, attention_mask=inside.long()).last_hidden_state
        states = states.float()
        if self._pooling == "cls":
            vectors = states[:, 0]
        elif self._pooling == "max":
            vectors = states.masked_fill(~inside[:, :, None], -torch.inf).amax(1)
        else:
            vectors = (states * inside[:, :, None]).sum(1) / on_device[:, None]
        for weight, bias, activation in self._dense:
            vectors = functional.linear(vectors, weight, bias)
            if activation == "Tanh":
                vectors = vectors.tanh()
        return functional.normalize(vectors, dim=1, eps=1e-12)

    def describe(self) -> dict[str, Any]:
        config = self._model.config
        return {
            "kind": f"encoder ({config.model_type} of transformers, {self._pooling} pooling)",
            "dim": self.dim,
            "layers": int(config.num_hidden_layers),
            "vocab_size": int(config.vocab_size),
            "parameters": sum(p.numel() for p in self._model.parameters()),
        }


def _load(folder: Path) -> Any:
    try:
        import transformers
    except ImportError:
        raise BitextmineError(
            f"{folder}: needs the transformers library: pip install 'bitextmine[transformers]'"
        ) from None
    read_json(folder / "config.json")
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        raise BitextmineError(
            f"{folder}: no model.safetensors; weights in other files, pickles among them, are not read: load the model "
            "with transformers and save it again"
        )
    quiet = transformers.utils.logging
    level = quiet.get_verbosity()
    quiet.set_verbosity_error()
    bars = quiet.is_progress_bar_enabled()
    quiet.disable_progress_bar()
    try:
        model = transformers.AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32
        )
    except Exception as e:  # of all kinds, from what reads the configuration to what reads the weights
        raise BitextmineError(f"{folder}: transformers cannot load it: {e}") from e
    finally:
        quiet.set_verbosity(level)
        if bars:
            quiet.enable_progress_bar()
    return model.eval()
