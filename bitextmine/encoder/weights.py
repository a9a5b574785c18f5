"""Weights on disk: safetensors, with piece vectors in eight bits with a scale per row, or in four with one per group.

With four bits for pieces, n-grams have two: a word has one piece or a few, but many n-grams, whose errors cancel out.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from bitextmine.encoder.config import OPTIONAL, EncoderConfig
from bitextmine.errors import BitextmineError, explained

PIECES = "embedding.weight"
SCALE = "embedding.scale"
# With config.length_share: the characters of each row's piece (`piece_characters`).
CHARACTERS = "characters"
# With config.bottleneck: from the piece vectors to the layers.
BOTTLENECK = "bottleneck.weight"
# N-grams stored in other bits than pieces; in memory they are the last rows of PIECES.
NGRAMS, NGRAMS_SCALE = "ngrams.weight", "ngrams.scale"

# Columns that share a scale in four or two bits, and the shares of a group's largest number that are tried as its top
# level: cutting off the largest numbers makes all others finer.
GROUP = 64
TOP_SHARES = {4: (1.0, 0.9, 0.8, 0.7), 2: (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)}
BLOCK_ROWS = 256  # at a time, so that their numbers stay in the cache


def quantize_rows(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 values (rows, dim) and scales (rows,) float32 of floats (rows, dim); a row of zeros has scale 0."""
    weight = weight.astype(np.float32, copy=False)
    scale = np.abs(weight).max(axis=1) / np.float32(127)
    safe = np.where(scale > 0, scale, np.float32(1))
    return np.rint(weight / safe[:, None]).astype(np.int8), scale


def lengths_of(values: np.ndarray) -> np.ndarray:
    """Return the lengths (rows,) float64 of int8 values (rows, dim)."""
    squares = np.empty(len(values))
    for start in range(0, len(values), BLOCK_ROWS):  # einsum of whole numbers is slow
        block = values[start : start + BLOCK_ROWS].astype(np.float64)
        np.einsum("ij,ij->i", block, block, out=squares[start : start + BLOCK_ROWS])
    return np.sqrt(squares)


def restore_rows(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return int8 values (rows, dim) times their scales (rows,), float32."""
    return np.multiply(values, scale[:, None], dtype=np.float32)


def piece_vectors(weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the piece vectors (rows, d) float32 of `read_weights`."""
    return restore_rows(weights[PIECES], weights[SCALE]) if SCALE in weights else weights[PIECES]


def pack_rows(weight: np.ndarray, bits: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows, dim * bits / 8) uint8 and (rows, dim / GROUP) float16 scales of floats (rows, dim).

    A number is its level times its group's scale. Four bits have the levels -7..7, stored as 8 + level; two have -3,
    -1, 1 and 3, stored as 0 to 3. The first column is in a byte's lowest bits. Of the scales tried each group takes
    the one with the least squared error. The last group may be smaller than GROUP, but dim * bits must fill bytes.
    """
    dim = weight.shape[1]
    each = 8 // bits
    if dim % each:
        raise BitextmineError(
            f"weights: {bits} bits need vectors of a multiple of {each} numbers, found {dim}"
        )
    whole = dim // GROUP * GROUP
    parts = [_pack_groups(part, bits) for part in (weight[:, :whole], weight[:, whole:]) if part.shape[1]]
    packed, scales = zip(*parts, strict=True)
    return np.concatenate(packed, axis=1), np.concatenate(scales, axis=1)


def _pack_groups(weight: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    rows, dim = weight.shape
    size = min(GROUP, dim)
    groups = weight.astype(np.float32, copy=False).reshape(-1, size)
    top = np.abs(groups).max(axis=1, keepdims=True)
    highest = np.float32(7 if bits == 4 else 3)
    stored = np.zeros(groups.shape, dtype=np.uint8)
    scales = np.zeros((len(groups), 1), dtype=np.float16)
    least = np.full((len(groups), 1), np.inf, dtype=np.float32)
    for share in TOP_SHARES[bits]:
        scale = (top * np.float32(share) / highest).astype(np.float16)
        wide = scale.astype(np.float32)
        scaled = groups / np.where(wide > 0, wide, 1)
        if bits == 4:
            tried = np.clip(np.rint(scaled), -7, 7) + 8
        else:
            tried = np.clip(np.floor(scaled / 2), -2, 1) + 2
        error = np.square(groups - _levels(tried, bits) * wide).sum(axis=1, keepdims=True)
        better = error < least
        stored = np.where(better, tried, stored).astype(np.uint8)
        scales, least = np.where(better, scale, scales), np.minimum(error, least)
    each = 8 // bits
    columns = stored.reshape(rows, dim // each, each) << (np.arange(each, dtype=np.uint8) * bits)
    return np.bitwise_or.reduce(columns, axis=2), scales.reshape(rows, dim // size)


def _levels(stored: np.ndarray, bits: int) -> np.ndarray:
    return stored - 8 if bits == 4 else 2 * stored - 3


def unpack_rows(packed: np.ndarray, scales: np.ndarray, bits: int = 4) -> np.ndarray:
    """Return the numbers (rows, dim) float32 that `pack_rows` packed."""
    rows, width = packed.shape
    each = 8 // bits
    byte = np.arange(256, dtype=np.uint8)[:, None] >> (np.arange(each, dtype=np.uint8) * bits) & (2**bits - 1)
    # The columns of each byte, so that they are looked up at once.
    table = _levels(byte.astype(np.int8), bits).astype(np.float32).view(f"V{4 * each}")[:, 0]
    levels = table[packed].view(np.float32).reshape(rows, width * each)
    levels *= np.repeat(scales.astype(np.float32), GROUP, axis=1)[:, : width * each]
    return levels


def _unpack(state: dict[str, np.ndarray], config: EncoderConfig) -> None:
    """Requantise packed rows to int8 by blocks, so that they are never all in float32; n-grams follow the pieces."""
    values = np.empty((config.rows, config.stored_dim), dtype=np.int8)
    scale = np.empty(config.rows, dtype=np.float32)
    at = 0
    for name, name_of_scales, bits in ((PIECES, SCALE, 4), (NGRAMS, NGRAMS_SCALE, 2)):
        packed, scales = state.pop(name, values[:0]), state.pop(name_of_scales, scale[:0])
        for start in range(0, len(packed), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            rows = unpack_rows(packed[block], scales[block], bits)
            values[at : at + len(rows)], scale[at : at + len(rows)] = quantize_rows(rows)
            at += len(rows)
    state[PIECES], state[SCALE] = values, scale


def weight_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's tensors, under the names of `SentenceModel.state_dict`."""
    d, ffn = config.dim, config.ffn
    shapes: dict[str, tuple[int, ...]] = {PIECES: (config.rows, config.stored_dim)}
    if config.length_share:
        shapes[CHARACTERS] = (config.rows,)
    if not config.layers:
        return shapes
    shapes["positions.weight"] = (config.max_pieces, d)
    if config.bottleneck:
        shapes[BOTTLENECK] = (d, config.bottleneck)
    linear = {"qkv": (3 * d, d), "out": (d, d), "up": (ffn, d), "down": (d, ffn)}
    for i in range(config.own_layers):
        for name, shape in linear.items():
            shapes[f"layers.{i}.{name}.weight"] = shape
            shapes[f"layers.{i}.{name}.bias"] = shape[:1]
        for name in ("attention_norm", "ffn_norm"):
            shapes[f"layers.{i}.{name}.weight"] = shapes[f"layers.{i}.{name}.bias"] = (d,)
    shapes["norm.weight"] = shapes["norm.bias"] = (d,)
    return shapes


def write_weights(
    state: Mapping[str, np.ndarray], path: Path, *, dtype: str = "int8", ngrams: int = 0
) -> None:
    """Write float weights; BitextmineError for int4 with dimensions that do not fill bytes, or a full disk.

    dtype "float32"; "int8": piece vectors int8 with a scale per row, the rest float16; "int4": piece vectors by
    `pack_rows`, in two bits for n-grams (the last ``ngrams`` rows), the rest float16.
    """
    state = {name: np.ascontiguousarray(array) for name, array in state.items()}
    if dtype != "float32":
        vectors = state.pop(PIECES)
        for name in state.keys() - {CHARACTERS}:
            state[name] = state[name].astype(np.float16)
        pieces = vectors[: len(vectors) - ngrams]
        state[PIECES], state[SCALE] = quantize_rows(vectors) if dtype == "int8" else pack_rows(pieces)
        if dtype == "int4" and ngrams:
            state[NGRAMS], state[NGRAMS_SCALE] = pack_rows(vectors[-ngrams:], bits=2)
    # Through a file of our own: safetensors makes its files readable for their owner alone.
    with explained(f"{path}: cannot be written"):
        path.write_bytes(save(state))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file; raises BitextmineError if it is missing or damaged."""
    if not path.is_file():
        raise BitextmineError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    try:
        arrays: dict[str, np.ndarray] = load_file(path)
    # KeyError, AttributeError: a type that NumPy lacks; ValueError: a shape that it cannot have
    except (SafetensorError, OSError, TypeError, KeyError, AttributeError, ValueError) as e:
        raise BitextmineError(f"{path}: damaged, not a readable safetensors file ({e})") from e
    return arrays


def storage_of(path: Path) -> str:
    """Return how piece vectors are stored, as `write_weights` names it; BitextmineError for a damaged file."""
    table = read_arrays(path).get(PIECES, np.empty(0))
    return {"int8": "int8", "uint8": "int4"}.get(table.dtype.name, "float32")


def read_weights(config: EncoderConfig, path: Path) -> dict[str, np.ndarray]:
    """Read the weights of a model: piece vectors float32, or int8 with ``SCALE``; all others float32.

    Raises BitextmineError if the file is missing, damaged, holds NaN or does not fit the configuration.
    """
    state = read_arrays(path)
    packed = state.get(PIECES, np.empty(0)).dtype == np.uint8
    wanted = _stored(config, state.get(PIECES, np.empty(0)).dtype)
    shape = ", ".join(f"{key} {getattr(config, key)}" for key in ("dim", "layers", *OPTIONAL))
    for name in sorted(wanted.keys() | state.keys()):
        if name not in state:
            raise BitextmineError(f"{path}: no tensor {name!r}, which config.json ({shape}) calls for")
        if name not in wanted:
            raise BitextmineError(f"{path}: tensor {name!r} has no place in a model of {shape}")
        size, dtype = wanted[name]
        if state[name].shape != size:
            raise BitextmineError(
                f"{path}: {name!r} has shape {state[name].shape}, but config.json says {size}"
            )
        kind = state[name].dtype
        if kind != dtype if dtype else kind.kind != "f":
            raise BitextmineError(f"{path}: {name!r} is {kind}, not {dtype or 'a float'}")
    check_finite(state, path)
    if packed:
        _unpack(state, config)
    return state


def check_finite(state: dict[str, np.ndarray], path: Path) -> None:
    """Convert all but int8 and uint8 tensors to float32; raises BitextmineError for NaN and infinity."""
    for name, array in state.items():
        if array.dtype not in (np.int8, np.uint8):
            state[name] = array.astype(np.float32, copy=False)
            if not np.isfinite(state[name]).all():
                raise BitextmineError(f"{path}: {name!r} holds NaN or infinite values")


def _stored(config: EncoderConfig, kind: np.dtype) -> dict[str, tuple[tuple[int, ...], str | None]]:
    """Return the shape and the dtype (None: any float) of each tensor of a file with piece vectors of dtype `kind`."""
    kinds = {CHARACTERS: "uint8"}
    stored: dict[str, tuple[tuple[int, ...], str | None]] = {
        name: (shape, kinds.get(name)) for name, shape in weight_shapes(config).items()
    }
    if kind == np.int8:
        stored |= {PIECES: (stored[PIECES][0], "int8"), SCALE: ((config.rows,), None)}
    elif kind == np.uint8:
        for name, scale, rows, bits in (
            (PIECES, SCALE, config.vocab_size, 4),
            (NGRAMS, NGRAMS_SCALE, config.ngrams, 2),
        ):
            if rows:
                stored[name] = (rows, config.stored_dim * bits // 8), "uint8"
                stored[scale] = (rows, -(-config.stored_dim // GROUP)), None
    return stored
