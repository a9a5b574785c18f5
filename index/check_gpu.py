"""Search indexes with FAISS on GPUs and with our own search on the CPU; compare recall, neighbours and times.

Example:  python index/check_gpu.py --rows 200000

Needs a GPU, and faiss-gpu in place of faiss-cpu (index/README.md). Makes random vectors of length 1, half of which have
a neighbour planted on the other side, and builds an index of each kind. The queries are the vectors of one side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import faiss
from bench_exact import planted

from bitextmine.indexing import faiss_index
from bitextmine.indexing.build import build_on_disk, make_plan
from bitextmine.indexing.faiss_index import Index
from bitextmine.search.exact import search_one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=480)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument(
        "--type", dest="types", action="append", help="may be repeated (default: flat, ivf and IVF512,SQ8)"
    )
    args = parser.parse_args()
    there = faiss_index.gpus()
    if not there:
        sys.exit("the installed faiss finds no GPU")
    queries, pool = planted(args.rows, args.dim, seed=1)
    exact, _ = search_one(queries, pool, args.k)
    sample = faiss_index.draw(pool, args.k)
    for kind in args.types or ["flat", "ivf", "IVF512,SQ8"]:
        plan = make_plan(pool, kind)
        with tempfile.TemporaryDirectory() as folder:
            made = faiss.read_index(str(build_on_disk(pool, plan, Path(folder), {}, memory=1 << 34).file))
        index = Index(made, plan.facts())
        found = []
        for gpus in (0, there):
            with mock.patch.object(faiss_index, "gpus", lambda gpus=gpus: gpus):
                if not gpus:  # the GPUs make as much effort as the CPU needs
                    faiss_index.tune(index, pool, sample)
                index.search(queries[:5000], pool, args.k)  # moves the index, starts threads
                started = time.perf_counter()
                sim, ids = index.search(queries, pool, args.k)
                took = time.perf_counter() - started
                where = "GPU" if index.on_gpu else "CPU"
            at_1, at_k = faiss_index.shares_found(sim, exact)
            print(
                f"{kind}\t{where}\t{took:.2f} s\trecall@1 {at_1:.4f}\trecall@{args.k} {at_k:.4f}", flush=True
            )
            found.append(ids)
        print(f"{kind}\tthe same neighbours: {(found[0] == found[1]).mean():.2%}", flush=True)


if __name__ == "__main__":
    main()
