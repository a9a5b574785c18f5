"""A smaller encoder out of a mean-of-subwords one: its piece vectors turned and cut to fewer dimensions.

A sentence vector is a sum of piece vectors: turning the pieces turns the sentences, and nothing is trained again.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns.lengths import COLUMNS, piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, read_ngrams, resolve, write_folder
from bitextmine.encoder.weights import CHARACTERS, PIECES, STORAGES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.lines import iter_lines
from bitextmine.training.outputs import check_model_output, model_output

__all__ = ["Reduction", "principal_axes", "reduce_encoder", "with_norm_power"]


@dataclasses.dataclass(frozen=True)
class Reduction:
    """What the smaller encoder is to be.

    dim: numbers per sentence vector, with the columns for a sentence's length and for the order of its pieces.
    lines: sentences to read of each text. length_share: as model.length_share of a recipe; order_columns: how many of
    the dim tell where the pieces stand; order_weight: what these count. None leaves the three as they are (the weight
    is 0.5 for an encoder that had none). whiten: each axis is divided by the root mean square of the vectors along it
    to this power, 0 to 1. storage: of the piece vectors, one of STORAGES.
    """

    dim: int = 256
    lines: int = 100_000
    length_share: float | None = None
    order_columns: int | None = None
    order_weight: float | None = None
    whiten: float = 0.0
    storage: str = "int8"


def reduce_encoder(
    model: str | os.PathLike[str],
    texts: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    reduction: Reduction | None = None,
    *,
    errors: str = "strict",
    force: bool = False,
) -> float:
    """Writes the model folder ``out`` and returns which share of the squared length of sentence vectors it keeps.

    The new axes are the eigenvectors of the largest eigenvalues of the second moments of the vectors of the sentences
    of ``texts`` (an uncentred principal component analysis), so that of all projections this one keeps most of their
    cosines. As the axes come by their eigenvalues, the first ones serve best for the order. With ``whiten`` they are
    scaled, all the way as by Su et al. 2021 ("Whitening sentence representations for better semantics and faster
    retrieval"), but uncentred. force: a model in ``out`` may be written over.

    Raises UsageError for an encoder with layers and for a reduction that it has not the dimensions for;
    BitextmineError for files that cannot be read or written.
    """
    reduction = reduction or Reduction()
    name, place = os.fspath(model), Path(out)
    check_model_output(place, force)
    folder = resolve(model)
    config, tokenizer = read_folder(folder)
    made = _reduced(config, reduction, name)
    moments = np.zeros((config.piece_dim, config.piece_dim))
    encoder = load_encoder(folder)
    for text in texts:
        lines = (part for line in iter_lines(text, errors) for part in line.split("\t"))
        vectors = encoder.encode(list(itertools.islice(lines, reduction.lines)))[:, : config.piece_dim]
        moments += (vectors.T @ vectors).astype(np.float64)
    if not np.trace(moments) > 0:
        raise BitextmineError(
            f"{', '.join(str(text) for text in texts)}: no text; name files with sentences like those to be encoded"
        )
    axes, kept = principal_axes(moments, made.piece_dim, reduction.whiten)
    weights = {PIECES: piece_vectors(read_weights(config, folder / WEIGHTS)) @ axes}
    if made.length_share:
        weights[CHARACTERS] = piece_characters(tokenizer.pieces(), config.ngrams)
    ngrams = read_ngrams(folder, config.ngrams)
    with model_output(place, force) as filled:
        write_folder(filled, made, weights, folder / TOKENIZER, ngrams=ngrams, dtype=reduction.storage)
    return kept


def principal_axes(
    moments: NDArray[np.float64], dim: int, whiten: float = 0.0
) -> tuple[NDArray[np.float32], float]:
    """(d, dim) the eigenvectors of the largest eigenvalues of ``moments`` (d, d), the largest first, and their share of
    the sum of all.

    whiten: each is divided by the root of its eigenvalue to this power, scaled so that the first one stays. Where next
    to nothing is along an axis, a thousandth of the first counts: noise is not to be blown up.
    """
    values, axes = np.linalg.eigh(moments)
    values, axes = values[::-1], axes[:, ::-1][:, :dim]
    share = float(values[:dim].sum() / values.sum())
    if whiten:
        along = np.sqrt(np.maximum(values[:dim] / values[0], 1e-6))
        axes = axes * along**-whiten
    return axes.astype(np.float32), share


def with_norm_power(vectors: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """(n, d) float32: the same directions, with lengths raised to ``power`` and scaled so that the median of those
    above 0 stays; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    some = lengths > 0
    if not some.any():
        return vectors
    factor = np.power(lengths / np.median(lengths[some]), power - 1, out=np.ones_like(lengths), where=some)
    return vectors * factor


def _reduced(config: EncoderConfig, reduction: Reduction, name: str) -> EncoderConfig:
    """What the smaller encoder is; UsageError where there can be none."""
    share = config.length_share if reduction.length_share is None else reduction.length_share
    lengths = COLUMNS if share else 0
    order = config.order_columns if reduction.order_columns is None else reduction.order_columns
    weight = reduction.order_weight
    if weight is None:
        weight = config.order_weight or 0.5 if order else 0.0
    dim = reduction.dim - order - lengths
    if config.layers:
        raise UsageError(
            f"{name}: it has {counted(config.layers, 'layer')}; only encoders without layers can be reduced"
        )
    if order < 0:
        raise UsageError(f"--order-columns {order}: it must be at least 0")
    if not 0 <= reduction.whiten <= 1:
        raise UsageError(f"--whiten {reduction.whiten:g}: it must be from 0 to 1")
    if reduction.lines < 1:
        raise UsageError(f"--lines {reduction.lines}: it must be at least 1")
    if reduction.dim <= lengths:
        raise UsageError(
            f"--dim {reduction.dim}: {lengths} of them tell the length, which leaves none for the pieces; take a "
            "larger --dim, or --length-share 0"
        )
    if order > dim:
        # In proportion where the encoder had them all along; else as many as there can be.
        fewer = (reduction.dim - lengths) // 2
        if reduction.order_columns is None:
            fewer = min(fewer, order * reduction.dim // config.dim)
        raise UsageError(
            f"--dim {reduction.dim}: {order} for the order and {lengths} for the length leave {max(dim, 0)} for the "
            f"pieces, and the order needs as many there; take fewer, as --order-columns {fewer - fewer % 4}, or --dim "
            f"{2 * order + lengths}"
        )
    if dim > config.piece_dim:
        raise UsageError(
            f"--dim {reduction.dim}: {name} has of --dim at most {config.piece_dim} for the pieces; with {lengths} for "
            f"the length and {order} for the order take at most --dim {config.piece_dim + lengths + order}"
        )
    if reduction.storage not in STORAGES:
        raise UsageError(f"--storage {reduction.storage}: not one of {', '.join(STORAGES)}")
    if reduction.storage == "int4" and dim % 4:
        raise UsageError(f"--dim {reduction.dim}: in four bits a multiple of 4 for the pieces, found {dim}")
    try:
        return dataclasses.replace(
            config, dim=reduction.dim, length_share=share, order_columns=order, order_weight=weight
        )
    except BitextmineError as e:
        raise UsageError(str(e)) from None
