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

# What holds another index, and what holds a quantiser or k-means parameters, in FAISS's own names.
_INDEXES = ("index", "quantizer", "base_index", "refine_index", "storage")
_QUANTISERS = ("q1", "pq", "rq", "prq")


@contextlib.contextmanager
def few_rows_allowed(index: Any) -> Iterator[None]:
    """Let an untrained index train on few rows without a warning; it learns the same."""
    rotations = [each for each in _transforms(index) if isinstance(each, faiss.OPQMatrix) and each.pq is None]
    # OPQ trains a product quantiser: its own (of 8 bits), or the one that it is given, which stays ours.
    trials = [faiss.ProductQuantizer(each.d_out, each.M, 8) for each in rotations]
    for rotation, trial in zip(rotations, trials, strict=True):
        rotation.pq = trial
    try:
        for holder in [*_indexes(index), *trials]:
            for parameters in _parameters(holder):
                parameters.min_points_per_centroid = 1
        yield
    finally:
        for rotation in rotations:
            rotation.pq = None


def _indexes(whole: Any) -> Iterator[Any]:
    """Yield the index and all indexes inside it."""
    index: Any = faiss.downcast_index(whole)
    yield index
    for name in _INDEXES:
        inner = getattr(index, name, None)
        if isinstance(inner, faiss.Index):
            yield from _indexes(inner)
    if isinstance(index, faiss.Index2Layer):
        level: Any = index.q1
        yield from _indexes(level.quantizer)


def _transforms(index: Any) -> Iterator[Any]:
    """Yield the transforms that vectors pass before an index."""
    for each in _indexes(index):
        if isinstance(each, faiss.IndexPreTransform):
            chain: Any = each.chain
            for number in range(chain.size()):
                yield faiss.downcast_VectorTransform(chain.at(number))


def _parameters(holder: Any) -> Iterator[Any]:
    """Yield the k-means parameters of an index or a quantiser."""
    found = getattr(holder, "cp", None)
    if found is not None:
        yield found
    for name in _QUANTISERS:
        inner = getattr(holder, name, None)
        if inner is not None:
            yield from _parameters(inner)
    if isinstance(holder, faiss.ProductAdditiveQuantizer):
        downcast: Any = getattr(faiss, "downcast_AdditiveQuantizer")  # noqa: B009 (the stubs lack it)
        for number in range(holder.nsplits):
            yield from _parameters(downcast(holder.subquantizer(number)))
