"""Time the exact both-way search on a GPU, next to the GPU's own matrix product and to torch matmul + topk.

Example:  python index/bench_gpu.py --everything
          python index/bench_gpu.py
          python index/bench_gpu.py --rows 200000 --k 4 --sweep
          python index/bench_gpu.py --config cols=128,warps=4,persistent=1 --json gpu.json

Needs CUDA, torch 2.6 or newer, triton, and this package: installed, or with PYTHONPATH=. from a checkout. The
vectors are made on the GPU: random ones of length 1, half of which have a neighbour planted on the other side.
A TFLOP/s counts 2 x rows x rows x dim operations, once for both directions. Three times are given:

  search       vectors on the GPU, neighbours left there
  end to end   search_both() from NumPy arrays to NumPy arrays: with the check for bad and repeated rows on the
               CPU and the copies to and from the GPU; on all GPUs, unless --device says which (the others: one)
  torch        a part of the rows against all, product by product written out and searched by torch.topk in both
               directions, scaled to all rows

The peak is a large square product of random float16 numbers, measured between the others. Sampled rows of both
sides are searched again in float64, and their neighbours must be the same to the bit.

--everything is for the day a GPU is at hand: it tries other sizes of the kernels (--sweep), says where the time goes
(--breakdown), checks attention over more sentences than CUDA's own kernels take, and writes gpu.json.

On a CPU, to see whether all this runs:
  TRITON_INTERPRET=1 python index/bench_gpu.py --device cpu --rows 100 --dim 32 --k 2 --peak-size 64
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bitextmine.errors import BitextmineError
from bitextmine.search.engines import gpu
from bitextmine.search.exact import search_both
from bitextmine.search.options import Engine, SearchOptions

try:
    import triton

    from bitextmine.search.engines.triton_topk import NOTHING, Config, Sweep, SweepSide, pack
except ImportError:  # --help works all the same
    triton = None

Vectors = tuple[torch.Tensor, torch.Tensor]


def planted(rows: int, dim: int, device: torch.device, seed: int) -> Vectors:
    draw = torch.Generator(device).manual_seed(seed)
    x, y = (torch.randn((rows, dim), generator=draw, device=device, dtype=torch.float16) for _ in range(2))
    y[: rows // 2] = 0.6 * x[: rows // 2] + 0.8 * y[: rows // 2]
    y = y[torch.randperm(rows, generator=draw, device=device)]
    for v in (x, y):
        for part in v.split(1 << 16):
            part.copy_(torch.nn.functional.normalize(part.float(), dim=1))
    return x, y


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(work: Callable[[], object], device: torch.device) -> float:
    wait(device)
    begin = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - begin


def peak(size: int, device: torch.device, depth: int | None = None) -> float:
    """FLOP/s of torch's product of float16 matrices, size x depth by depth x size."""
    a, b = (torch.randn((size, depth or size), device=device).half() for _ in range(2))
    out = torch.empty((size, size), dtype=torch.float16, device=device)

    def product() -> None:
        torch.matmul(a, b.T, out=out)

    product()
    several = min(200, max(1, 8192**3 // size**2 // a.shape[1]) * 5) if device.type == "cuda" else 1
    times = [timed(lambda: [product() for _ in range(several)], device) for _ in range(5)]
    return 2 * size * size * a.shape[1] * several / statistics.median(times)


class Searcher:
    """Sides whose vectors stay on the device; each search begins with nothing known."""

    def __init__(self, vectors: Vectors, k: int, device: torch.device, config: Config) -> None:
        dim = vectors[0].shape[1]
        self.dim = -(-dim // max(config.depth, 32)) * max(config.depth, 32)
        self.k, self.device = k, device
        self.sweep = Sweep(self.dim, k, device, config)
        self.near = []
        for v in vectors:
            near = torch.zeros((len(v) + self.sweep.padding, self.dim), dtype=torch.float16, device=device)
            near[: len(v), :dim] = v
            self.near.append(near)
        self.lengths = [float(torch.linalg.vector_norm(v.float(), dim=1).max()) for v in vectors]
        self.rows = [len(v) for v in vectors]

    def side(self, near: torch.Tensor, n: int) -> SweepSide:
        keys = torch.full((n, self.k), NOTHING, device=self.device)
        bar = torch.full((n,), -torch.inf, device=self.device)
        lost = torch.zeros(n, dtype=torch.int32, device=self.device)
        return SweepSide(near, near, torch.arange(n, device=self.device), keys, bar, lost)

    def __call__(self) -> tuple[SweepSide, SweepSide]:
        x, y = (self.side(near, n) for near, n in zip(self.near, self.rows, strict=True))
        error = ((2 * self.dim + 32) * 2.0**-23 + 1e-6) * self.lengths[0] * self.lengths[1]
        self.sweep.run(x, y, error, True)
        return x, y


def with_topk(x: torch.Tensor, y: torch.Tensor, k: int, high: int, wide: int) -> None:
    """Both directions by torch alone: blocks of products written out, a topk along each side of each block."""
    k = min(k, len(x), len(y))
    best_y = torch.full((len(y), k), -torch.inf, dtype=torch.float16, device=x.device)
    ids_y = torch.zeros((len(y), k), dtype=torch.int64, device=x.device)
    for i in range(0, len(x), high):
        a = x[i : i + high]
        best_x = torch.full((len(a), 0), -torch.inf, dtype=torch.float16, device=x.device)
        ids_x = torch.zeros((len(a), 0), dtype=torch.int64, device=x.device)
        for j in range(0, len(y), wide):
            b = y[j : j + wide]
            sims = a @ b.T
            top = torch.topk(sims, min(k, len(b)), dim=1)
            best_x, at = torch.topk(
                torch.cat([best_x, top.values], 1), min(k, best_x.shape[1] + len(b)), dim=1
            )
            ids_x = torch.cat([ids_x, top.indices + j], 1).gather(1, at)
            top = torch.topk(sims, min(k, len(a)), dim=0)
            part = torch.cat([best_y[j : j + wide], top.values.T], 1)
            best_y[j : j + wide], at = torch.topk(part, k, dim=1)
            ids_y[j : j + wide] = torch.cat([ids_y[j : j + wide], top.indices.T + i], 1).gather(1, at)


def check(queries: torch.Tensor, pool: torch.Tensor, keys: torch.Tensor, sample: int) -> tuple[int, int, int]:
    """Of sampled rows: how many of the neighbours are those of a float64 search, how many there are, and in how
    many rows all are the same, order and similarities included."""
    draw = torch.Generator().manual_seed(1)
    rows = torch.randperm(len(queries), generator=draw)[:sample].to(queries.device)
    k = min(keys.shape[1], len(pool))
    found = same = 0
    for part in rows.split(32):
        sims = [
            (queries[part].double() @ b.double().T).float() + 0.0 for b in pool.split(1 << 17)
        ]  # exact in float64, see products.products()
        ids = torch.arange(len(pool), device=pool.device)
        want = torch.topk(pack(torch.cat(sims, 1), ids), k, dim=1).values
        got = keys[part, :k]
        found += int((got[:, :, None] == want[:, None, :]).sum())
        same += int((got == want).all(dim=1).sum())
    return found, len(rows) * k, same


def attention(rows: int, device: torch.device) -> float:
    """The largest difference of attention in float16 over so many sentences to that on the CPU, in float32."""
    from bitextmine.encoder.transformer import attend

    q, k, v = torch.randn((3, rows, 2, 5, 16), generator=torch.Generator().manual_seed(0)).half()
    found = attend(*(t.to(device) for t in (q, k, v))).cpu().float()
    return float((found - attend(q.float(), k.float(), v.float())).abs().max())


def breakdown(searcher: Searcher) -> dict[str, float]:
    """Seconds of GPU time of each kernel in one search, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        searcher()
        wait(searcher.device)
    spent = {event.key: event.self_device_time_total / 1e6 for event in seen.key_averages()}
    return dict(sorted(spent.items(), key=lambda item: -item[1])[:8])


def variants(base: Config) -> list[Config]:
    """What --sweep tries."""
    tiles = [(128, 256, 64, 8), (128, 128, 64, 4), (128, 128, 64, 8), (256, 128, 64, 8), (128, 256, 32, 8)]
    plain = [
        replace(base, rows=r, cols=c, depth=d, warps=w, stages=s) for r, c, d, w in tiles for s in (3, 4)
    ]
    loads = [
        replace(base, stages=s, descriptors=d, persistent=p)
        for s in (3, 4)
        for d in (False, True)
        for p in (False, True)
        if d or p
    ]
    groups = [replace(base, group=g) for g in (4, 16, 32)]
    return [*plain, *loads, *groups, replace(base, first=4096), replace(base, rescored=32)]


def sweep(vectors: Vectors, k: int, device: torch.device, base: Config, rows: int) -> list[dict[str, Any]]:
    part = vectors[0][:rows], vectors[1][:rows]
    operations = 2 * len(part[0]) * len(part[1]) * part[0].shape[1]
    table = []
    for config in variants(base):
        line: dict[str, Any] = {"config": asdict(config)}
        changed = {n: v for n, v in asdict(config).items() if v != asdict(base)[n]}
        try:
            searcher = Searcher(part, k, device, config)
            searcher()
            took = statistics.median(timed(searcher, device) for _ in range(3))
            x, _ = searcher()
            found, of, _ = check(*part, x.keys, 64)
            line |= {"seconds": took, "tflops": operations / took / 1e12, "right": found == of}
            print(
                f"  {line['tflops']:8.1f} TFLOP/s  {'' if found == of else 'WRONG '}{changed or 'as it is'}",
                flush=True,
            )
        except Exception as error:  # too much shared memory, a compiler's failure: the next one may do
            line["failed"] = f"{type(error).__name__}: {error}"[:300]
            print(f"  does not run      {changed}  {line['failed'][:100]}", flush=True)
        table.append(line)
    return table


def parse_config(text: str, base: Config) -> Config:
    values: dict[str, Any] = {}
    for word in text.split(","):
        name, _, value = word.partition("=")
        if name not in asdict(base):
            raise SystemExit(f"--config: no {name!r} among {', '.join(asdict(base))}")
        values[name] = bool(int(value)) if isinstance(getattr(base, name), bool) else int(value)
    return replace(base, **values)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of either side")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--k", default="4,16", help="numbers of neighbours, with commas (default: 4,16)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs, whose median is reported")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=1000, help="rows of either side to check")
    parser.add_argument("--peak-size", type=int, default=8192, help="side of the square product")
    parser.add_argument(
        "--torch-rows", type=int, default=16384, help="rows that torch matmul + topk is timed on; 0: none"
    )
    parser.add_argument(
        "--no-end-to-end", action="store_true", help="leave out search_both() from NumPy arrays"
    )
    parser.add_argument("--config", help="sizes of the kernels, as cols=128,warps=4 (see triton_topk.Config)")
    parser.add_argument("--sweep", action="store_true", help="try other sizes of the kernels first")
    parser.add_argument("--sweep-rows", type=int, default=262_144)
    parser.add_argument(
        "--breakdown", action="store_true", help="where the GPU's time goes, by torch.profiler"
    )
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument("--everything", action="store_true", help="all of the above, to gpu.json")
    args = parser.parse_args()
    if args.everything:
        args.sweep = args.breakdown = True
        args.json = args.json or Path("gpu.json")
    return args


def main() -> None:
    args = arguments()
    if triton is None:
        raise SystemExit("triton is not installed")
    device = gpu.devices(args.device)[0]
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("torch sees no CUDA device")
    if device.type != "cuda" and not gpu.interpreting():
        raise SystemExit("on a CPU the kernels run with TRITON_INTERPRET=1 in the environment only")
    config = gpu.configs(device)[0]
    if args.config:
        config = parse_config(args.config, config)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, interpreted"
    report: dict[str, Any] = {
        "device": name,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "rows": args.rows,
        "dim": args.dim,
        "config": asdict(config),
        "searches": [],
    }
    print(f"{name}, torch {torch.__version__}, triton {triton.__version__}")
    print(f"{args.rows} x {args.rows} rows, d = {args.dim}, {config}")
    if args.everything:
        report["attention_error"] = attention(70_000, device)
        print(f"attention over 70,000 sentences: {report['attention_error']:.1e} from the CPU's")
    vectors = planted(args.rows, args.dim, device, args.seed)
    if args.sweep:
        report["sweep"] = sweep(vectors, int(args.k.split(",")[0]), device, config, args.sweep_rows)
    for k in map(int, args.k.split(",")):
        report["searches"].append(measure(vectors, k, device, config, args))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


def measure(
    vectors: Vectors, k: int, device: torch.device, config: Config, args: argparse.Namespace
) -> dict[str, Any]:
    x, y = vectors
    operations = 2 * len(x) * len(y) * args.dim
    searcher = Searcher(vectors, k, device, config)
    begin = time.perf_counter()
    found = searcher()
    wait(device)
    first = time.perf_counter() - begin
    took, peaks = [], []
    for _ in range(args.repeats):
        peaks.append(peak(args.peak_size, device))
        took.append(timed(searcher, device))
    best, rate = statistics.median(peaks), operations / statistics.median(took)
    print(f"\nk = {k}: matmul {args.peak_size}^3 {best / 1e12:.1f} TFLOP/s")
    print(f"  first run, with compiling   {first:9.3f} s")
    print(
        f"  search       {statistics.median(took):9.3f} s  {rate / 1e12:8.1f} TFLOP/s  {rate / best:6.1%} of matmul  "
        f"({min(took):.3f} to {max(took):.3f} s in {len(took)} runs)",
        flush=True,
    )
    line: dict[str, Any] = {
        "k": k,
        "peak_tflops": [p / 1e12 for p in peaks],
        "first_seconds": first,
        "search_seconds": took,
        "search_tflops": rate / 1e12,
        "of_peak": rate / best,
    }

    for side, queries, pool, keys in (("x", x, y, found[0].keys), ("y", y, x, found[1].keys)):
        right, of, same = check(queries, pool, keys, args.sample)
        rows = min(args.sample, len(queries))
        print(
            f"  check of {side}: recall@{k} {right / of:.6f}, {same} of {rows} rows the same as in float64",
            flush=True,
        )
        line[f"check_{side}"] = {"right": right, "of": of, "same_rows": same, "rows": rows}
    again = searcher()
    steady = all(torch.equal(a.keys, b.keys) for a, b in zip(found, again, strict=True))
    print(f"  a second run gives {'the same' if steady else 'SOMETHING ELSE'}")
    line["repeatable"] = steady
    del found, again

    if args.breakdown and device.type == "cuda":
        line["breakdown"] = breakdown(searcher)
        for kernel, seconds in line["breakdown"].items():
            print(f"    {seconds:9.4f} s  {kernel[:80]}")
    del searcher
    if args.torch_rows:
        part = x[: args.torch_rows]
        with_topk(part[:2048], y, k, 8192, 1 << 17)
        slow = (
            statistics.median(
                timed(lambda: with_topk(part, y, k, 8192, 1 << 17), device)
                for _ in range(min(3, args.repeats))
            )
            * len(x)
            / len(part)
        )
        ratio = slow / statistics.median(took)
        print(
            f"  torch        {slow:9.3f} s  {operations / slow / 1e12:8.1f} TFLOP/s  (scaled from {len(part)} rows), "
            f"the search is {ratio:.2f} times as fast",
            flush=True,
        )
        line |= {"torch_seconds": slow, "torch_rows": len(part), "times_torch": ratio}
    if not args.no_end_to_end:
        a, b = x.cpu().numpy(), y.cpu().numpy()
        total = end_to_end(a, b, k, args)
        print(f"  end to end   {total:9.3f} s  {operations / total / 1e12:8.1f} TFLOP/s", flush=True)
        line["end_to_end_seconds"] = total
    return line


def end_to_end(x: np.ndarray, y: np.ndarray, k: int, args: argparse.Namespace) -> float:
    """Of a second call, whose kernels are compiled."""
    took = 0.0
    try:
        for _ in range(2):
            begin = time.perf_counter()
            search_both(x, y, k, SearchOptions(device=args.device, engine=Engine.TRITON))
            took = time.perf_counter() - begin
    except BitextmineError as error:
        raise SystemExit(f"end to end: {error}") from error
    return took


if __name__ == "__main__":
    main()
