"""Time exact search in both directions beside two calls of faiss.knn, in alternating runs, and compare the neighbours.

    OPENBLAS_CORETYPE=SkylakeX python index/bench_exact.py --rows 60000
    OPENBLAS_CORETYPE=SkylakeX python index/bench_exact.py --rows 1000,2000,5000,10000,20000 --threads 1 --methods auto
    python index/bench_exact.py --rows 60000,1000000 --device cuda --methods torch --repeats 1 --no-faiss
    python index/bench_exact.py corpus.en.npy corpus.fr.npy --methods auto,torch:float32,compiled:avx2

Without files it makes random vectors of length 1, half of which have a neighbour planted on the other side. faiss
multiplies with OpenBLAS, whose kernel decides its speed: OPENBLAS_CORETYPE chooses it, and the table names it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.search.exact import search_both
from bitextmine.search.fused import ISA, instruction_set
from bitextmine.search.options import Arithmetic, Engine, SearchOptions
from bitextmine.system import parse_size

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import alternate, middle, parser, processor, table

FAISS = "faiss.knn, twice"
Found = tuple[np.ndarray, ...]  # similarities and ids, source to target and back


def method(words: str) -> dict[str, Any]:
    """Parse ENGINE[:ARITHMETIC][:INSTRUCTIONS] as options of the search."""
    engine, *details = words.split(":")
    chosen: dict[str, Any] = {"engine": Engine(engine)}
    for detail in details:
        chosen |= {"instruction_set": detail} if detail in ISA else {"arithmetic": Arithmetic(detail)}
    return chosen


def planted(rows: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((rows, dim), dtype=np.float32) for _ in range(2))
    y[: rows // 2] = 0.6 * x[: rows // 2] + 0.8 * y[: rows // 2]
    y = y[rng.permutation(rows)]
    for v in (x, y):
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return x.astype(np.float16), y.astype(np.float16)


def search(name: str, x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> Found:
    if name == FAISS:
        import faiss

        faiss.omp_set_num_threads(args.threads)
        a, b = x.astype(np.float32), y.astype(np.float32)
        product = faiss.METRIC_INNER_PRODUCT
        return (*faiss.knn(a, b, args.k, metric=product), *faiss.knn(b, a, args.k, metric=product))
    memory = None if args.memory is None else parse_size(args.memory)
    options = SearchOptions(**method(name), threads=args.threads, device=args.device, memory=memory)
    found = search_both(x, y, args.k, options)
    return found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id


def compare(
    names: list[str], x: np.ndarray, y: np.ndarray, args: argparse.Namespace
) -> Iterator[list[object]]:
    """Yield a row for each method."""
    found = {name: search(name, x[:2000], y[:2000], args) for name in names}  # warms up

    def runner(name: str) -> Callable[[], None]:
        return lambda: found.update({name: search(name, x, y, args)})

    costs = alternate({name: runner(name) for name in names}, args.repeats)
    for name in names:
        cost, ratio, other = middle(costs[name]), None, None
        if name != FAISS and FAISS in costs:
            pairs = zip(costs[FAISS], costs[name], strict=True)
            ratio = float(np.median([theirs.cpu / ours.cpu for theirs, ours in pairs]))
            other = sum(int((found[name][i] != found[FAISS][i]).sum()) for i in (1, 3))
        yield [len(x), name, cost.seconds, cost.cpu, ratio, other]


def kernel() -> str:
    """Return the OpenBLAS kernel that faiss multiplies with."""
    import faiss  # noqa: F401
    from threadpoolctl import threadpool_info

    blas = [
        pool
        for pool in threadpool_info()
        if pool["internal_api"] == "openblas" and "faiss" in pool["filepath"]
    ]
    return str(blas[0]["architecture"]) if blas else "unknown"


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", nargs="*", type=Path, help="two .npy files (default: made-up vectors)")
    command.add_argument("--rows", default="60000", help="rows of a side, between commas (60000)")
    command.add_argument("--dim", type=int, default=512)
    command.add_argument("-k", type=int, default=4)
    command.add_argument("--repeats", type=int, default=3, help="runs of each method, alternating (3)")
    command.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    command.add_argument("--device", default="cpu")
    command.add_argument(
        "--methods",
        default="auto,torch:float32,torch:bfloat16",
        metavar="ENGINE[:ARITHMETIC][:INSTRUCTIONS],...",
        help="auto, compiled, torch; float32, bfloat16, float16; avx2, avxvnni, avx512vnni, amx",
    )
    command.add_argument("--memory", metavar="SIZE", help="limit of the search, such as 64M")
    command.add_argument("--no-faiss", action="store_true")
    args = command.parse_args()
    names = [*([] if args.no_faiss else [FAISS]), *args.methods.split(",")]
    print(
        f"{processor()}, {args.threads} threads, d = {args.dim}, k = {args.k}; compiled: {instruction_set()}; ",
        end="",
    )
    print(f"faiss multiplies with OpenBLAS {kernel()}\n" if not args.no_faiss else "no faiss\n")

    def rows() -> Iterator[list[object]]:
        for size in map(int, args.rows.split(",")):
            if args.files:
                x, y = (np.load(path, mmap_mode="r")[:size] for path in args.files)
            else:
                x, y = planted(size, args.dim, seed=0)
            yield from compare(names, x, y, args)

    header = [
        "rows",
        "method",
        "seconds",
        "CPU seconds",
        "CPU time of faiss, times",
        "ids that differ from faiss's",
    ]
    table(header, rows())


if __name__ == "__main__":
    main()
