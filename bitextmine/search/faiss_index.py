"""FAISS indexes of stored vectors: their kinds, how they are built, the candidates that they find.

FAISS is loaded with the BLAS kernel that this processor has. The OpenBLAS in the wheels of faiss-cpu (0.3.15) knows no
later processor, nor those of some hypervisors. For these it takes its oldest kernel, Prescott, and products take three
times as long.
"""

import logging
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.search.lists import find_centres, nearest_centre
from bitextmine.search.rows import Vectors, check_finite, check_pair, scan
from bitextmine.system import budget, processor_flags, processors, size

log = logging.getLogger(__name__)

_VARIABLE = "OPENBLAS_CORETYPE"
# Kernels of OpenBLAS with the flags of /proc/cpuinfo that they need, fastest first.
_KERNELS = {
    "SkylakeX": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "Haswell": {"avx2", "fma"},
}


def openblas_kernel() -> str | None:
    """Return the name of the fastest OpenBLAS kernel for this processor; None to leave the choice to OpenBLAS."""
    flags = processor_flags()
    return next((kernel for kernel, needed in _KERNELS.items() if needed <= flags), None)


_kernel = None if _VARIABLE in os.environ else openblas_kernel()
if _kernel is not None:
    os.environ[_VARIABLE] = _kernel
try:
    import faiss as faiss
finally:
    if _kernel is not None:
        del os.environ[_VARIABLE]  # other libraries, and other processes, choose for themselves

FLAT_UP_TO = 250_000  # rows; up to about so many exact search takes less time than building an index
_QUERY_ROWS = 1 << 12
_LEAST_PER_LIST = 39  # below that k-means warns that its centroids are guesses
_MOST_ON_GPU = 2048  # neighbours, and lists, that faiss can ask a GPU for
_ADD_ROWS = 1 << 16
_TRAIN_ROWS = 1 << 16
_TRAIN_PER_LIST = 64
_TRAIN_BYTES = 1 << 31  # of float16 training rows, at most
_GRAPH_BYTES = 512  # links of a vector in a graph
_SEED = 1


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

    @property
    def rows(self) -> int:
        """Return the number of distinct vectors."""
        return int(self.faiss.ntotal)

    @property
    def exact(self) -> bool:
        """Tell if it compares the vectors as they are with everything."""
        index = faiss.downcast_index(self.faiss)
        if isinstance(index, faiss.IndexIDMap):
            index = faiss.downcast_index(index.index)
        return type(index) in (faiss.IndexFlat, faiss.IndexFlatIP)

    @property
    def inverted(self) -> Any:
        """Return the inverted file, if it is one over the vectors as they are (not rotated or projected)."""
        index = faiss.downcast_index(self.faiss)
        return index if isinstance(index, faiss.IndexIVF) else None

    @property
    def lossless(self) -> bool:
        """Tell if it holds the vectors as they are stored."""
        ivf = self.inverted
        halves = (
            isinstance(ivf, faiss.IndexIVFScalarQuantizer) and ivf.sq.qtype == faiss.ScalarQuantizer.QT_fp16
        )
        return self.exact or (halves and not ivf.by_residual)

    @property
    def centres(self) -> NDArray[np.float32]:
        """Return the centres of an inverted file's lists, float32 (lists, d)."""
        ivf = self.inverted
        centres: NDArray[np.float32] = ivf.quantizer.reconstruct_n(0, ivf.nlist)
        return centres

    def effort(self) -> tuple[int, int]:
        """Return nprobe and the number of lists; 0 and 0 for an index without lists."""
        core = core_of(self.faiss)
        return (int(core.nprobe), int(core.nlist)) if isinstance(core, faiss.IndexIVF) else (0, 0)

    def set_effort(self, nprobe: int) -> None:
        """Set the number of lists that are searched, if there are lists."""
        core = core_of(self.faiss)
        if isinstance(core, faiss.IndexIVF):
            core.nprobe = nprobe
        if self.__dict__.get("_copy") is not None and nprobe <= _MOST_ON_GPU:
            faiss.GpuParameterSpace().set_index_parameter(self._copy, "nprobe", nprobe)

    def candidates(self, queries: Vectors, count: int, progress: Progress = silent) -> NDArray[np.int64]:
        """Return the ids (n, count) that FAISS finds, -1 if a list ran empty; its similarities are not used."""
        faiss.omp_set_num_threads(processors())
        ids = np.full((len(queries), count), -1, dtype=np.int64)
        few = max(count, self.effort()[0]) <= _MOST_ON_GPU
        index = self._copy if self.on_gpu and few else self.faiss
        for start in range(0, len(queries), _QUERY_ROWS):
            self.check_mapped()
            block = np.ascontiguousarray(queries[start : start + _QUERY_ROWS], dtype=np.float32)
            check_finite(block, "queries", start)
            ids[start : start + len(block)] = index.search(block, count)[1]
            progress(len(block))
        self.check_mapped()
        self._check_ids(ids, -1)
        return ids

    def list_ids(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids in an inverted file, list by list, and the number of them in each list."""
        stored = self.inverted.invlists
        self.check_mapped()
        sizes = np.array([stored.list_size(i) for i in range(stored.nlist)], dtype=np.int64)
        filled = np.flatnonzero(sizes).tolist()
        ids = np.concatenate([faiss.rev_swig_ptr(stored.get_ids(i), int(sizes[i])) for i in filled])
        self.check_mapped()
        self._check_ids(ids, 0)
        return ids, sizes

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

    def check_of(self, rows: int, dim: int) -> None:
        """Raise BitextmineError unless the index is of so many vectors of so many numbers."""
        if dim != self.faiss.d:
            raise BitextmineError(
                f"the index holds vectors of {self.faiss.d} numbers, the queries are {dim} wide; make both with the "
                "same model"
            )
        if (indexed := self.facts.get("rows", rows)) != rows:
            raise BitextmineError(
                f"the index is of {indexed} rows, the vectors beside it are {rows}; build the index again"
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


# --- building ---


def build_index(
    vectors: Vectors, kind: str = "auto", *, memory: int | None = None, progress: Progress = silent
) -> Index:
    """Build the index of vectors (n, d), float16 or float32, of a kind as in `IndexOptions`.

    Of identical rows the first goes in; zero rows stay out, as their similarity to everything is 0. Every run makes the
    same index (HNSW apart: its links depend on the timing of threads). `progress` is called with the rows added.

    Raises:
        BitextmineError: a vector holds a NaN, there are no rows or too few to train, or the index takes more than
            `memory` bytes (default: half of what is free).
        UsageError: FAISS refuses the factory string.
    """
    check_pair(vectors, vectors, "vectors", "vectors")
    chosen, dim = _rows_to_index(vectors), int(vectors.shape[1])
    spec = factory_string(kind, len(chosen))
    try:
        index: Any = faiss.index_factory(dim, spec, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise UsageError(
            f"--type {kind}: FAISS cannot make an index of {dim} dimensions from {spec!r} ({reason(error)}); expected "
            "auto, flat, ivf or a factory string such as 'IVF1024,SQ8'"
        ) from None
    takes, allowed = _bytes_each(index) * len(chosen), budget(memory)
    if takes > allowed:
        raise BitextmineError(
            f"index type {spec}: takes about {size(takes)} of memory, {size(allowed)} may be used; allow more (index "
            "--memory), or use smaller codes (such as index --type IVF4096,SQ8)"
        )
    faiss.omp_set_num_threads(processors())
    if not index.is_trained:
        _train(index, vectors, chosen, spec)
    if not isinstance(index, faiss.IndexIVF | faiss.IndexIDMap):
        mapped: Any = faiss.IndexIDMap(index)
        mapped.own_fields = True  # the map frees what it holds
        index.this.disown()
        index = mapped
    _add(index, vectors, chosen, progress)
    facts = {
        "type": kind,
        "factory": spec,
        "metric": "inner product",
        "rows": len(vectors),
        "distinct_rows": len(chosen),
        "dim": dim,
    }
    return Index(index, facts)


def _rows_to_index(vectors: Vectors) -> NDArray[np.int64]:
    """Return the rows (ascending) that are neither zero nor equal to an earlier one."""
    groups, _ = scan(vectors, "vectors")
    chosen = np.arange(len(vectors)) if groups is None else groups.first
    nonzero = np.ones(len(chosen), dtype=bool)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        nonzero[start : start + len(at)] = (vectors[at] != 0).any(axis=1)
    chosen = chosen[nonzero]
    if not len(chosen):
        raise BitextmineError(f"nothing to index: {len(vectors)} row(s), all of them empty")
    return chosen


def _bytes_each(index: Any) -> int:
    try:
        return int(index.sa_code_size()) + 8
    except RuntimeError:  # FAISS does not tell for graphs
        return 4 * int(index.d) + _GRAPH_BYTES


def _train(index: Any, vectors: Vectors, chosen: NDArray[np.int64], spec: str) -> None:
    core = core_of(index)
    wanted = _TRAIN_ROWS
    if isinstance(core, faiss.IndexIVF):
        core.cp.max_points_per_centroid = _TRAIN_PER_LIST
        core.cp.seed = _SEED
        for parameters in (core.cp, *([core.pq.cp] if hasattr(core, "pq") else [])):
            parameters.min_points_per_centroid = (
                1  # or FAISS prints a warning; recall on few rows is measured
            )
        wanted = max(wanted, _TRAIN_PER_LIST * core.nlist)
    if isinstance(core, faiss.IndexIVFScalarQuantizer) and core.sq.qtype == faiss.ScalarQuantizer.QT_fp16:
        core.by_residual = False  # the codes are then the stored vectors, bit for bit
    wanted = min(wanted, max(_TRAIN_ROWS, _TRAIN_BYTES // (2 * index.d)))
    sample = chosen
    if len(chosen) > wanted:
        sample = np.sort(np.random.default_rng(_SEED).choice(chosen, wanted, replace=False))
    rows = np.ascontiguousarray(vectors[sample])
    try:
        centres = _flat_quantiser(index)
        if centres is not None and not centres.ntotal and len(rows) >= core.nlist:
            centres.add(find_centres(rows, int(core.nlist), seed=_SEED))  # FAISS trains the rest
        if isinstance(core, faiss.IndexIVF) and core.quantizer.ntotal == core.nlist:
            rows = rows[:: max(1, len(rows) // _TRAIN_ROWS)]  # enough for what is left to train
        index.train(np.ascontiguousarray(rows, dtype=np.float32))
    except RuntimeError as error:
        raise BitextmineError(
            f"index type {spec!r}: {len(chosen):,} distinct rows are too few to train it ({reason(error)}); "
            "use flat, or ivf, which fits itself to the number of rows"
        ) from None


def _flat_quantiser(index: Any) -> Any:
    """Return the index of the centres of an inverted file (over the vectors as they are) that compares with all.

    None for any other index.
    """
    ivf = faiss.downcast_index(index)
    quantiser = faiss.downcast_index(ivf.quantizer) if isinstance(ivf, faiss.IndexIVF) else None
    return quantiser if type(quantiser) in (faiss.IndexFlat, faiss.IndexFlatIP) else None


def _add(index: Any, vectors: Vectors, chosen: NDArray[np.int64], progress: Progress) -> None:
    quantiser = _flat_quantiser(index)
    # FAISS has to assign fast-scan codes itself: they lie in blocks.
    by_list = quantiser is not None and not isinstance(index, faiss.IndexIVFFastScan)
    centres = quantiser.reconstruct_n(0, index.nlist) if by_list else None
    for start in range(0, len(chosen), _ADD_ROWS):
        at = np.ascontiguousarray(chosen[start : start + _ADD_ROWS])
        block = vectors[at]
        rows = np.ascontiguousarray(block, dtype=np.float32)
        if centres is None:
            index.add_with_ids(rows, at)
        else:  # our search takes a tenth of the time of FAISS's own assignment
            near = np.ascontiguousarray(nearest_centre(block, centres))
            index.add_core(len(at), *(faiss.swig_ptr(array) for array in (rows, at, near)))
        progress(len(at))
