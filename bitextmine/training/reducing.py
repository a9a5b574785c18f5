"""Reduce an encoder without layers to fewer dimensions, at the end of its training.

A sentence vector is a sum of piece vectors: rotating the pieces rotates the sentences, and nothing is trained again.
"""

import copy
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.weights import PIECES
from bitextmine.run import Run
from bitextmine.training.data.sampling import sample_pieces
from bitextmine.training.model.forward import sentence_vectors
from bitextmine.training.model.spelling import finished
from bitextmine.training.steps import TrainingRun

SENTENCES = 20_000
# Pairs of each corpus that the principal axes are computed from.
PAIRS = 5_000


def principal_axes(moments: NDArray[np.float64], dim: int) -> NDArray[np.float32]:
    """Return the eigenvectors (d, dim) of the largest eigenvalues of ``moments`` (d, d)."""
    _, axes = np.linalg.eigh(moments)
    return axes[:, ::-1][:, :dim].astype(np.float32)


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


def finished_model(training: TrainingRun, run: Run) -> tuple[EncoderConfig, Mapping[str, np.ndarray]]:
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
    axes = principal_axes(_moments(training, model, run), made.piece_dim)
    return made, {**weights, PIECES: weights[PIECES] @ axes}


def _moments(training: TrainingRun, model: SentenceModel, run: Run) -> np.ndarray:
    """Return (d, d) float64, the second moments of the training sentences' vectors, corpora weighted as drawn."""
    model.to(training.device).eval()
    dim = model.config.piece_dim
    moments = np.zeros((dim, dim))
    with run.progress(len(training.caches), "cut", "corpora") as bar:
        for sides, weight in sample_pieces(training.caches, PAIRS):
            for side in sides:
                pieces = training.ngrams.extend(side) if training.ngrams else side
                for begin in range(0, len(pieces), SENTENCES):
                    part = pieces.take(np.arange(begin, min(begin + SENTENCES, len(pieces))))
                    with torch.no_grad():
                        vectors = sentence_vectors(model, part)
                    units = unit_vectors(vectors[:, :dim])
                    moments += weight * (units.T @ units).cpu().numpy().astype(np.float64)
            bar.update(1)
    return moments
