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
from bitextmine.train.forward import sentence_vectors
from bitextmine.train.objectives.views import ALONE
from bitextmine.train.parallel import World
from bitextmine.train.precision import layer_precision, product_precision
from bitextmine.train.recipe import Training
from bitextmine.train.sampling import Batch

__all__ = ["nearest_candidates", "with_hard_negatives"]

# Candidates looked at per pair; the batch rarely needs more than the first, unless pairs share their nearest.
RANKS = 4
BLOCK_ROWS = 512


def with_hard_negatives(
    model: SentenceModel, batch: Batch, training: Training, world: World = ALONE
) -> Batch:
    """The batch without its candidates but for the hardest, in place of as many as are missing from its pairs.

    ``batch.candidates`` of its rows, the last ones, are candidates. The model is in evaluation mode meanwhile. Of
    several processes each encodes a share, and all choose the same.
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
                unit_vectors(sentence_vectors(model, side.take(own), training.batch_tokens, precision=precision)), n
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
            product_precision(training.precision),
        )
    model.train(was_training)
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
    and cos(src_j, tgt_i), and not at all if that is above ``limit`` (j then says the same, and would be a false
    negative) or if they share a sentence. Every pair has its nearest candidate taken, in the order of the pairs, then
    its second nearest, up to RANKS, until there are enough; if there never are, the first not taken fill up.
    """
    n = len(src)
    low_src, low_tgt = src.to(precision), tgt.to(precision)
    ranks = min(RANKS, n - begin)
    found, usable = [], []
    on_device = torch.from_numpy(keys.astype(np.int64)).to(src.device)
    for start in range(0, begin, BLOCK_ROWS):
        block = slice(start, min(begin, start + BLOCK_ROWS))
        near = torch.maximum(low_src[block] @ low_tgt[begin:].T, low_tgt[block] @ low_src[begin:].T).float()
        near[near > limit] = -2.0
        for side in on_device:
            near[side[block, None] == side[None, begin:]] = -2.0
        best = near.topk(ranks, dim=1)
        found.append(best.indices)
        usable.append(best.values > -2.0)
    order = torch.cat(found).T.reshape(-1).cpu().numpy()
    order = order[torch.cat(usable).T.reshape(-1).cpu().numpy()]
    order = np.concatenate([order, np.arange(n - begin)])
    _, first = np.unique(order, return_index=True)
    return begin + order[np.sort(first)[:wanted]].astype(np.int64)
