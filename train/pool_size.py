"""P@1 against the size of the pool, by cosine and by ratio margin: the numbers of a curve in train/quality.md.

    python train/pool_size.py QUERIES.tsv FOLDER-OF-THE-DISTRACTORS -o train/pool_size.tsv
    python mine/plots.py

Runs `bitextmine evaluate retrieval` with more and more distractors. Each language's are shuffled once and the first
so many taken, so that a pool contains all smaller ones. A language that has fewer than that takes part with all it has.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bitextmine.files.lines import iter_lines, read_lines

SIZES = "2000,3000,5000,10000,20000,50000,100000,200000"
COLUMNS = ("model", "direction", "measure", "pool", "P@1", "low", "high", "correct", "queries")


def measure(queries: Path, folder: Path, pairs: str, model: str) -> dict[str, Any]:
    """Run `evaluate retrieval` with a folder of distractors and return its report."""
    command = [sys.executable, "-m", "bitextmine", "evaluate", "retrieval", "--queries", str(queries)]
    command += ["--distractors", str(folder), "--pairs", pairs, "--model", model, "--format", "json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def distractors(folder: Path, languages: list[str], seed: int) -> dict[str, list[str]]:
    """Return the lines of each language, shuffled."""
    lines = {}
    for lang in languages:
        (path,) = folder.glob(f"distractors.{lang}.*")
        lines[lang] = read_lines(path)
        random.Random(seed).shuffle(lines[lang])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("queries", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.tsv")
    parser.add_argument("--pairs", default="en-fr,it-en,de-en,es-en")
    parser.add_argument("--models", default="europe5")
    parser.add_argument("--sizes", default=SIZES, help="of a pool, queries included")
    parser.add_argument("--seed", type=int, default=1, help="of the shuffling")
    options = parser.parse_args()

    queries = sum(1 for _ in iter_lines(options.queries)) - 1  # less the header
    languages = sorted(set(options.pairs.replace("-", ",").split(",")))
    lines = distractors(options.folder, languages, options.seed)
    rows, signatures = [], []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            for lang in languages:
                text = "".join(f"{line}\n" for line in lines[lang][: size - queries])
                Path(name, f"distractors.{lang}.txt").write_text(text, encoding="utf-8", newline="\n")
            for model in options.models.split(","):
                report = measure(options.queries, Path(name), options.pairs, model)
                signatures.append(f"# {report['signature']}")
                for found in report["results"]:
                    if found["measure"].startswith(("cosine", "ratio")):
                        shares = (f"{100 * found[key]:.2f}" for key in ("p_at_1", "low", "high"))
                        counts = (str(found[key]) for key in ("correct", "queries"))
                        direction = f"{found['src']}-{found['tgt']}"
                        row = (model, direction, found["measure"], str(found["pool"]), *shares, *counts)
                        rows.append("\t".join(row))
                        print(rows[-1], flush=True)
    text = "\n".join(["\t".join(COLUMNS), *rows, *signatures])
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
