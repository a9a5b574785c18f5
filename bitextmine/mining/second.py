"""A second opinion: a larger encoder judges the candidates of a small one that are in doubt.

The first encoder's log odds tell which candidates are in doubt. A wrong decision on one of them, kept or left out,
costs F1 about 1 / (pairs kept + true pairs). Those that are likeliest to be wrong are asked first, until the rest are
expected to cost less than `LEFT` (`doubtful`).

Their log odds first heed what the first encoder does not see: rivals, of which at most one is true (`rivalled`), and
how far the ratio of lengths is from the usual one (`length_penalty`).

The second encoder's evidence is one number for each candidate: the cosine of its vectors less the means of their
languages, plus twice its lead over the best rival of its ends among the lines that are encoded again. How much that
says is learned from the run itself, for an encoder that nobody fitted: the evidence of true and of wrong candidates is
taken for two normal distributions of one variance, and each candidate is from the first of them with the probability
that its log odds give it, up to a shift of all log odds, as the share of true pairs is uncertain. Expectation-
maximisation finds the means and the shift. The log ratio of the distributions is a line in the evidence. It is added to
the log odds (`Evidence`), at half its slope, as both encoders err on the same pairs more often than independent ones
would. Where two distributions explain the evidence hardly better than one, the weight is zero. Known pairs (``--gold``)
replace these estimates by a logistic regression.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.embeddings.selection import Elsewhere, SelectedVectors
from bitextmine.errors import BitextmineError
from bitextmine.languages.clean import readable
from bitextmine.mining.calibration import probability
from bitextmine.mining.cleaning import near_copies
from bitextmine.mining.margin import BestBothWays, BestCandidates, rounded
from bitextmine.mining.options import seconds_of
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.sides import Side, Sides
from bitextmine.run import Run
from bitextmine.search.exact import search_one
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder
    from bitextmine.mining.bitext import Bitext

log = logging.getLogger(__name__)

# The most of the lines that are encoded again among which rivals are looked for.
_POOL = 1 << 14
# The loss of F1 that doubt about the other pairs may cost, as expected.
LEFT = 0.0003
# Candidates of lower log odds are hopeless, whatever the second encoder says.
FLOOR = -4.5
# Log odds of the candidates that the distributions are fitted to: among surer ones true pairs are of another kind.
_FITTED = 4.0
_SHIFT = 1.0  # standard deviation of the prior of the shift
_LEAD_WEIGHT = 2.0
_COPY_SHARE = 0.6  # of the words: such a line is no translation
# Log odds that a ratio of lengths costs, for the square of its logarithm's distance from the usual one (1 at most);
# characters added to each length, as in short lines a word more says little; and the log odds of pairs that show what
# is usual.
_LENGTH, _SLACK, _SURE = 4.5, 8, 2.0
_INDEPENDENT = 0.5
# The gain in log likelihood below which the second encoder adds nothing; and the fewest candidates that show one.
_LEAST_GAIN, _FEW = 5.0, 40
_ROUNDS = 60
_MOST = 5.0  # the most that the evidence adds to log odds
_PAIRS = 1 << 14
_PILOT = 128  # lines of each side that show how long one takes
_RIDGE = 1.0  # of the logistic regression on gold


# --- the candidates in doubt ---


def hopeful(best: BestBothWays, neighbours: Neighbours, k: int) -> ScoredPairs:
    """Return the candidates of the rows whose best one reaches `FLOOR`, each once, with their cosines.

    Args:
        best: the best candidates with log odds.
        neighbours: of both sides.
        k: the neighbours of a row that are candidates.
    """
    found = []
    for one, sim, ids in (
        (best.forward, neighbours.fwd_sim, neighbours.fwd_id),
        (best.backward, neighbours.bwd_sim, neighbours.bwd_id),
    ):
        rows = np.flatnonzero(one.score >= FLOOR)
        row, column = np.nonzero(ids[rows, :k] >= 0)
        own = rows[row]
        found.append((own, ids[own, column].astype(np.int64), sim[own, column].astype(np.float64)))
    forward, backward = found
    src, tgt = np.concatenate([forward[0], backward[1]]), np.concatenate([forward[1], backward[0]])
    _, first = np.unique(src * len(neighbours.bwd_id) + tgt, return_index=True)
    return ScoredPairs(src[first], tgt[first], np.concatenate([forward[2], backward[2]])[first])


def rivalled(pairs: ScoredPairs) -> NDArray[np.float64]:
    """Return log odds (p,) that heed the other candidates of both ends, of which at most one is true.

    The odds of a candidate are divided by 1 plus the sum of its rivals' odds, at the end where that is larger.
    """
    odds = np.exp(np.clip(pairs.score, -30, 30))
    rivals = np.zeros(len(odds))
    for rows in (pairs.src, pairs.tgt):
        rivals = np.maximum(rivals, np.bincount(rows, odds)[rows] - odds if len(rows) else rivals)
    heeded: NDArray[np.float64] = pairs.score - np.log1p(np.maximum(rivals, 0))
    return heeded


def length_penalty(pairs: ScoredPairs, sides: Sides, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the lengths of candidates (p,) cost; those of high log odds (p,) show which ratio is usual.

    Gale and Church (1993) also take the square of a normal variable. The first encoder's scorer sees no lengths.
    """
    logs = []
    for side, own in zip(sides, (pairs.src, pairs.tgt), strict=True):
        rows, place = np.unique(own, return_inverse=True)
        lines = readable(list(side.text.take(side.unique.rows[rows])))
        lengths = np.fromiter(map(len, lines), np.float64, len(rows))
        logs.append(np.log(lengths + _SLACK)[place])
    ratio: NDArray[np.float64] = logs[1] - logs[0]
    sure = ratio[log_odds >= _SURE]
    far = np.abs(ratio - (np.median(sure) if len(sure) else 0.0))
    return _LENGTH * np.minimum(far, 1.0) ** 2


def doubtful(
    pairs: ScoredPairs, kept: NDArray[np.bool_], decisions: float, left: float = LEFT
) -> NDArray[np.int64]:
    """Return the candidates to ask the second encoder about, most doubtful first.

    Args:
        pairs: candidates with log odds.
        kept: True for those that the first encoder keeps.
        decisions: pairs kept plus expected true pairs, of which F1 is the share of agreement.
        left: the expected loss of F1 from the candidates that are not returned.
    """
    true = probability(rivalled(pairs))
    loss = np.where(kept, 1 - true, true)
    loss[pairs.score < FLOOR] = 0
    order = np.lexsort((pairs.tgt, pairs.src, -loss))
    remaining = loss.sum() - np.cumsum(loss[order])
    order = order[: int(np.searchsorted(-remaining, -left * decisions)) + 1]
    return order[loss[order] > 0]


def within_lines(pairs: ScoredPairs, order: NDArray[np.int64], most: float) -> NDArray[np.int64]:
    """Return the first of some pairs in order: as many as have at most so many lines, of both sides together."""
    lines = np.zeros(len(order), dtype=np.int64)
    for rows in (pairs.src[order], pairs.tgt[order]):
        lines[np.unique(rows, return_index=True)[1]] += 1
    return order[np.cumsum(lines) <= most]


# --- what the second encoder says ---


@dataclass(frozen=True)
class Evidence:
    """The log odds that the second encoder adds: `weight` (evidence - `middle`), at most `_MOST`."""

    weight: float
    middle: float

    def log_odds(self, evidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what evidence (n,) adds."""
        return np.clip(self.weight * (evidence - self.middle), -_MOST, _MOST)


NOTHING = Evidence(0.0, 0.0)


def fit_evidence(log_odds: NDArray[np.float64], evidence: NDArray[np.float64]) -> Evidence:
    """Fit the evidence of candidates (n,) whose log odds the first encoder gives; see the module."""
    some = (log_odds >= FLOOR) & (log_odds < _FITTED)
    prior, x = probability(log_odds[some]), evidence[some]
    if len(x) < _FEW or float(x.var()) < 1e-12:
        return NOTHING
    odds, shift = log_odds[some], 0.0
    true, variance = prior.copy(), float(x.var())
    means = np.zeros(2)
    for _ in range(_ROUNDS):
        shares = np.stack([1 - true, true])
        means = shares @ x / np.maximum(shares.sum(axis=1), 1e-9)
        variance = float((shares * (x - means[:, None]) ** 2).sum()) / len(x) + 1e-9
        line = (means[1] - means[0]) / variance * (x - means.mean())
        true = probability(odds + shift + line)
        shift += float((true - prior).sum() - shift / _SHIFT**2) / float(
            (prior * (1 - prior)).sum() + 1 / _SHIFT**2
        )
        prior = probability(odds + shift)
    densities = np.exp(-((x - means[:, None]) ** 2) / (2 * variance)) / math.sqrt(variance)
    alone = np.exp(-((x - x.mean()) ** 2) / (2 * x.var())) / x.std()
    likelihood = np.maximum((1 - prior) * densities[0] + prior * densities[1], 1e-300)
    gain = float((np.log(likelihood) - np.log(np.maximum(alone, 1e-300))).sum())
    weight = _INDEPENDENT * float(means[1] - means[0]) / variance
    if gain < _LEAST_GAIN or weight <= 0:
        return NOTHING
    return Evidence(weight, float(means.mean()) - shift / weight)


def fit_to_gold(
    log_odds: NDArray[np.float64], evidence: NDArray[np.float64], correct: NDArray[np.bool_]
) -> Evidence:
    """Fit the evidence of candidates (n,) that are known to be correct or wrong, by logistic regression.

    The log odds count 1. A small penalty keeps the weight finite where all are alike.
    """
    if len(evidence) < _FEW or float(evidence.std()) < 1e-6:
        return NOTHING
    mean, scale = float(evidence.mean()), float(evidence.std())
    x = np.stack([(evidence - mean) / scale, np.ones(len(evidence))])
    line = np.zeros(2)
    for _ in range(_ROUNDS):
        p = probability(log_odds + line @ x)
        step = np.linalg.solve(
            (x * p * (1 - p)) @ x.T + _RIDGE * np.eye(2), x @ (correct - p) - _RIDGE * line
        )
        line += step
        if float(np.abs(step).max()) < 1e-9:
            break
    if line[0] <= 0:
        return NOTHING
    weight = float(line[0]) / scale
    return Evidence(weight, mean - float(line[1]) / weight)


def _centred(rows: NDArray[np.float16]) -> NDArray[np.float16]:
    """Subtract their mean from unit rows (n, d), in place, and scale them to length 1; a few are left as they are.

    The mean of a language tells nothing about its sentences, and in some encoders most of a cosine is due to it.
    """
    if len(rows) < _FEW:
        return rows
    parts = [slice(start, start + _PAIRS) for start in range(0, len(rows), _PAIRS)]
    mean = sum(rows[part].sum(axis=0, dtype=np.float64) for part in parts) / len(rows)
    for part in parts:
        block = rows[part] - mean
        rows[part] = block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)
    return rows


@dataclass(frozen=True)
class Second:
    """A second encoder, and how much of it is wanted.

    Attributes:
        encoder: the encoder.
        budget: the largest share of the lines to encode again, or a time (`options.seconds_of`).
        run: its resources.
        cache: the folder for its vectors, instead of beside the corpora.
        elsewhere: encodes in its place, see `SelectedVectors`.
    """

    encoder: Encoder
    budget: float | str
    run: Run
    cache: str | os.PathLike[str] | None = None
    elsewhere: Elsewhere | None = None

    def most_lines(self, pairs: ScoredPairs, sides: Sides) -> float:
        """Return the most lines of both sides to encode: the budget's share, or how many its time allows.

        Some lines of the pairs, which are in order, show how long a line takes. One that has a vector takes no time.

        Raises:
            BitextmineError: as `evidence`.
        """
        seconds, begin = seconds_of(self.budget), time.perf_counter()
        if seconds is None:
            return float(self.budget) * sum(len(side.unique.rows) for side in sides)
        done, timed, spent = 0, 0, 0.0
        for side, own in zip(sides, (pairs.src, pairs.tgt), strict=True):
            lines = side.unique.rows[own[np.sort(np.unique(own, return_index=True)[1])]]
            with self._vectors(side) as kept:
                new = lines[np.isin(lines, kept.missing(lines))]
                done += len(lines) - len(new) + len(new[: 2 * _PILOT])
                kept.encode(new[:_PILOT])  # the first batches of a process are slow
                start = time.perf_counter()
                kept.encode(new[_PILOT : 2 * _PILOT])
                spent += time.perf_counter() - start
                timed += len(new[_PILOT : 2 * _PILOT])
        left = seconds - (time.perf_counter() - begin)
        return done + max(left, 0) * timed / max(spent, 1e-9)

    def _vectors(self, side: Side) -> SelectedVectors:
        return SelectedVectors(side.text, self.encoder, self.run, self.cache, self.elsewhere)

    def evidence(self, pairs: ScoredPairs, sides: Sides) -> NDArray[np.float64]:
        """Return the evidence (p,) of pairs: cosine + 2 lead among their lines, which are encoded if necessary.

        Raises:
            BitextmineError: the encoder fails; vectors that were kept are of another size.
        """
        rows = [np.unique(side, return_inverse=True) for side in (pairs.src, pairs.tgt)]
        vectors = []
        for side, (some, _) in zip(sides, rows, strict=True):
            lines = side.unique.rows[some]
            with self._vectors(side) as kept:
                new, begin = kept.missing(lines), time.perf_counter()
                with self.run.progress(len(new), f"embed {side.text.name} again") as bar:
                    kept.encode(new, bar.update)
                if len(new):
                    what = side.text.name, counted(len(new), "line"), self.encoder.name
                    log.info("%s: %s embedded by %s in %.1f s", *what, time.perf_counter() - begin)
                vectors.append(_centred(kept.take(lines)))
        left, right = (place for _, place in rows)
        x, y = vectors
        cosine = np.empty(len(pairs))
        for start in range(0, len(pairs), _PAIRS):
            part = slice(start, start + _PAIRS)
            a, b = x[left[part]].astype(np.float32), y[right[part]].astype(np.float32)
            cosine[part] = np.einsum("ij,ij->i", a, b, dtype=np.float64)
        rivals = np.maximum(self._rivals(x, y, left, right), self._rivals(y, x, right, left))
        return cosine + _LEAD_WEIGHT * np.where(np.isfinite(rivals), cosine - rivals, 0.0)

    def _rivals(
        self,
        queries: NDArray[np.float16],
        others: NDArray[np.float16],
        own: NDArray[np.int64],
        partners: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the highest cosine (p,) of query own[i] with (a sample of) the others, but partners[i]; or -inf."""
        some = np.unique(np.linspace(0, len(others) - 1, min(len(others), _POOL)).astype(np.int64))
        options = SearchOptions(device=self.run.device_name, memory=self.run.memory)
        sim, ids = search_one(queries, others[some], min(2, len(some)), options)
        rival = np.where(some[ids[own]] != partners[:, None], sim[own].astype(np.float64), -np.inf)
        return np.asarray(rival.max(axis=1))


@dataclass(frozen=True)
class Opinion:
    """What a second encoder changed.

    Attributes:
        best: the best candidates of all rows, with log odds of both encoders.
        evidence: how it counts.
        lines: lines of both sides that were judged by it.
        pairs: candidates that were judged.
        name: of the encoder.
        hash: of the encoder.
    """

    best: BestBothWays
    evidence: Evidence
    lines: tuple[int, int]
    pairs: int
    name: str
    hash: str

    def details(self) -> dict[str, Any]:
        """Return the facts for the JSON beside the output."""
        return {
            "model": self.hash,
            "lines": list(self.lines),
            "pairs": self.pairs,
            "weight": self.evidence.weight,
            "middle": self.evidence.middle,
        }

    def note(self, lines: int, changed: int) -> str:
        """Return a line for the summary of a run over so many lines; `changed` counts the decisions."""
        asked = sum(self.lines)
        share = 100 * asked / max(1, lines)
        head = f"second encoder {self.name}: {counted(asked, 'line')} ({share:.1f}%) encoded again; "
        if not asked:
            return f"second encoder {self.name}: no pair is in doubt"
        if not self.evidence.weight:
            return head + "it adds nothing to the first one here, so it does not count"
        return head + f"{counted(changed, 'decision')} changed"


# From pairs, their log odds and their evidence.
Judge = Callable[[ScoredPairs, NDArray[np.float64], NDArray[np.float64]], Evidence]


def consult(
    second: Second,
    sides: Sides,
    best: BestBothWays,
    pairs: ScoredPairs,
    asked: NDArray[np.int64],
    judge: Judge | None = None,
) -> Opinion:
    """Ask the second encoder about some candidates, and choose the best of every row again.

    Args:
        second: the encoder.
        sides: both corpora.
        best: the best candidates with the first encoder's log odds.
        pairs: all candidates of the rows in doubt, with log odds.
        asked: numbers of those to ask about.
        judge: fits the evidence of these to known pairs, instead of `fit_evidence`.
    """
    evidence, score = NOTHING, pairs.score.copy()
    some = pairs.take(asked)
    if len(asked):
        # Every candidate between the lines that are encoded anyway.
        among = np.isin(pairs.src, some.src) & np.isin(pairs.tgt, some.tgt) & (pairs.score >= FLOOR)
        some, first = pairs.take(among), rivalled(pairs)[among]
        found = second.evidence(some, sides)
        first -= length_penalty(some, sides, first)
        fit = fit_evidence if judge is None else partial(judge, some)
        evidence = fit(first, found)
        after = first + evidence.log_odds(found)
        # An untranslated copy has the highest evidence there is.
        copies = near_copies(some, sides, fewest=1, share=_COPY_SHARE)
        after[copies] = np.minimum(after, some.score)[copies]
        score[among] = rounded(after)
    lines = len(np.unique(some.src)), len(np.unique(some.tgt))
    chosen = _best_again(best, ScoredPairs(pairs.src, pairs.tgt, score)) if evidence.weight else best
    return Opinion(chosen, evidence, lines, len(some), second.encoder.name, second.encoder.hash)


def _best_again(best: BestBothWays, pairs: ScoredPairs) -> BestBothWays:
    """Return the best candidate of each row among its old one and candidates with new scores."""
    width = len(best.backward.id)
    src, tgt = (np.flatnonzero(side.id >= 0) for side in (best.forward, best.backward))
    old = ScoredPairs(
        np.concatenate([src, best.backward.id[tgt]]),
        np.concatenate([best.forward.id[src], tgt]),
        np.concatenate([best.forward.score[src], best.backward.score[tgt]]),
    )
    old = old.take(~np.isin(old.src * width + old.tgt, pairs.src * width + pairs.tgt))
    every = ScoredPairs(
        *(np.concatenate([getattr(pairs, name), getattr(old, name)]) for name in ("src", "tgt", "score"))
    )
    sides = []
    for rows, others, count in ((every.src, every.tgt, len(best.forward.id)), (every.tgt, every.src, width)):
        order = np.lexsort((others, -every.score, rows))
        order = order[np.diff(rows[order], prepend=-1) > 0]
        id, score = np.full(count, -1, dtype=np.int64), np.full(count, -np.inf)
        id[rows[order]], score[rows[order]] = others[order], every.score[order]
        sides.append(BestCandidates(id, score))
    return BestBothWays(sides[0], sides[1])


class SecondFailed(BitextmineError):
    """The second encoder failed.

    Args:
        problem: what happened.
        first: the result without it.
    """

    def __init__(self, problem: str, first: Bitext) -> None:
        super().__init__(problem)
        self.first = first
