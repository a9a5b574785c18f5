"""Time exact search in both directions beside two calls of faiss.knn, in alternating runs, and compare the neighbours.

    OPENBLAS_CORETYPE=SkylakeX python index/bench_exact.py --rows 1000,2000,5000,10000,20000 --threads 1
    python index/bench_exact.py --rows 60000,1000000 --dim 480 --device cuda --methods torch --no-faiss

Vectors are random, of length 1; half of them have a neighbour planted on the other side. faiss multiplies with
OpenBLAS, whose kernel decides its speed: OPENBLAS_CORETYPE chooses it, and the table names it.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bitextmine.search.exact import search_both
from bitextmine.search.fused import instruction_set
from bitextmine.search.options import Engine, SearchOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import alternate, middle, parser, processor, table

FAISS = "faiss.knn, twice"
K = 4


def planted(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((rows, dim), dtype=np.float32) for _ in range(2))
    y[: rows // 2] = 0.6 * x[: rows // 2] + 0.8 * y[: rows // 2]
    y = y[rng.permutation(rows)]
    for v in (x, y):
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return x.astype(np.float16), y.astype(np.float16)


def neighbours(name: str, x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> tuple[np.ndarray, ...]:
    """Return the ids of the neighbours, source to target and back."""
    if name != FAISS:
        options = SearchOptions(engine=Engine(name), threads=args.threads, device=args.device)
        found = search_both(x, y, K, options)
        return found.fwd_id, found.bwd_id
    import faiss

    faiss.omp_set_num_threads(args.threads)
    a, b = x.astype(np.float32), y.astype(np.float32)
    return tuple(faiss.knn(*sides, K, metric=faiss.METRIC_INNER_PRODUCT)[1] for sides in ((a, b), (b, a)))


def compare(
    names: list[str], x: np.ndarray, y: np.ndarray, args: argparse.Namespace
) -> Iterator[list[object]]:
    """Yield a row for each method."""
    found = {name: neighbours(name, x[:2000], y[:2000], args) for name in names}  # warms up

    def search(name: str) -> None:
        found[name] = neighbours(name, x, y, args)

    costs = alternate({name: functools.partial(search, name) for name in names}, args.repeats)
    for name in names:
        cost, ratio, other = middle(costs[name]), None, None
        if name != FAISS and FAISS in costs:
            pairs = zip(costs[FAISS], costs[name], strict=True)
            ratio = float(np.median([theirs.cpu / ours.cpu for theirs, ours in pairs]))
            other = sum(
                int((ours != theirs).sum()) for ours, theirs in zip(found[name], found[FAISS], strict=True)
            )
        yield [len(x), name, cost.seconds, cost.cpu, ratio, other]


def kernel() -> str:
    """Return the OpenBLAS kernel that faiss multiplies with."""
    import faiss  # noqa: F401

    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "of an unknown kernel (install threadpoolctl to name it)"

    pools = [
        pool
        for pool in threadpool_info()
        if pool["internal_api"] == "openblas" and "faiss" in pool["filepath"]
    ]
    return str(pools[0]["architecture"]) if pools else "unknown"


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--rows", default="60000", help="rows of a side, between commas (60000)")
    command.add_argument("--dim", type=int, default=512)
    command.add_argument("--repeats", type=int, default=3, help="runs of each method, alternating (3)")
    command.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    command.add_argument("--device", default="cpu")
    command.add_argument("--methods", default="auto", help="auto, compiled, torch, between commas (auto)")
    command.add_argument("--no-faiss", action="store_true")
    args = command.parse_args()
    names = [*([] if args.no_faiss else [FAISS]), *args.methods.split(",")]
    blas = "no faiss" if args.no_faiss else f"faiss multiplies with OpenBLAS {kernel()}"
    print(
        f"{processor()}, {args.threads} threads, d = {args.dim}, k = {K}; compiled: {instruction_set()}; {blas}\n"
    )
    header = [
        "rows",
        "method",
        "seconds",
        "CPU seconds",
        "CPU time of faiss, times",
        "ids that differ from faiss's",
    ]
    sizes = map(int, args.rows.split(","))
    table(header, (row for size in sizes for row in compare(names, *planted(size, args.dim), args)))


if __name__ == "__main__":
    main()
