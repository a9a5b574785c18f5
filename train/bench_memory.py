"""Peak memory of a training run at several corpus sizes: it must not grow with them.

Example: python train/bench_memory.py --sizes 200000,2000000

For each size, made-up pairs are written to a file; then two processes are measured, by the largest resident set that
the system saw (getrusage): one that only makes the token cache (reads, tokenises, finds repeats, holds out), and
`bitextmine train` over that cache. Processor time is that of all their threads.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS, HALVES, REPEATED = 20_000, 5_000, 0.02
BUILD = """
import sys
from pathlib import Path
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.training.cache import open_caches
from bitextmine.training.recipe import load_recipe
open_caches(Path(sys.argv[3]), load_recipe(None, pairs=[sys.argv[1]]), Tokenizer(sys.argv[2]))
"""


def write_pairs(path: Path, n: int, seed: int) -> None:
    """n pairs of 8 to 44 words a side; a line is two of 5,000 halves, and one in 50 pairs repeats an earlier one."""
    rng = random.Random(seed)
    words = [
        ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(WORDS)]
        for _ in range(2)
    ]
    halves: list[list[str]] = [[], []]
    for _ in range(HALVES):
        chosen = [min(int(rng.paretovariate(0.8)), WORDS) - 1 for _ in range(rng.randint(4, 22))]
        for side in (0, 1):
            halves[side].append(" ".join(words[side][i] for i in chosen))
    last = (0, 1)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n):
            if rng.random() >= REPEATED:
                last = (rng.randrange(HALVES), rng.randrange(HALVES))
            a, b = last
            file.write(f"{halves[0][a]} {halves[0][b]}\t{halves[1][a]} {halves[1][b]}\n")


def measure(arguments: list[str]) -> tuple[float, float]:
    """Peak resident set in MB and processor seconds of a command; SystemExit where it fails."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            said.seek(0)
            raise SystemExit(said.read().decode())
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of training at several corpus sizes.")
    parser.add_argument("--sizes", default="200000,2000000", help="pairs, smallest first (200000,2000000)")
    parser.add_argument("--steps", type=int, default=20, help="training steps; 0: only the cache (20)")
    parser.add_argument("--folder", type=Path, help="where the corpora are made (a temporary folder)")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        first = folder / "first.en-fr.tsv"
        write_pairs(first, 20_000, 1)
        train = [
            sys.executable,
            "-m",
            "bitextmine",
            "train",
            "--dim",
            "64",
            "--batch",
            "4096",
            "--vocabulary",
            "4000",
            "--set",
            "train.valid_every=20",
        ]
        measure([*train, "--pairs", str(first), "--out", str(folder / "first"), "--set", "train.steps=2"])
        tokenizer = folder / "first" / "tokenizer.model"
        print(
            "| pairs | text, MB | cache, MB | cache: peak MB | pairs a processor second | training: peak MB |"
        )
        print("|---|---|---|---|---|---|")
        for size in sizes:
            pairs, cache = folder / f"{size}.en-fr.tsv", folder / f"cache{size}"
            write_pairs(pairs, size, 2)
            text = pairs.stat().st_size / 1e6
            build = measure([sys.executable, "-c", BUILD, str(pairs), str(tokenizer), str(cache)])
            stored = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) / 1e6
            peak = "-"
            if options.steps:
                given = [
                    "--set",
                    f"data.cache={cache}",
                    "--set",
                    f"vocabulary.tokenizer={tokenizer}",
                    "--set",
                    f"train.steps={options.steps}",
                    "--out",
                    str(folder / str(size)),
                ]
                peak = f"{measure([*train, '--pairs', str(pairs), *given])[0]:.0f}"
            rate = size / build[1]
            print(f"| {size:,} | {text:.0f} | {stored:.0f} | {build[0]:.0f} | {rate:,.0f} | {peak} |")
            sys.stdout.flush()
            pairs.unlink()


if __name__ == "__main__":
    main()
