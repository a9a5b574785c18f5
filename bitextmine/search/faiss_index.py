"""FAISS indexes over stored vectors: their kinds, searching them with exact similarities, and their recall."""

import logging
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.exact import search_one
from bitextmine.search.faiss_library import faiss
from bitextmine.search.lists import Lists, Pass, search_lists
from bitextmine.search.neighbours import best_first
from bitextmine.search.options import SearchOptions
from bitextmine.search.products import rescore
from bitextmine.search.rows import Groups, VectorRows, Vectors, check_finite, check_pair, scan, unfold
from bitextmine.system import processors

log = logging.getLogger(__name__)

FLAT_UP_TO = 250_000  # rows; up to about so many exact search takes less time than building an index
_QUERY_ROWS = 1 << 12
_LEAST_PER_LIST = 39  # below that k-means warns that its centroids are guesses
_LEAST_BY_LIST = 8  # queries per list from which going list by list pays
_MOST_ON_GPU = 2048  # neighbours, and lists, that faiss can ask a GPU for
_MOST_RESCORED = 64  # candidates per neighbour
_LITTLE = 0.002


def factory_string(kind: str, rows: int) -> str:
    """Return the FAISS factory string of a kind for so many rows; any other string is returned as is.

    flat compares with everything. ivf holds the vectors as they are stored, in about 2 sqrt(rows) lists, fewer if there
    are not 39 rows for each; a list can be read in one piece from disk and compared exactly. auto is flat up to
    FLAT_UP_TO rows and ivf above.
    """
    if kind == "auto":
        kind = "flat" if rows <= FLAT_UP_TO else "ivf"
    if kind == "flat":
        return "Flat"
    if kind == "ivf":
        lists = min(1 << max(0, round(np.log2(2 * np.sqrt(max(1, rows))))), rows // _LEAST_PER_LIST)
        return f"IVF{max(1, lists)},SQfp16"
    return kind


@dataclass
class Index:
    """A FAISS index whose ids are rows of the vectors it was built from; of identical rows it has the first.

    `facts` are those of its manifest.
    """

    faiss: Any
    facts: dict[str, Any] = field(default_factory=dict)
    factor: int = 4  # candidates that are rescored, for each neighbour that is wanted
    mapped: Path | None = None  # the file of an index on disk
    _folded: tuple[Vectors, Groups | None] | None = None
    _lists: tuple[Vectors, NDArray[np.int64] | None, Lists] | None = None

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.faiss.d)

    @property
    def rows(self) -> int:
        """Return the number of distinct vectors."""
        return int(self.faiss.ntotal)

    @property
    def exact(self) -> bool:
        """Tell if it compares the vectors as they are with everything."""
        found = faiss.downcast_index(self.faiss)
        if isinstance(found, faiss.IndexIDMap):
            found = faiss.downcast_index(found.index)
        return type(found) in (faiss.IndexFlat, faiss.IndexFlatIP)

    @property
    def inverted(self) -> Any:
        """Return the inverted file, if it is one over the vectors as they are (not rotated or projected)."""
        found = faiss.downcast_index(self.faiss)
        return found if isinstance(found, faiss.IndexIVF) else None

    @property
    def centres(self) -> NDArray[np.float32]:
        """Return the centres of an inverted file's lists, float32 (lists, d)."""
        ivf = self.inverted
        found: NDArray[np.float32] = ivf.quantizer.reconstruct_n(0, ivf.nlist)
        return found

    def effort(self) -> tuple[str, int, int] | None:
        """Return the setting that raises recall, "nprobe" or "efSearch", with its value and largest useful value."""
        core = core_of(self.faiss)
        if isinstance(core, faiss.IndexIVF):
            return "nprobe", int(core.nprobe), int(core.nlist)
        if isinstance(core, faiss.IndexHNSW):
            return "efSearch", int(core.hnsw.efSearch), max(16, min(self.rows, 4096))
        return None

    def set_effort(self, value: int) -> None:
        """Set nprobe or efSearch."""
        core = core_of(self.faiss)
        if isinstance(core, faiss.IndexIVF):
            core.nprobe = value
        elif isinstance(core, faiss.IndexHNSW):
            core.hnsw.efSearch = value
        if self.__dict__.get("_copy") is not None and value <= _MOST_ON_GPU:
            faiss.GpuParameterSpace().set_index_parameter(self._copy, "nprobe", value)

    def candidates(self, queries: Vectors, count: int, progress: Progress = silent) -> NDArray[np.int64]:
        """Return the ids (n, count) that FAISS finds, -1 if a list ran empty; its similarities are not used."""
        self._check_dim(queries)
        faiss.omp_set_num_threads(processors())
        found = np.full((len(queries), count), -1, dtype=np.int64)
        effort = self.effort()
        few = max(count, 0 if effort is None else effort[1]) <= _MOST_ON_GPU
        index = self._copy if self.on_gpu and few else self.faiss
        for start in range(0, len(queries), _QUERY_ROWS):
            self.check_mapped()
            block = np.ascontiguousarray(queries[start : start + _QUERY_ROWS], dtype=np.float32)
            check_finite(block, "queries", start)
            found[start : start + len(block)] = index.search(block, count)[1]
            progress(len(block))
        self.check_mapped()
        self._check_ids(found, -1)
        return found

    def _check_ids(self, ids: NDArray[np.int64], least: int) -> None:
        """Raise BitextmineError for ids that are no rows of the vectors: the index is damaged."""
        rows = self.facts.get("rows", 1 << 62)
        if ids.size and not least <= int(ids.min()) <= int(ids.max()) < rows:
            raise BitextmineError(
                f"the index is damaged: its ids are not those of {rows:,} rows; run index --force"
            )

    def check_mapped(self) -> None:
        """Raise BitextmineError if the index's file lost its end since it was loaded."""
        if self.mapped is not None and self.mapped.stat().st_size != self.facts["bytes"]:
            raise BitextmineError(
                f"{self.mapped}: the index changed while it was in use, and the results are discarded; run the same "
                "command again"
            )

    def _check_dim(self, queries: Vectors) -> None:
        if (width := queries.shape[-1]) != self.dim:
            raise BitextmineError(
                f"the index holds vectors of {self.dim} numbers, the queries are {width} wide; make both with the same "
                "model"
            )

    def check_rows(self, found: int) -> None:
        """Raise BitextmineError unless the index is of so many rows."""
        known = self.facts.get("rows", found)
        if found != known:
            raise BitextmineError(
                f"the index is of {known} rows, the vectors beside it are {found}; build the index again"
            )

    @property
    def on_gpu(self) -> bool:
        """Tell if it is searched on GPUs: faiss has some and can hold such an index there."""
        return gpus() > 0 and self._copy is not None

    @cached_property
    def _copy(self) -> Any:
        """Return the copy on all GPUs; None if they cannot hold it."""
        try:
            return faiss.index_cpu_to_all_gpus(self.faiss)
        except RuntimeError as error:  # a kind that is for CPUs only, or too little memory there
            log.info("index: searched on the CPU: %s", reason(error))
            return None

    def search(
        self,
        queries: Vectors,
        pool: Vectors,
        k: int,
        *,
        rows: NDArray[np.int64] | None = None,
        progress: Progress = silent,
        run: Run | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the k nearest rows of `pool` that the index finds: (similarity (n, k), id (n, k)) as `search_one`.

        Similarities are exact. A flat index is searched by `search_one`, an inverted file list by list if there are
        queries enough; of any other, several times k candidates are rescored. Missing neighbours are -1 with -inf.

        `queries` are (n, d); `pool` holds the vectors that the index was built from, or with `rows` a selection of
        them: for each vector of the index its row in `pool`, or -1. `progress` is called with the number of queries
        done.
        """
        run = run or Run()
        dtype = check_pair(queries, pool, "queries", "indexed vectors")
        if k < 1:
            raise BitextmineError(f"k must be at least 1, found {k}")
        self._check_dim(queries)
        self.check_rows(len(pool) if rows is None else len(rows))
        if self.exact and not self.on_gpu:
            options = SearchOptions(memory=run.memory, threads=run.threads)
            return search_one(queries, pool, k, options, progress=progress)
        ivf = self.inverted
        if ivf is not None and not self.on_gpu and len(queries) * ivf.nprobe >= _LEAST_BY_LIST * ivf.nlist:
            for start in range(0, len(queries), _QUERY_ROWS):
                check_finite(queries[start : start + _QUERY_ROWS], "queries", start)
            asked, lists = VectorRows(queries, dtype), self.lists(pool, rows)
            which = Pass(asked, lists, self.centres, int(ivf.nprobe), k, both=False)
            best, _ = search_lists(which, run, progress)
            self.check_mapped()
            return unfold(best.sim, best.id, None, self.fold(pool))
        count = min(max(1, self.rows), self.factor * k + 16)
        ids = self.candidates(queries, count, progress)
        if rows is not None:
            ids = np.where(ids < 0, -1, rows[ids])
        groups = self.fold(pool)
        if groups is None:
            return rescore(queries, pool, ids, k)
        ids = np.where(ids < 0, -1, groups.first[groups.of[ids]])
        sim, found = rescore(queries, pool, ids, k)
        return unfold(sim, np.where(found < 0, -1, groups.of[found]), None, groups)

    def fold(self, pool: Vectors) -> Groups | None:
        """Return the groups of identical rows of the pool."""
        if self._folded is None or self._folded[0] is not pool:
            self._folded = pool, scan(pool, "indexed vectors")[0]
        return self._folded[1]

    def lists(self, pool: Vectors, rows: NDArray[np.int64] | None = None) -> Lists:
        """Return an inverted file's lists of rows of `pool` (`rows` as in `search`), or of their groups (`fold`)."""
        if self._lists is not None and self._lists[0] is pool and self._lists[1] is rows:
            return self._lists[2]
        groups = self.fold(pool)
        stored = self.inverted.invlists
        self.check_mapped()
        sizes = np.array([stored.list_size(i) for i in range(stored.nlist)], dtype=np.int64)
        ids = np.concatenate([list_ids(stored, i) for i in range(stored.nlist)])
        self.check_mapped()
        self._check_ids(ids, 0)
        of = np.repeat(np.arange(stored.nlist), sizes)
        row = ids if rows is None else rows[ids]
        if groups is not None:
            row = np.where(row < 0, -1, groups.of[row])
        # A selection's row is the vector of the first line that it stands for: one entry for each row is enough.
        first = np.lexsort((ids, row))
        new = np.append(True, np.diff(row[first]) != 0) & (row[first] >= 0)
        kept = first[new[: len(first)]]
        kept = kept[np.lexsort((row[kept], of[kept]))]
        order, lengths = row[kept].astype(np.int64), np.bincount(of[kept], minlength=stored.nlist)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = order if groups is None else groups.first[order]
        listed = VectorRows(pool, check_pair(pool, pool, "indexed vectors", "indexed vectors"), at)
        found = Lists(order, bounds, lambda i: listed.block(int(bounds[i]), int(bounds[i + 1])))
        self._lists = pool, rows, found
        return found


@dataclass(frozen=True)
class Recall:
    """The share of queries whose best neighbour was found (at_1), and of the k best (at_k), by similarity."""

    at_1: float
    at_k: float
    k: int
    sample: int
    seed: int
    queries: str = "its own rows, each left out of its own answer"


@dataclass(frozen=True)
class RecallSample:
    """Queries with their exact neighbours: vectors (s, d), similarities (s, k), -inf if missing.

    `own` (s,) is the query's own row in the pool, which does not count.
    """

    vectors: Vectors
    sim: NDArray[np.float32]
    own: NDArray[np.int64]
    seed: int


def draw(pool: Vectors, k: int, *, size: int = 1000, seed: int = 1) -> RecallSample:
    """Return a seeded sample of the pool's own rows with their exact k best in the pool.

    Zero rows, which have only ties, are not drawn. A row is not its own neighbour.
    """
    if size < 1:
        raise BitextmineError(f"the recall sample must have at least 1 row, found {size}")
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pool))[:size])
    own = drawn[(pool[drawn] != 0).any(axis=1)].astype(np.int64)
    vectors = np.ascontiguousarray(pool[own])
    sim, ids = search_one(vectors, pool, k + 1)
    return RecallSample(vectors, _without(sim, ids, own, k)[0], own, seed)


def measure(index: Index, pool: Vectors, sample: RecallSample) -> Recall:
    """Return the recall of the index on a sample, rescoring included."""
    k = sample.sim.shape[1]
    found = _without(*index.search(sample.vectors, pool, k + 1), sample.own, k)[0]
    return Recall(*shares_found(found, sample.sim), k, len(sample.vectors), sample.seed)


def shares_found(found: NDArray[np.float32], exact: NDArray[np.float32]) -> tuple[float, float]:
    """Return the recall@1 and recall@k of similarities (s, k) against the exact ones; a tie counts as found."""
    there = ~np.isneginf(exact)
    worst = np.where(there, exact, np.inf).min(axis=1, initial=np.inf)
    hits = np.minimum((found >= worst[:, None]).sum(axis=1), there.sum(axis=1)).sum()
    has, total = there[:, 0], int(there.sum())
    at_1 = float((found[has, 0] >= exact[has, 0]).mean()) if has.any() else 1.0
    return at_1, float(hits / total) if total else 1.0


def tune(index: Index, pool: Vectors, sample: RecallSample, target: float = 0.99) -> Recall:
    """Set the least nprobe or efSearch, to about a tenth, whose recall@1 on the sample reaches the target.

    If none does, it is the highest. Where more of it no longer helps, the codes lose the rest: then more candidates are
    rescored.
    """
    recall = measure(index, pool, sample)
    below = 0
    while recall.at_1 < target:
        before, effort = recall, index.effort()
        if effort is not None and effort[1] < effort[2]:
            below = effort[1]
            index.set_effort(min(2 * effort[1], effort[2]))
            recall = measure(index, pool, sample)
        if recall.at_1 >= target:
            break
        more = effort is None or effort[1] >= effort[2] // 2 or recall.at_1 - before.at_1 < _LITTLE
        if more and _lossy(index) and index.factor < _MOST_RESCORED:
            index.factor *= 2
            recall = measure(index, pool, sample)
        elif effort is None or effort[1] >= effort[2]:
            break
    effort = index.effort()
    if effort is None or not below or recall.at_1 < target:
        return recall
    high = effort[1]
    while high - below > max(1, high // 10):
        middle = (below + high) // 2
        index.set_effort(middle)
        found = measure(index, pool, sample)
        if found.at_1 >= target:
            high, recall = middle, found
        else:
            below = middle
    index.set_effort(high)
    return recall


def _lossy(index: Index) -> bool:
    """Tell if the codes are something else than the vectors as they are stored."""
    ivf = index.inverted
    halves = isinstance(ivf, faiss.IndexIVFScalarQuantizer) and ivf.sq.qtype == faiss.ScalarQuantizer.QT_fp16
    return not (index.exact or (halves and not ivf.by_residual))


def _without(
    sim: NDArray[np.float32], ids: NDArray[np.int64], own: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    mine = ids == own[:, None]
    return best_first(np.where(mine, -np.inf, sim).astype(np.float32), np.where(mine, -1, ids), k)


def list_ids(lists: Any, number: int) -> NDArray[np.int64]:
    """Return the ids of an inverted list, without a copy."""
    size = lists.list_size(number)
    if not size:
        return np.empty(0, np.int64)
    ids: NDArray[np.int64] = faiss.rev_swig_ptr(lists.get_ids(number), size)
    return ids


def list_codes(lists: Any, number: int) -> NDArray[np.uint8]:
    """Return the codes of an inverted list, one after the other, without a copy."""
    size = lists.list_size(number) * lists.code_size
    if not size:
        return np.empty(0, np.uint8)
    codes: NDArray[np.uint8] = faiss.rev_swig_ptr(lists.get_codes(number), size)
    return codes


def gpus() -> int:
    """Return the number of GPUs that the installed faiss can use."""
    return int(faiss.get_num_gpus()) if hasattr(faiss, "StandardGpuResources") else 0


def core_of(index: Any) -> Any:
    """Return the index inside id maps, rotations and refinements."""
    while True:
        index = faiss.downcast_index(index)
        if isinstance(index, faiss.IndexPreTransform | faiss.IndexIDMap):
            index = index.index
        elif isinstance(index, faiss.IndexRefine):
            index = index.base_index
        else:
            return index


def reason(error: RuntimeError | MemoryError) -> str:
    """Return FAISS's message without the C++ signature and the source file."""
    text = str(error)
    for mark in ("failed: ", "Error: ", ": "):
        if mark in text:
            text = text.rsplit(mark, 1)[1]
            break
    return text.strip().rstrip(".")
