"""Hard negatives: of a step's candidate pairs, those that the encoder as it is takes for the translations of others.

A batch is its own source of negatives, so that a hard negative is a pair that comes into the batch because of
another one. The choice rests on nothing but the weights and the number of the step: a run that is taken up anywhere
makes the same.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.training.forward import sentence_vectors
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.precision import layer_precision, product_precision
from bitextmine.training.recipe import Training
from bitextmine.training.sampling import Batch

__all__ = ["nearest_candidates", "with_hard_negatives"]

# Candidates looked at per pair: more than one, as pairs share their nearest, and some of those may not be taken.
RANKS = 8
BLOCK_ROWS = 512


def with_hard_negatives(
    model: SentenceModel, batch: Batch, training: Training, world: World = ALONE
) -> Batch:
    """The batch without its candidates but for the hardest, in place of as many as are missing from its pairs.

    ``batch.candidates`` of its rows, the last ones, are candidates. The model is in evaluation mode meanwhile. Of
    several processes each encodes a share, and the first one chooses for all.
    """
    if not batch.candidates:
        return batch
    n = len(batch)
    was_training = model.training
    model.eval()
    own = np.arange(n)[world.share(n)]
    with torch.no_grad():
        precision = layer_precision(training.autocast, world.device)
        src, tgt = (
            world.gather(
                unit_vectors(
                    sentence_vectors(model, side.take(own), training.batch_tokens, precision=precision)
                ),
                n,
            )
            for side in (batch.src, batch.tgt)
        )
        begin = n - batch.candidates
        chosen = nearest_candidates(
            src,
            tgt,
            batch.keys,
            begin,
            batch.wanted - begin,
            training.hard_limit,
            product_precision(training.precision, world.device),
        )
    model.train(was_training)
    chosen = world.tell(chosen)
    rows = np.concatenate([np.arange(begin), chosen])
    return dataclasses.replace(
        batch, src=batch.src.take(rows), tgt=batch.tgt.take(rows), keys=batch.keys[:, rows], candidates=0
    )


def nearest_candidates(
    src: Tensor,
    tgt: Tensor,
    keys: np.ndarray,
    begin: int,
    wanted: int,
    limit: float,
    precision: torch.dtype = torch.float32,
) -> np.ndarray:
    """Which ``wanted`` of the rows from ``begin`` on are the nearest to those before it: (wanted,) int64, no row twice.

    src, tgt: (n, d) float32, rows of length 1, row i of one the translation of row i of the other; keys (2, n), equal
    within a row of it where sentences are equal. How near candidate j is to pair i: the larger of cos(src_i, tgt_j)
    and cos(src_j, tgt_i). Not to be taken are a candidate that shares a sentence with one of the pairs or of the
    candidates before it, and one that is nearer than ``limit`` to any pair: it says the same, and would be a false
    negative. Of every pair's RANKS nearest the first is taken, in the order of the pairs, then the second, until there
    are enough; if there never are, those fill up that may be taken, then those that say the same, then the others.
    """
    n = len(src)
    new = np.ones(n - begin, dtype=bool)
    for side in keys:
        new &= ~np.isin(side[begin:], side[:begin])
        _, first = np.unique(side[begin:], return_index=True)
        new[np.setdiff1d(np.arange(n - begin), first)] = False
    low_src, low_tgt = src.to(precision), tgt.to(precision)
    old = torch.from_numpy(~new).to(src.device)
    nearest = src.new_full((n - begin,), -2.0)
    found, usable = [], []
    for start in range(0, begin, BLOCK_ROWS):
        block = slice(start, min(begin, start + BLOCK_ROWS))
        near = torch.maximum(low_src[block] @ low_tgt[begin:].T, low_tgt[block] @ low_src[begin:].T).float()
        near[:, old] = -2.0
        nearest = torch.maximum(nearest, near.amax(0))
        best = near.topk(min(RANKS, n - begin), dim=1)
        found.append(best.indices)
        usable.append(best.values > -2.0)
    same = (nearest > limit).cpu().numpy()
    order = torch.cat(found).T.reshape(-1).cpu().numpy()
    order = order[torch.cat(usable).T.reshape(-1).cpu().numpy() & ~same[order]]
    order = np.concatenate([order, *map(np.flatnonzero, (new & ~same, new & same, ~new))])
    _, first = np.unique(order, return_index=True)
    return begin + order[np.sort(first)[:wanted]].astype(np.int64)
