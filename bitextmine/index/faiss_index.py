"""FAISS indexes over stored vectors: which kind, building, searching with exact rescoring."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.index import native
from bitextmine.index.exact import Neighbours
from bitextmine.index.rescore import rescore
from bitextmine.index.rows import Groups, Vectors, check_finite, check_pair, scan, unfold

KINDS = ("auto", "flat", "ivf", "hnsw")
FLAT_UP_TO = 50_000
_ADD_ROWS = 1 << 14
_QUERY_ROWS = 1 << 12
_TRAIN_PER_LIST = 64
_LEAST_PER_LIST = 39  # below that k-means warns that its centroids are guesses


def factory_string(kind: str, rows: int) -> str:
    """The FAISS factory string that a kind stands for at so many rows; any other string stands for itself.

    flat compares with everything; ivf keeps 8 bits per number in about 4 sqrt(rows) lists, fewer when there
    are not 39 rows for each; hnsw keeps 8 bits per number and 32 links. auto: flat up to FLAT_UP_TO rows,
    where exact comparison costs little and nothing needs training; ivf above (it is built several times
    faster than hnsw, and its search can be made as exact as one likes).
    """
    if kind == "auto":
        kind = "flat" if rows <= FLAT_UP_TO else "ivf"
    if kind == "flat":
        return "Flat"
    if kind == "ivf":
        wanted = 1 << max(0, round(np.log2(4 * np.sqrt(max(1, rows)))))
        return f"IVF{max(1, min(wanted, rows // _LEAST_PER_LIST))},SQ8"
    if kind == "hnsw":
        return "HNSW32_SQ8"
    return kind


@dataclass
class Index:
    """A FAISS index whose ids are rows of the vectors it was built from; of identical rows it has the first.

    `facts` is what its manifest says about it, besides what store.py adds for an index on disk.
    """

    faiss: Any
    facts: dict[str, Any] = field(default_factory=dict)
    _folded: tuple[Vectors, Groups | None] | None = None

    @property
    def dim(self) -> int:
        return int(self.faiss.d)

    @property
    def rows(self) -> int:
        """How many distinct vectors are in it."""
        return int(self.faiss.ntotal)

    def effort(self) -> tuple[str, int, int] | None:
        """What can be turned up for recall: ("nprobe" or "efSearch", its value, its largest useful value)."""
        core = _core(self.faiss)
        if isinstance(core, faiss.IndexIVF):
            return "nprobe", int(core.nprobe), int(core.nlist)
        if isinstance(core, faiss.IndexHNSW):
            return "efSearch", int(core.hnsw.efSearch), max(16, min(self.rows, 4096))
        return None

    def set_effort(self, value: int) -> None:
        core = _core(self.faiss)
        if isinstance(core, faiss.IndexIVF):
            core.nprobe = value
        elif isinstance(core, faiss.IndexHNSW):
            core.hnsw.efSearch = value

    def candidates(
        self, queries: Vectors, count: int, progress: Callable[[int], object] | None = None
    ) -> NDArray[np.int64]:
        """The ids (n, count) that FAISS returns, -1 where a list ran empty. Its similarities are not used."""
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise BitextmineError(
                f"the index holds vectors of {self.dim} numbers, the queries are {queries.shape[-1]} wide; "
                "make both with the same model"
            )
        faiss.omp_set_num_threads(native.processors())
        found = np.full((len(queries), count), -1, dtype=np.int64)
        for start in range(0, len(queries), _QUERY_ROWS):
            block = np.ascontiguousarray(queries[start : start + _QUERY_ROWS], dtype=np.float32)
            check_finite(block, "queries", start)
            found[start : start + len(block)] = self.faiss.search(block, count)[1]
            if progress is not None:
                progress(len(block))
        found[(found < 0)] = -1
        return found

    def search(
        self,
        queries: Vectors,
        pool: Vectors,
        k: int,
        *,
        rows: NDArray[np.int64] | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The k nearest rows of `pool` that the index finds: (similarity (n, k), id (n, k)) as search_one.

        pool: the vectors that the index was built from; or, with `rows` (one entry per vector of those, the
        row of `pool` or -1), a selection of them, which then are the ids. Several times k candidates are
        taken from FAISS and rescored from `pool`, so the similarities are exact and ordered; where the
        index finds fewer than k, the rest is -1 with -inf.
        """
        check_pair(queries, pool, "queries", "indexed vectors")
        if k < 1:
            raise BitextmineError(f"k must be at least 1, found {k}")
        known = self.facts.get("rows", len(pool) if rows is None else len(rows))
        if (len(pool) if rows is None else len(rows)) != known:
            raise BitextmineError(
                f"the index is of {known} rows, the vectors beside it are "
                f"{len(pool) if rows is None else len(rows)}; build the index again"
            )
        if self._folded is None or self._folded[0] is not pool:
            self._folded = pool, scan(pool, "indexed vectors")
        count = min(max(1, self.rows), 4 * k + 16)
        ids = self.candidates(queries, count, progress)
        return _finish(queries, pool, ids, k, self._folded[1], rows)


def _finish(
    queries: Vectors,
    pool: Vectors,
    ids: NDArray[np.int64],
    k: int,
    groups: Groups | None,
    rows: NDArray[np.int64] | None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if rows is not None:
        ids = np.where(ids < 0, -1, rows[ids])
    if groups is None:
        return rescore(queries, pool, ids, k)
    ids = np.where(ids < 0, -1, groups.first[groups.of[ids]])
    sim, found = rescore(queries, pool, ids, k)
    return unfold(sim, np.where(found < 0, -1, groups.of[found]), None, groups)


def _core(index: Any) -> Any:
    """What does the work, inside id maps, rotations and refinements."""
    while True:
        index = faiss.downcast_index(index)
        if isinstance(index, faiss.IndexPreTransform | faiss.IndexIDMap):
            index = index.index
        elif isinstance(index, faiss.IndexRefine):
            index = index.base_index
        else:
            return index


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """FAISS prints a warning per quantiser to the process's standard error when training rows are few; the
    measured recall says what they are worth."""
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    try:
        with tempfile.TemporaryFile() as sink:
            os.dup2(sink.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(saved, 2)
    finally:
        os.close(saved)


def _reason(error: RuntimeError) -> str:
    """FAISS's message without the C++ signature and the source file."""
    text = str(error)
    for mark in ("failed: ", "Error: ", ": "):
        if mark in text:
            text = text.rsplit(mark, 1)[1]
            break
    return text.strip().rstrip(".")


def build_index(
    vectors: Vectors,
    kind: str = "auto",
    *,
    seed: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Index:
    """Builds an index of the vectors (n, d), float16 or float32, in memory or memory-mapped.

    kind: auto, flat, ivf, hnsw (see factory_string) or a FAISS factory string. Of identical rows the first
    goes in, and zero rows stay out: their similarity to everything is 0. Training rows are drawn with
    `seed`. progress: called with the number of rows added. Raises BitextmineError for a NaN (naming the
    line), for no rows, for a factory string that FAISS does not know or that does not fit the dimension, and
    for too few rows to train it.
    """
    if not kind.strip():
        raise UsageError(
            "the index type is empty: expected auto, flat, ivf, hnsw or a FAISS factory string"
        )
    dim = check_pair(vectors, vectors, "vectors", "vectors") and vectors.shape[1]
    groups = scan(vectors, "vectors")
    chosen = np.arange(len(vectors)) if groups is None else groups.first
    chosen = chosen[_nonzero(vectors, chosen)]
    if not len(chosen):
        raise BitextmineError(f"nothing to index: {len(vectors)} row(s), all of them empty")
    spec = factory_string(kind, len(chosen))
    faiss.omp_set_num_threads(native.processors())
    try:
        index = faiss.index_factory(int(dim), spec, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise UsageError(
            f"--type {kind}: FAISS cannot make an index of {dim} dimensions from {spec!r} ({_reason(error)}); "
            "expected auto, flat, ivf, hnsw or a factory string such as 'IVF1024,SQ8'"
        ) from None
    _train(index, vectors, chosen, spec, seed)
    plain = len(chosen) == len(vectors)
    target = index if plain or isinstance(index, faiss.IndexIDMap) else faiss.IndexIDMap(index)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        rows = vectors[start : start + len(at)] if plain else vectors[at]
        block = np.ascontiguousarray(rows, dtype=np.float32)
        if isinstance(target, faiss.IndexIDMap):
            target.add_with_ids(block, at)
        else:
            target.add(block)
        if progress is not None:
            progress(len(at))
    facts = {
        "type": kind,
        "factory": spec,
        "metric": "inner product",
        "rows": len(vectors),
        "distinct_rows": len(chosen),
        "dim": int(dim),
        "seed": seed,
    }
    made = Index(_owned(target, index), facts)
    effort = made.effort()
    if effort is not None:
        name, _, most = effort
        made.set_effort(min(8 if name == "nprobe" else 64, most))
    return made


def _owned(target: Any, index: Any) -> Any:
    if target is not index:
        target.own_fields = True  # the map frees what it holds
        index.this.disown()
    return target


def _nonzero(vectors: Vectors, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the chosen rows are not zero. There is at most one zero row: identical ones are folded."""
    keep = np.ones(len(chosen), dtype=bool)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        keep[start : start + len(at)] = (vectors[at] != 0).any(axis=1)
    return keep


def _train(index: Any, vectors: Vectors, chosen: NDArray[np.int64], spec: str, seed: int) -> None:
    if index.is_trained:
        return
    core = _core(index)
    wanted = 1 << 16
    if isinstance(core, faiss.IndexIVF):
        core.cp.max_points_per_centroid = _TRAIN_PER_LIST
        core.cp.seed = seed
        wanted = max(wanted, _TRAIN_PER_LIST * core.nlist)
    sample = chosen
    if len(chosen) > wanted:
        sample = np.sort(np.random.default_rng(seed).choice(chosen, wanted, replace=False))
    rows = np.ascontiguousarray(vectors[sample], dtype=np.float32)
    try:
        with _quiet():
            index.train(rows)
    except RuntimeError as error:
        raise BitextmineError(
            f"index type {spec!r}: {len(chosen):,} distinct rows are too few to train it ({_reason(error)}); "
            "use flat, hnsw or ivf, which fits itself to the number of rows"
        ) from None


def search_both_indexed(
    x: Vectors,
    y: Vectors,
    x_index: Index,
    y_index: Index,
    k: int,
    *,
    x_rows: NDArray[np.int64] | None = None,
    y_rows: NDArray[np.int64] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Neighbours:
    """What search_both() returns, found by the indexes of both sides: neighbours may be missed, similarities
    are exact. x_rows, y_rows: as `rows` in Index.search. progress: called with the queries done, of n + m."""
    fwd_sim, fwd_id = y_index.search(x, y, k, rows=y_rows, progress=progress)
    bwd_sim, bwd_id = x_index.search(y, x, k, rows=x_rows, progress=progress)
    return Neighbours(fwd_sim, fwd_id, bwd_sim, bwd_id)
