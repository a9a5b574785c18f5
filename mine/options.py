"""Measure F1 of every margin, retrieval and k on two corpora with gold pairs.

    python mine/options.py CORPUS.en CORPUS.fr GOLD.tsv

F1 is that of `bitextmine evaluate mining`: each half of the source sentences cut at the threshold tuned on
the other. The neighbours are searched once, for the largest k. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import itertools

from bitextmine.embeddings.embed import embed_corpus
from bitextmine.encoder import load_encoder
from bitextmine.evaluation.mining import MiningReport, score_mining
from bitextmine.files.corpus import Corpus
from bitextmine.files.lines import iter_lines
from bitextmine.mining.choices import Dedup, Margin, Retrieval, SearchWay
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.gold import read_gold
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.options import MiningOptions, WorkOptions
from bitextmine.mining.retrieval import ScoredPairs
from bitextmine.mining.run import mine_sides
from bitextmine.mining.sides import load_side


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("gold")
    parser.add_argument("--model", default="default")
    parser.add_argument("-k", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options = parser.parse_args()

    encoder = load_encoder(options.model)
    paths = (options.src, options.tgt)
    texts = [Corpus(path) for path in paths]
    npys = [embed_corpus(text, encoder) for text in texts]
    gold = read_gold(options.gold)
    groups = [unique_lines(iter_lines(path)).line_to_row for path in paths]
    most = max(options.k)

    def cells(report: MiningReport) -> str:
        return (
            f"{100 * report.f1:.2f} | {100 * report.low:.2f} - {100 * report.high:.2f} | "
            f"{100 * report.precision:.2f} | {100 * report.recall:.2f}"
        )

    print("| dedup | margin | k | retrieval | F1 | 95% | precision | recall |")
    print("|---|---|---|---|---|---|---|---|")
    for dedup in Dedup:
        src, tgt = (load_side(text, npy, dedup=dedup) for text, npy in zip(texts, npys, strict=True))
        neighbours, _ = find_neighbours(src, tgt, most, WorkOptions(search=SearchWay.EXACT))
        # plain cosines know no k, but the candidates do; the other levels of dedup are compared at the
        # default only
        grid = (
            itertools.product(Margin, options.k, Retrieval)
            if dedup == Dedup.EXACT
            else [(Margin.RATIO, 4, Retrieval.MAX)]
        )
        for margin, k, retrieval in grid:
            if k == 1 and retrieval == Retrieval.MATCHING and margin != Margin.ABSOLUTE:
                continue  # refused: no pair is above the neutral value
            wanted = MiningOptions(k=k, margin=margin, retrieval=retrieval, threshold="none")
            found = mine_sides(src, tgt, neighbours, wanted)
            pairs = ScoredPairs(found.src_index, found.tgt_index, found.score)
            report = score_mining(pairs, gold, (groups[0], groups[1]))
            print(f"| {dedup} | {margin} | {k} | {retrieval} | {cells(report)} |", flush=True)


if __name__ == "__main__":
    main()
