"""The k-means inside FAISS indexes: where its parameters are, and keeping its warnings off standard error.

FAISS writes to the process's standard error when it clusters fewer than `min_points_per_centroid` rows for each
centroid. It decides nothing by that number. An index on few rows is no mistake here: its recall is measured and
reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import faiss

# The parts of an index that hold k-means parameters (cp), or are indexes and quantisers themselves.
_PARTS = ("index", "quantizer", "base_index", "refine_index", "storage", "q1", "pq", "rq", "prq")


@contextlib.contextmanager
def few_rows_allowed(index: Any) -> Iterator[None]:
    """Let an untrained index train on few rows without a warning; it learns the same."""
    parts = list(_parts(index))
    rotations = [each for each in parts if isinstance(each, faiss.OPQMatrix) and each.pq is None]
    # OPQ trains a product quantiser: its own (of 8 bits), or the one that it is given, which stays ours.
    trials = [faiss.ProductQuantizer(each.d_out, each.M, 8) for each in rotations]
    for rotation, trial in zip(rotations, trials, strict=True):
        rotation.pq = trial
    try:
        for holder in [*parts, *trials]:
            if (parameters := getattr(holder, "cp", None)) is not None:
                parameters.min_points_per_centroid = 1
        yield
    finally:
        for rotation in rotations:
            rotation.pq = None


def _parts(whole: Any) -> Iterator[Any]:
    """Yield an index, and all indexes, quantisers and transforms inside it."""
    if isinstance(whole, faiss.Index):
        whole = faiss.downcast_index(whole)
    yield whole
    for inner in (getattr(whole, name, None) for name in _PARTS):
        if inner is not None and not isinstance(inner, (int, float)):
            yield from _parts(inner)
    if isinstance(whole, faiss.IndexPreTransform):
        chain: Any = whole.chain
        yield from (faiss.downcast_VectorTransform(chain.at(i)) for i in range(chain.size()))
    if isinstance(whole, faiss.ProductAdditiveQuantizer):
        downcast: Any = getattr(faiss, "downcast_AdditiveQuantizer")  # noqa: B009 (the stubs lack it)
        for number in range(whole.nsplits):
            yield from _parts(downcast(whole.subquantizer(number)))
