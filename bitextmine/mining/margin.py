"""Margin scores (Artetxe and Schwenk, 2019): how far a pair stands out from its neighbourhood.

score(x, y) = margin(cos(x, y), (mean_k cos(x, NN_k(x)) + mean_k cos(y, NN_k(y))) / 2), where NN_k(x) are
the k nearest neighbours of x in the other language; the candidate itself counts when it is one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mining.choices import Margin

__all__ = ["LOG_ODDS", "MARGINS", "NEUTRAL", "RATIO_FLOOR", "Margin", "margin", "neighbourhood_mean"]


MARGINS = tuple(Margin)
# The kind of score that `scorer` gives instead of a margin.
LOG_ODDS = "log-odds"

# The score of a pair that does not stand out from its neighbourhood, or is as likely true as not.
NEUTRAL: dict[str, float] = {Margin.RATIO: 1.0, Margin.DISTANCE: 0.0, Margin.ABSOLUTE: 0.0, LOG_ODDS: 0.0}

# A neighbourhood nearer to zero than this says nothing (the noise of a mean of cosines at d = 256 is larger),
# and dividing by it would put noise above every true pair, or flip the order where it is negative.
RATIO_FLOOR = 0.01


def neighbourhood_mean(sim: ArrayLike, ids: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the mean similarity of each row's neighbours: (n, k) -> float64 (n,).

    Missing neighbours (id below 0, or a similarity that is not finite, or below -1e30 as FAISS marks an
    empty slot) do not count: the mean runs over those that exist. A row without any gets NaN, which
    `margin` reads as "unknown". The sum runs in float64, so float16 input cannot overflow.
    """
    sim = np.asarray(sim)
    if sim.dtype == np.float16:
        sim = sim.astype(np.float32)
    if sim.ndim != 2:
        raise BitextmineError(
            f"neighbourhood: expected rows of similarities (2 dimensions), found {sim.ndim}"
        )
    there = np.isfinite(sim) & (sim > -1e30)
    if ids is not None:
        ids = np.asarray(ids)
        if ids.shape != sim.shape:
            raise BitextmineError(f"neighbourhood: {sim.shape} similarities but {ids.shape} ids")
        if (np.isnan(sim) & (ids >= 0)).any():
            raise BitextmineError("neighbourhood: a similarity is NaN; embed the corpora again")
        there &= ids >= 0
    elif np.isnan(sim).any():
        raise BitextmineError("neighbourhood: a similarity is NaN; embed the corpora again")
    count = there.sum(axis=1)
    total = np.where(there, sim, 0).sum(axis=1, dtype=np.float64)
    return np.divide(total, count, out=np.full(len(sim), np.nan), where=count > 0)


def margin(
    cos: ArrayLike, mean_src: ArrayLike, mean_tgt: ArrayLike, kind: str = Margin.RATIO
) -> NDArray[np.float64]:
    """Return the margin of each pair, float64, of the shape that the arguments broadcast to.

    With b the average of the two neighbourhood means: ``ratio`` is cos / b, ``distance`` cos - b,
    ``absolute`` cos. A mean that is NaN (no neighbour was found on that side) counts as the pair's own
    cosine, because the pair itself would be the one known neighbour.

    Where b is below RATIO_FLOOR (0.01), negative means included, ``ratio`` is cos / RATIO_FLOOR: finite,
    always of the sign of the cosine, and never falling when the cosine rises, so that two negative numbers
    cannot make a good score. A missing candidate (similarity -inf) scores -inf.

    Raises:
        BitextmineError: the kind is unknown, or a cosine is NaN.
    """
    if kind not in MARGINS:
        raise BitextmineError(f"margin: unknown kind {kind!r}; choose one of {', '.join(MARGINS)}")
    a = np.asarray(cos, dtype=np.float64)
    if np.isnan(a).any():
        raise BitextmineError("margin: a cosine is NaN; embed the corpora again")
    src = np.asarray(mean_src, dtype=np.float64)
    tgt = np.asarray(mean_tgt, dtype=np.float64)
    if kind == Margin.ABSOLUTE:
        return np.array(np.broadcast_to(a, np.broadcast_shapes(a.shape, src.shape, tgt.shape)))
    b = (np.where(np.isnan(src), a, src) + np.where(np.isnan(tgt), a, tgt)) / 2
    with np.errstate(invalid="ignore"):  # -inf - -inf, where there is no candidate
        score = a / np.maximum(b, RATIO_FLOOR) if kind == Margin.RATIO else a - b
    return np.where(np.isneginf(a), -np.inf, score)
