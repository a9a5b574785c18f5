"""Build FAISS indexes, inverted files block by block on disk, so that an interrupted run resumes."""

import itertools
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, silent
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import put_in_place, sync_file
from bitextmine.files.journal import Journal, JournalBusyError, journal_folder
from bitextmine.search.faiss_index import core_of, factory_string, reason
from bitextmine.search.faiss_library import faiss
from bitextmine.search.lists import find_centres, nearest_centre
from bitextmine.search.rows import Vectors, check_pair, scan
from bitextmine.system import processors, size

JOB = "index"  # in the journal
_ADD_ROWS = 1 << 16
_TRAIN_ROWS = 1 << 16
_TRAIN_PER_LIST = 64
_TRAIN_BYTES = 1 << 31  # of float16 training rows, at most


@dataclass(frozen=True)
class Plan:
    """An index to build: kind, factory string, and the rows (ascending) of the vectors that it takes."""

    kind: str
    spec: str
    rows: int
    dim: int
    chosen: NDArray[np.int64]
    seed: int

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


def make_plan(vectors: Vectors, kind: str = "auto", *, seed: int = 1) -> Plan:
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
    nonzero = np.ones(len(chosen), dtype=bool)
    for start in range(0, len(chosen), _ADD_ROWS):
        at = chosen[start : start + _ADD_ROWS]
        nonzero[start : start + len(at)] = (vectors[at] != 0).any(axis=1)
    chosen = chosen[nonzero]
    if not len(chosen):
        raise BitextmineError(f"nothing to index: {len(vectors)} row(s), all of them empty")
    spec = factory_string(kind, len(chosen))
    return Plan(kind, spec, len(vectors), dim, chosen, seed)


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


def _blocks(
    vectors: Vectors, chosen: NDArray[np.int64], start: int = 0
) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """Yield the numbers of the chosen rows, block by block from number `start` on, with the rows."""
    for begin in range(start, len(chosen), _ADD_ROWS):
        at = chosen[begin : begin + _ADD_ROWS]
        whole = int(at[-1]) - int(at[0]) + 1 == len(at)
        yield at, np.asarray(vectors[int(at[0]) : int(at[-1]) + 1] if whole else vectors[at])


@dataclass(frozen=True)
class Built:
    """An index in its part folder: its file, and the vectors that an earlier run had encoded."""

    file: Path
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

    The vectors of an inverted file are encoded block by block into a file; an interrupted run of the same `identity`
    (of the vectors) and plan resumes. An index of another kind has to fit into memory and is built in one go. The index
    is the same for every memory, interrupted or not (HNSW apart: its links depend on the timing of threads).

    Raises:
        BitextmineError: too little disk or memory, another process builds this index, or as for `make_plan`.
    """
    takes = bytes_each(plan) * len(plan.chosen)
    # FAISS has to assign fast-scan codes itself: they lie in blocks.
    by_list = plan.spec.startswith("IVF") and not plan.spec.endswith("fs")
    if not by_list and takes > memory:
        raise BitextmineError(
            f"index type {plan.spec}: takes about {size(takes)} of memory, {size(memory)} may be used; use ivf, which "
            "is built in parts, or allow more (index --memory)"
        )
    try:
        with journal_folder(folder, JOB, {**identity, **plan.facts(), "faiss": faiss.__version__}) as journal:
            for left in folder.glob("*.tmp"):
                left.unlink()
            needed = takes * (2 if by_list else 1)
            room = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.iterdir())
            if room < needed:
                raise BitextmineError(
                    f"{folder}: the index takes about {needed:,} bytes, and {room:,} are to be had on that disk; "
                    "free some space, or use smaller codes (such as index --type IVF4096,SQ8)"
                )
            trained, file = folder / "trained.faiss", folder / "whole.faiss"
            if not trained.exists():
                try:
                    write_index(_trained(vectors, plan), trained)
                except BitextmineError:
                    shutil.rmtree(folder, ignore_errors=True)  # nothing that could go on
                    raise
            index = faiss.read_index(str(trained))
            if by_list:
                resumed = _encode(index, vectors, plan, folder, journal, progress)
                _write_lists(index, plan, folder, file, memory)
                return Built(file, resumed)
            for at, block in _blocks(vectors, plan.chosen):
                index.add_with_ids(np.ascontiguousarray(block, dtype=np.float32), at)
                progress(len(at))
            write_index(index, file)
            return Built(file, 0)
    except JournalBusyError:
        raise BitextmineError(
            f"{folder}: another process is building this index; wait for it or stop it"
        ) from None
    except (OSError, RuntimeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else reason(error)
        raise BitextmineError(
            f"{folder}: cannot write the index: {why}; what is done is kept, run index again to go on"
        ) from None


def _encode(
    index: Any, vectors: Vectors, plan: Plan, folder: Path, journal: Journal, progress: Progress
) -> int:
    """Write the code of every chosen vector into a file, and its list into another; return those that were there."""
    ivf: Any = faiss.extract_index_ivf(index)
    quantiser = _flat_quantiser(ivf)
    centres = None if quantiser is None else quantiser.reconstruct_n(0, ivf.nlist)
    done = journal[-1]["rows"] if len(journal) else 0
    with open(folder / "codes", "ab") as codes, open(folder / "lists", "ab") as lists:
        widths = {codes: int(ivf.code_size), lists: 8}
        if any(file.tell() < done * width for file, width in widths.items()):
            journal.truncate(0)
            done = 0
        for file, width in widths.items():
            file.truncate(done * width)
        progress(done)
        stop = done
        for at, block in _blocks(vectors, plan.chosen, done):
            rows = np.ascontiguousarray(block, dtype=np.float32)
            # Our search takes a tenth of the time of FAISS's own assignment.
            near = (
                ivf.quantizer.search(rows, 1)[1][:, 0] if centres is None else nearest_centre(block, centres)
            )
            near, made = np.ascontiguousarray(near), np.empty((len(at), ivf.code_size), np.uint8)
            ivf.encode_vectors(len(at), *map(faiss.swig_ptr, (rows, near, made)))
            codes.write(made.data)
            lists.write(near.data)
            sync_file(codes)
            sync_file(lists)
            stop += len(at)
            journal.append({"rows": stop}, sync=True)
            progress(len(at))
    return int(done)


def _write_lists(index: Any, plan: Plan, folder: Path, file: Path, memory: int) -> None:
    """Write a trained index with the lists of the encoded vectors, as `faiss.write_index` would from memory.

    FAISS writes the lists of an inverted file last: their sizes, then list by list the codes and the ids. Those of the
    empty index are cut off. faiss.contrib.ondisk writes through a memory map, where a full disk is a signal.
    """
    ivf: Any = faiss.extract_index_ivf(index)
    width = int(ivf.code_size)
    of = np.fromfile(folder / "lists", np.int64)
    codes = np.memmap(folder / "codes", np.uint8, "r", shape=(len(of), width))
    order = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]  # a graph of centres may find none
    sizes = np.bincount(of[order], minlength=ivf.nlist).astype(np.uint64)
    index.ntotal = ivf.ntotal = len(order)
    head = faiss.serialize_index(index).tobytes()
    lists = struct.pack("<4sQQ", b"ilar", ivf.nlist, width)
    empty = lists + struct.pack("<4sQ", b"sprs", 0)
    if not head.endswith(empty):
        raise RuntimeError(f"FAISS {faiss.__version__} writes inverted lists in another way")
    staged = Path(f"{file}.tmp")
    with staged.open("wb") as out:
        out.write(head.removesuffix(empty) + lists)
        if 2 * np.count_nonzero(sizes) > len(sizes):
            out.write(struct.pack("<4sQ", b"full", len(sizes)) + sizes.tobytes())
        else:
            filled = np.flatnonzero(sizes).astype(np.uint64)
            pairs = np.stack([filled, sizes[filled]], axis=1)
            out.write(struct.pack("<4sQ", b"sprs", pairs.size) + pairs.tobytes())
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        first = 0
        while first < len(sizes):  # as many lists at a time as fit, so that the codes are read in their order
            most = bounds[first] + memory // (4 * width)
            last = max(first + 1, int(np.searchsorted(bounds, most, side="right")) - 1)
            members = order[bounds[first] : bounds[last]]
            rank = np.argsort(np.argsort(members))
            read = codes[np.sort(members)][rank]
            for start, stop in itertools.pairwise(bounds[first : last + 1]):
                out.write(read[start - bounds[first] : stop - bounds[first]].data)
                out.write(plan.chosen[order[start:stop]].data)
            first = last
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


def write_index(index: Any, file: Path) -> None:
    """Write a FAISS index to a file, complete or not at all; RuntimeError passes through."""
    staged = Path(f"{file}.tmp")
    faiss.write_index(index, str(staged))
    put_in_place(staged, file)
