"""Build FAISS indexes in memory, or on disk shard by shard, so that an interrupted run resumes."""

import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import put_in_place, sync_file
from bitextmine.files.journal import JournalBusyError, journal_folder
from bitextmine.search.faiss_index import core_of, factory_string, list_codes, list_ids, reason
from bitextmine.search.faiss_library import faiss
from bitextmine.search.lists import find_centres, nearest_centre
from bitextmine.search.rows import Vectors, check_pair, scan
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
    """Read the vectors (n, d), float16 or float32, once, and plan their index, of a kind as in `IndexOptions`.

    Of identical rows the first goes in; zero rows stay out, as their similarity to everything is 0.

    Raises:
        BitextmineError: a vector holds a NaN, there are no rows or too few to train, or FAISS refuses the string.
    """
    if not kind.strip():
        raise UsageError("the index type is empty: expected auto, flat, ivf or a FAISS factory string")
    check_pair(vectors, vectors, "vectors", "vectors")
    dim = int(vectors.shape[1])
    groups, _ = scan(vectors, "vectors")
    chosen = np.arange(len(vectors)) if groups is None else groups.first
    some = np.ones(len(chosen), dtype=bool)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        some[start : start + len(at)] = (vectors[at] != 0).any(axis=1)
    chosen = chosen[some]
    if not len(chosen):
        raise BitextmineError(f"nothing to index: {len(vectors)} row(s), all of them empty")
    spec = factory_string(kind, len(chosen))
    return Plan(kind, spec, len(vectors), dim, chosen, seed, shard_rows)


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
            f"({reason(error)}); expected auto, flat, ivf or a factory string such as 'IVF1024,SQ8'"
        ) from None


def _train(index: Any, vectors: Vectors, plan: Plan) -> None:
    core, chosen = core_of(index), plan.chosen
    wanted = _TRAIN_ROWS
    if isinstance(core, faiss.IndexIVF):
        core.cp.max_points_per_centroid = _TRAIN_PER_LIST
        core.cp.seed = plan.seed
        for parameters in (core.cp, *([core.pq.cp] if hasattr(core, "pq") else [])):
            parameters.min_points_per_centroid = (
                1  # or FAISS prints a warning; recall on few rows is measured
            )
        wanted = max(wanted, _TRAIN_PER_LIST * core.nlist)
    if isinstance(core, faiss.IndexIVFScalarQuantizer) and core.sq.qtype == faiss.ScalarQuantizer.QT_fp16:
        core.by_residual = False  # the codes are then the stored vectors, bit for bit
    wanted = min(wanted, max(_TRAIN_ROWS, _TRAIN_BYTES // (2 * plan.dim)))
    sample = chosen
    if len(chosen) > wanted:
        sample = np.sort(np.random.default_rng(plan.seed).choice(chosen, wanted, replace=False))
    rows = np.ascontiguousarray(vectors[sample])
    try:
        centres = _flat_quantiser(core) if faiss.downcast_index(index) is core else None
        if centres is not None and not centres.ntotal and len(rows) >= core.nlist:
            centres.add(find_centres(rows, int(core.nlist), seed=plan.seed))  # FAISS trains the rest
        if isinstance(core, faiss.IndexIVF) and core.quantizer.ntotal == core.nlist:
            rows = rows[:: max(1, len(rows) // _TRAIN_ROWS)]  # enough for what is left to train
        index.train(np.ascontiguousarray(rows, dtype=np.float32))
    except RuntimeError as error:
        raise BitextmineError(
            f"index type {plan.spec!r}: {len(chosen):,} distinct rows are too few to train it ({reason(error)}); "
            "use flat, or ivf, which fits itself to the number of rows"
        ) from None


def _flat_quantiser(core: Any) -> Any:
    """Return the index of an inverted file's centres if it compares with all of them, else None."""
    quantiser = faiss.downcast_index(core.quantizer) if isinstance(core, faiss.IndexIVF) else None
    return quantiser if type(quantiser) in (faiss.IndexFlat, faiss.IndexFlatIP) else None


def _add(index: Any, vectors: Vectors, chosen: NDArray[np.int64], progress: Progress) -> None:
    """Add the chosen rows, chunk by chunk; to an inverted file, with lists that our search has assigned.

    FAISS has to assign fast-scan codes itself: they lie in blocks, and added one row at a time, as assigned rows are, a
    list writes past its end when its length is a multiple of a block's bytes (FAISS 1.15,
    BlockInvertedLists::add_entries).
    """
    target: Any = faiss.downcast_index(index)
    quantiser = None if isinstance(target, faiss.IndexIVFFastScan) else _flat_quantiser(target)
    centres = None if quantiser is None else quantiser.reconstruct_n(0, target.nlist)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        whole = int(at[-1]) - int(at[0]) + 1 == len(at)
        rows = vectors[int(at[0]) : int(at[-1]) + 1] if whole else vectors[at]
        block = np.ascontiguousarray(rows, dtype=np.float32)
        if centres is None:
            target.add_with_ids(block, at)
        else:
            from faiss.contrib.ivf_tools import add_preassigned

            assign: Any = add_preassigned
            assign(target, block, nearest_centre(np.asarray(rows), centres), np.ascontiguousarray(at))
        progress(len(at))


@dataclass(frozen=True)
class Built:
    """An index in its part folder: its file, shards in all and from an earlier run."""

    file: Path
    shards: int
    resumed: int


def build_on_disk(
    vectors: Vectors,
    plan: Plan,
    folder: Path,
    identity: dict[str, Any],
    *,
    memory: int,
    progress: Progress = silent,
) -> Built:
    """Build the planned index as files in `folder` within about `memory` bytes.

    Inverted files are built in shards that fit and merged on disk; an interrupted run of the same `identity` (of the
    vectors) and plan resumes. An index of another kind has to fit as a whole and is built in one go. The index is the
    same for every memory, interrupted or not (HNSW apart: its links depend on the timing of threads).

    Raises:
        BitextmineError: too little disk or memory, another process builds this index, or as for `make_plan`.
    """
    each = bytes_each(plan)
    mergeable = plan.spec.startswith("IVF") and not plan.spec.endswith("fs")
    if not mergeable and each * len(plan.chosen) > memory:
        raise BitextmineError(
            f"index type {plan.spec}: takes about {size(each * len(plan.chosen))} of memory, {size(memory)} may be "
            "used; use ivf, which is built in parts, or allow more (index --memory)"
        )
    rows = plan.shard_rows or max(_ADD_ROWS, int(memory // (_SHARD_COPIES * each)))
    rows = rows if mergeable else len(plan.chosen)
    try:
        with journal_folder(folder, JOB, {**identity, **plan.facts(), "faiss": faiss.__version__}) as journal:
            for left in folder.glob("*.tmp"):
                left.unlink()
            if not len(journal):
                journal.append({"shard_rows": rows}, sync=True)
            rows = journal[0]["shard_rows"]  # memory may have been less or more when the work began
            shards = [(a, min(a + rows, len(plan.chosen))) for a in range(0, len(plan.chosen), rows)]
            needed = each * len(plan.chosen) * (2 if len(shards) > 1 else 1)
            room = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.iterdir())
            if room < needed:
                raise BitextmineError(
                    f"{folder}: the index takes about {needed:,} bytes, and {room:,} are to be had on that disk; "
                    "free some space, or use smaller codes (such as index --type IVF4096,SQ8)"
                )
            trained = folder / "trained.faiss"
            if not _whole(trained, 0):
                try:
                    index = _trained(vectors, plan)
                except BitextmineError:
                    shutil.rmtree(folder, ignore_errors=True)  # nothing that could go on
                    raise
                write_index(index, trained)
                del index
            return _build(vectors, plan, trained, shards, progress)
    except JournalBusyError:
        raise BitextmineError(
            f"{folder}: another process is building this index; wait for it or stop it"
        ) from None
    except (OSError, RuntimeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else reason(error)
        raise BitextmineError(
            f"{folder}: cannot write the index: {why}; what is done is kept, run index again to go on"
        ) from None


def _build(
    vectors: Vectors, plan: Plan, trained: Path, shards: list[tuple[int, int]], progress: Progress
) -> Built:
    """Build shard by shard, and merge several."""
    folder = trained.parent
    files = [folder / f"shard-{number:05d}.faiss" for number in range(len(shards))]
    there = 0
    for file, (start, stop) in zip(files, shards, strict=True):
        if _whole(file, stop - start):
            there += 1
            progress(stop - start)
            continue
        index = faiss.read_index(str(trained))
        _add(index, vectors, plan.chosen[start:stop], progress)
        write_index(index, file)
        del index  # before the next one is read
    if len(files) == 1:
        return Built(files[0], 1, there)
    merged = folder / "merged.faiss"
    _merge_shards(trained, files, merged)
    return Built(merged, len(files), there)


def _merge_shards(trained: Path, shards: Sequence[Path], file: Path) -> None:
    """Write an index with the inverted lists of all shards, as `faiss.write_index` would if it fitted into memory.

    FAISS writes the lists of an inverted file last: their sizes, then list by list the codes and the ids. Those of an
    empty index are cut off. faiss.contrib.ondisk writes through a memory map, where a full disk is a signal.
    """
    # The indexes are kept: they own the lists.
    opened: list[Any] = [faiss.read_index(str(shard), faiss.IO_FLAG_MMAP) for shard in shards]
    parts: list[Any] = [faiss.extract_index_ivf(shard).invlists for shard in opened]
    index: Any = faiss.read_index(str(trained))
    ivf: Any = faiss.extract_index_ivf(index)
    sizes = np.array([sum(part.list_size(i) for part in parts) for i in range(ivf.nlist)], dtype=np.uint64)
    index.ntotal = ivf.ntotal = int(sizes.sum())
    head = faiss.serialize_index(index).tobytes()
    lists = struct.pack("<4sQQ", b"ilar", ivf.nlist, ivf.code_size)
    empty = lists + struct.pack("<4sQ", b"sprs", 0)
    if not head.endswith(empty):
        raise RuntimeError(f"FAISS {faiss.__version__} writes inverted lists in another way")
    staged = Path(f"{file}.tmp")
    with staged.open("wb") as out:
        out.write(head.removesuffix(empty) + lists)
        if 2 * np.count_nonzero(sizes) > len(sizes):
            out.write(struct.pack("<4sQ", b"full", len(sizes)) + sizes.tobytes())
        else:
            some = np.flatnonzero(sizes).astype(np.uint64)
            pairs = np.stack([some, sizes[some]], axis=1)
            out.write(struct.pack("<4sQ", b"sprs", pairs.size) + pairs.tobytes())
        for number in range(ivf.nlist):
            for read in (list_codes, list_ids):
                for part in parts:
                    out.write(read(part, number).data)
        sync_file(out)
    put_in_place(staged, file)


def bytes_each(plan: Plan) -> int:
    """Return the bytes of a vector in the index, roughly (its code, id, links); UsageError if FAISS does not tell."""
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
            "it cannot be kept within --memory; use flat, ivf or a factory string such as 'IVF1024,SQ8'"
        ) from None


def _whole(file: Path, rows: int) -> bool:
    """Tell if a file of an earlier run holds an index of so many rows."""
    if not file.exists():
        return False
    try:
        return int(faiss.read_index(str(file), faiss.IO_FLAG_MMAP).ntotal) == rows
    except RuntimeError:
        return False


def write_index(index: Any, file: Path) -> None:
    """Write a FAISS index to a file, complete or not at all; RuntimeError passes through."""
    staged = Path(f"{file}.tmp")
    faiss.write_index(index, str(staged))
    put_in_place(staged, file)
