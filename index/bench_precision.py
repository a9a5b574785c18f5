"""What multiplying in low precision costs: P@1 of an encoder with layers in float32, bfloat16 and float16.

Example:  python index/bench_precision.py model corpus.en.zst corpus.fr.zst --gold gold.tsv

gold.tsv: line number in the first corpus, tab, line number in the second, from 1. Each line of a gold pair looks for
its translation among all the lines of the other side by cosine, over vectors stored as `embed` stores them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from bitextmine.encoder import load_encoder
from bitextmine.files.lines import read_lines
from bitextmine.search.exact import search_one


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a model folder")
    parser.add_argument("src", type=Path)
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--precisions", default="float32,bfloat16")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    gold = np.loadtxt(args.gold, dtype=np.int64, delimiter="\t") - 1
    texts = read_lines(args.src), read_lines(args.tgt)

    right: dict[str, np.ndarray] = {}
    vectors: dict[str, list[np.ndarray]] = {}
    for precision in args.precisions.split(","):
        encoder = load_encoder(args.model, args.device, precision=precision)
        begin = time.perf_counter()
        sides = [encoder.encode(lines).astype(np.float16) for lines in texts]
        seconds = time.perf_counter() - begin
        hits = []
        for one, other in ((0, 1), (1, 0)):
            _, ids = search_one(sides[one][gold[:, one]], sides[other], 1)
            hits.append(ids[:, 0] == gold[:, other])
        right[precision], vectors[precision] = np.concatenate(hits), sides
        forward, backward = (100 * hit.mean() for hit in hits)
        print(
            f"{precision:10} P@1 {forward:.2f} and {backward:.2f} of {len(gold):,} queries each way among "
            f"{len(texts[1]):,} and {len(texts[0]):,} lines, {seconds:.0f} s"
        )
    first, *others = right
    for precision in others:
        gained = int((right[precision] & ~right[first]).sum())
        lost = int((right[first] & ~right[precision]).sum())
        cosine = min(
            float((a.astype(np.float32) * b).sum(1)[a.any(1)].min())
            for a, b in zip(vectors[first], vectors[precision], strict=True)
        )
        print(
            f"{precision} against {first}: {gained} queries right that were wrong, {lost} wrong that were right; "
            f"cosine between the vectors of a line at least {cosine:.5f}"
        )


if __name__ == "__main__":
    main()
