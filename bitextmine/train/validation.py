"""P@1 on held-out pairs, while training goes on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.train.cache import PairCache
from bitextmine.train.forward import sentence_vectors
from bitextmine.train.recipe import Recipe

__all__ = ["validate"]


def validate(model: SentenceModel, caches: Sequence[PairCache], recipe: Recipe) -> dict[str, float]:
    """P@1 in per cent by cosine, mean of both directions, for each corpus' held-out pairs (the pool is all of
    them) and as the mean over corpora ("mean"). Corpora with fewer than 50 held-out pairs are left out: the
    pool would be too small to say anything."""
    was_training = model.training
    model.eval()
    found: dict[str, float] = {}
    with torch.inference_mode():
        for cache in caches:
            rows = cache.valid[: recipe.data.valid_pairs]
            if len(rows) < 50:
                continue
            vectors = [
                unit_vectors(
                    sentence_vectors(
                        model, cache.side(i).take(rows, recipe.model.max_pieces), recipe.train.batch_tokens
                    )
                )
                for i in (0, 1)
            ]
            similar = vectors[0] @ vectors[1].T
            keys = torch.from_numpy(np.asarray(cache.keys[:, rows]).astype(np.int64)).to(similar.device)
            right = torch.arange(len(rows), device=similar.device)
            hits = []
            for best, key in ((similar.argmax(1), keys[1]), (similar.argmax(0), keys[0])):
                # Another row with the very same sentence is as right as the row's own.
                hits.append(((best == right) | (key[best] == key)).float().mean().item())
            found[cache.corpus.name] = 50 * (hits[0] + hits[1])
    if found:
        found["mean"] = sum(found.values()) / len(found)
    model.train(was_training)
    return found
