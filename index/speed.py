"""Exact neighbours both ways against two calls of faiss.knn, as the sides grow: a curve of index/performance.md.

    OPENBLAS_NUM_THREADS=1 python index/speed.py -o index/speed.tsv
    python mine/plots.py

The vectors are those of bench_exact.py. Both programs run alternately, on one thread. What counts is processor time,
and of several runs the least: it is the one that other work disturbed least.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from bench_exact import planted, processor

from bitextmine.search.exact import search_both
from bitextmine.search.options import SearchOptions

COLUMNS = ("rows", "faiss.knn twice, s", "bitextmine, s", "ratio")


def seconds(run: Callable[[], object]) -> float:
    """Of processor time."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.tsv")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 2_000, 5_000, 10_000, 20_000])
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    faiss.omp_set_num_threads(options.threads)
    notes = f"# d = {options.dim}, k = {options.k}, {options.threads} thread(s) of {processor()}; faiss "
    notes += f"{faiss.__version__}; the least of {options.repeats} runs each, processor seconds"
    rows = []
    for size in options.rows:
        x, y = planted(size, options.dim, seed=0)

        def theirs(x: np.ndarray = x, y: np.ndarray = y) -> None:
            a, b = x.astype(np.float32), y.astype(np.float32)
            faiss.knn(a, b, options.k, metric=faiss.METRIC_INNER_PRODUCT)
            faiss.knn(b, a, options.k, metric=faiss.METRIC_INNER_PRODUCT)

        def ours(x: np.ndarray = x, y: np.ndarray = y) -> None:
            search_both(x, y, options.k, SearchOptions(threads=options.threads))

        took = [(seconds(theirs), seconds(ours)) for _ in range(options.repeats)]
        least = [min(column) for column in zip(*took, strict=True)]
        rows.append(
            "\t".join([str(size), *(f"{value:.4f}" for value in least), f"{least[0] / least[1]:.2f}"])
        )
        print(rows[-1], flush=True)
        options.out.write_text("\n".join(["\t".join(COLUMNS), *rows, notes]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
