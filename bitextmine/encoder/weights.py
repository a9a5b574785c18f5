"""Weights on disk: safetensors, piece vectors as int8 rows with a scale each."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.errors import BitextmineError

__all__ = ["load_model", "quantize_rows", "restore_rows", "save_model"]

QUANTIZED = "embedding.weight"
SCALE = "embedding.scale"


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, dim) float -> int8 values (rows, dim) and scales (rows,) float32, so that value * scale is within
    half a scale of the weight; a row of zeros has scale 0."""
    weight = weight.detach().float().cpu()
    scale = weight.abs().amax(1) / 127
    safe = torch.where(scale > 0, scale, torch.ones_like(scale))
    return torch.round(weight / safe[:, None]).to(torch.int8), scale


def restore_rows(values: Tensor, scale: Tensor) -> Tensor:
    """int8 values (rows, dim), scales (rows,) -> (rows, dim) float32."""
    return values.float() * scale[:, None]


def save_model(model: SentenceModel, path: Path, *, dtype: str = "int8") -> None:
    """Writes the weights; dtype "int8" (piece vectors int8 with a scale per row, the rest float16) or "float32"."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    if dtype == "int8":
        values, scale = quantize_rows(state.pop(QUANTIZED))
        state = {name: tensor.half() for name, tensor in state.items()}
        state[QUANTIZED], state[SCALE] = values, scale
    elif dtype != "float32":
        raise BitextmineError(f"weights: dtype must be int8 or float32, found {dtype!r}")
    # Through a file of our own: safetensors makes its files readable for their owner alone.
    try:
        path.write_bytes(save(state))
    except OSError as e:
        raise BitextmineError(f"{path}: cannot be written: {e.strerror}") from e


def load_model(config: EncoderConfig, path: Path) -> SentenceModel:
    """Reads weights into a model of ``config``, float32, in evaluation mode.

    Raises BitextmineError when the file is missing, is no safetensors file or does not fit the configuration
    (naming the tensor and the two shapes).
    """
    if not path.is_file():
        raise BitextmineError(f"{path}: no such file: a model folder needs its model.safetensors")
    try:
        state = load_file(str(path))
    except (SafetensorError, OSError) as e:
        raise BitextmineError(f"{path}: not a readable safetensors file ({e})") from e
    if SCALE in state and QUANTIZED in state:
        values, scale = state[QUANTIZED], state.pop(SCALE)
        if values.ndim != 2 or scale.shape != values.shape[:1]:
            raise BitextmineError(
                f"{path}: {SCALE} has shape {tuple(scale.shape)}, {QUANTIZED} {tuple(values.shape)}"
            )
        state[QUANTIZED] = restore_rows(values, scale)
    # Not on the "meta" device: initialising there imports SymPy, a second against 50 ms for random numbers.
    model = SentenceModel(config)
    wanted = model.state_dict()
    for name in sorted(wanted.keys() | state.keys()):
        if name not in state:
            raise BitextmineError(
                f"{path}: no tensor {name!r}, which config.json (layers {config.layers}) calls for"
            )
        if name not in wanted:
            raise BitextmineError(
                f"{path}: tensor {name!r} has no place in a model of {config.layers} layers"
            )
        if state[name].shape != wanted[name].shape:
            raise BitextmineError(
                f"{path}: {name!r} has shape {tuple(state[name].shape)}, "
                f"but config.json says {tuple(wanted[name].shape)}"
            )
        state[name] = state[name].float()
        if not bool(torch.isfinite(state[name]).all()):
            raise BitextmineError(f"{path}: {name!r} holds NaN or infinite values")
    model.load_state_dict(state, assign=True)
    return model.eval()
