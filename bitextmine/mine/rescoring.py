"""Scoring candidates a second time, by what their margin and the matches of their pieces say together.

The score is the logarithm of the odds that a pair is a translation: 0 means as likely as not. A small network (one
hidden layer) gives it from the features of `candidate_features` and `alignment`; mine/fit_rescoring.py fits it to
candidates of mined text whose translations are known, with the encoder of the package, and says how.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import read_arrays
from bitextmine.mine.alignment import Aligner
from bitextmine.mine.margin import neighbourhood_mean
from bitextmine.mine.retrieval import SCORE_DECIMALS, Best, BestBothWays, NeighboursLike

__all__ = ["CANDIDATE_FEATURES", "Rescorer", "Scorer", "candidate_features", "packaged_scorer"]

CANDIDATE_FEATURES = 7
# Means of neighbourhoods near 0 would make ratios without meaning.
SMALLEST_MEAN = 0.05
SMALLEST_RATIO, LARGEST_RATIO = 0.05, 4.0
BLOCK_PAIRS = 1 << 15


def candidate_features(
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
    sim: NDArray,
    ids: NDArray,
    other_sim: NDArray,
    other_ids: NDArray,
) -> NDArray[np.float64]:
    """(p, CANDIDATE_FEATURES) for the pairs of row rows[i] with row others[i] of the other side: the ratio margin, its
    logarithm, the cosine, the mean cosine of the neighbours of either, and how far the pair's cosine is above that of
    the next best neighbour of either (0 without one).

    sim, ids (n, k): the rows' neighbours, of which the pair's other row is one; other_sim, other_ids (m, k): those of
    the other side, which need not know the row.
    """
    here = ids[rows] == others[:, None]
    cosine = np.where(here, sim[rows], -np.inf).max(axis=1).astype(np.float64)
    means, gaps = [], []
    for values, names, away in (
        (sim[rows], ids[rows], here),
        (other_sim[others], other_ids[others], other_ids[others] == rows[:, None]),
    ):
        mean = neighbourhood_mean(values, names)
        means.append(np.where(np.isnan(mean), cosine, mean))
        next_best = np.where((names >= 0) & ~away, values, -np.inf).max(axis=1, initial=-np.inf)
        gaps.append(np.where(np.isfinite(next_best), cosine - next_best, 0.0))
    around = np.maximum((means[0] + means[1]) / 2, SMALLEST_MEAN)
    ratio = np.clip(cosine / around, SMALLEST_RATIO, LARGEST_RATIO)
    return np.stack([ratio, np.log(ratio), cosine, *means, *gaps], axis=1)


@dataclasses.dataclass(frozen=True)
class Scorer:
    """score = out @ tanh(hidden @ (features - mean) / scale + bias) + constant.

    hidden (h, f), bias (h,), out (h,), constant (1,), mean and scale (f,), where f is CANDIDATE_FEATURES + FEATURES;
    all float32.
    """

    hidden: NDArray
    bias: NDArray
    out: NDArray
    constant: NDArray
    mean: NDArray
    scale: NDArray

    @classmethod
    def read(cls, path: Path) -> Scorer:
        """Raises BitextmineError for a file that is missing or no safetensors file."""
        arrays = read_arrays(path)
        return cls(**{field.name: arrays[field.name] for field in dataclasses.fields(cls)})

    @property
    def hash(self) -> str:
        """8 hex digits that change with any of the numbers."""
        parts = (np.ascontiguousarray(getattr(self, field.name)) for field in dataclasses.fields(self))
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]

    def drive(self, features: NDArray, first: int) -> NDArray:
        """(n, h): what ``features`` (n, g), the ones from number ``first`` on, give to the hidden layer."""
        part = slice(first, first + features.shape[1])
        hidden: NDArray = ((features - self.mean[part]) / self.scale[part]) @ self.hidden[:, part].T
        return hidden

    def score(self, hidden: NDArray) -> NDArray[np.float64]:
        """(n,) log odds from (n, h), the sum of all that drives the hidden layer."""
        found: NDArray[np.float64] = (
            np.tanh(hidden + self.bias).astype(np.float64) @ self.out + self.constant[0]
        )
        return found


def packaged_scorer() -> Scorer:
    return Scorer.read(Path(str(resources.files("bitextmine.mine"))) / "rescoring.safetensors")


class Rescorer:
    """Scores the candidates of two sides of text again; what pieces say of a pair is worked out once."""

    def __init__(
        self,
        aligner: Aligner,
        src: Pieces,
        tgt: Pieces,
        scorer: Scorer,
        progress: Callable[[int], object] = lambda n: None,
    ) -> None:
        """src, tgt: the sentences of the rows that are mined. progress: is told of pairs whose pieces are compared."""
        self._aligner, self._src, self._tgt, self.scorer, self._progress = aligner, src, tgt, scorer, progress
        # Of the pairs seen so far: codes, increasing, and what their pieces give to the hidden layer.
        self._codes = np.zeros(0, dtype=np.int64)
        self._drives = np.zeros((0, len(scorer.bias)), dtype=np.float32)

    def __call__(self, best: BestBothWays, neighbours: NeighboursLike, k: int) -> BestBothWays:
        """The same candidates with log odds for scores; the first ``k`` columns of the neighbours count."""
        fwd = neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k]
        bwd = neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k]
        sides = []
        for one, mine, other, forward in (
            (best.forward, fwd, bwd, True),
            (best.backward, bwd, fwd, False),
        ):
            rows = np.flatnonzero(one.id >= 0)
            score = np.full(len(one.id), -np.inf)
            for start in range(0, len(rows), BLOCK_PAIRS):
                some = rows[start : start + BLOCK_PAIRS]
                others = one.id[some]
                found = candidate_features(some, others, *mine, *other)
                src, tgt = (some, others) if forward else (others, some)
                hidden = self.scorer.drive(found, 0) + self._aligned(src, tgt)
                score[some] = np.round(self.scorer.score(hidden), SCORE_DECIMALS) + 0.0  # no -0.0
            sides.append(Best(one.id, score))
        return BestBothWays(*sides)

    def _aligned(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, h): what the pieces of the pairs give to the hidden layer."""
        codes = src * len(self._tgt) + tgt
        at = np.minimum(np.searchsorted(self._codes, codes), max(0, len(self._codes) - 1))
        new = np.unique(codes[self._codes[at] != codes] if len(self._codes) else codes)
        if len(new):
            new_src, new_tgt = np.divmod(new, len(self._tgt))
            features = self._aligner.features(self._src.take(new_src), self._tgt.take(new_tgt))
            self._progress(len(new))
            drives = self.scorer.drive(features, CANDIDATE_FEATURES).astype(np.float32)
            place = np.searchsorted(self._codes, new)
            self._codes = np.insert(self._codes, place, new)
            self._drives = np.insert(self._drives, place, drives, axis=0)
        found: NDArray[np.float32] = self._drives[np.searchsorted(self._codes, codes)]
        return found
