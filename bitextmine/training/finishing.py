"""The last step of a training run: the model as it is saved, cut where its recipe says so."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

import numpy as np
import torch

from bitextmine.console import progress
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.weights import PIECES
from bitextmine.training.forward import sentence_vectors
from bitextmine.training.frequencies import sample_pieces
from bitextmine.training.reducing import principal_axes, with_norm_power
from bitextmine.training.run import Run
from bitextmine.training.spelling import finished

__all__ = ["finished_model"]

SENTENCES = 20_000


def finished_model(
    run: Run, *, show_progress: bool | None = None
) -> tuple[EncoderConfig, Mapping[str, np.ndarray]]:
    """What is to be saved of a run: its configuration and its weights, as `write_folder` takes them. show_progress:
    None asks whether anybody watches."""
    model = finished(run.model)
    weights = {name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}
    plan = run.recipe.reduce
    if plan.norm_power != 1:
        weights[PIECES] = with_norm_power(weights[PIECES], plan.norm_power)
        model = copy.deepcopy(model)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    if not plan.dim:
        return model.config, weights
    made = dataclasses.replace(
        model.config,
        dim=plan.dim,
        order_columns=plan.order_columns,
        order_weight=plan.order_weight if plan.order_columns else 0.0,
    )
    axes, _ = principal_axes(_moments(run, model, show_progress), made.piece_dim)
    return made, {**weights, PIECES: weights[PIECES] @ axes}


def _moments(run: Run, model: SentenceModel, show_progress: bool | None) -> np.ndarray:
    """(d, d) float64: the second moments of the vectors of the sentences trained on, corpora as they were drawn."""
    model.to(run.world.device).eval()
    dim = model.config.piece_dim
    moments = np.zeros((dim, dim))
    with progress(len(run.caches), "cut", "corpora", show_progress) as bar:
        for sides, weight in sample_pieces(run.caches, run.recipe.reduce.pairs):
            for side in sides:
                pieces = run.ngrams.extend(side) if run.ngrams else side
                for begin in range(0, len(pieces), SENTENCES):
                    part = pieces.take(np.arange(begin, min(begin + SENTENCES, len(pieces))))
                    with torch.no_grad():
                        vectors = sentence_vectors(model, part, run.recipe.train.batch_tokens)
                    units = unit_vectors(vectors[:, :dim])
                    moments += weight * (units.T @ units).cpu().numpy().astype(np.float64)
            bar.update(1)
    return moments
