"""Time the exact both-way search against two faiss.knn calls, in alternating runs, and compare the neighbours.

Example:  python index/bench_exact.py --rows 60000 --repeats 3
          python index/bench_exact.py corpus.en.npy corpus.fr.npy --methods auto,torch:float32,compiled:float32:avx2
          python index/bench_exact.py --scaling 30000,60000,120000,500000 --memory 64M --methods auto

Without files it makes random vectors of length 1, half of which have a neighbour planted on the other side.
Each method also runs once in a process of its own, which maps the files and gives its peak memory. --scaling compares
sizes instead of methods, without faiss. On a CPU it does not time those with more than 200,000 rows: it measures the
peak with all of the target side and 2,000 rows of the source side there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.errors import UsageError
from bitextmine.search.exact import search_both
from bitextmine.search.fused import ISA, instruction_set
from bitextmine.search.options import Arithmetic, Engine, SearchOptions
from bitextmine.system import parse_size

FAISS = "faiss.knn x2"


def method(words: str) -> dict[str, Any]:
    """Parse engine[:arithmetic][:instruction set] of `--methods` as options of the search."""
    engine, *details = words.split(":")
    found: dict[str, Any] = {"engine": Engine(engine)}
    for detail in details:
        if detail in ISA:
            found["instruction_set"] = detail
        else:
            found["arithmetic"] = Arithmetic(detail)
    SearchOptions(**found)  # refuses what does not go together
    return found


def planted(rows: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((rows, dim), dtype=np.float32) for _ in range(2))
    y[: rows // 2] = 0.6 * x[: rows // 2] + 0.8 * y[: rows // 2]
    y = y[rng.permutation(rows)]
    for v in (x, y):
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return x.astype(np.float16), y.astype(np.float16)


def load(args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    if args.files:
        x, y = (np.load(name, mmap_mode="r") for name in args.files)
        return x[: args.rows], y[: args.rows]
    return planted(args.rows or 60000, args.dim, args.seed)


def run(name: str, x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> tuple[np.ndarray, ...]:
    if name == FAISS:
        import faiss

        faiss.omp_set_num_threads(args.threads)
        a, b = x.astype(np.float32), y.astype(np.float32)
        fwd = faiss.knn(a, b, args.k, metric=faiss.METRIC_INNER_PRODUCT)
        bwd = faiss.knn(b, a, args.k, metric=faiss.METRIC_INNER_PRODUCT)
        return (*fwd, *bwd)
    how = method(name)
    if how["engine"] == Engine.TORCH:
        import torch

        torch.set_num_threads(args.threads)
    memory = None if args.memory is None else parse_size(args.memory)
    options = SearchOptions(**how, threads=args.threads, device=args.device, memory=memory)
    found = search_both(x, y, args.k, options)
    return found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id


def agreement(ours: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...]) -> str:
    """Return the number of different neighbours, and the differences of their similarities."""
    differing, worst, total = 0, 0.0, 0
    for sim, ids, their_sim, their_ids in ((*ours[:2], *theirs[:2]), (*ours[2:], *theirs[2:])):
        other = ids != their_ids
        differing, total = differing + int(other.sum()), total + other.size
        if other.any():
            worst = max(worst, float(np.abs(sim[other] - their_sim[other]).max()))
    return f"{differing} of {total} ids differ from faiss, their similarities by {worst:.1e} at most"


def peak(name: str, files: list[Path], args: argparse.Namespace) -> tuple[float, float]:
    """Peak resident memory, in MiB, of a process that maps the files and does this and nothing else; and that of the
    same process before."""
    command = [sys.executable, __file__, "--only", name, *map(str, files)]
    for option in ("k", "threads", "device", "memory"):
        if getattr(args, option) is not None:
            command += [f"--{option}", str(getattr(args, option))]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return float(found["peak_mib"]), float(found["before_mib"])


def own_peak() -> float:
    """Of this process, since it began (ru_maxrss also counts the process that started it)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="two .npy files (default: made-up vectors)")
    parser.add_argument(
        "--rows", type=int, help="this many rows a side (default: all of the files, or 60000)"
    )
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("-k", "--k", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each method, alternating")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--methods",
        default="auto,compiled:float32,torch:float32,torch:bfloat16",
        metavar="ENGINE[:ARITHMETIC][:INSTRUCTIONS],...",
        help="auto, compiled, torch; int8, float32, bfloat16, float16; avx2, avxvnni, avx512vnni, amx",
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="for the search, as 64M (default: half of what is free)"
    )
    parser.add_argument("--scaling", metavar="ROWS,...", help="compare these sizes")
    parser.add_argument("--no-peak", action="store_true", help="leave out the runs that measure memory")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if len(args.files) not in (0, 2):
        parser.error("give two files, or none")
    try:
        for name in args.methods.split(","):
            method(name)
    except (UsageError, ValueError) as error:
        parser.error(f"--methods: {error}")
    if args.scaling:
        scaling([int(rows) for rows in args.scaling.split(",")], args)
        return
    x, y = load(args)
    if args.only:
        search_both(x[:8], y[:8], 1)  # loads what there is to load
        before = own_peak()
        run(args.only, x, y, args)
        print(json.dumps({"peak_mib": own_peak(), "before_mib": before}))
        return

    methods = [FAISS, *args.methods.split(",")]
    warm = x[:2000], y[:2000]
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    cpu: dict[str, list[float]] = {name: [] for name in methods}
    last: dict[str, tuple[np.ndarray, ...]] = {}
    for name in methods:
        run(name, *warm, args)
    for _ in range(args.repeats):
        for name in methods:
            begin, begin_cpu = time.perf_counter(), time.process_time()
            last[name] = run(name, x, y, args)
            seconds[name].append(time.perf_counter() - begin)
            cpu[name].append(time.process_time() - begin_cpu)

    print(
        f"{len(x)} x {len(y)} rows, d = {x.shape[1]}, k = {args.k}, {args.threads} threads of {processor()}, "
        f"compiled search: {instruction_set() or 'none'}"
    )
    operations = 2 * len(x) * len(y) * x.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "x.npy"), Path(folder, "y.npy")]
        if not args.no_peak:
            for file, rows in zip(files, (x, y), strict=True):
                np.save(file, rows)
        report(methods, seconds, cpu, last, operations, files, args)


def scaling(sizes: list[int], args: argparse.Namespace) -> None:
    """Time and peak memory as the sides grow."""
    shape = f"d = {args.dim}, k = {args.k}, {args.threads} threads of {processor()}"
    print(f"{shape}, memory {args.memory or 'as much as is useful'}")
    for name in args.methods.split(","):
        first: float | None = None
        for rows in sizes:
            x, y = planted(rows, args.dim, args.seed)
            with tempfile.TemporaryDirectory() as folder:
                files = [Path(folder, "x.npy"), Path(folder, "y.npy")]
                timed = rows <= 200_000 or args.device != "cpu"
                for file, side in zip(files, (x if timed else x[:2000], y), strict=True):
                    np.save(file, side)
                took, cpu = [], []
                for _ in range(args.repeats if timed else 0):
                    begin, begin_cpu = time.perf_counter(), time.process_time()
                    run(name, x, y, args)
                    took.append(time.perf_counter() - begin)
                    cpu.append(time.process_time() - begin_cpu)
                most, before = peak(name, files, args)
            line = f"{name:16} {rows if timed else 2000:9,} x {rows:9,}  "
            if timed:
                per_pair = statistics.median(cpu) / rows**2
                first = first or per_pair
                line += (
                    f"{statistics.median(took):8.2f} s ({statistics.median(cpu):8.2f} s of processor time, "
                )
                line += f"per pair {per_pair / first:5.2f} of the first)  "
            line += f"files {(x.nbytes * timed + y.nbytes) / 2**20:6.0f} MiB  peak {most:6.0f} MiB, "
            line += f"of which {most - before:5.0f} for the search"
            print(line, flush=True)


def report(
    methods: list[str],
    seconds: dict[str, list[float]],
    cpu: dict[str, list[float]],
    last: dict[str, tuple[np.ndarray, ...]],
    operations: int,
    files: list[Path],
    args: argparse.Namespace,
) -> None:
    for name in methods:
        took = statistics.median(seconds[name])
        ratio = statistics.median(f / s for f, s in zip(seconds[FAISS], seconds[name], strict=True))
        line = f"{name:16} {took:8.2f} s ({statistics.median(cpu[name]):8.2f} s of processor time)"
        line += f"  {operations / took / 1e9:7.0f} GOP/s  {ratio:5.2f}x"
        if not args.no_peak:
            line += f"  peak {peak(name, files, args)[0]:6.0f} MiB"
        if name != FAISS:
            line += "  " + agreement(last[name], last[FAISS])
        print(line, flush=True)


if __name__ == "__main__":
    main()
