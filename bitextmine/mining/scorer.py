"""Rescoring: candidates scored by their margin and the matches of their pieces together.

The score is the log odds that a pair is a translation. Two small networks (one hidden layer each) compute it: one from
the features of `candidate_features` alone, for candidates whose margin leaves no hope, and one from these and those of
`piece_features` for the others. No feature is an absolute cosine, whose level differs between kinds of text. The odds
hold for a given share of true pairs among the candidates; `calibration` adapts them to the corpora at hand. `bitextmine
encoder fit-scorer` fits the networks to mined candidates with known translations, and puts them into the encoder's
folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.folder import SCORER
from bitextmine.encoder.pieces import PieceRows
from bitextmine.encoder.weights import check_finite, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.mining.margin import BestBothWays, BestCandidates, neighbourhood_mean, rounded
from bitextmine.mining.piece_features import FEATURES, PieceFeatures, Sentences
from bitextmine.search.neighbours import Neighbours
from bitextmine.shipped import shipped_folder
from bitextmine.system import processors

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

CANDIDATE_FEATURES = 5
# Two of their columns.
LOG_RATIO, SIZE = 1, 4
# Scorers are fitted to margins of this many neighbours; further ones do not count.
NEIGHBOURS = 4
# Sizes of corpora are clipped to these limits: the networks were fitted to none beyond.
SMALLEST_CORPUS, LARGEST_CORPUS = 1_000, 40_000
# A lower mean of a neighbourhood would make meaningless ratios.
SMALLEST_MEAN = 0.05
SMALLEST_RATIO, LARGEST_RATIO = 0.05, 4.0
# Small enough for the processor's cache.
BLOCK_PAIRS = 1 << 10
# Multiplications of a product that OpenBLAS computes in one thread.
_SMALL_PRODUCT = 1 << 18


def pair_cosines(
    rows: NDArray[np.int64], others: NDArray[np.int64], sim: NDArray, ids: NDArray
) -> NDArray[np.float64]:
    """Return (p,) the cosine of row rows[i] with row others[i] of the other side, from the rows' neighbours (n, k).

    -inf if it is none of them.
    """
    found: NDArray[np.float64] = np.where(ids[rows] == others[:, None], sim[rows], -np.inf).max(
        axis=1, initial=-np.inf
    )
    return found.astype(np.float64)


def candidate_features(
    src: NDArray[np.int64],
    tgt: NDArray[np.int64],
    cosine: NDArray[np.float64],
    neighbours: Neighbours,
    k: int,
    sizes: tuple[int, int] | None = None,
) -> NDArray[np.float64]:
    """Return (p, CANDIDATE_FEATURES) for the pairs of source row src[i] with target row tgt[i].

    The features are the ratio margin and its logarithm, the distance of the pair's cosine from that of the next best
    neighbour of the source and of the target (0 without one), and the size of the corpora (log10 of the geometric
    mean): in smaller corpora neighbours are farther away, and margins of wrong pairs higher. The k nearest neighbours
    count; `sizes` are the rows of both corpora, if not those of the neighbours.
    """
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
    both = (len(neighbours.fwd_id), len(neighbours.bwd_id)) if sizes is None else sizes
    size = np.log10(np.clip(np.array(both, dtype=np.float64), SMALLEST_CORPUS, LARGEST_CORPUS)).mean()
    return np.stack([ratio, np.log(ratio), *gaps, np.full(len(ratio), size)], axis=1)


@dataclasses.dataclass(frozen=True)
class ScorerNetwork:
    """The function out @ tanh(hidden @ ((features - mean) / scale) + bias) + constant.

    Shapes: hidden (h, f), bias (h,), out (h,), constant (1,), mean and scale (f,), all float32.
    """

    hidden: NDArray
    bias: NDArray
    out: NDArray
    constant: NDArray
    mean: NDArray
    scale: NDArray

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray], network: str, features: int) -> ScorerNetwork:
        """Return a network of so many features from the tensors of a file; ValueError if it is another."""
        names = [field.name for field in dataclasses.fields(cls)]
        parts = [arrays.get(f"{network}.{name}", np.zeros(0)) for name in names]
        units = len(np.atleast_1d(parts[1]))
        if [part.shape for part in parts] != [(units, features), *[(units,)] * 2, (1,), *[(features,)] * 2]:
            raise ValueError(f"{network}: not a network of {features} features")
        return cls(*parts)

    def drive(self, features: NDArray, first: int = 0) -> NDArray:
        """Return (n, h) float64: the input of the hidden layer from ``features`` (n, g), from number ``first`` on."""
        part = slice(first, first + features.shape[1])
        weights = self.hidden[:, part].T.astype(np.float64)
        hidden = np.empty((len(features), weights.shape[1]))
        # BLAS spreads a larger product over threads, which then wait at full speed for the next one.
        step = max(1, _SMALL_PRODUCT // max(1, weights.size))
        for start in range(0, len(features), step):
            # In float64, so that the rounding of a score does not depend on how many are computed together.
            usual = (features[start : start + step].astype(np.float64) - self.mean[part]) / self.scale[part]
            np.matmul(usual, weights, out=hidden[start : start + step])
        return hidden

    def score(self, hidden: NDArray) -> NDArray[np.float64]:
        """Return (n,) log odds from the whole input (n, h) of the hidden layer."""
        # Not a product with a vector, which BLAS would spread over threads of its own.
        found: NDArray[np.float64] = np.einsum(
            "ij,j->i", np.tanh(hidden + self.bias), self.out.astype(np.float64)
        )
        return found + self.constant[0]


@dataclasses.dataclass(frozen=True)
class Scorer:
    """The networks of a scorer: `pieces` scores candidates again whose score by `margin` reaches `cut` (log odds).

    The log odds hold where a `share` of the candidates are true.
    """

    margin: ScorerNetwork
    pieces: ScorerNetwork
    cut: float
    share: float

    @classmethod
    def read(cls, path: Path) -> Scorer:
        """Read a safetensors file; BitextmineError if it holds no scorer of this version."""
        arrays = read_arrays(path)
        check_finite(arrays, path)
        try:
            margin = ScorerNetwork.of(arrays, "margin", CANDIDATE_FEATURES)
            pieces = ScorerNetwork.of(arrays, "pieces", CANDIDATE_FEATURES + FEATURES)
            return cls(margin, pieces, float(arrays["cut"].item()), float(arrays["share"].item()))
        except (KeyError, ValueError) as e:
            raise BitextmineError(
                f"{path}: not a scorer of this version ({e}); make it again with 'bitextmine encoder fit-scorer'"
            ) from None

    def arrays(self) -> dict[str, NDArray]:
        """Return the tensors of its file, by name."""
        found = {
            f"{name}.{field.name}": np.ascontiguousarray(getattr(network, field.name), dtype=np.float32)
            for name, network in (("margin", self.margin), ("pieces", self.pieces))
            for field in dataclasses.fields(ScorerNetwork)
        }
        return found | {name: np.array([getattr(self, name)], dtype=np.float32) for name in ("cut", "share")}

    @property
    def hash(self) -> str:
        """8 hex digits that change with any of the numbers."""
        return hashlib.sha256(b"".join(part.tobytes() for part in self.arrays().values())).hexdigest()[:8]


def packaged_scorer(name: str = "default") -> Scorer:
    """Return the scorer of an encoder in the package."""
    return Scorer.read(shipped_folder(name) / SCORER)


@dataclasses.dataclass(eq=False)
class Rescorer:
    """Rescores the candidates of two sides; each pair's pieces are compared once.

    `progress` gets the numbers of pairs that are compared; `sizes` are those of `candidate_features`.
    """

    pieces: PieceFeatures
    src: Sentences
    tgt: Sentences
    scorer: Scorer
    progress: Callable[[int], object] = lambda n: None
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        # Pairs seen so far: codes, increasing, and the input of the hidden layer from their pieces.
        self._codes = np.zeros(0, dtype=np.int64)
        self._drives = np.zeros((0, len(self.scorer.pieces.bias)), dtype=np.float32)

    def __call__(self, best: BestBothWays, neighbours: Neighbours, k: int) -> BestBothWays:
        """Return the same candidates with log odds for scores; the first ``k`` columns of the neighbours count."""
        src, tgt = (np.flatnonzero(side.id >= 0) for side in (best.forward, best.backward))
        others = best.forward.id[src], best.backward.id[tgt]
        forward = pair_cosines(src, others[0], neighbours.fwd_sim[:, :k], neighbours.fwd_id[:, :k])
        backward = pair_cosines(tgt, others[1], neighbours.bwd_sim[:, :k], neighbours.bwd_id[:, :k])
        # Most pairs are candidates both ways; their cosines may differ in the last bit.
        both = np.concatenate([src, others[1]]), np.concatenate([others[0], tgt])
        found = self.scores(*both, np.concatenate([forward, backward]), neighbours, k)
        sides = []
        for side, rows, scores in zip(
            (best.forward, best.backward), (src, tgt), np.split(found, [len(src)]), strict=True
        ):
            score = np.full(len(side.id), -np.inf)
            score[rows] = scores
            sides.append(BestCandidates(side.id, score))
        return BestBothWays(*sides)

    def scores(
        self,
        src: NDArray[np.int64],
        tgt: NDArray[np.int64],
        cosine: NDArray[np.float64],
        neighbours: Neighbours,
        k: int,
    ) -> NDArray[np.float64]:
        """Return (p,) log odds of the pairs of source row src[i] with target row tgt[i], rounded.

        Arguments are those of `candidate_features`. At most NEIGHBOURS neighbours count: the odds were fitted to
        margins of these.
        """
        k = min(k, NEIGHBOURS)
        features = np.empty((len(src), CANDIDATE_FEATURES))
        score = np.empty(len(src))

        def by_margin(part: slice) -> None:
            features[part] = candidate_features(src[part], tgt[part], cosine[part], neighbours, k, self.sizes)
            score[part] = self.scorer.margin.score(self.scorer.margin.drive(features[part]))

        _each(by_margin, len(src))
        hopeful = np.flatnonzero(score >= self.scorer.cut)
        codes = src[hopeful] * len(self.tgt) + tgt[hopeful]
        self._compare(codes)
        known = np.searchsorted(self._codes, codes)
        network = self.scorer.pieces

        def by_pieces(part: slice) -> None:
            hidden = network.drive(features[hopeful[part]]) + self._drives[known[part]]
            score[hopeful[part]] = network.score(hidden)

        _each(by_pieces, len(hopeful))
        return rounded(score)

    def _compare(self, codes: NDArray[np.int64]) -> None:
        new = np.sort(codes)  # not setdiff1d(), which hashes millions of codes that are known already
        new = new[np.append(True, new[1:] != new[:-1])] if len(new) else new
        place = np.searchsorted(self._codes, new)
        known = np.append(self._codes, -1)[place] == new
        new, place = new[~known], place[~known]
        if not len(new):
            return
        drives = np.empty((len(new), self._drives.shape[1]), dtype=np.float32)

        def compare(part: slice) -> None:
            src, tgt = np.divmod(new[part], len(self.tgt))
            features = self.pieces.features(self.src.take(src), self.tgt.take(tgt))
            drives[part] = self.scorer.pieces.drive(features, CANDIDATE_FEATURES)

        _each(compare, len(new), self.progress)
        self._codes = np.insert(self._codes, place, new)
        self._drives = np.insert(self._drives, place, drives, axis=0)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """Everything that rescoring needs: an encoder on the CPU, the comparison of its pieces, a scorer."""

    encoder: Encoder
    pieces: PieceFeatures
    scorer: Scorer


def open_scoring(
    encoder: Encoder, model: str | os.PathLike[str] | Encoder, wanted: bool | None = None
) -> Scoring | None:
    """Return the means of rescoring, or None if it is not wanted; `wanted` None: if there is a scorer in its folder.

    An encoder without one gets that of the default encoder. One that is not on the CPU is loaded again from `model`.

    Raises:
        BitextmineError: rescoring is wanted, but the encoder has no vectors of pieces; the scorer cannot be read.
    """
    from bitextmine.encoder import load_encoder

    folder: Path | None = getattr(encoder, "folder", None)
    own = Scorer.read(folder / SCORER) if folder is not None and (folder / SCORER).is_file() else None
    if wanted is False or (wanted is None and own is None):
        return None
    here = encoder if encoder.device == "cpu" else load_encoder(model, "cpu")
    if wanted is None and not isinstance(here.network, PieceRows):
        return None
    return Scoring(here, PieceFeatures(*here.piece_rows()), own or packaged_scorer())


def _each(
    work: Callable[[slice], None], count: int, progress: Callable[[int], object] = lambda n: None
) -> None:
    """Call ``work`` for blocks of ``count`` pairs in parallel: most of it runs without the interpreter's lock."""
    parts = [slice(start, min(start + BLOCK_PAIRS, count)) for start in range(0, count, BLOCK_PAIRS)]
    with ThreadPoolExecutor(processors(), thread_name_prefix="rescore") as pool:
        for part, _ in zip(parts, pool.map(work, parts), strict=True):
            progress(part.stop - part.start)
