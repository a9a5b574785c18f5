"""Reduce encoders without layers to fewer dimensions, at the end of a training or afterwards.

A sentence vector is a sum of piece vectors: rotating the pieces rotates the sentences, and nothing is trained again.
"""

import copy
import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, read_ngrams, resolve, write_folder
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.weights import CHARACTERS, PIECES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.source import Source
from bitextmine.run import Run
from bitextmine.training.data.sampling import sample_pieces
from bitextmine.training.model.forward import sentence_vectors
from bitextmine.training.model.spelling import finished
from bitextmine.training.options import Reduction
from bitextmine.training.outputs import check_model_output, model_output
from bitextmine.training.training_run import TrainingRun

SENTENCES = 20_000
# Pairs of each corpus that the principal axes are computed from.
PAIRS = 5_000


def principal_axes(moments: NDArray[np.float64], dim: int) -> tuple[NDArray[np.float32], float]:
    """Return the eigenvectors (d, dim) of the largest eigenvalues of ``moments`` (d, d), and their share of the sum."""
    values, axes = np.linalg.eigh(moments)
    values, axes = values[::-1], axes[:, ::-1][:, :dim]
    return axes.astype(np.float32), float(values[:dim].sum() / values.sum())


def with_norm_power(vectors: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """Return vectors (n, d) with norms raised to ``power``, scaled to keep the median of the norms above 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    nonzero = lengths > 0
    if not nonzero.any():
        return vectors
    factor = np.power(
        lengths / np.median(lengths[nonzero]), power - 1, out=np.ones_like(lengths), where=nonzero
    )
    return vectors * factor


# --- at the end of a training --------------------------------------------------------------------------------


def finished_model(
    training: TrainingRun, run: Run | None = None
) -> tuple[EncoderConfig, Mapping[str, np.ndarray]]:
    """Return the configuration and the weights to save, reduced as the recipe says."""
    model = finished(training.model)
    weights = {name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}
    plan = training.recipe.reduce
    if plan.norm_power != 1:
        weights[PIECES] = with_norm_power(weights[PIECES], plan.norm_power)
        model = copy.deepcopy(model)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    made = plan.applied(model.config)
    if not plan.dim:
        return made, weights
    axes, _ = principal_axes(_moments(training, model, run or Run()), made.piece_dim)
    return made, {**weights, PIECES: weights[PIECES] @ axes}


def _moments(training: TrainingRun, model: SentenceModel, run: Run) -> np.ndarray:
    """Return (d, d) float64, the second moments of the training sentences' vectors, corpora weighted as drawn."""
    model.to(training.world.device).eval()
    dim = model.config.piece_dim
    moments = np.zeros((dim, dim))
    with run.progress(len(training.caches), "cut", "corpora") as bar:
        for sides, weight in sample_pieces(training.caches, PAIRS):
            for side in sides:
                pieces = training.ngrams.extend(side) if training.ngrams else side
                for begin in range(0, len(pieces), SENTENCES):
                    part = pieces.take(np.arange(begin, min(begin + SENTENCES, len(pieces))))
                    with torch.no_grad():
                        vectors = sentence_vectors(model, part, training.recipe.train.batch_tokens)
                    units = unit_vectors(vectors[:, :dim])
                    moments += weight * (units.T @ units).cpu().numpy().astype(np.float64)
            bar.update(1)
    return moments


# --- of an existing encoder ----------------------------------------------------------------------------------


def reduce_encoder(
    model: str | os.PathLike[str],
    texts: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    reduction: Reduction | None = None,
    run: Run | None = None,
    *,
    force: bool = False,
) -> float:
    """Write the model folder ``out``, and return the share kept of the squared length of the sentence vectors.

    The new axes are the eigenvectors of the largest eigenvalues of the second moments of the vectors of the sentences
    in ``texts`` (an uncentred principal component analysis), which best keep cosines; the first ones serve best for
    the order.

    Raises:
        UsageError: the encoder has layers, or too few dimensions for the reduction.
        BitextmineError: a file cannot be read or written.
    """
    reduction, run = reduction or Reduction(), run or Run()
    name, place = os.fspath(model), Path(out)
    check_model_output(place, force)
    folder = resolve(model)
    config, tokenizer = read_folder(folder)
    made = _reduced(config, reduction, name)
    moments = np.zeros((config.piece_dim, config.piece_dim))
    encoder = load_encoder(folder)
    for text in texts:
        lines = (part for line in Source.of(text, run).lines() for part in line.split("\t"))
        vectors = encoder.encode(list(itertools.islice(lines, reduction.lines)))[:, : config.piece_dim]
        moments += (vectors.T @ vectors).astype(np.float64)
    if not np.trace(moments) > 0:
        raise BitextmineError(
            f"{', '.join(str(text) for text in texts)}: no text; name files with sentences like those to be encoded"
        )
    axes, kept = principal_axes(moments, made.piece_dim)
    weights = {PIECES: piece_vectors(read_weights(config, folder / WEIGHTS)) @ axes}
    if made.length_share:
        weights[CHARACTERS] = piece_characters(tokenizer.pieces(), config.ngrams)
    ngrams = read_ngrams(folder, config.ngrams)
    with model_output(place, force) as filled:
        write_folder(filled, made, weights, folder / TOKENIZER, ngrams=ngrams, dtype=reduction.storage)
    return kept


def _reduced(config: EncoderConfig, reduction: Reduction, name: str) -> EncoderConfig:
    """Return the configuration of the smaller encoder; UsageError if it is impossible."""
    if config.layers:
        layers = counted(config.layers, "layer")
        raise UsageError(f"{name}: it has {layers}; only encoders without layers can be reduced")
    given = {key: getattr(reduction, key) for key in ("length_share", "order_columns", "order_weight")}
    shape = {key: getattr(config, key) if value is None else value for key, value in given.items()}
    if reduction.order_weight is None:
        shape["order_weight"] = config.order_weight or 0.5 if shape["order_columns"] else 0.0
    try:
        made = dataclasses.replace(config, dim=reduction.dim, **shape)
    except BitextmineError as e:
        raise UsageError(
            f"--dim {reduction.dim}: {e}; take a larger --dim, or fewer columns (--order-columns, --length-share 0)"
        ) from None
    if made.piece_dim > config.piece_dim:
        most = config.piece_dim + made.dim - made.piece_dim
        raise UsageError(
            f"--dim {reduction.dim}: {name} has {config.piece_dim} columns for the pieces; take at most --dim {most}"
        )
    if reduction.storage == "int4" and made.piece_dim % 4:
        raise UsageError(
            f"--dim {reduction.dim}: int4 needs a multiple of 4 columns for the pieces, found {made.piece_dim}"
        )
    return made
