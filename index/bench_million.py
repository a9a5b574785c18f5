"""FAISS indexes of two embeddings, and the search in both directions through them: time, memory and share found.

    bitextmine embed corpus.en corpus.fr
    python index/bench_million.py corpus.en.npy corpus.fr.npy

Indexes are built by `bitextmine index`. The time of exact search is measured on the first 8,192 rows of the first side
and extrapolated.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bitextmine.embeddings.index_file import index_paths, load_index
from bitextmine.embeddings.store import open_embedding
from bitextmine.run import Run
from bitextmine.search.exact import search_both
from bitextmine.search.indexed import Indexed, Recall, search_both_indexed

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import bitextmine, parser, processor, table, timed

EXACT_ROWS = 8192
K = 4


def rows(files: list[Path]) -> Iterator[list[object]]:
    for file in files:
        cost, _ = bitextmine("index", file, "--force")
        facts = json.loads(Path(f"{file.with_suffix('.faiss')}.json").read_text())
        yield [f"index {file.name}: {facts['factory']}", cost.seconds, cost.cpu, cost.peak_mib]
    vectors = [open_embedding(file)[0] for file in files]
    sides = [Indexed(v, load_index(index_paths(file)[0])) for v, file in zip(vectors, files, strict=True)]
    recalls: list[Recall] = []
    cost = timed(lambda: recalls.extend(search_both_indexed(*sides, K, Run())[1]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield [f"both directions: {'; '.join(map(str, recalls))}", cost.seconds, cost.cpu, peak]
    first = np.ascontiguousarray(vectors[0][:EXACT_ROWS])
    exact, times = timed(lambda: search_both(first, vectors[1], K)), len(vectors[0]) / len(first)
    yield [
        f"exact search, extrapolated from {EXACT_ROWS:,} rows",
        exact.seconds * times,
        exact.cpu * times,
        None,
    ]


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", nargs=2, type=Path, help="embeddings, .npy")
    args = command.parse_args()
    print(f"{processor()}\n")
    table(["", "seconds", "CPU seconds", "peak MiB"], rows(args.files), digits=0)


if __name__ == "__main__":
    main()
