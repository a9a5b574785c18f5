"""Measure true and estimated precision against the threshold, for a curve in mine/quality.md.

    python mine/precision.py CORPUS.en CORPUS.fr GOLD.tsv -o mine/precision.tsv
    python mine/plots.py

Mines the corpora as they are, and again after most gold pairs have lost one of their two sentences (half of them the
source, half the target), so that translations become rare. The estimate is what `bitextmine mine` itself says of a few
thresholds; the truth comes from the gold pairs.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import read_lines

COLUMNS = ("true pairs", "threshold", "pairs", "correct", "precision", "estimated precision", "recall")
RULES = ("f4", "f1", "f0.25")


def write_without(path: Path, lines: list[str], gone: set[int]) -> list[int]:
    """Write the lines without those numbered in `gone` (from 1); return the old number of each line written."""
    kept = [number for number in range(1, len(lines) + 1) if number not in gone]
    path.write_text("".join(f"{lines[i - 1]}\n" for i in kept), encoding="utf-8", newline="\n")
    return kept


def mine(folder: Path, langs: list[str], model: str, *threshold: str) -> tuple[list[list[str]], dict]:
    """Return the mined rows, with line numbers, and the manifest."""
    command = [sys.executable, "-m", "bitextmine", "mine", "--ids", *threshold]
    command += ["--src", langs[0], "--tgt", langs[1], "--model", model, "-o", "mined.tsv"]
    subprocess.run(command, check=True, cwd=folder)
    with open(folder / "mined.tsv", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return rows, json.loads((folder / "mined.tsv.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs=2, metavar="CORPUS")
    parser.add_argument("gold", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.tsv")
    parser.add_argument("--keep", type=int, nargs="+", default=[10_000, 1_000, 100], help="gold pairs kept")
    parser.add_argument("--model", default="europe5")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of pairs")
    options = parser.parse_args()

    langs = [corpus_language(path) for path in options.corpora]
    lines = [read_lines(path) for path in options.corpora]
    with open(options.gold, encoding="utf-8", newline="") as file:
        gold = [(int(source), int(target)) for source, target in csv.reader(file, delimiter="\t")]
    random.Random(options.seed).shuffle(gold)
    rows, signatures = [], []
    for keep in options.keep:
        true, lost = set(gold[:keep]), gold[keep:]
        half = len(lost) // 2
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            gone = {source for source, _ in lost[:half]}, {target for _, target in lost[half:]}
            old = [write_without(folder / f"text.{langs[i]}", lines[i], gone[i]) for i in (0, 1)]
            # Each rule gives estimates around another score.
            counts = [mine(folder, langs, options.model, "--threshold", rule)[1]["counts"] for rule in RULES]
            estimates = {row["threshold"]: row["precision"] for some in counts for row in some}
            mined, manifest = mine(folder, langs, options.model, "--threshold", "none")
        signatures.append(f"# {len(true)} true pairs: {manifest['signature']}")
        pairs = [(float(s), (old[0][int(i) - 1], old[1][int(j) - 1]) in true) for s, i, j, *_ in mined]
        for threshold, estimate in sorted(estimates.items()):
            kept = [right for score, right in pairs if score >= threshold]
            if not kept:
                break
            shares = (
                f"{100 * share:.2f}" for share in (sum(kept) / len(kept), estimate, sum(kept) / len(true))
            )
            rows.append("\t".join([*map(str, (len(true), threshold, len(kept), sum(kept))), *shares]))
            print(rows[-1], flush=True)
    text = "\n".join(["\t".join(COLUMNS), *rows, *signatures])
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
