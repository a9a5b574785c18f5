"""The neighbourhoods of a margin: the pairs of the stream, or two indexed corpora."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.mining.margin import neighbourhood_mean
from bitextmine.search.exact import search_both, search_one

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

# Unit vectors of the sources and of the targets, float32 (n, d) each.
Vectors = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Around:
    """Neighbourhoods of pairs.

    Attributes:
        src, tgt: the mean cosine of each source to its nearest targets, and the reverse, float64 (n,).
        size: the number of texts that these were chosen from, on the smaller side.
    """

    src: NDArray[np.float64]
    tgt: NDArray[np.float64]
    size: int


class Neighbourhood(Protocol):
    """Finds the neighbourhood of each pair of a stream."""

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> Around:
        """Return the neighbourhoods of the next pairs: texts (n,) with the vectors of both sides."""


class WindowNeighbourhood:
    """Neighbours among the last `window` pairs of the stream, the pairs themselves included.

    Equal texts of a side count once: a repeated line must not fill its own neighbourhood. Texts on both sides count on
    neither: they are copies, nearer to themselves than any translation. A block shorter than the window is seen
    together with the pairs before it, so that the last pairs of a stream have neighbourhoods as large as the first.
    """

    def __init__(self, k: int = 4, window: int = 4096) -> None:
        self.k, self.window = k, window
        self._texts: list[list[str]] = [[], []]
        self._vectors: list[NDArray[np.float32]] = []

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> Around:
        """Return the neighbourhoods of the next pairs of the stream."""
        self.remember(src, tgt, vectors)
        copies = set(self._texts[0]).intersection(self._texts[1])
        rows = [_distinct(texts, copies) for texts in self._texts]
        x, y = (side[list(some.values())] for side, some in zip(self._vectors, rows, strict=True))
        size = min(len(x), len(y))
        if len(self._texts[0]) > len(src) or size < self.k:
            return Around(nearest_mean(vectors[0], y, self.k), nearest_mean(vectors[1], x, self.k), size)
        # Nearly all queries are in the other side's pool, too: one search has both directions.
        found = search_both(x, y, self.k)
        means = (
            neighbourhood_mean(found.fwd_sim, found.fwd_id),
            neighbourhood_mean(found.bwd_sim, found.bwd_id),
        )
        both = []
        for texts, queries, pool, mean, some in zip((src, tgt), vectors, (y, x), means, rows, strict=True):
            number = {text: at for at, text in enumerate(some)}
            at = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
            around = mean[at]
            around[at < 0] = nearest_mean(queries[at < 0], pool, self.k)
            both.append(around)
        return Around(both[0], both[1], size)

    def remember(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> None:
        """Add pairs to the window."""
        dropped = max(0, len(self._texts[0]) - max(0, self.window - len(src)))
        before = self._vectors or [side[:0] for side in vectors]
        self._texts = [[*old[dropped:], *new] for old, new in zip(self._texts, (src, tgt), strict=True)]
        self._vectors = [
            np.concatenate([old[dropped:], new]) for old, new in zip(before, vectors, strict=True)
        ]


def _distinct(texts: Sequence[str], without: Collection[str]) -> dict[str, int]:
    """Return the first row of each text, without some texts."""
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text not in without:
            first.setdefault(text, row)
    return first


def nearest_mean(queries: NDArray[np.float32], pool: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """Return the mean of the k largest inner products of queries (n, d) with a pool (m, d), float64 (n,).

    NaN if the pool is empty.
    """
    if not len(pool) or not len(queries):
        return np.full(len(queries), np.nan)
    return neighbourhood_mean(*search_one(queries, pool, min(k, len(pool))))


def index_language(path: str | os.PathLike[str], encoder: Encoder) -> str:
    """Return the language of a corpus that `IndexNeighbourhood` takes, "" if it is not known."""
    from bitextmine.embeddings.store import open_embedding

    return open_embedding(_npy_of(Path(path), encoder.hash))[1].lang


class IndexNeighbourhood:
    """Neighbours among all lines of two embedded corpora, so that margins compare with those of `mine`.

    Each is a corpus (embedded as corpus.fr.npy), its .npy or its .faiss; a missing or stale index is built.

    Raises:
        BitextmineError: missing files, or vectors of another model.
    """

    def __init__(
        self, src: str | os.PathLike[str], tgt: str | os.PathLike[str], encoder: Encoder, k: int = 4
    ) -> None:
        from bitextmine.embeddings.index_file import open_index
        from bitextmine.embeddings.store import open_embedding
        from bitextmine.search.indexed import Indexed

        self.k = k
        self._sides: list[Indexed] = []
        for path in (src, tgt):
            npy = _npy_of(Path(path), encoder.hash)
            vectors, manifest = open_embedding(npy)
            if manifest.model_hash != encoder.hash:
                raise BitextmineError(
                    f"{npy}: made with model {manifest.model} ({manifest.model_hash}), but the pairs are scored with "
                    f"{encoder.name} ({encoder.hash}); pass the same --model, or embed the corpus again"
                )
            self._sides.append(Indexed(vectors, open_index(npy)))

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> Around:
        """Return the neighbourhoods of pairs."""
        x, y = vectors
        src_side, tgt_side = self._sides
        half = [
            # Rounded as the stored vectors are, a line of the corpus finds itself.
            side.search(queries.astype(side.vectors.dtype), min(self.k, len(side.vectors)))
            for queries, side in ((x, tgt_side), (y, src_side))
        ]
        size = min(src_side.index.rows, tgt_side.index.rows)
        return Around(neighbourhood_mean(*half[0]), neighbourhood_mean(*half[1]), size)


def _npy_of(path: Path, model_hash: str) -> Path:
    from bitextmine.embeddings.store import embedding_paths, vectors_path
    from bitextmine.files.location import Location

    if path.suffix == ".npy":
        return path
    if path.suffix == ".faiss":
        return path.with_suffix(".npy")
    corpus = Location.of(path)
    npy = vectors_path(corpus, model_hash)
    return npy if npy.exists() else embedding_paths(corpus)[0]
