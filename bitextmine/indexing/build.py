"""Build FAISS indexes in memory, or on disk shard by shard, so that an interrupted run resumes."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import put_in_place
from bitextmine.files.journal import JournalBusyError, journal_folder
from bitextmine.indexing.faiss_index import Index, core_of, factory_string, reason
from bitextmine.indexing.kmeans import few_rows_allowed
from bitextmine.indexing.lists import find_centres, nearest_centre
from bitextmine.indexing.ondisk import merge_shards
from bitextmine.search.rows import Vectors, check_pair, release, scan
from bitextmine.system import processors, size

JOB = "index"  # in the journal
_ADD_ROWS = 1 << 16
_TRAIN_ROWS = 1 << 16
_TRAIN_PER_LIST = 64
_TRAIN_BYTES = 1 << 31  # of float16 training rows, at most
_SHARD_COPIES = 3  # a shard in memory: growing arrays, and what is written of them


@dataclass(frozen=True)
class Plan:
    """An index to build: kind, factory string, and the rows (ascending) of the vectors that it takes.

    `shard_rows` is for tests (None: as many as fit into memory).
    """

    kind: str
    spec: str
    rows: int
    dim: int
    chosen: NDArray[np.int64]
    seed: int
    shard_rows: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return the plan for the manifest."""
        return {
            "type": self.kind,
            "factory": self.spec,
            "metric": "inner product",
            "rows": self.rows,
            "distinct_rows": len(self.chosen),
            "dim": self.dim,
            "seed": self.seed,
        }


def make_plan(vectors: Vectors, kind: str = "auto", *, seed: int = 1, shard_rows: int | None = None) -> Plan:
    """Read the vectors (n, d) once and return the plan for `build_index`, which raises the same errors."""
    if not kind.strip():
        raise UsageError(
            "the index type is empty: expected auto, flat, ivf, pq, hnsw or a FAISS factory string"
        )
    check_pair(vectors, vectors, "vectors", "vectors")
    dim = int(vectors.shape[1])
    groups, _ = scan(vectors, "vectors")
    chosen = np.arange(len(vectors)) if groups is None else groups.first
    chosen = chosen[_nonzero(vectors, chosen)]
    if not len(chosen):
        raise BitextmineError(f"nothing to index: {len(vectors)} row(s), all of them empty")
    spec = factory_string(kind, len(chosen), dim)
    return Plan(kind, spec, len(vectors), dim, chosen, seed, shard_rows)


def build_index(
    vectors: Vectors, kind: str = "auto", *, seed: int = 1, progress: Callable[[int], object] | None = None
) -> Index:
    """Build an index of vectors in memory.

    Of identical rows the first goes in; zero rows stay out, as their similarity to everything is 0.

    Args:
        vectors: (n, d), float16 or float32.
        kind: auto, flat, ivf, pq, hnsw (see `factory_string`) or a FAISS factory string.
        seed: for the training rows.
        progress: called with the number of rows added.

    Raises:
        BitextmineError: a vector holds a NaN, there are no rows or too few to train, or FAISS refuses the string.
    """
    plan = make_plan(vectors, kind, seed=seed)
    index = _trained(vectors, plan)
    _add(index, vectors, plan.chosen, progress)
    made = Index(index, plan.facts())
    effort = made.effort()
    if effort is not None:
        name, _, most = effort
        made.set_effort(min(8 if name == "nprobe" else 64, most))
    return made


def _nonzero(vectors: Vectors, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell for each chosen row if it is not zero; identical rows are folded, so at most one is zero."""
    keep = np.ones(len(chosen), dtype=bool)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        keep[start : start + len(at)] = (vectors[at] != 0).any(axis=1)
        release(vectors, int(at[0]), int(at[-1]) + 1)
    return keep


# --- an empty index, trained ---


def _trained(vectors: Vectors, plan: Plan) -> Any:
    """Return an empty index that takes ids, trained on a sample of the rows."""
    faiss.omp_set_num_threads(processors())
    index = _empty(plan)
    if not index.is_trained:
        _train(index, vectors, plan)
    if isinstance(index, faiss.IndexIVF | faiss.IndexIDMap):
        return index
    mapped: Any = faiss.IndexIDMap(index)
    mapped.own_fields = True  # the map frees what it holds
    index.this.disown()
    return mapped


def _empty(plan: Plan) -> Any:
    try:
        return faiss.index_factory(plan.dim, plan.spec, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise UsageError(
            f"--type {plan.kind}: FAISS cannot make an index of {plan.dim} dimensions from {plan.spec!r} "
            f"({reason(error)}); expected auto, flat, ivf, pq, hnsw or a factory string such as 'IVF1024,SQ8'"
        ) from None


def _train(index: Any, vectors: Vectors, plan: Plan) -> None:
    core, chosen = core_of(index), plan.chosen
    wanted = _TRAIN_ROWS
    if isinstance(core, faiss.IndexIVF):
        core.cp.max_points_per_centroid = _TRAIN_PER_LIST
        core.cp.seed = plan.seed
        wanted = max(wanted, _TRAIN_PER_LIST * core.nlist)
    if isinstance(core, faiss.IndexIVFScalarQuantizer) and core.sq.qtype == faiss.ScalarQuantizer.QT_fp16:
        core.by_residual = False  # the codes are then the stored vectors, bit for bit
    wanted = min(wanted, max(_TRAIN_ROWS, _TRAIN_BYTES // (2 * plan.dim)))
    sample = chosen
    if len(chosen) > wanted:
        sample = np.sort(np.random.default_rng(plan.seed).choice(chosen, wanted, replace=False))
    rows = np.ascontiguousarray(vectors[sample])
    release(vectors)
    try:
        with few_rows_allowed(index):
            if index is core or faiss.downcast_index(index) is core:
                _place_centres(core, rows, plan.seed)
            if isinstance(core, faiss.IndexIVF) and core.quantizer.ntotal == core.nlist:
                rows = rows[:: max(1, len(rows) // _TRAIN_ROWS)]  # enough for what is left to train
            index.train(np.ascontiguousarray(rows, dtype=np.float32))
    except RuntimeError as error:
        raise BitextmineError(
            f"index type {plan.spec!r}: {len(chosen):,} distinct rows are too few to train it ({reason(error)}); "
            "use flat, hnsw or ivf, which fits itself to the number of rows"
        ) from None


def _place_centres(core: Any, rows: Vectors, seed: int) -> None:
    """Give an inverted file with a flat quantiser centres found by our search; FAISS trains the rest."""
    if not isinstance(core, faiss.IndexIVF) or len(rows) < core.nlist:
        return
    quantiser = faiss.downcast_index(core.quantizer)
    if type(quantiser) not in (faiss.IndexFlat, faiss.IndexFlatIP) or quantiser.ntotal:
        return
    quantiser.add(find_centres(rows, int(core.nlist), seed=seed))


def _add(
    index: Any, vectors: Vectors, chosen: NDArray[np.int64], progress: Callable[[int], object] | None
) -> None:
    """Add the chosen rows, chunk by chunk; to an inverted file, with lists that our search has assigned.

    FAISS has to assign fast-scan codes itself: they lie in blocks, and added one row at a time, as assigned rows are, a
    list writes past its end when its length is a multiple of a block's bytes (FAISS 1.15,
    BlockInvertedLists::add_entries).
    """
    found = faiss.downcast_index(index)
    centres = None
    if isinstance(found, faiss.IndexIVF) and not isinstance(found, faiss.IndexIVFFastScan):
        quantiser = faiss.downcast_index(found.quantizer)
        if type(quantiser) in (faiss.IndexFlat, faiss.IndexFlatIP):
            centres = quantiser.reconstruct_n(0, found.nlist)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        whole = int(at[-1]) - int(at[0]) + 1 == len(at)
        rows = vectors[int(at[0]) : int(at[-1]) + 1] if whole else vectors[at]
        block = np.ascontiguousarray(rows, dtype=np.float32)
        if centres is None:
            found.add_with_ids(block, at)
        else:
            from faiss.contrib.ivf_tools import add_preassigned

            assign: Any = add_preassigned
            assign(found, block, nearest_centre(np.asarray(rows), centres), np.ascontiguousarray(at))
        release(vectors, int(at[0]), int(at[-1]) + 1)
        if progress is not None:
            progress(len(at))


# --- on disk ---


@dataclass(frozen=True)
class Built:
    """An index in its part folder: its file, the file of separate lists, shards in all and from an earlier run."""

    file: Path
    lists: Path | None
    shards: int
    resumed: int


def build_on_disk(
    vectors: Vectors,
    plan: Plan,
    folder: Path,
    identity: dict[str, Any],
    *,
    memory: int,
    progress: Callable[[int], object] | None = None,
) -> Built:
    """Build the planned index as files in `folder` within about `memory` bytes.

    Inverted files are built in shards that fit and merged on disk (`merge_shards`); an index of another kind has to fit
    as a whole and is saved after each part. An interrupted run of the same `identity` (of the vectors) and plan
    resumes. The index is the same for every memory, interrupted or not (hnsw apart: its links depend on the timing of
    threads).

    Raises:
        BitextmineError: too little disk or memory, another process builds this index, or as for `build_index`.
    """
    each = bytes_each(plan)
    mergeable = plan.spec.startswith("IVF") and not plan.spec.endswith("fs")
    if not mergeable and each * len(plan.chosen) > memory:
        raise BitextmineError(
            f"index type {plan.spec}: takes about {size(each * len(plan.chosen))} of memory, {size(memory)} may be "
            "used; use ivf, which is built in parts, or allow more (index --memory)"
        )
    rows = plan.shard_rows or max(_ADD_ROWS, int(memory // (_SHARD_COPIES * each)))
    try:
        with journal_folder(folder, JOB, {**identity, **plan.facts(), "faiss": faiss.__version__}) as journal:
            for left in folder.glob("*.tmp"):
                left.unlink()
            if not len(journal):
                journal.append({"shard_rows": rows}, sync=True)
            rows = journal[0]["shard_rows"]  # memory may have been less or more when the work began
            shards = [(a, min(a + rows, len(plan.chosen))) for a in range(0, len(plan.chosen), rows)]
            _check_room(folder, each * len(plan.chosen) * (2 if len(shards) > 1 and mergeable else 1))
            trained = folder / "trained.faiss"
            if not _whole(trained, 0):
                try:
                    index = _trained(vectors, plan)
                except BitextmineError:
                    shutil.rmtree(folder, ignore_errors=True)  # nothing that could go on
                    raise
                write_index(index, trained)
                del index
            build = _build_shards if mergeable else _grow
            return build(vectors, plan, folder, trained, shards, progress)
    except JournalBusyError:
        raise BitextmineError(
            f"{folder}: another process is building this index; wait for it or stop it"
        ) from None
    except OSError as error:
        raise BitextmineError(
            f"{folder}: cannot write the index: {error.strerror or error}; what is done is kept, "
            "run index again to go on"
        ) from None


def _build_shards(
    vectors: Vectors,
    plan: Plan,
    folder: Path,
    trained: Path,
    shards: list[tuple[int, int]],
    progress: Callable[[int], object] | None,
) -> Built:
    files, resumed = [], 0
    for number, (start, stop) in enumerate(shards):
        file = folder / f"shard-{number:05d}.faiss"
        files.append(file)
        if _whole(file, stop - start):
            resumed += 1
            if progress is not None:
                progress(stop - start)
            continue
        index = faiss.read_index(str(trained))
        _add(index, vectors, plan.chosen[start:stop], progress)
        write_index(index, file)
        del index
    if len(files) == 1:
        return Built(files[0], None, 1, resumed)
    merged, lists = folder / "merged.faiss", folder / "merged.lists"
    index = faiss.read_index(str(trained))
    lists.unlink(missing_ok=True)
    try:
        merge_shards(index, files, lists)
    except RuntimeError as error:
        raise _full(folder, error) from None
    write_index(index, merged)
    return Built(merged, lists, len(files), resumed)


def _grow(
    vectors: Vectors,
    plan: Plan,
    folder: Path,
    trained: Path,
    shards: list[tuple[int, int]],
    progress: Callable[[int], object] | None,
) -> Built:
    """Build an index that cannot be merged, and save it after each part."""
    grown = (
        n for n in range(len(shards), 0, -1) if _whole(folder / f"grown-{n:05d}.faiss", shards[n - 1][1])
    )
    done = next(grown, 0)
    last = trained if not done else folder / f"grown-{done:05d}.faiss"
    if progress is not None and done:
        progress(shards[done - 1][1])
    index = faiss.read_index(str(last)) if done < len(shards) else None
    for number in range(done, len(shards)):
        start, stop = shards[number]
        _add(index, vectors, plan.chosen[start:stop], progress)
        file = folder / f"grown-{number + 1:05d}.faiss"
        write_index(index, file)
        if last != trained:
            last.unlink()
        last = file
    return Built(last, None, len(shards), done)


def bytes_each(plan: Plan) -> int:
    """Return the bytes of a vector in the index, roughly: its code, its id, its links.

    Raises:
        UsageError: FAISS does not tell for such an index.
    """
    empty = _empty(plan)
    core: Any = core_of(empty)
    if isinstance(core, faiss.IndexIVF):
        return int(core.code_size) + 8
    if isinstance(core, faiss.IndexHNSW):
        graph: Any = core.hnsw
        return int(core.storage.sa_code_size()) + 8 + 4 * 2 * int(graph.nb_neighbors(1)) + 16
    try:
        return int(core.sa_code_size()) + 8
    except RuntimeError:
        raise UsageError(
            f"--type {plan.kind}: FAISS does not tell what a vector takes in such an index ({type(core).__name__}), so "
            "it cannot be kept within --memory; use flat, ivf, pq, hnsw or a factory string such as 'IVF1024,SQ8'"
        ) from None


def _check_room(folder: Path, needed: int) -> None:
    there = sum(path.stat().st_size for path in folder.iterdir())
    free = shutil.disk_usage(folder).free
    if free + there < needed:
        raise BitextmineError(
            f"{folder}: the index takes about {needed:,} bytes, and {free + there:,} are to be had on that disk; "
            "free some space, or use a smaller kind (index --type pq)"
        )


def _whole(file: Path, rows: int) -> bool:
    """Tell if a file of an earlier run holds an index of so many rows."""
    if not file.exists():
        return False
    try:
        return int(faiss.read_index(str(file), faiss.IO_FLAG_MMAP).ntotal) == rows
    except RuntimeError:
        return False


def write_index(index: Any, file: Path) -> None:
    """Write a FAISS index to a file, complete or not at all."""
    staged = Path(f"{file}.tmp")
    try:
        faiss.write_index(index, str(staged))
    except RuntimeError as error:
        with contextlib.suppress(OSError):
            staged.unlink()
        raise _full(file.parent, error) from None
    put_in_place(staged, file)


def _full(folder: Path, error: RuntimeError) -> BitextmineError:
    free = shutil.disk_usage(folder).free
    return BitextmineError(
        f"{folder}: cannot write the index ({reason(error)}; {free:,} bytes are free there); is the disk full? What is "
        "done is kept: free some space and run index again to go on"
    )
