"""Is the false-positive rate that `mine --threshold auto` states the true one? Measured where the truth is known.

    python mine/thresholds.py CORPUS.en CORPUS.fr GOLD.tsv [--model NAME|FOLDER]

Both corpora are mined as they are, and again after most gold pairs have lost one of their two sentences
(half of them the source, half the target), so that true pairs become rare. For each rate asked for, the
table gives the threshold, the rate there in truth (source lines without a translation that get a pair, over
all of those), and the precision, estimated and true. Prints a Markdown table and a signature.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from functools import partial

import numpy as np

from bitextmine.embeddings.embed import embed_corpus
from bitextmine.encoder import load_encoder
from bitextmine.files.corpus import Corpus
from bitextmine.mining.calibration import calibrated
from bitextmine.mining.candidates import candidates
from bitextmine.mining.decoys import Decoys, sampled_decoys
from bitextmine.mining.gold import Gold, read_gold
from bitextmine.mining.noise import fit_null
from bitextmine.mining.retrieval import ScoredPairs, retrieve_scored
from bitextmine.mining.run import rescorer
from bitextmine.mining.scorer import open_scoring
from bitextmine.mining.sides import Side, load_side
from bitextmine.search.exact import search_both
from bitextmine.signature import signature

RATES = (0.01, 0.05)


def thinned(src: Side, tgt: Side, gold: Gold, keep: int, seed: int = 1) -> tuple[Side, Side, np.ndarray]:
    """The sides without one sentence of each gold pair but `keep`, and for each source row its target row
    or -1.
    """
    order = np.random.default_rng(seed).permutation(len(gold))
    kept, lost = order[:keep], order[keep:]
    half = len(lost) // 2
    gone_src = np.isin(np.arange(len(src.unique.rows)), src.unique.line_to_row[gold.src[lost[:half]]])
    gone_tgt = np.isin(np.arange(len(tgt.unique.rows)), tgt.unique.line_to_row[gold.tgt[lost[half:]]])
    sides = [
        replace(side, unique=side.unique.without(gone), vectors=np.ascontiguousarray(side.vectors[~gone]))
        for side, gone in ((src, gone_src), (tgt, gone_tgt))
    ]
    partner = np.full(len(sides[0].unique.rows), -1)
    s, t = sides[0].unique.line_to_row[gold.src[kept]], sides[1].unique.line_to_row[gold.tgt[kept]]
    partner[s[(s >= 0) & (t >= 0)]] = t[(s >= 0) & (t >= 0)]
    return sides[0], sides[1], partner


def true_rate(pairs: ScoredPairs, partner: np.ndarray, threshold: float) -> tuple[float, float]:
    """(False-positive rate per source row without a partner, precision) of the pairs at a threshold."""
    kept = pairs.take(pairs.score >= threshold)
    wrong = kept.src[partner[kept.src] < 0]
    correct = int((partner[kept.src] == kept.tgt).sum())
    return len(np.unique(wrong)) / int((partner < 0).sum()), correct / max(1, len(kept))


def decoys_of(sides: tuple[Side, Side], k: int, margin: str) -> list[Decoys]:
    """The decoys of both sides, as `mine` takes them."""
    return [sampled_decoys(side.vectors, k, margin) for side in sides]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("gold")
    parser.add_argument("--model", default="default")
    parser.add_argument("--keep", type=int, nargs="+", default=[10_000, 1_000, 100], help="gold pairs kept")
    parser.add_argument("-k", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--margin", default="ratio")
    parser.add_argument("--retrieval", default="max")
    parser.add_argument("--rescore", action="store_true")
    options = parser.parse_args()

    encoder = load_encoder(options.model)
    texts = [Corpus(path) for path in (options.src, options.tgt)]
    src, tgt = (load_side(text, embed_corpus(text, encoder)) for text in texts)
    gold = read_gold(options.gold)
    scoring = open_scoring(encoder, options.model, options.rescore)
    head = ("true pairs", "lines", "k", "rate stated", "threshold", "rate in truth", "truth / stated")
    print(f"| {' | '.join((*head, 'precision estimated', 'in truth'))} |")
    print(f"|{'---|' * (len(head) + 2)}")
    for keep in options.keep:
        left, right, partner = thinned(src, tgt, gold, keep)
        neighbours = search_both(left.vectors, right.vectors, max(options.k) + 1)
        again = None if scoring is None else rescorer((left, right), scoring)
        for k, rate in itertools.product(options.k, RATES):
            best = candidates(neighbours, k, options.margin)
            rescore = None if again is None else calibrated(again, again.scorer.share, best, neighbours, k)
            null = fit_null(
                neighbours,
                best,
                k=k,
                margin=options.margin,
                retrieval=options.retrieval,
                rescore=rescore,
                decoys=partial(decoys_of, (left, right), k, options.margin),
            )
            threshold = null.threshold(rate)
            pairs = retrieve_scored(best, neighbours, k, options.retrieval, options.margin, rescore)
            found, precision = true_rate(pairs, partner, threshold)
            cells = (
                f"{int((partner >= 0).sum()):,}",
                f"{len(left.vectors):,} x {len(right.vectors):,}",
                str(k),
                f"{rate:.0%}",
                f"{threshold:.4f}",
                f"{found:.2%}",
                f"{found / rate:.2f}",
                f"{null.precision(threshold):.1%}",
                f"{precision:.1%}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    made = {} if scoring is None else {"scorer": scoring.scorer.hash}
    made |= {"retrieval": options.retrieval, "margin": options.margin, "model": encoder.hash}
    print(f"\n`{signature(task='thresholds', **made)}` ({encoder.name})")


if __name__ == "__main__":
    main()
