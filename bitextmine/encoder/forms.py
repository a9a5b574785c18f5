"""The two forms of an encoder: in one the nearest sentence is the translation, in the other cosines tell what is alike.

A sum of pieces can have both in one folder. The second has the vectors of the first, each times a factor, so that
pieces which tell little of what is meant count less, and turned to other axes, each scaled. It has no columns for order
and length: they find translations, and two sentences that mean the same need not be alike in either.
`MODEL:similarity` names it, `MODEL:translation` the first, which is what `MODEL` stands for, except where similarity is
measured.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.weights import PIECES, SCALE, quantize_rows, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing

__all__ = [
    "AXES",
    "FACTORS",
    "FORMS",
    "SIMILARITY",
    "SIMILARITY_FORM",
    "TRANSLATION_FORM",
    "form_hash",
    "no_similarity",
    "read_similarity",
    "refuse_form",
    "similarity_form",
    "split_form",
    "write_similarity",
]

TRANSLATION_FORM, SIMILARITY_FORM = FORMS = ("translation", "similarity")
SIMILARITY = "similarity.safetensors"  # in a model folder: what makes the second form of the first
AXES, FACTORS = "axes", "factors"

# Axes are worked with in whole numbers up to this, vectors of pieces in int8: sums of thousands of products are exact.
LEVELS = 32_767
BLOCK_ROWS = 8_192


def split_form(model: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], str]:
    """MODEL:FORM -> the model and one of FORMS; "" for a model without one. A folder that is called so wins."""
    text = os.fspath(model)
    name, colon, form = text.rpartition(":")
    if not (name and colon) or form not in FORMS or Path(text).is_dir():
        return model, ""
    return name, form


def refuse_form(text: str, before: str = "") -> None:
    """Raises BitextmineError for MODEL:FORM, where only MODEL will do; its message begins with ``before``."""
    plain, form = split_form(text)
    if form:
        raise BitextmineError(
            f"{before}{text}: here an encoder is taken as it lies in its folder; name {os.fspath(plain)}"
        )


def no_similarity(name: str) -> BitextmineError:
    """Says that an encoder has no form for similarity, and how it gets one."""
    return BitextmineError(
        f"{name}: has no form for similarity (no {SIMILARITY}); 'bitextmine encoder fit-similarity' makes one, and "
        "'bitextmine train' with similarity.steps in its recipe"
    )


def read_similarity(folder: Path, config: EncoderConfig) -> dict[str, np.ndarray]:
    """What makes the second form of the encoder in ``folder``: AXES (piece_dim, d) and FACTORS (rows,), float32.

    Raises BitextmineError for a folder without, and for a file that does not go with the encoder.
    """
    path = folder / SIMILARITY
    if not path.is_file():
        raise no_similarity(folder.name)
    if config.layers:
        raise BitextmineError(
            f"{path}: the encoder has layers; only sums of pieces have a form for similarity"
        )
    arrays = read_arrays(path)
    if sorted(arrays) != [AXES, FACTORS]:
        raise BitextmineError(f"{path}: expected {AXES} and {FACTORS}, found {', '.join(arrays)}")
    found = {name: array.astype(np.float32) for name, array in arrays.items()}
    axes, factors = found[AXES], found[FACTORS]
    if (
        axes.ndim != 2
        or len(axes) != config.piece_dim
        or not axes.shape[1]
        or factors.shape != (config.rows,)
    ):
        raise BitextmineError(
            f"{path}: {AXES} {axes.shape} and {FACTORS} {factors.shape} are of another encoder: this one has "
            f"{config.rows} vectors of {config.piece_dim} numbers"
        )
    if not all(np.isfinite(array).all() for array in found.values()):
        raise BitextmineError(f"{path}: holds NaN or infinite values")
    return found


def write_similarity(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes what `read_similarity` reads, in float16. OSError passes through."""
    with replacing(folder / SIMILARITY) as file:
        file.write(save({name: np.ascontiguousarray(array, np.float16) for name, array in arrays.items()}))


def similarity_form(
    config: EncoderConfig, weights: Mapping[str, np.ndarray], made_of: Mapping[str, np.ndarray]
) -> tuple[EncoderConfig, dict[str, np.ndarray]]:
    """The second form as an encoder of its own: its configuration, and its weights as `read_weights` has them, in int8.

    config, weights: of the first form, without layers; made_of: as `read_similarity` has it.
    """
    axes, factors = made_of[AXES], made_of[FACTORS]
    values, scale = (weights[PIECES], weights[SCALE]) if SCALE in weights else quantize_rows(weights[PIECES])
    # Products of whole numbers add up exactly in float64, so that all machines make the same vectors.
    step = np.maximum(np.abs(axes).max(axis=0), np.finfo(np.float32).tiny) / np.float32(LEVELS)
    whole = np.rint(axes / step).astype(np.float64)
    found = np.empty((len(values), axes.shape[1]), dtype=np.int8)
    found_scale = np.empty(len(values), dtype=np.float32)
    for start in range(0, len(values), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        products = (values[block].astype(np.float64) @ whole).astype(np.float32)
        found[block], found_scale[block] = quantize_rows(products * step)
    found_scale *= scale * factors
    made = dataclasses.replace(config, dim=axes.shape[1], order_columns=0, order_weight=0.0, length_share=0.0)
    return made, {PIECES: found, SCALE: found_scale}


def form_hash(first: str, folder: Path) -> str:
    """16 hex digits, of the hash of the first form and of what makes the second of it."""
    try:
        content = (folder / SIMILARITY).read_bytes()
    except OSError as e:
        raise BitextmineError(f"{folder / SIMILARITY}: cannot be read: {e.strerror}") from e
    return hashlib.sha256(first.encode() + b"\0" + hashlib.sha256(content).digest()).hexdigest()[:16]
