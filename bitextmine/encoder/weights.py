"""Weights on disk: safetensors, piece vectors in eight bits with a scale per row, or in four with one per group."""

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
    "STORAGES",
    "pack_rows",
    "quantize_rows",
    "read_arrays",
    "read_weights",
    "restore_rows",
    "unpack_rows",
    "weight_shapes",
    "write_weights",
]

PIECES = "embedding.weight"
SCALE = "embedding.scale"
STORAGES = ("int8", "int4", "float32")

# Columns that share a scale in four bits, and the shares of a group's largest number tried as its top level: cutting
# off the largest a little makes all others finer.
GROUP = 64
TOP_SHARES = (1.0, 0.9, 0.8, 0.7)
BLOCK_ROWS = 4096


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


def pack_rows(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, dim) float, dim a multiple of GROUP -> (rows, dim / 2) uint8 and scales (rows, dim / GROUP) float16.

    A byte holds two columns, the first in its low half, as 8 + level with levels -7..7; a number is its level times
    its group's scale. Of the scales tried each group takes the one of the least squared error.
    """
    rows, dim = weight.shape
    if dim % GROUP:
        raise BitextmineError(f"weights: four bits need a dim that {GROUP} divides, found {dim}")
    groups = weight.astype(np.float32, copy=False).reshape(-1, GROUP)
    top = np.abs(groups).max(axis=1, keepdims=True)
    levels = np.zeros(groups.shape, dtype=np.int8)
    scales = np.zeros((len(groups), 1), dtype=np.float16)
    least = np.full((len(groups), 1), np.inf, dtype=np.float32)
    for share in TOP_SHARES:
        scale = (top * np.float32(share / 7)).astype(np.float16)
        wide = scale.astype(np.float32)
        tried = np.clip(np.rint(groups / np.where(wide > 0, wide, 1)), -7, 7)
        error = np.square(groups - tried * wide).sum(axis=1, keepdims=True)
        better = error < least
        levels = np.where(better, tried, levels).astype(np.int8)
        scales, least = np.where(better, scale, scales), np.minimum(error, least)
    nibbles = (levels + 8).astype(np.uint8).reshape(rows, dim // 2, 2)
    return nibbles[:, :, 0] | nibbles[:, :, 1] << 4, scales.reshape(rows, dim // GROUP)


def unpack_rows(packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """What `pack_rows` made of (rows, dim) numbers -> (rows, dim) float32."""
    rows, half = packed.shape
    levels = np.empty((rows, half, 2), dtype=np.int8)
    levels[:, :, 0] = packed & 15
    levels[:, :, 1] = packed >> 4
    levels -= 8
    groups = levels.reshape(rows, -1, GROUP)
    return np.multiply(groups, scales.astype(np.float32)[:, :, None], dtype=np.float32).reshape(
        rows, 2 * half
    )


def _int8_of_int4(packed: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in four bits as `quantize_rows` has them, by blocks, so that they are never all in float32."""
    values = np.empty((len(packed), 2 * packed.shape[1]), dtype=np.int8)
    scale = np.empty(len(packed), dtype=np.float32)
    for start in range(0, len(packed), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        values[block], scale[block] = quantize_rows(unpack_rows(packed[block], scales[block]))
    return values, scale


def weight_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    """The tensors of a model of this configuration, as `SentenceModel.state_dict` names them."""
    d, ffn = config.dim, config.ffn
    shapes: dict[str, tuple[int, ...]] = {PIECES: (config.rows, d)}
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
    """Writes float weights; dtype "int8" (piece vectors int8 with a scale per row, the rest float16), "int4" (piece
    vectors by `pack_rows`, the rest float16) or "float32".

    Raises BitextmineError for another dtype, for int4 where GROUP does not divide dim, and when the disk is full.
    """
    state = {name: np.ascontiguousarray(array) for name, array in state.items()}
    if dtype not in STORAGES:
        raise BitextmineError(f"weights: dtype must be one of {', '.join(STORAGES)}, found {dtype!r}")
    if dtype != "float32":
        values, scale = (quantize_rows if dtype == "int8" else pack_rows)(state.pop(PIECES))
        state = {name: array.astype(np.float16) for name, array in state.items()}
        state[PIECES], state[SCALE] = values, scale
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
    """The weights of a model of ``config``: piece vectors int8 with ``SCALE`` (also those stored in four bits) or
    float32, all others float32.

    Raises BitextmineError when the file is missing, is no safetensors file, holds NaN or does not fit the
    configuration (naming the tensor and the two shapes).
    """
    state = read_arrays(path)
    wanted = weight_shapes(config)
    kind = state.get(PIECES, np.empty(0)).dtype
    if kind == np.uint8:
        wanted[PIECES] = (config.rows, config.dim // 2)
        wanted[SCALE] = (config.rows, config.dim // GROUP)
    elif kind == np.int8:
        wanted[SCALE] = (config.rows,)
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
        if state[name].dtype not in (np.int8, np.uint8):
            state[name] = state[name].astype(np.float32, copy=False)
            if not np.isfinite(state[name]).all():
                raise BitextmineError(f"{path}: {name!r} holds NaN or infinite values")
        elif name != PIECES:
            raise BitextmineError(f"{path}: {name!r} is {state[name].dtype}, which only {PIECES!r} may be")
    if kind == np.uint8:
        state[PIECES], state[SCALE] = _int8_of_int4(state[PIECES], state[SCALE])
    return state
