"""Is the precision that `mine` states the true one, on text of many kinds and where translations are rare?

    python mine/bench_overlap.py PAIRS.tsv --pairs 3000 300 [--lines 25000] [--model NAME|FOLDER]

PAIRS.tsv holds sentences that translate each other, source, tab, target. Some of the pairs stay; of the others the
source of one and the target of another are taken, so that nothing else has a translation (but for what says the
same in other words). Prints a Markdown table: where the truth is 95, 80, 60 and 30%, what is stated, with its interval,
and what would be stated without decoys.
"""

from __future__ import annotations

import argparse
import random

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder import load_encoder
from bitextmine.files.lines import read_lines
from bitextmine.mining.candidates import candidates
from bitextmine.mining.decoys import Decoys, sampled_decoys
from bitextmine.mining.noise import fit_null
from bitextmine.mining.retrieval import retrieve
from bitextmine.search.exact import search_both

TRUTHS = (0.95, 0.8, 0.6, 0.3)


def planted(
    rows: list[tuple[str, str]], pairs: int, lines: int
) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Both sides, and for each source line its target line or -1. rows: no text twice."""
    alone = rows[pairs:]
    lines = min(lines, len(alone) // 2)
    src = [s for s, _ in rows[:pairs]] + [s for s, _ in alone[:lines]]
    tgt = [t for _, t in rows[:pairs]] + [t for _, t in alone[lines : 2 * lines]]
    partner = np.full(len(src), -1, dtype=np.int64)
    partner[:pairs] = np.arange(pairs)
    return src, tgt, partner


def distinct(path: str, seed: int) -> list[tuple[str, str]]:
    """The rows in random order, without those that have a text, up to case, of one before."""
    rows = list(dict.fromkeys((row.split("\t")[0], row.split("\t")[1]) for row in read_lines(path)))
    random.Random(seed).shuffle(rows)
    seen: set[str] = set()
    kept = []
    for src, tgt in rows:
        if src.lower() not in seen and tgt.lower() not in seen:
            kept.append((src, tgt))
            seen |= {src.lower(), tgt.lower()}
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pairs_file", metavar="PAIRS.tsv")
    parser.add_argument("--pairs", type=int, nargs="+", default=[3_000, 300], help="true pairs")
    parser.add_argument("--lines", type=int, default=25_000, help="lines of a side that have no translation")
    parser.add_argument("--model", default="default")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    encoder = load_encoder(options.model)
    rows = distinct(options.pairs_file, options.seed)
    print("| true pairs | lines | threshold | pairs | true, % | stated, % | without decoys, % |")
    print("|---|---|---|---|---|---|---|")
    for pairs in options.pairs:
        src, tgt, partner = planted(rows, pairs, options.lines)
        sides = [encoder.encode(lines).astype(np.float16) for lines in (src, tgt)]
        neighbours = search_both(sides[0], sides[1], 5)
        best = candidates(neighbours, 4)
        decoys: list[Decoys] = [sampled_decoys(side, 4, "ratio") for side in sides]
        nulls = [
            fit_null(neighbours, best, k=4, margin="ratio", retrieval="max", decoys=lambda some=some: some)
            for some in (decoys, [])
        ]
        found = retrieve(best)
        truth = np.cumsum(partner[found.src] == found.tgt) / np.arange(1, len(found) + 1)
        for wanted in TRUTHS:
            reached = np.flatnonzero(truth >= wanted)
            if not len(reached) or reached[-1] < 10:
                continue
            at = int(reached[-1])
            cut = float(found.score[at])
            low, high = nulls[0].interval(cut)
            stated, before = (100 * null.precision(cut) for null in nulls)
            cells = (
                *(f"{pairs:,}", f"{len(src):,}", f"{cut:.3f}", f"{at + 1:,}", f"{100 * truth[at]:.1f}"),
                f"{stated:.1f} [{100 * low:.0f}, {100 * high:.0f}]",
                f"{before:.1f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
