"""Weights on disk: safetensors, piece vectors as int8 rows with a scale each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from bitextmine.encoder.config import EncoderConfig
from bitextmine.errors import BitextmineError

__all__ = [
    "PIECES",
    "SCALE",
    "quantize_rows",
    "read_arrays",
    "read_weights",
    "restore_rows",
    "weight_shapes",
    "write_weights",
]

PIECES = "embedding.weight"
SCALE = "embedding.scale"


def quantize_rows(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, dim) float -> int8 values (rows, dim) and scales (rows,) float32, so that value * scale is within
    half a scale of the weight; a row of zeros has scale 0."""
    weight = weight.astype(np.float32, copy=False)
    scale = np.abs(weight).max(axis=1) / np.float32(127)
    safe = np.where(scale > 0, scale, np.float32(1))
    return np.rint(weight / safe[:, None]).astype(np.int8), scale


def restore_rows(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """int8 values (rows, dim), scales (rows,) -> (rows, dim) float32."""
    return np.multiply(values, scale[:, None], dtype=np.float32)


def weight_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    """The tensors of a model of this configuration, as `SentenceModel.state_dict` names them."""
    d, ffn = config.dim, config.ffn
    shapes: dict[str, tuple[int, ...]] = {PIECES: (config.vocab_size, d)}
    if not config.layers:
        return shapes
    shapes["positions.weight"] = (config.max_pieces, d)
    linear = {"qkv": (3 * d, d), "out": (d, d), "up": (ffn, d), "down": (d, ffn)}
    for i in range(config.layers):
        for name, shape in linear.items():
            shapes[f"layers.{i}.{name}.weight"] = shape
            shapes[f"layers.{i}.{name}.bias"] = shape[:1]
        for name in ("attention_norm", "ffn_norm"):
            shapes[f"layers.{i}.{name}.weight"] = shapes[f"layers.{i}.{name}.bias"] = (d,)
    shapes["norm.weight"] = shapes["norm.bias"] = (d,)
    return shapes


def write_weights(state: Mapping[str, np.ndarray], path: Path, *, dtype: str = "int8") -> None:
    """Writes float weights; dtype "int8" (piece vectors int8 with a scale per row, the rest float16) or
    "float32"."""
    state = {name: np.ascontiguousarray(array) for name, array in state.items()}
    if dtype == "int8":
        values, scale = quantize_rows(state.pop(PIECES))
        state = {name: array.astype(np.float16) for name, array in state.items()}
        state[PIECES], state[SCALE] = values, scale
    elif dtype != "float32":
        raise BitextmineError(f"weights: dtype must be int8 or float32, found {dtype!r}")
    # Through a file of our own: safetensors makes its files readable for their owner alone.
    try:
        path.write_bytes(save(state))
    except OSError as e:
        raise BitextmineError(f"{path}: cannot be written: {e.strerror}") from e


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file; BitextmineError when it is missing or no such file."""
    if not path.is_file():
        raise BitextmineError(f"{path}: no such file: a model folder needs its model.safetensors")
    try:
        arrays: dict[str, np.ndarray] = load_file(path)
    except (SafetensorError, OSError, TypeError, KeyError) as e:  # KeyError: a type that NumPy lacks
        raise BitextmineError(f"{path}: not a readable safetensors file ({e!r})") from e
    return arrays


def read_weights(config: EncoderConfig, path: Path) -> dict[str, np.ndarray]:
    """The weights of a model of ``config``: piece vectors as they are stored, int8 with ``SCALE`` or float32, all
    others float32.

    Raises BitextmineError when the file is missing, is no safetensors file, holds NaN or does not fit the
    configuration (naming the tensor and the two shapes).
    """
    state = read_arrays(path)
    wanted = weight_shapes(config)
    if state.get(PIECES, np.empty(0)).dtype == np.int8:
        wanted[SCALE] = wanted[PIECES][:1]
    for name in sorted(wanted.keys() | state.keys()):
        if name not in state:
            raise BitextmineError(
                f"{path}: no tensor {name!r}, which config.json (layers {config.layers}) calls for"
            )
        if name not in wanted:
            raise BitextmineError(
                f"{path}: tensor {name!r} has no place in a model of {config.layers} layers"
            )
        if state[name].shape != wanted[name]:
            raise BitextmineError(
                f"{path}: {name!r} has shape {state[name].shape}, but config.json says {wanted[name]}"
            )
        if state[name].dtype != np.int8:
            state[name] = state[name].astype(np.float32, copy=False)
            if not np.isfinite(state[name]).all():
                raise BitextmineError(f"{path}: {name!r} holds NaN or infinite values")
        elif name != PIECES:
            raise BitextmineError(f"{path}: {name!r} is int8, which only {PIECES!r} may be")
    return state
