"""Run a whole batch through the model, in parts of similar length."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.system import bfloat16_instructions

# Pieces in the layers at once, padding included.
BATCH_TOKENS = 16_384


def length_batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows (m,) int64 of batches of like length, longest first, so that memory peaks at the start.

    lengths: (n,) int. A row longer than BATCH_TOKENS is a batch of its own. Equal lengths keep their order, so that the
    same lengths always make the same batches.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = min(len(order), start + max(1, BATCH_TOKENS // longest))
        yield order[start:stop]
        start = stop


def sentence_vectors(model: SentenceModel, pieces: Pieces, precision: torch.dtype = torch.float32) -> Tensor:
    """Return (n, dim) float32 sentence vectors with gradients, not normalised; row i is sentence i.

    The products of the layers are in ``precision``.
    """
    device = model.device
    if not model.config.layers:
        return model(tensor(pieces.ids, device).long(), tensor(pieces.offsets, device))
    rows = list(length_batches(pieces.lengths))
    parts = []
    with torch.autocast(device.type, dtype=precision, enabled=precision != torch.float32):
        for chosen in rows:
            part = pieces.take(chosen)
            width = int(part.lengths.max(initial=0))
            full = bool((part.lengths == width).all())
            parts.append(model(tensor(part.ids, device).long(), tensor(part.offsets, device), width, full))
    back = np.argsort(np.concatenate(rows), kind="stable")
    return torch.cat(parts)[tensor(back, device)]


def tensor(array: np.ndarray, device: torch.device) -> Tensor:
    """Return a tensor on a device, of the array's memory if that is possible."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


# --- precision -----------------------------------------------------------------------------------------------


def product_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of the losses' products; "auto" is bfloat16 if the device multiplies it natively."""
    if name == "auto" and device.type != "cuda" and "avx512_bf16" in bfloat16_instructions():
        return torch.bfloat16
    return layer_precision(name, device)


def layer_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of the products inside the layers; "auto" is bfloat16 on a GPU that multiplies it natively."""
    if name == "auto":
        native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        name = "bfloat16" if native else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
