"""Scoring candidates a second time, by what their margin and the matches of their pieces say together.

The score is the logarithm of the odds that a pair is a translation. Two small networks (one hidden layer each) give it:
one from the features of `candidate_features` alone, for candidates whose margin leaves no hope, and one from these and
those of `piece_features` for the others. No feature is an absolute cosine, whose level differs between kinds of text.
The odds are those of text in which a given share of the candidates are pairs; `calibration` moves them to the share of
the corpora at hand. `bitextmine encoder fit-scorer` fits the networks to mined candidates whose translations are known,
and puts them into the encoder's folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.folder import SCORER, packaged
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import PieceRows
from bitextmine.encoder.weights import read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.mining.candidates import SCORE_DECIMALS, BestBothWays, BestCandidates, NeighboursLike
from bitextmine.mining.dedup import Unique
from bitextmine.mining.margin import neighbourhood_mean
from bitextmine.mining.piece_features import FEATURES, PieceFeatures
from bitextmine.system import processors

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = [
    "CANDIDATE_FEATURES",
    "LOG_RATIO",
    "NEIGHBOURS",
    "SIZE",
    "Network",
    "Rescorer",
    "Scorer",
    "Scoring",
    "candidate_features",
    "open_scoring",
    "packaged_scorer",
    "pair_cosines",
    "row_pieces",
]

CANDIDATE_FEATURES = 5
# Two of their columns.
LOG_RATIO, SIZE = 1, 4
# Scorers are fitted to margins of so many neighbours; of more, these count.
NEIGHBOURS = 4
# Sizes of corpora beyond these count as these: the networks were fitted to none.
SMALLEST_CORPUS, LARGEST_CORPUS = 1_000, 40_000
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
    sizes: tuple[int, int] | None = None,
) -> NDArray[np.float64]:
    """(p, CANDIDATE_FEATURES) for the pairs of source row src[i] with target row tgt[i], whose cosine is cosine[i]: the
    ratio margin, its logarithm, how far the pair's cosine is above that of the next best neighbour of the source
    and of the target (0 without one), and the size of the corpora. The k nearest neighbours count.

    sizes: rows of both corpora, default those of the neighbours. The fewer there are, the farther the neighbours of
    any sentence, and the higher the margin of a pair that is none: so the size, log10 of the geometric mean, counts.
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
class Network:
    """out @ tanh(hidden @ ((features - mean) / scale) + bias) + constant.

    hidden (h, f), bias (h,), out (h,), constant (1,), mean and scale (f,), all float32.
    """

    hidden: NDArray
    bias: NDArray
    out: NDArray
    constant: NDArray
    mean: NDArray
    scale: NDArray

    def drive(self, features: NDArray, first: int = 0) -> NDArray:
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


@dataclasses.dataclass(frozen=True)
class Scorer:
    """margin, of CANDIDATE_FEATURES, scores a candidate; where that reaches ``cut``, pieces, of FEATURES more, does.

    cut: log odds; share: of true pairs among the candidates, at which the log odds hold.
    """

    margin: Network
    pieces: Network
    cut: float
    share: float

    @classmethod
    def read(cls, path: Path) -> Scorer:
        """Raises BitextmineError for a file that is missing, no safetensors file, of other tensors, or of other
        features than this version has."""
        arrays = read_arrays(path)
        names = [field.name for field in dataclasses.fields(Network)]
        wanted = {"margin": CANDIDATE_FEATURES, "pieces": CANDIDATE_FEATURES + FEATURES}
        expected = sorted([f"{network}.{name}" for network in wanted for name in names] + ["cut", "share"])
        if sorted(arrays) != expected:
            raise BitextmineError(
                f"{path}: not a scorer: expected {', '.join(expected)}, found {', '.join(arrays)}; "
                "make it again with 'bitextmine encoder fit-scorer'"
            )
        parts = {}
        for network, features in wanted.items():
            part = Network(*(arrays[f"{network}.{name}"] for name in names))
            units = len(part.bias)
            shapes = [(units, features), (units,), (units,), (1,), (features,), (features,)]
            if [getattr(part, name).shape for name in names] != shapes:
                raise BitextmineError(
                    f"{path}: a scorer of other than {features} features, by another version; make it again with "
                    "'bitextmine encoder fit-scorer'"
                )
            parts[network] = part
        return cls(
            parts["margin"], parts["pieces"], *(float(arrays[name].item()) for name in ("cut", "share"))
        )

    def arrays(self) -> dict[str, NDArray]:
        """What a file of it holds, by name."""
        found = {
            f"{name}.{field.name}": np.ascontiguousarray(getattr(network, field.name), dtype=np.float32)
            for name, network in (("margin", self.margin), ("pieces", self.pieces))
            for field in dataclasses.fields(Network)
        }
        return found | {name: np.array([getattr(self, name)], dtype=np.float32) for name in ("cut", "share")}

    @property
    def hash(self) -> str:
        """8 hex digits that change with any of the numbers."""
        return hashlib.sha256(b"".join(part.tobytes() for part in self.arrays().values())).hexdigest()[:8]


def packaged_scorer(name: str = "default") -> Scorer:
    """The scorer of an encoder that came with the package."""
    return Scorer.read(packaged(name) / SCORER)


class Rescorer:
    """Scores the candidates of two sides of text again; what pieces say of a pair is worked out once."""

    def __init__(
        self,
        pieces: PieceFeatures,
        src: Pieces,
        tgt: Pieces,
        scorer: Scorer,
        progress: Callable[[int], object] = lambda n: None,
        sizes: tuple[int, int] | None = None,
    ) -> None:
        """src, tgt: the sentences of the rows that are mined. progress: is told of pairs whose pieces are compared.
        sizes: as `candidate_features` takes them."""
        self._sizes = sizes
        self._pieces, self._src, self._tgt, self.scorer, self._progress = pieces, src, tgt, scorer, progress
        # The first candidates are asked for again, by the calibration, the pairs and the threshold.
        self._first: tuple[BestBothWays, NeighboursLike, int, BestBothWays] | None = None
        # Of the pairs seen so far: codes, increasing, and what their pieces give to the hidden layer.
        self._codes = np.zeros(0, dtype=np.int64)
        self._drives = np.zeros((0, len(scorer.pieces.bias)), dtype=np.float32)

    def __call__(self, best: BestBothWays, neighbours: NeighboursLike, k: int) -> BestBothWays:
        """The same candidates with log odds for scores; the first ``k`` columns of the neighbours count."""
        if self._first is not None:
            same_best, same_neighbours, same_k, known = self._first
            if best is same_best and neighbours is same_neighbours and k == same_k:
                return known
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
        scored = BestBothWays(*found)
        if self._first is None:
            self._first = best, neighbours, k, scored
        return scored

    def scores(
        self,
        src: NDArray[np.int64],
        tgt: NDArray[np.int64],
        cosine: NDArray[np.float64],
        neighbours: NeighboursLike,
        k: int,
    ) -> NDArray[np.float64]:
        """(p,) log odds of the pairs of source row src[i] with target row tgt[i], as `candidate_features` takes them,
        rounded to SCORE_DECIMALS. Of more than NEIGHBOURS neighbours these count, whose margins are what the odds were
        fitted to."""
        k = min(k, NEIGHBOURS)
        features = np.empty((len(src), CANDIDATE_FEATURES))
        score = np.empty(len(src))

        def by_margin(part: slice) -> None:
            features[part] = candidate_features(
                src[part], tgt[part], cosine[part], neighbours, k, self._sizes
            )
            score[part] = self.scorer.margin.score(self.scorer.margin.drive(features[part]))

        _each(by_margin, len(src))
        hopeful = np.flatnonzero(score >= self.scorer.cut)
        codes = self._code(src[hopeful], tgt[hopeful])
        self._compare(codes)
        known = np.searchsorted(self._codes, codes)
        network = self.scorer.pieces

        def by_pieces(part: slice) -> None:
            hidden = network.drive(features[hopeful[part]]) + self._drives[known[part]]
            score[hopeful[part]] = network.score(hidden)

        _each(by_pieces, len(hopeful))
        return np.round(score, SCORE_DECIMALS) + 0.0  # no -0.0

    def _code(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> NDArray[np.int64]:
        return src * len(self._tgt) + tgt

    def _compare(self, codes: NDArray[np.int64]) -> None:
        """Works out what the pieces of these pairs give to the hidden layer, of those that are new."""
        new = np.sort(codes)  # not setdiff1d(), which puts millions of codes known already through a hash
        new = new[np.append(True, new[1:] != new[:-1])] if len(new) else new
        place = np.searchsorted(self._codes, new)
        known = np.append(self._codes, -1)[place] == new
        new, place = new[~known], place[~known]
        drives = np.empty((len(new), self._drives.shape[1]), dtype=np.float32)

        def compare(part: slice) -> None:
            src, tgt = np.divmod(new[part], len(self._tgt))
            features = self._pieces.features(self._src.take(src), self._tgt.take(tgt))
            drives[part] = self.scorer.pieces.drive(features, CANDIDATE_FEATURES)

        _each(compare, len(new), self._progress)
        self._codes = np.insert(self._codes, place, new)
        self._drives = np.insert(self._drives, place, drives, axis=0)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """What rescoring takes: an encoder on the CPU, what compares the vectors of its pieces, a scorer."""

    encoder: Encoder
    pieces: PieceFeatures
    scorer: Scorer


def open_scoring(
    encoder: Encoder, model: str | os.PathLike[str] | Encoder, wanted: bool | None = None
) -> Scoring | None:
    """What rescoring takes, with the encoder, loaded again from ``model`` where it is not on the CPU; None where
    rescoring is not ``wanted``, or where that is None and the encoder has no scorer in its folder.

    An encoder without one has that of the default encoder where it is wanted. Raises BitextmineError for an encoder
    that has no vectors of pieces, if it is wanted, and for a scorer that cannot be read.
    """
    from bitextmine.encoder import as_encoder

    folder: Path | None = getattr(encoder, "folder", None)
    own = None
    if folder is not None and (folder / SCORER).is_file():
        own = Scorer.read(folder / SCORER)
    if wanted is False or (wanted is None and own is None):
        return None
    here = encoder if encoder.device == "cpu" else as_encoder(model, "cpu")
    if wanted is None and not isinstance(here.network, PieceRows):
        return None
    return Scoring(here, PieceFeatures(*here.piece_rows()), own or packaged_scorer())


def _each(
    work: Callable[[slice], None], count: int, progress: Callable[[int], object] = lambda n: None
) -> None:
    """Calls ``work`` for blocks of ``count`` pairs, side by side: NumPy lets go of the interpreter in most of it."""
    parts = [slice(start, min(start + BLOCK_PAIRS, count)) for start in range(0, count, BLOCK_PAIRS)]
    with ThreadPoolExecutor(processors(), thread_name_prefix="rescore") as pool:
        for part, _ in zip(parts, pool.map(work, parts), strict=True):
            progress(part.stop - part.start)


def row_pieces(lines: Iterable[str], unique: Unique, encoder: Encoder) -> Pieces:
    """The pieces of the lines of a text that are mined, a sentence for each row of ``unique``."""
    wanted = np.zeros(unique.lines, dtype=bool)
    wanted[unique.rows] = True
    mined = itertools.compress(lines, wanted.tolist())
    parts = []
    while part := list(itertools.islice(mined, LINES_AT_ONCE)):
        parts.append(encoder.tokenizer.encode(part, encoder.max_pieces, threads=processors())[0])
    return Pieces.join(parts)
