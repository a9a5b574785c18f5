"""A whole batch through the model, in parts of like length."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.batching import length_batches
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces

__all__ = ["sentence_vectors"]


def sentence_vectors(model: SentenceModel, pieces: Pieces, batch_tokens: int) -> Tensor:
    """(n, dim) sentence vectors with gradients, not normalised, row i for sentence i."""
    device = model.embedding.weight.device
    if not model.config.layers:
        return model(_tensor(pieces.ids, device).long(), _tensor(pieces.offsets, device))
    rows = list(length_batches(pieces.lengths, batch_tokens))
    parts = []
    for chosen in rows:
        part = pieces.take(chosen)
        parts.append(model(_tensor(part.ids, device).long(), _tensor(part.offsets, device)))
    back = np.argsort(np.concatenate(rows), kind="stable")
    return torch.cat(parts)[_tensor(back, device)]


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
