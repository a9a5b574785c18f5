"""FAISS indexes of two embeddings, and the search in both directions through them: time, memory and share found.

    bitextmine embed corpus.en corpus.fr
    python index/bench_million.py corpus.en.npy corpus.fr.npy

Indexes are built by `bitextmine index`; the search runs in a process of its own. The time of exact search is measured
on the first 8,192 rows of the first side and extrapolated.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import bitextmine, child, parser, processor, table, timed

EXACT_ROWS = 8192


def search(files: list[Path], k: int) -> None:
    """Print what the search through the indexes took and found, as JSON."""
    from bitextmine.embeddings.index_file import index_paths, load_index
    from bitextmine.embeddings.store import open_embedding
    from bitextmine.run import Run
    from bitextmine.search.exact import search_both
    from bitextmine.search.indexed import Indexed, Recall, search_both_indexed

    vectors = [open_embedding(file)[0] for file in files]
    sides = [Indexed(v, load_index(index_paths(file)[0])) for v, file in zip(vectors, files, strict=True)]
    recalls: list[Recall] = []
    cost = timed(lambda: recalls.extend(search_both_indexed(*sides, k, Run())[1]))
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    first = np.ascontiguousarray(vectors[0][:EXACT_ROWS])
    exact = timed(lambda: search_both(first, vectors[1], k))
    times = len(vectors[0]) / len(first)
    print(
        json.dumps(
            {
                "search": [cost.seconds, cost.cpu, int(status["VmHWM"].split()[0]) / 1024],
                "exact": [exact.seconds * times, exact.cpu * times, None],
                "note": "; ".join(map(str, recalls)),
            }
        )
    )


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", nargs=2, type=Path, help="embeddings, .npy")
    command.add_argument("-k", type=int, default=4)
    command.add_argument("--type", default="auto", help="kind of index (auto)")
    command.add_argument("--search", action="store_true", help="only search, in this process; print JSON")
    args = command.parse_args()
    if args.search:
        return search(args.files, args.k)

    def rows():  # type: ignore[no-untyped-def]
        for file in args.files:
            cost, _ = bitextmine("index", str(file), "--type", args.type, "--force")
            facts = json.loads(Path(f"{file.with_suffix('.faiss')}.json").read_text())
            yield [f"index {file.name}: {facts['factory']}", cost.seconds, cost.cpu, cost.peak_mib]
        _, out = child([sys.executable, __file__, "--search", *map(str, args.files), "-k", str(args.k)])
        found = json.loads(out)
        yield ["both directions", *found["search"]]
        yield [f"exact search, extrapolated from {EXACT_ROWS:,} rows", *found["exact"]]
        print(f"\n{found['note']}")

    print(f"{processor()}\n")
    table(["", "seconds", "CPU seconds", "peak MiB"], rows(), digits=0)
    return None


if __name__ == "__main__":
    main()
