"""How noise scores: the false-positive rate of a threshold, estimated from the corpora themselves.

The question is what share of the lines *without* a translation would get a pair at a given threshold.
Nobody knows which lines those are, and a table of noise scores does not travel between corpora, encoders or
k. But a line that has a translation shows what it would have scored without one: take its pair away (the
neighbour goes from both neighbourhoods, and the next one moves up), mine again, and see what it gets. So
each line has two scores, s1 with its pair and s2 without, and

    s1 = a mixture: with share pi from true pairs, with share 1 - pi from noise
    s2 = noise, for lines whose pair was true; less than noise, for lines whose pair was noise itself

The second kind must not count with s2 (that alone makes the estimate two to ten times too low) but with s1.
Which lines they are is found by iteration (expectation-maximisation on a histogram): with p(s) the
probability that a pair of score s is true,

    noise = every line with weight 1 - p at its s1 and weight p at its s2
    1 - pi = how many lines score low, where true pairs are rare, over how many noise alone would put there
    p(s) = 1 - (1 - pi) noise(s) / observed(s), made never to fall as s rises

Where translations are plenty, that is all. Where they are few, a histogram that may take any shape leaves
it open: that all is true and that all is noise both reproduce themselves. What closes it is a shape for the
upper half of noise, through its 50% and 80% points: that of decoys, the best margins within each language
(`decoys`). Without decoys it is Gumbel's distribution, as a line's best noise score is the maximum over a pool
of many. That is too thin far out; so the iteration is then run twice, from p = 1, and from p = 0 with a slack
(what is up to 3% above the curve is noise), and p is the average. The shape decides p alone; the rate itself is
counted from the scores.

p is found on the best candidate of each line, the rate counted on what the retrieval keeps. Pairs are taken
away a fifth of them at a time, so that the others still hold the lines they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mining.candidates import BestBothWays, NeighboursLike, Rescore, candidates
from bitextmine.mining.decoys import SAMPLE, Decoys
from bitextmine.mining.margin import LOG_ODDS
from bitextmine.mining.retrieval import Retrieval, ScoredPairs, retrieve

# Fewer lines than this say nothing about a rate of a few percent.
MIN_LINES = 200

_FOLDS = 5
_BINS = 150
_LOW = 0.5
_UPPER = 0.8
_SLACK = 0.03
_ROUNDS = 300
# Estimated and true numbers of wrong pairs differ by so much where the truth is known (standard deviation of the
# logarithm of their ratio): mine/dirty.md.
_ROUNDING = 1e-9  # of shares that are equal but for the order of their sums
_MODEL = 0.2
_NOTHING = -np.inf  # the score of a line that gets no pair


@dataclass(frozen=True)
class _Neighbours:
    fwd_sim: NDArray[Any]
    fwd_id: NDArray[Any]
    bwd_sim: NDArray[Any]
    bwd_id: NDArray[Any]


def without_pairs(neighbours: NeighboursLike, pairs: ScoredPairs, k: int) -> NeighboursLike:
    """The k nearest neighbours as they would be if these one-to-one pairs were not neighbours of each other.

    Needs k + 1 columns: where a pair goes, the next neighbour moves up.
    """
    fwd_partner = np.full(len(neighbours.fwd_id), -2, dtype=np.int64)
    bwd_partner = np.full(len(neighbours.bwd_id), -2, dtype=np.int64)
    fwd_partner[pairs.src] = pairs.tgt
    bwd_partner[pairs.tgt] = pairs.src
    fwd_sim, fwd_id = _closed_up(neighbours.fwd_sim, neighbours.fwd_id, fwd_partner, k)
    bwd_sim, bwd_id = _closed_up(neighbours.bwd_sim, neighbours.bwd_id, bwd_partner, k)
    return _Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)


def _closed_up(
    sim: NDArray[Any], ids: NDArray[Any], partner: NDArray[np.int64], k: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    new_sim, new_ids = sim[:, :k].copy(), ids[:, :k].copy()
    rows, place = np.nonzero(ids[:, : k + 1] == partner[:, None])
    for column in range(k):
        at = rows[place <= column]
        if column + 1 < ids.shape[1]:
            new_sim[at, column], new_ids[at, column] = sim[at, column + 1], ids[at, column + 1]
        else:
            new_sim[at, column], new_ids[at, column] = -np.inf, -1
    return new_sim, new_ids


@dataclass(frozen=True)
class Mixture:
    """What `fit_mixture` found: bins of scores, and for each the probability that a pair in it is true.

    edges: ascending, float64 (b - 1,); bin i holds edges[i - 1] <= s < edges[i]. true: float64 (b,), never
    falling.
    """

    edges: NDArray[np.float64]
    true: NDArray[np.float64]

    def probability(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability that a pair of this score is true."""
        return self.true[np.searchsorted(self.edges, score, side="right")]


def fit_mixture(
    s1: NDArray[np.float64],
    s2: NDArray[np.float64],
    decoys: Callable[[], Sequence[Decoys]] = tuple,
    pool: int = 1,
) -> Mixture:
    """Tell true pairs from noise by the best score of each line with (s1) and without (s2) its pair; -inf: none.

    decoys: makes those of both languages, where they are needed; pool: how many lines the other side has. See the
    module's text. Deterministic; n >= 1 lines, float64 (n,) each.
    """
    both = np.concatenate([s1, s2])
    finite = both[np.isfinite(both)]
    edges = _edges(finite) if len(finite) else np.zeros(1)
    bins = len(edges) + 1
    if bins < 4:  # a handful of different scores tells nothing
        return Mixture(edges, np.zeros(bins))
    b1 = np.searchsorted(edges, s1, side="right")
    b2 = np.searchsorted(edges, s2, side="right")
    observed = np.bincount(b1, minlength=bins).astype(np.float64)
    moves = np.bincount(b1 * bins + b2, minlength=bins * bins).reshape(bins, bins).astype(np.float64)
    if _plenty(s1, s2):
        return Mixture(edges, _iterate(edges, observed, moves, np.ones(bins), None))
    if shapes := [some for some in decoys() if len(some.score) >= MIN_LINES]:

        def as_decoys(at: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.mean([some.above(edges, (_LOW, _UPPER), at, pool) for some in shapes], axis=0)

        return Mixture(edges, _iterate(edges, observed, moves, np.ones(bins), as_decoys))

    def gumbel(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return _gumbel(edges, at)

    most = _iterate(edges, observed, moves, np.ones(bins), gumbel)
    least = _iterate(edges, observed, moves, np.zeros(bins), gumbel, _SLACK)
    return Mixture(edges, (most + least) / 2)


def _plenty(s1: NDArray[np.float64], s2: NDArray[np.float64]) -> bool:
    """Whether more than about a third of the lines are translated.

    Were all pairs noise, with F the distribution of a line's best score, the second best would have F (1 -
    ln F), which at the median is 0.85; with pairs that depend on each other it is less. What is found there
    above 0.5 (1 - ln 0.5 + x) grows with pi, and at x = 0 already takes pi > 0.25 or so.
    """
    middle = np.quantile(s1, 0.5, method="higher")
    return bool((s2 <= middle).mean() > (s1 <= middle).mean() * (1 - np.log(0.5)))


def _iterate(
    edges: NDArray[np.float64],
    observed: NDArray[np.float64],
    moves: NDArray[np.float64],
    p: NDArray[np.float64],
    shape: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None,
    slack: float = 0.0,
) -> NDArray[np.float64]:
    """Return the fixed point of p (bins,), the share of true pairs in each bin.

    Args:
        edges: of the bins.
        observed: lines by the bin of s1.
        moves: lines by the bins of s1 and s2.
        p: the start.
        shape: gives the share of noise above each edge (bins - 1,) from the scores at _LOW and _UPPER (2,), for the
            upper half of the noise; None leaves the shape as it is.
        slack: the share by which noise is overestimated.
    """
    n = observed.sum()
    weight = np.maximum(observed, 1e-9)
    for _ in range(_ROUNDS):
        noise = observed * (1 - p) + p @ moves
        cumulative = np.cumsum(noise) / n
        low = max(1, int(np.searchsorted(cumulative, _LOW)))
        share = min(1.0, float(observed[:low].sum() / max(noise[:low].sum(), 1e-9)))
        if shape is not None:
            above = shape(np.interp([_LOW, _UPPER], cumulative[:-1], edges))
            noise[low + 1 :] = -n * np.diff(np.concatenate([[1.0], above, [0.0]]))[low + 1 :]
        new = 1 - np.clip(_falling(share * noise / weight, weight) * (1 + slack), 0, 1)
        change = float(np.abs(new - p) @ observed) / n
        p = new
        if change < 1e-6:
            break
    return p


def _gumbel(edges: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share above each edge (b,) under the Gumbel distribution through the points at _LOW and _UPPER."""
    reduced = -np.log(-np.log([_LOW, _UPPER]))
    scale = max((at[1] - at[0]) / (reduced[1] - reduced[0]), 1e-9)
    z = np.clip((edges - at[0]) / scale + reduced[0], -30, 700)
    above: NDArray[np.float64] = 1 - np.exp(-np.exp(-z))
    return above


def _edges(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of bins with equal counts, and of ever smaller bins at the top, where true pairs may stand out."""
    bins = min(_BINS, max(5, len(scores) // 40))
    top = np.geomspace(0.1, min(0.05, 10 / len(scores)), bins)
    return np.unique(np.quantile(scores, np.concatenate([np.linspace(0, 0.9, bins + 1)[1:], 1 - top])))


def _falling(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence that never rises, by weighted least squares (pool adjacent violators)."""
    pooled: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while pooled and pooled[-1][0] <= block[0]:
            v, w, c = pooled.pop()
            total = w + block[1]
            block = ((v * w + block[0] * block[1]) / total, total, c + block[2])
        pooled.append(block)
    return np.repeat([v for v, _, _ in pooled], [c for _, _, c in pooled])


@dataclass(frozen=True)
class NullFit:
    """The noise of a mining run, as seen from its lines.

    score, weight: descending scores and their weights, the weighted sample of noise (its weights sum to 1
    together with the lines that get no pair). s1, true: the score of each line's pair, descending, and the
    probability that it is true. lines: how many; noise_share: of them without a translation; side: "source"
    or "target", whose lines. bounded: whether scores cannot rise for ever, as those of a scorer cannot. sample: how
    many lines the noise was learned from.
    """

    score: NDArray[np.float64]
    weight: NDArray[np.float64]
    s1: NDArray[np.float64]
    true: NDArray[np.float64]
    lines: int
    noise_share: float
    side: str
    bounded: bool = False
    sample: int = 0

    def rate(self, threshold: float) -> float:
        """The share of lines without a translation that get a pair of at least this score."""
        return float(self.weight[: np.searchsorted(-self.score, -threshold, side="right")].sum())

    def threshold(self, rate: float) -> float:
        """The lowest score that keeps the false-positive rate at or below `rate` (0 to 1).

        Where the sample is too thin to tell (fewer than fifty lines above, down to a rate of 5%; fewer than ten
        of bounded scores), the tail is carried on exponentially from where it is thick enough, but that of
        bounded scores not beyond the highest of the sample.
        """
        if not 0 < rate < 1:
            raise BitextmineError(f"--fpr: expected a rate between 0 and 1, found {rate}")
        cumulative = np.cumsum(self.weight)
        if not len(cumulative):
            return float(self.s1[-1]) if len(self.s1) else 0.0
        thick = 10 / self.lines if self.bounded else max(10 / self.lines, min(0.05, 50 / self.lines))
        if rate >= thick or rate >= cumulative[-1]:
            return self._above(rate, cumulative)
        start = self._above(thick, cumulative)
        over = self.score > start
        mass = self.weight[over].sum()
        scale = float((self.weight[over] * (self.score[over] - start)).sum() / mass) if mass > 0 else 0.0
        further = float(start + scale * np.log(thick / rate))
        return min(further, float(np.nextafter(self.score[0], np.inf))) if self.bounded else further

    def _above(self, rate: float, cumulative: NDArray[np.float64]) -> float:
        """Just above the first score that would exceed the rate; below all when none does."""
        at = int(np.searchsorted(cumulative, rate, side="right"))
        if at == len(cumulative):
            return float(self.score[-1])
        higher = self.score[self.score > self.score[at]]
        return (
            float((self.score[at] + higher[-1]) / 2)
            if len(higher)
            else float(np.nextafter(self.score[at], np.inf))
        )

    def precision(self, threshold: float) -> float:
        """Return the estimated share of true pairs at or above a score; 1 if no pair reaches it."""
        kept = int(np.searchsorted(-self.s1, -threshold, side="right"))
        return float(self.true[:kept].mean()) if kept else 1.0

    def interval(self, threshold: float) -> tuple[float, float]:
        """Return an interval that holds the precision in about 95 of 100 runs.

        The number of wrong pairs may be 40% off in any run; few lines add the uncertainty of counts (Poisson).
        """
        kept = int(np.searchsorted(-self.s1, -threshold, side="right"))
        if not kept:
            return 0.0, 1.0
        wrong = float((1 - self.true[:kept]).sum())
        spread = 1.96 * np.sqrt(_MODEL**2 + 1 / (wrong * self.sample / self.lines + 1) + 1 / (wrong + 1))
        low, high = wrong * np.exp(-spread), wrong * np.exp(spread) + 1
        return max(0.0, float(1 - high / kept)), float(1 - low / kept)

    def _precisions(self) -> NDArray[np.float64]:
        """Return the estimated precision at each pair's score, (pairs,)."""
        found: NDArray[np.float64] = np.cumsum(self.true) / np.arange(1, len(self.true) + 1)
        return found

    def at_precision(self, precision: float) -> float | None:
        """The lowest score of a pair at and above which so large a share (0 to 1) is true, None for no such score."""
        shares = self._precisions()
        last = np.append(self.s1[1:] != self.s1[:-1], True)  # equal scores are kept or dropped together
        reached = np.flatnonzero((shares >= precision - _ROUNDING) & last)
        return float(self.s1[reached[-1]]) if len(reached) else None

    def highest_precision(self) -> tuple[float, int]:
        """Return the highest precision of any threshold, and the most pairs that have it; (0, 0) without pairs."""
        if not len(self.true):
            return 0.0, 0
        shares = self._precisions()
        best = float(shares.max())
        return best, int(np.flatnonzero(shares >= best - _ROUNDING)[-1]) + 1


def fit_null(
    neighbours: NeighboursLike,
    best: BestBothWays,
    *,
    k: int,
    margin: str,
    retrieval: str,
    rescore: Rescore | None = None,
    decoys: Callable[[], Sequence[Decoys]] = tuple,
    seed: int = 1,
) -> NullFit:
    """Estimate the noise of a mining run, as the module describes.

    Rates are per source line for ``forward``, per target line for ``backward``, else per line of the shorter side.

    Args:
        neighbours: with at least k + 1 columns.
        best: their `candidates`.
        k: neighbours that a margin is taken over.
        margin: the kind of margin.
        retrieval: the way pairs are retrieved.
        rescore: gives scores instead of margins, and the rates are of these; noise is still found by margins, whose
            distribution is known.
        decoys: makes the decoys of both sides, for when translations are few.
        seed: of the samples.

    Raises:
        BitextmineError: the side has fewer than MIN_LINES lines.
    """
    n, m = len(best.forward.id), len(best.backward.id)
    by_source = retrieval == Retrieval.FORWARD or (retrieval != Retrieval.BACKWARD and n <= m)
    lines = n if by_source else m
    if lines < MIN_LINES:
        raise BitextmineError(
            f"threshold auto: {lines} lines are too few to estimate a false-positive rate (at least {MIN_LINES} "
            "are needed); give --gold, a number, or --threshold none"
        )

    def best_scores(both: BestBothWays) -> NDArray[np.float64]:
        return (both.forward if by_source else both.backward).score

    def line_scores(pairs: ScoredPairs) -> NDArray[np.float64]:
        scores = np.full(lines, _NOTHING)
        ends = pairs.src if by_source else pairs.tgt
        scores[ends[::-1]] = pairs.score[::-1]  # the best comes first, so backwards it stays
        return scores

    def without(pairs: ScoredPairs) -> Iterator[tuple[NDArray[np.int64], NeighboursLike, BestBothWays]]:
        """Each fold of one-to-one pairs taken away: whose lines they were, what is left, and its candidates."""
        fold = np.random.default_rng(seed).integers(0, _FOLDS, len(pairs))
        for f in range(_FOLDS):
            gone = pairs.take(fold == f)
            left = without_pairs(neighbours, gone, k)
            yield (gone.src if by_source else gone.tgt), left, candidates(left, k, margin)

    best1, by_margin = best_scores(best), line_scores(retrieve(best, retrieval, margin))
    best2, s1 = best1.copy(), by_margin
    s2 = s1.copy()
    for ends, _, again in without(retrieve(best, Retrieval.MAX)):
        best2[ends] = best_scores(again)[ends]
        if rescore is None:
            s2[ends] = line_scores(retrieve(again, retrieval, margin))[ends]
    if rescore is not None:
        # The pairs that other scores keep may be others.
        scored = rescore(best, neighbours, k)
        s1 = line_scores(retrieve(scored, retrieval, LOG_ODDS))
        s2 = s1.copy()
        for ends, left, again in without(retrieve(scored, Retrieval.MAX)):
            s2[ends] = line_scores(retrieve(rescore(again, left, k), retrieval, LOG_ODDS))[ends]
    true = fit_mixture(best1, best2, decoys, m if by_source else n).probability(by_margin)

    score = np.concatenate([s1, s2])
    weight = np.concatenate([1 - true, true]) / lines
    order = np.argsort(-score, kind="stable")
    order = order[(score[order] > _NOTHING) & (weight[order] > 0)]
    found = np.argsort(-s1, kind="stable")
    found = found[s1[found] > _NOTHING]
    return NullFit(
        score=score[order],
        weight=weight[order],
        s1=s1[found],
        true=true[found],
        lines=lines,
        noise_share=1 - float(true.mean()),
        side="source" if by_source else "target",
        bounded=rescore is not None,
        sample=min(lines, 2 * SAMPLE),
    )
