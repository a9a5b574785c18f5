"""Time the exact both-way search of this checkout against that of another one, in alternating processes.

Example:  git worktree add ../before v0.1 && (cd ../before && pip install -e . --prefix /tmp/any)
          python index/bench_kernels.py corpus.en.npy corpus.fr.npy --rows 60000 --before ../before
          python index/bench_kernels.py --random 60000 --dim 480 --before ../before

Each run is a process of its own that maps the files, searches once, and prints its seconds and a digest of what it
found. The digests must agree. --before is a folder with a built `bitextmine` inside (its compiled modules too). The
result is the median and the range of the ratios of neighbouring runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_CHILD = """
import hashlib, json, sys, time
import numpy as np
from bitextmine.search.exact import search_both
from bitextmine.search.fused import instruction_set
x, y, of_x, of_y, k = *sys.argv[1:3], *map(int, sys.argv[3:])
x, y = np.load(x, mmap_mode="r")[:of_x], np.load(y, mmap_mode="r")[:of_y]
search_both(x[:2000], y[:2000], 1)
begin, begin_cpu = time.perf_counter(), time.process_time()
found = search_both(x, y, k)
facts = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - begin_cpu}
digest = hashlib.blake2b(digest_size=8)
for part in (found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id):
    digest.update(np.ascontiguousarray(part))
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
facts |= {"digest": digest.hexdigest(), "with": str(instruction_set()), "peak_mib": int(peak) / 1024}
print(json.dumps(facts))
"""


def once(checkout: Path, files: list[Path], args: argparse.Namespace) -> dict[str, float | str]:
    rows = args.rows or sys.maxsize
    numbers = [args.source_rows or rows, rows, args.k]
    command = [sys.executable, "-c", _CHILD, *(str(file.resolve()) for file in files), *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    # in that folder: python -c puts the current one before PYTHONPATH
    done = subprocess.run(
        command, env=environment, cwd=checkout, check=True, stdout=subprocess.PIPE, text=True
    )
    facts: dict[str, float | str] = json.loads(done.stdout)
    return facts


def random_files(rows: int, dim: int, folder: Path) -> list[Path]:
    """Directions without any structure: normal vectors of length 1, float16."""
    files = []
    for seed in range(2):
        v = np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        files.append(folder / f"random.{seed}.npy")
        np.save(files[-1], v.astype(np.float16))
    return files


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="two .npy files")
    parser.add_argument("--random", type=int, metavar="ROWS", help="made-up vectors instead of files")
    parser.add_argument("--dim", type=int, default=480, help="of the made-up vectors")
    parser.add_argument("--rows", type=int, help="this many rows a side (default: all)")
    parser.add_argument("--source-rows", type=int, help="only so many of the first file's")
    parser.add_argument("-k", "--k", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3, help="pairs of runs")
    parser.add_argument("--before", type=Path, required=True, help="another checkout, built")
    args = parser.parse_args()
    if bool(args.random) == bool(args.files) or len(args.files) not in (0, 2):
        parser.error("give two files, or --random ROWS")
    if not (args.before / "bitextmine").is_dir():
        parser.error(f"--before {args.before}: no folder bitextmine in it")
    now = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        files = random_files(args.random, args.dim, Path(folder)) if args.random else args.files
        runs = [(once(args.before, files, args), once(now, files, args)) for _ in range(args.repeats)]
        shape = np.load(files[0], mmap_mode="r").shape
    rows = min(shape[0], args.rows or shape[0])
    print(f"{args.source_rows or rows:,} x {rows:,} rows, d = {shape[1]}, k = {args.k}")
    for name, found in zip(("before", "now"), zip(*runs, strict=True), strict=True):
        wall, cpu = (statistics.median(float(one[what]) for one in found) for what in ("seconds", "cpu"))
        peak = max(float(one["peak_mib"]) for one in found)
        print(f"{name:8} {found[0]['with']:12} {wall:8.2f} s  processor {cpu:8.2f} s  peak {peak:6.0f} MiB")
    ratios = [float(before["cpu"]) / float(after["cpu"]) for before, after in runs]
    print(
        f"before / now, processor seconds: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )
    if len({one["digest"] for pair in runs for one in pair}) > 1:
        sys.exit("bench_kernels: the two found different neighbours or similarities")
    print("the same bytes")


if __name__ == "__main__":
    main()
