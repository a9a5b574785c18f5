"""Build FAISS indexes of stored vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.search.faiss_index import Index, core_of, factory_string, faiss, reason
from bitextmine.search.lists import find_centres, nearest_centre
from bitextmine.search.rows import Vectors, check_pair, scan
from bitextmine.system import budget, processors, size

_ADD_ROWS = 1 << 16
_TRAIN_ROWS = 1 << 16
_TRAIN_PER_LIST = 64
_TRAIN_BYTES = 1 << 31  # of float16 training rows, at most
_GRAPH_BYTES = 512  # links of a vector in a graph
_SEED = 1


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
