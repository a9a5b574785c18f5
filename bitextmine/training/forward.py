"""Run a whole batch through the model, in parts of similar length."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.system import bfloat16_instructions


def length_batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Yield the rows (m,) int64 of batches of like length, longest first, so that memory peaks at the start.

    lengths: (n,) int; batch_tokens: a batch's budget in pieces, padding included: rows x longest row. A longer row is a
    batch of its own. Equal lengths keep their order, so that the same lengths always make the same batches.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = min(len(order), start + max(1, batch_tokens // longest))
        yield order[start:stop]
        start = stop


def sentence_vectors(
    model: SentenceModel, pieces: Pieces, batch_tokens: int, precision: torch.dtype = torch.float32
) -> Tensor:
    """Return (n, dim) float32 sentence vectors with gradients, not normalised; row i is sentence i.

    ``batch_tokens`` pieces, padding included, are in the layers at once, whose products are in ``precision``.
    """
    device = model.device
    if not model.config.layers:
        return model(_tensor(pieces.ids, device).long(), _tensor(pieces.offsets, device))
    rows = list(length_batches(pieces.lengths, batch_tokens))
    parts = []
    with _autocast(device, precision):
        for chosen in rows:
            part = pieces.take(chosen)
            width = int(part.lengths.max(initial=0))
            full = bool((part.lengths == width).all())
            parts.append(model(_tensor(part.ids, device).long(), _tensor(part.offsets, device), width, full))
    back = np.argsort(np.concatenate(rows), kind="stable")
    return torch.cat(parts)[_tensor(back, device)]


def piece_states(
    model: SentenceModel,
    pieces: Pieces,
    positions: np.ndarray,
    batch_tokens: int,
    precision: torch.dtype = torch.float32,
) -> Tensor:
    """Return (m, dim) float32 states at ``positions`` (m,) int64, increasing, in pieces.ids."""
    device = model.device
    number = np.full(len(pieces.ids), -1)  # of the state wanted of each piece
    number[positions] = np.arange(len(positions))
    numbers = Pieces(number, pieces.offsets)
    found, order = [], []
    for chosen in length_batches(pieces.lengths, batch_tokens):
        part, wanted = pieces.take(chosen), numbers.take(chosen).ids
        inside = np.arange(max(1, int(part.lengths.max())))[None, :] < part.lengths[:, None]
        padded = np.zeros(inside.shape, dtype=np.int64)
        padded[inside] = part.ids
        row, column = (at[wanted >= 0] for at in np.nonzero(inside))
        with _autocast(device, precision):
            states = model.states(_tensor(padded, device), _tensor(inside, device), bool(inside.all()))
        found.append(states[_tensor(row, device), _tensor(column, device)])
        order.append(wanted[wanted >= 0])
    return torch.cat(found)[_tensor(np.argsort(np.concatenate(order), kind="stable"), device)]


def _autocast(device: torch.device, precision: torch.dtype) -> torch.autocast:
    return torch.autocast(device.type, dtype=precision, enabled=precision != torch.float32)


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
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
