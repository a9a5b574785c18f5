"""The margins of noise: the probability that a pair is true, estimated from the corpora themselves.

A line with a translation shows how noise scores: remove the pair (the neighbour leaves both neighbourhoods, the next
one moves up), and mine again. So each line has two scores, s1 with its pair and s2 without:

    s1 = a mixture: with share pi from true pairs, with share 1 - pi from noise
    s2 = noise, for lines whose pair was true; less than noise, for lines whose pair was noise itself

Lines of the second kind must count with s1, not s2 (which alone makes the estimate two to ten times too low). They
are found by expectation-maximisation on a histogram, with p(s) the probability that a pair of score s is true:

    noise = every line with weight 1 - p at its s1 and weight p at its s2
    1 - pi = the number of lines with low scores, where true pairs are rare, over the number by noise alone
    p(s) = 1 - (1 - pi) noise(s) / observed(s), made monotone in s
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.calibration import Removed
from bitextmine.mining.margin import LOG_ODDS, BestBothWays, candidates
from bitextmine.mining.options import MiningOptions, Retrieval
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.threshold import Estimate
from bitextmine.search.neighbours import Neighbours

# Scores candidates anew: takes them, the neighbours, and how many of these count (see `scorer`).
Rescore = Callable[[BestBothWays, Neighbours, int], BestBothWays]
# Fewer lines than this give no rate of a few percent.
MIN_LINES = 200

_FOLDS = 5
_ENOUGH = 20_000  # removed pairs that show the noise of a scorer
_SEED = 1  # of the folds
_BINS = 150
_LOW = 0.5
_ROUNDS = 300
_NOTHING = -np.inf  # the score of a line without a pair


def without_pairs(neighbours: Neighbours, pairs: ScoredPairs, k: int) -> Neighbours:
    """Return the k nearest neighbours as if these one-to-one pairs were not neighbours of each other.

    Needs k + 1 columns: where a pair goes, the next neighbour moves up.
    """
    forward = _closed_up(neighbours.fwd_sim, neighbours.fwd_id, pairs.src, pairs.tgt, k)
    return Neighbours(*forward, *_closed_up(neighbours.bwd_sim, neighbours.bwd_id, pairs.tgt, pairs.src, k))


def _closed_up(
    sim: NDArray[Any], ids: NDArray[Any], own: NDArray[np.int64], other: NDArray[np.int64], k: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    new_sim, new_ids = sim[:, :k].copy(), ids[:, :k].copy()
    sim, ids = sim[own, : k + 1], ids[own, : k + 1]
    gone = ids == other[:, None]
    order = np.argsort(gone, axis=1, kind="stable")[:, :k]  # what goes stands last
    new_sim[own] = np.take_along_axis(np.where(gone, -np.inf, sim), order, axis=1)
    new_ids[own] = np.take_along_axis(np.where(gone, -1, ids), order, axis=1)
    return new_sim, new_ids


def fit_mixture(
    s1: NDArray[np.float64], s2: NDArray[np.float64]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Tell true pairs from noise, as the module describes; return the probability that a pair is true, by its score.

    s1 and s2 (n,) are the best score of each line with its pair and without, -inf for none.
    """
    both = np.concatenate([s1, s2])
    finite = both[np.isfinite(both)]
    edges = _edges(finite) if len(finite) else np.zeros(1)
    bins = len(edges) + 1
    if bins < 4:  # a handful of different scores tells nothing
        return lambda score: np.zeros(len(score))
    b1 = np.searchsorted(edges, s1, side="right")
    b2 = np.searchsorted(edges, s2, side="right")
    observed = np.bincount(b1, minlength=bins).astype(np.float64)
    moves = np.bincount(b1 * bins + b2, minlength=bins * bins).reshape(bins, bins).astype(np.float64)
    true = _iterate(observed, moves)
    return lambda score: true[np.searchsorted(edges, score, side="right")]


def _iterate(observed: NDArray[np.float64], moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fixed point of p (bins,), the share of true pairs in each bin; it never falls.

    Args:
        observed: lines by the bin of s1.
        moves: lines by the bins of s1 and s2.
    """
    n, p = observed.sum(), np.ones(len(observed))
    weight = np.maximum(observed, 1e-9)
    for _ in range(_ROUNDS):
        noise = observed * (1 - p) + p @ moves
        cumulative = np.cumsum(noise) / n
        low = max(1, int(np.searchsorted(cumulative, _LOW)))
        share = min(1.0, float(observed[:low].sum() / max(noise[:low].sum(), 1e-9)))
        new = 1 - np.clip(_falling(share * noise / weight, weight), 0, 1)
        change = float(np.abs(new - p) @ observed) / n
        p = new
        if change < 1e-6:
            break
    return p


def _edges(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of bins with equal counts, and of ever smaller bins at the top, where true pairs may stand out."""
    bins = min(_BINS, max(5, len(scores) // 40))
    top = np.geomspace(0.1, min(0.05, 10 / len(scores)), bins)
    return np.unique(np.quantile(scores, np.concatenate([np.linspace(0, 0.9, bins + 1)[1:], 1 - top])))


def _falling(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest sequence that never rises, by weighted least squares (pool adjacent violators)."""
    pooled: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while pooled and pooled[-1][0] <= block[0]:
            v, w, c = pooled.pop()
            total = w + block[1]
            block = ((v * w + block[0] * block[1]) / total, total, c + block[2])
        pooled.append(block)
    return np.repeat([v for v, _, _ in pooled], [c for _, _, c in pooled])


def counts_source(n: int, m: int, retrieval: str) -> bool:
    """Return True if rates are per source line, not per target line, of corpora of n and m lines."""
    return retrieval == Retrieval.FORWARD or (retrieval != Retrieval.BACKWARD and n <= m)


def fit_null(neighbours: Neighbours, best: BestBothWays, options: MiningOptions) -> Estimate:
    """Return the pair's margin of each line, and the probability that it is true, as the module describes.

    Lines are source lines for ``forward``, target lines for ``backward``, else those of the shorter side. The
    neighbours have at least k + 1 columns, and `best` are their `candidates`.
    """
    k, margin, retrieval = options.k, options.margin, options.retrieval
    n, m = len(best.forward.id), len(best.backward.id)
    by_source = counts_source(n, m, retrieval)
    lines, end = (n, "src") if by_source else (m, "tgt")

    def scores(both: BestBothWays) -> NDArray[np.float64]:
        return (both.forward if by_source else both.backward).score

    with_pair = scores(best)
    without = with_pair.copy()
    for gone, _, again in without_folds(retrieve(best, Retrieval.MAX), neighbours, k, margin):
        ends = getattr(gone, end)
        without[ends] = scores(again)[ends]
    score = _best_of_lines(retrieve(best, retrieval, margin), end, lines)
    true = fit_mixture(with_pair, without)(score)
    order = np.argsort(-score, kind="stable")
    order = order[score[order] > _NOTHING]
    return Estimate(score[order], true[order], lines, "source" if by_source else "target")


def _best_of_lines(pairs: ScoredPairs, end: str, lines: int) -> NDArray[np.float64]:
    """Return the score of the best pair of each line of a side ("src" or "tgt"), -inf for none."""
    scores = np.full(lines, _NOTHING)
    scores[getattr(pairs, end)[::-1]] = pairs.score[::-1]  # the best comes first, so backwards it stays
    return scores


def without_folds(
    pairs: ScoredPairs, neighbours: Neighbours, k: int, margin: str
) -> Iterator[tuple[ScoredPairs, Neighbours, BestBothWays]]:
    """Yield each fold of one-to-one pairs, the neighbours without the fold, and their candidates by margin."""
    fold = np.random.default_rng(_SEED).integers(0, _FOLDS, len(pairs))
    for number in range(_FOLDS):
        gone = pairs.take(fold == number)
        left = without_pairs(neighbours, gone, k)
        yield gone, left, candidates(left, k, margin)


def removed(
    pairs: ScoredPairs, neighbours: Neighbours, k: int, margin: str, rescore: Rescore
) -> tuple[Removed, ...]:
    """Remove one-to-one pairs, a fifth at a time, and return what their lines score then, for both sides.

    Stops when enough pairs have been removed.
    """
    sides = {"src": len(neighbours.fwd_id), "tgt": len(neighbours.bwd_id)}
    own = [np.empty(0)]
    after = {end: [np.empty(0)] for end in sides}
    for gone, left, again in without_folds(pairs, neighbours, k, margin):
        retrieved = retrieve(rescore(again, left, k), Retrieval.MAX, LOG_ODDS)
        own.append(gone.score)
        for end, lines in sides.items():
            after[end].append(_best_of_lines(retrieved, end, lines)[getattr(gone, end)])
        if sum(map(len, own)) >= _ENOUGH:
            break
    return tuple(
        Removed(np.concatenate(own), np.concatenate(after[end]), lines) for end, lines in sides.items()
    )
