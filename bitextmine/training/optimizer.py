"""The optimiser and its learning rate schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from bitextmine.encoder.model import SentenceModel
from bitextmine.training.recipe import Training


def layer_parameters(model: SentenceModel, objectives: nn.Module) -> list[nn.Parameter]:
    """Return all learned parameters except the piece vectors; those that objectives share come once."""
    rest = [p for name, p in model.named_parameters() if not name.startswith("embedding.")]
    return rest + list(objectives.parameters())


def make_optimizer(model: SentenceModel, objectives: nn.Module, training: Training) -> torch.optim.Optimizer:
    """Return AdamW; piece vectors have a learning rate of their own, and only matrices of the layers decay."""
    groups: list[dict[str, object]] = [
        {
            "params": list(model.embedding.parameters()),
            "peak": training.embedding_learning_rate,
            "weight_decay": 0.0,
        }
    ]
    rest = layer_parameters(model, objectives)
    for decay, params in (
        (training.weight_decay, [p for p in rest if p.ndim > 1]),
        (0.0, [p for p in rest if p.ndim <= 1]),
    ):
        if params:
            groups.append({"params": params, "peak": training.learning_rate, "weight_decay": decay})
    return torch.optim.AdamW(groups, lr=training.learning_rate, fused=True)


def rate_share(step: int, steps: int, training: Training) -> float:
    """Return the learning rate at ``step`` (from 0) as a share of the peak: linear warm-up, then the schedule.

    cosine (half a period) and linear reach the floor with the last step; inverse-sqrt is sqrt(warm-up / step), as in
    Vaswani et al. 2017, and stays above the floor.
    """
    warmup = max(1, round(training.warmup * steps))
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    if training.schedule == "inverse-sqrt":
        return max(training.floor, math.sqrt(warmup / (step + 1)))
    if training.schedule == "cosine":
        return falling(1.0, training.floor, progress)
    left = 1 - progress if training.schedule == "linear" else 1.0
    return training.floor + (1 - training.floor) * left


def falling(top: float, floor: float, progress: float) -> float:
    """Fall from `top` to `floor` as half a period of a cosine while `progress` goes from 0 to 1."""
    return floor + (top - floor) * 0.5 * (1 + math.cos(math.pi * progress))


def set_rates(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Set the learning rate of each group to ``share`` of its peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share
