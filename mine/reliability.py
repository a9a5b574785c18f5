"""Measure the calibration of the probabilities of `mine` on text with known pairs, kind by kind.

    python mine/reliability.py europarl=corpus.en.zst,corpus.fr.zst,gold.tsv news=queries.tsv.zst \\
        everyday=queries.en-fr.tsv.zst law=laws.de-fr-it.tsv.zst --paired 0.5 -o mine/reliability.tsv

A text is two corpora and a gold file, or a table of sentences that translate each other, with a header of languages. Of
a table the first two languages count, and a share --paired of its rows stays whole; of the others one side stays, by
turns. Prints, for each text, the share of pairs among the candidates, estimated and in truth, and the expected
calibration error (bins of 0.1) of all candidates, and of those that are at least 5% likely; then precision, recall and
F1 of the pairs by the default threshold, and F1 by the best threshold. -o gets the bins: the number of candidates,
their mean probability, and the share that is true.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import parser, table

import bitextmine
from bitextmine.evaluation.pools import read_queries
from bitextmine.files.source import iter_lines
from bitextmine.mining.calibration import calibration_error, probability
from bitextmine.mining.gold import pair_codes, read_gold

BINS = 10
LIKELY = 0.05


def main() -> None:
    command = parser(__doc__)
    command.add_argument("texts", nargs="+", metavar="NAME=FILE[,FILE,GOLD]")
    command.add_argument("--paired", type=float, default=0.5, help="share of a table's rows (0.5)")
    command.add_argument("--langs", help="of a table, instead of its first two: de-fr")
    command.add_argument("--model", default="default")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("-o", "--output", type=Path, help="TSV of the bins")
    args = command.parse_args()
    bins = ["text\tcandidates\tprobability\ttrue"]
    header = ["text", "candidates", "pairs: estimated", "in truth", "calibration error", "of the likely"]
    header += ["precision / recall by default", "F1 by default / at the best threshold"]
    table(header, rows(args, bins))
    if args.output is not None:
        args.output.write_text("".join(f"{row}\n" for row in bins), encoding="utf-8")


def rows(args: argparse.Namespace, bins: list[str]) -> Iterator[list[object]]:
    """Mine each text; yield its row of the table, and add its bins to ``bins``."""
    for text in args.texts:
        name, _, files = text.partition("=")
        src, tgt, gold = _read(files.split(","), args)
        found = bitextmine.mine(src, tgt, model=args.model, rescore=True, threshold="none")
        p = probability(found.score)
        true = np.isin(pair_codes(found.src_index, found.tgt_index, len(tgt)), gold)
        likely = p >= LIKELY
        errors = calibration_error(p, true, BINS), calibration_error(p[likely], true[likely], BINS)
        share = found.details["log_odds"]["share_of_pairs"]
        kept = bitextmine.mine(src, tgt, model=args.model)
        right = np.isin(pair_codes(kept.src_index, kept.tgt_index, len(tgt)), gold).sum()
        precision, recall = right / max(len(kept), 1), right / len(gold)
        f1 = 2 * right / (len(kept) + len(gold))
        best = (2 * np.cumsum(true[np.argsort(-p)]) / (np.arange(len(p)) + 1 + len(gold))).max()
        bin_of = np.minimum((p * BINS).astype(int), BINS - 1)
        for some in (bin_of == i for i in np.unique(bin_of)):
            bins.append(f"{name}\t{some.sum()}\t{p[some].mean():.4f}\t{true[some].mean():.4f}")
        cells = [
            name,
            len(found),
            f"{share:.1%}",
            f"{true.mean():.1%}",
            *(f"{error:.4f}" for error in errors),
        ]
        yield [*cells, f"{100 * precision:.1f} / {100 * recall:.1f}", f"{100 * f1:.1f} / {100 * best:.1f}"]


def _read(files: list[str], args: argparse.Namespace) -> tuple[list[str], list[str], np.ndarray]:
    """Return source and target lines, and the codes of the true pairs."""
    if len(files) == 3:
        src, tgt = (list(iter_lines(path)) for path in files[:2])
        gold = read_gold(files[2])
        return src, tgt, pair_codes(gold.src, gold.tgt, len(tgt))
    asked = read_queries(files[0])
    langs = args.langs.split("-") if args.langs and set(args.langs.split("-")) <= set(asked) else None
    first, second = (asked[lang] for lang in langs or list(asked)[:2])
    # Each sentence once, so that no two rows have the same answer.
    rows = [
        i
        for i in range(len(first))
        if first.index(first[i]) == i and second.index(second[i]) == i and first[i] != second[i]
    ]
    rng = np.random.default_rng(args.seed)
    order = rng.permutation(rows)
    whole = int(args.paired * len(rows))
    both, alone = order[:whole], order[whole:]
    left, right = (rng.permutation(np.concatenate([both, part])) for part in (alone[::2], alone[1::2]))
    places = {row: j for j, row in enumerate(right.tolist())}
    codes = [i * len(right) + places[row] for i, row in enumerate(left.tolist()) if row in places]
    return [first[row] for row in left], [second[row] for row in right], np.array(codes)


if __name__ == "__main__":
    main()
