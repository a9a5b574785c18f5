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

Where translations are rare, a histogram of free shape does not determine p: "all pairs are true" and "all are noise"
both reproduce themselves. So the upper half of noise gets the shape of decoys, fitted to its 50% and 80% points. Decoys
are the best wrong pairs within one language: a corpus mined against itself, without each sentence's own row. This is
target-decoy search (Elias and Gygi, 2007). They show the near-paraphrases of a text, and their margins follow those of
wrong pairs across languages up to a shift and a scale (`Decoys.above`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.mining.calibration import Removed
from bitextmine.mining.margin import LOG_ODDS, BestBothWays, best_candidates, candidates, neighbourhood_mean
from bitextmine.mining.options import MiningOptions, Retrieval
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.threshold import Estimate
from bitextmine.search.exact import search_one
from bitextmine.search.neighbours import Neighbours

# Scores candidates anew: takes them, the neighbours, and how many of these count (see `scorer`).
Rescore = Callable[[BestBothWays, Neighbours, int], BestBothWays]
# Fewer lines than this give no rate of a few percent.
MIN_LINES = 200
# Rows sampled from a side for decoys. Two searches of 24,000 x 24,000 are a third of one of 60,000 x 60,000;
# with 16,384 the tail of 55,500 lines came out thinner, and precision up to 6 points higher:
# a near-paraphrase is a decoy only if both of its sentences are in the sample.
SAMPLE = 24_000

_FOLDS = 5
_ENOUGH = 20_000  # removed pairs that show the noise of a scorer
_SEED = 1  # of the folds
_BINS = 150
_LOW = 0.5
_UPPER = 0.8
_ROUNDS = 300
_NOTHING = -np.inf  # the score of a line without a pair
_TAIL = 5  # the number of best decoys that the tail above them is extrapolated from


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


def search_within(vectors: NDArray, k: int, margin: str, seed: int = 1) -> Decoys:
    """Return the best margins of rows of a matrix, float16 (n, d), with other rows of the same one.

    Margins are taken over the k nearest other rows of both; `seed` draws the sample.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    some = np.ascontiguousarray(vectors[rows])
    n = len(some)
    sim, ids = search_one(some, some, min(k + 1, n))
    own = ids == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # many equal rows: itself is not among them, and the last goes
    sim, ids = (array[~own].reshape(n, -1) for array in (sim, ids))
    mean = neighbourhood_mean(sim, ids)
    score = best_candidates(sim, ids, mean, mean, margin).score
    return Decoys(np.sort(score[np.isfinite(score)]), max(1, n - 1))


@dataclass(frozen=True)
class Decoys:
    """Margins of decoys, ascending, float64 (n,), n >= 2, each the best of `pool` sentences."""

    score: NDArray[np.float64]
    pool: int

    def above(
        self, score: NDArray[np.float64], shares: tuple[float, float], at: NDArray[np.float64], pool: int
    ) -> NDArray[np.float64]:
        """Return the share (n,) of wrong pairs at or above scores (n,).

        The decoys are shifted and scaled so that the given shares of them lie below the scores `at`, (2,). The best of
        c times as many independent sentences has the distribution F ** c, and each pair is the best of `pool`. Above
        the highest decoys the tail is exponential.
        """
        n = len(self.score)
        below = ((np.arange(n) + 0.5) / n) ** (pool / self.pool)
        own = np.interp(shares, below, self.score)
        z = (score - at[0]) * (own[1] - own[0]) / max(at[1] - at[0], 1e-9) + own[0]
        top = max(_TAIL, n // 5000)
        start = self.score[max(0, n - top)]
        scale = max(float(self.score[-top:].mean() - start), 1e-9)
        thin = (1 - np.interp(start, self.score, below)) * np.exp(-np.maximum(z - start, 0) / scale)
        found: NDArray[np.float64] = np.where(z > start, thin, 1 - np.interp(z, self.score, below, left=0.0))
        return found


def fit_mixture(
    s1: NDArray[np.float64], s2: NDArray[np.float64], decoys: Callable[[], Sequence[Decoys]], pool: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Tell true pairs from noise, as the module describes; return the probability that a pair is true, by its score.

    s1 and s2 (n,) are the best score of each line with its pair and without, -inf for none. `decoys` makes those of
    both languages, where they are needed; `pool` are the lines of the other side.
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
    shapes = [] if _plenty(s1, s2) else [some for some in decoys() if len(some.score) >= MIN_LINES]

    def shape(at: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.mean(
            [some.above(edges, (_LOW, _UPPER), at, pool) for some in shapes], axis=0
        )
        return found

    true = _iterate(edges, observed, moves, shape if shapes else None)
    return lambda score: true[np.searchsorted(edges, score, side="right")]


def _plenty(s1: NDArray[np.float64], s2: NDArray[np.float64]) -> bool:
    """Return True if more than about a third of the lines are translated.

    Were all pairs noise, with F the distribution of a line's best score, the second best would have F (1 - ln F), which
    is 0.85 at the median, and less for pairs that depend on each other. A higher share takes pi > 0.25 or so.
    """
    middle = np.quantile(s1, 0.5, method="higher")
    return bool((s2 <= middle).mean() > (s1 <= middle).mean() * (1 - np.log(0.5)))


def _iterate(
    edges: NDArray[np.float64],
    observed: NDArray[np.float64],
    moves: NDArray[np.float64],
    shape: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None,
) -> NDArray[np.float64]:
    """Return the fixed point of p (bins,), the share of true pairs in each bin; it never falls.

    Args:
        edges: of the bins; bin i holds edges[i - 1] <= s < edges[i].
        observed: lines by the bin of s1.
        moves: lines by the bins of s1 and s2.
        shape: gives the share of noise above each edge (bins - 1,) from the scores at _LOW and _UPPER (2,), for the
            upper half of the noise; None leaves the shape as it is.
    """
    n, p = observed.sum(), np.ones(len(observed))
    weight = np.maximum(observed, 1e-9)
    for _ in range(_ROUNDS):
        noise = observed * (1 - p) + p @ moves
        cumulative = np.cumsum(noise) / n
        low = max(1, int(np.searchsorted(cumulative, _LOW)))
        share = min(1.0, float(observed[:low].sum() / max(noise[:low].sum(), 1e-9)))
        if shape is not None:
            above = shape(np.interp([_LOW, _UPPER], cumulative[:-1], edges))
            noise[low + 1 :] = -n * np.diff(np.concatenate([[1.0], above, [0.0]]))[low + 1 :]
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


def fit_null(
    neighbours: Neighbours, best: BestBothWays, decoys: Callable[[], Sequence[Decoys]], options: MiningOptions
) -> Estimate:
    """Return the pair's margin of each line, and the probability that it is true, as the module describes.

    Lines are source lines for ``forward``, target lines for ``backward``, else those of the shorter side. The
    neighbours have at least k + 1 columns, `best` are their `candidates`, and `decoys` makes those of both sides.
    """
    k, margin, retrieval = options.k, options.margin, options.retrieval
    n, m = len(best.forward.id), len(best.backward.id)
    by_source = counts_source(n, m, retrieval)
    lines, pool, end = (n, m, "src") if by_source else (m, n, "tgt")

    def scores(both: BestBothWays) -> NDArray[np.float64]:
        return (both.forward if by_source else both.backward).score

    with_pair = scores(best)
    without = with_pair.copy()
    for gone, _, again in without_folds(retrieve(best, Retrieval.MAX), neighbours, k, margin):
        ends = getattr(gone, end)
        without[ends] = scores(again)[ends]
    score = _best_of_lines(retrieve(best, retrieval, margin), end, lines)
    true = fit_mixture(with_pair, without, decoys, pool)(score)
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
