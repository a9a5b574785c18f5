"""P@1 on held-out pairs, while training goes on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.training.cache import PairCache
from bitextmine.training.forward import sentence_vectors
from bitextmine.training.recipe import Recipe
from bitextmine.training.sampling import with_ngrams

__all__ = ["SMALLEST_POOL", "is_measured", "validate"]

# Among fewer pairs P@1 would say nothing.
SMALLEST_POOL = 50


def is_measured(cache: PairCache) -> bool:
    """Whether a corpus has enough held-out pairs."""
    return len(cache.valid) >= SMALLEST_POOL


def validate(
    model: SentenceModel, caches: Sequence[PairCache], recipe: Recipe, ngrams: Ngrams | None = None
) -> dict[str, float]:
    """P@1 in per cent by cosine, mean of both directions, for each corpus' held-out pairs (the pool is all of
    them) and as the mean over corpora ("mean"). Corpora with fewer than SMALLEST_POOL held-out pairs are left out.
    The model is in evaluation mode meanwhile, without dropout."""
    was_training = model.training
    model.eval()
    found: dict[str, float] = {}
    with torch.inference_mode():
        for cache in caches:
            if not is_measured(cache):
                continue
            pairs = cache.valid.take(np.arange(len(cache.valid)), recipe.model.max_pieces)
            sides = [with_ngrams(side, ngrams, recipe.model.max_pieces) for side in (pairs.src, pairs.tgt)]
            vectors = [
                unit_vectors(sentence_vectors(model, side, recipe.train.batch_tokens)) for side in sides
            ]
            similar = vectors[0] @ vectors[1].T
            keys = torch.from_numpy(pairs.keys.astype(np.int64)).to(similar.device)
            right = torch.arange(len(pairs), device=similar.device)
            hits = []
            for best, key in ((similar.argmax(1), keys[1]), (similar.argmax(0), keys[0])):
                # Another row with the very same sentence is as right as the row's own.
                hits.append(((best == right) | (key[best] == key)).float().mean().item())
            found[cache.corpus.name] = 50 * (hits[0] + hits[1])
    if found:
        found["mean"] = sum(found.values()) / len(found)
    model.train(was_training)
    return found
