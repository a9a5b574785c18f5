"""Scoring candidates a second time, by what their margin and the matches of their pieces say together.

The score is the logarithm of the odds that a pair is a translation, as they were where it was fitted: about one line
in sixty had a translation, and four neighbours counted. Elsewhere it ranks pairs, and a threshold is estimated as for
margins. A small network (one hidden layer) gives it from the features of `candidate_features` and `piece_features`;
`bitextmine encoder fit-scorer` fits it to mined candidates whose translations are known.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.mine.candidates import SCORE_DECIMALS, BestBothWays, BestCandidates, NeighboursLike
from bitextmine.mine.dedup import Unique
from bitextmine.mine.margin import neighbourhood_mean
from bitextmine.mine.piece_features import FEATURES, PieceFeatures
from bitextmine.system import processors

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = [
    "CANDIDATE_FEATURES",
    "Rescorer",
    "Scorer",
    "candidate_features",
    "packaged_scorer",
    "pair_cosines",
    "row_pieces",
    "with_pieces",
]

CANDIDATE_FEATURES = 7
# Means of neighbourhoods near 0 would make ratios without meaning.
SMALLEST_MEAN = 0.05
SMALLEST_RATIO, LARGEST_RATIO = 0.05, 4.0
BLOCK_PAIRS = 1 << 15
LINES_AT_ONCE = 1 << 16


def pair_cosines(
    rows: NDArray[np.int64], others: NDArray[np.int64], sim: NDArray, ids: NDArray
) -> NDArray[np.float64]:
    """(p,) the cosine of row rows[i] with row others[i] of the other side, as found among the rows' neighbours sim, ids
    (n, k); -inf where it is none of them."""
    found: NDArray[np.float64] = np.where(ids[rows] == others[:, None], sim[rows], -np.inf).max(
        axis=1, initial=-np.inf
    )
    return found.astype(np.float64)


def candidate_features(
    src: NDArray[np.int64],
    tgt: NDArray[np.int64],
    cosine: NDArray[np.float64],
    neighbours: NeighboursLike,
    k: int,
) -> NDArray[np.float64]:
    """(p, CANDIDATE_FEATURES) for the pairs of source row src[i] with target row tgt[i], whose cosine is cosine[i]: the
    ratio margin, its logarithm, the cosine, the mean cosine of the k nearest neighbours of the source and of the
    target, and how far the pair's cosine is above that of the next best neighbour of the source and of the target
    (0 without one)."""
    means, gaps = [], []
    for rows, others, sim, ids in (
        (src, tgt, neighbours.fwd_sim, neighbours.fwd_id),
        (tgt, src, neighbours.bwd_sim, neighbours.bwd_id),
    ):
        values, names = sim[rows, :k], ids[rows, :k]
        mean = neighbourhood_mean(values, names)
        means.append(np.where(np.isnan(mean), cosine, mean))
        rivals = (names >= 0) & (names != others[:, None])
        next_best = np.where(rivals, values, -np.inf).max(axis=1, initial=-np.inf)
        gaps.append(np.where(np.isfinite(next_best), cosine - next_best, 0.0))
    around = np.maximum((means[0] + means[1]) / 2, SMALLEST_MEAN)
    ratio = np.clip(cosine / around, SMALLEST_RATIO, LARGEST_RATIO)
    return np.stack([ratio, np.log(ratio), cosine, *means, *gaps], axis=1)


@dataclasses.dataclass(frozen=True)
class Scorer:
    """score = out @ tanh(hidden @ ((features - mean) / scale) + bias) + constant.

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
        """Raises BitextmineError for a file that is missing, no safetensors file, of other tensors, or of other
        features than this version has."""
        arrays = read_arrays(path)
        names = [field.name for field in dataclasses.fields(cls)]
        if sorted(arrays) != sorted(names):
            raise BitextmineError(
                f"{path}: not a scorer: expected {', '.join(names)}, found {', '.join(arrays)}"
            )
        wanted = CANDIDATE_FEATURES + FEATURES
        if arrays["hidden"].shape[1:] != (wanted,) or {arrays["mean"].shape, arrays["scale"].shape} != {
            (wanted,)
        }:
            raise BitextmineError(f"{path}: a scorer of other than {wanted} features, by another version")
        return cls(**arrays)

    @property
    def hash(self) -> str:
        """8 hex digits that change with any of the numbers."""
        parts = (np.ascontiguousarray(getattr(self, field.name)) for field in dataclasses.fields(self))
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]

    def drive(self, features: NDArray, first: int) -> NDArray:
        """(n, h) float64: what ``features`` (n, g), the ones from number ``first`` on, give to the hidden layer."""
        part = slice(first, first + features.shape[1])
        # In float64, so that the rounding of a score does not depend on how many are computed together.
        usual = (features.astype(np.float64) - self.mean[part]) / self.scale[part]
        hidden: NDArray = usual @ self.hidden[:, part].T.astype(np.float64)
        return hidden

    def score(self, hidden: NDArray) -> NDArray[np.float64]:
        """(n,) log odds from (n, h), the sum of all that drives the hidden layer."""
        found: NDArray[np.float64] = (
            np.tanh(hidden + self.bias) @ self.out.astype(np.float64) + self.constant[0]
        )
        return found


def packaged_scorer() -> Scorer:
    """The scorer that came with the package."""
    return Scorer.read(Path(str(resources.files("bitextmine.mine"))) / "scorer.safetensors")


class Rescorer:
    """Scores the candidates of two sides of text again; what pieces say of a pair is worked out once."""

    def __init__(
        self,
        pieces: PieceFeatures,
        src: Pieces,
        tgt: Pieces,
        scorer: Scorer,
        progress: Callable[[int], object] = lambda n: None,
    ) -> None:
        """src, tgt: the sentences of the rows that are mined. progress: is told of pairs whose pieces are compared."""
        self._pieces, self._src, self._tgt, self.scorer, self._progress = pieces, src, tgt, scorer, progress
        # Of the pairs seen so far: codes, increasing, and what their pieces give to the hidden layer.
        self._codes = np.zeros(0, dtype=np.int64)
        self._drives = np.zeros((0, len(scorer.bias)), dtype=np.float32)

    def __call__(self, best: BestBothWays, neighbours: NeighboursLike, k: int) -> BestBothWays:
        """The same candidates with log odds for scores; the first ``k`` columns of the neighbours count."""
        found = []
        for one, sim, ids, forward in (
            (best.forward, neighbours.fwd_sim, neighbours.fwd_id, True),
            (best.backward, neighbours.bwd_sim, neighbours.bwd_id, False),
        ):
            rows = np.flatnonzero(one.id >= 0)
            others = one.id[rows]
            cosine = pair_cosines(rows, others, sim[:, :k], ids[:, :k])
            src, tgt = (rows, others) if forward else (others, rows)
            score = np.full(len(one.id), -np.inf)
            score[rows] = self.scores(src, tgt, cosine, neighbours, k)
            found.append(BestCandidates(one.id, score))
        return BestBothWays(*found)

    def scores(
        self,
        src: NDArray[np.int64],
        tgt: NDArray[np.int64],
        cosine: NDArray[np.float64],
        neighbours: NeighboursLike,
        k: int,
    ) -> NDArray[np.float64]:
        """(p,) log odds of the pairs of source row src[i] with target row tgt[i], as `candidate_features` takes them,
        rounded to SCORE_DECIMALS."""
        self._compare(self._code(src, tgt))
        score = np.empty(len(src))
        for start in range(0, len(src), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            features = candidate_features(src[part], tgt[part], cosine[part], neighbours, k)
            known = np.searchsorted(self._codes, self._code(src[part], tgt[part]))
            hidden = self.scorer.drive(features, 0) + self._drives[known]
            score[part] = np.round(self.scorer.score(hidden), SCORE_DECIMALS) + 0.0  # no -0.0
        return score

    def _code(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> NDArray[np.int64]:
        return src * len(self._tgt) + tgt

    def _compare(self, codes: NDArray[np.int64]) -> None:
        """Works out what the pieces of these pairs give to the hidden layer, of those that are new."""
        new = np.setdiff1d(codes, self._codes)
        drives = np.empty((len(new), self._drives.shape[1]), dtype=np.float32)
        for start in range(0, len(new), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            src, tgt = np.divmod(new[part], len(self._tgt))
            features = self._pieces.features(self._src.take(src), self._tgt.take(tgt))
            drives[part] = self.scorer.drive(features, CANDIDATE_FEATURES)
            self._progress(len(features))
        place = np.searchsorted(self._codes, new)
        self._codes = np.insert(self._codes, place, new)
        self._drives = np.insert(self._drives, place, drives, axis=0)


def with_pieces(encoder: Encoder, model: str | os.PathLike[str] | Encoder) -> tuple[Encoder, PieceFeatures]:
    """The encoder, loaded again from ``model`` where it is not on the CPU, and what compares the vectors of its pieces.

    Raises BitextmineError for an encoder that has none.
    """
    from bitextmine.encoder import as_encoder

    here = encoder if encoder.device == "cpu" else as_encoder(model, "cpu")
    return here, PieceFeatures(*here.piece_rows())


def row_pieces(lines: Iterable[str], unique: Unique, encoder: Encoder) -> Pieces:
    """The pieces of the lines of a text that are mined, a sentence for each row of ``unique``."""
    wanted = np.zeros(unique.lines, dtype=bool)
    wanted[unique.rows] = True
    mined = itertools.compress(lines, wanted.tolist())
    parts = []
    while part := list(itertools.islice(mined, LINES_AT_ONCE)):
        parts.append(encoder.tokenizer.encode(part, encoder.max_pieces, threads=processors())[0])
    return Pieces.join(parts)
