"""One encoder out of several mean-of-subwords ones that share a vocabulary: their vectors side by side.

Example:  python train/join.py first second --text corpus.en --length-share 0.12 --out both

The mistakes of two trainings are not the same, and the mean of their cosines makes fewer. The piece vectors are scaled
so that the sentences of each have the same mean norm; columns for a sentence's length are made new. The n-grams are
those of the first; where another lacks one, its part is zeros. `reduce.py` then brings the whole to the size of one,
and adds columns for the order.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np

from bitextmine.encoder.columns.lengths import COLUMNS, piece_characters
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, read_ngrams, write_folder
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import CHARACTERS, PIECES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.files.lines import iter_lines

LINES = 10_000


def mean_norm(vectors: np.ndarray, pieces: Pieces) -> float:
    """Of the sums over the sentences."""
    spans = zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    return float(np.mean([np.linalg.norm(vectors[pieces.ids[a:b]].sum(axis=0)) for a, b in spans]))


def with_ngrams_of(names: list[str], own: list[str], vectors: np.ndarray) -> np.ndarray:
    """Piece vectors whose last len(own) rows are n-grams, with rows for n-grams ``names`` instead; zeros for one that
    this training has not."""
    pieces = len(vectors) - len(own)
    row = {name: pieces + i for i, name in enumerate(own)}
    found = np.zeros((pieces + len(names), vectors.shape[1]), dtype=vectors.dtype)
    found[:pieces] = vectors[:pieces]
    for i, name in enumerate(names):
        if name in row:
            found[pieces + i] = vectors[row[name]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trained", type=Path, nargs="+", help="two model folders, or more")
    parser.add_argument("--text", required=True, help=f"like that to be encoded; {LINES:,} lines are read")
    parser.add_argument("--length-share", type=float, default=0.0, help="as model.length_share of a recipe")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    first = args.trained[0]
    if len(args.trained) < 2:
        parser.error("there is nothing to join with one model folder")
    configs, tokenizers = zip(*(read_folder(folder) for folder in args.trained), strict=True)
    if any(config.layers for config in configs):
        parser.error("only encoders without layers can be joined")
    for folder in args.trained[1:]:
        if (first / TOKENIZER).read_bytes() != (folder / TOKENIZER).read_bytes():
            parser.error(f"{first / TOKENIZER} and {folder / TOKENIZER} differ")
    if any(config.order_columns for config in configs):
        parser.error("has columns for the order: join the encoders first, reduce.py adds them then")
    dim = sum(config.piece_dim for config in configs) + (COLUMNS if args.length_share else 0)
    try:
        made = dataclasses.replace(configs[0], dim=dim, length_share=args.length_share)
        ngrams = [
            read_ngrams(folder, config.ngrams) for folder, config in zip(args.trained, configs, strict=True)
        ]
        rows = itertools.islice(iter_lines(args.text), LINES)
        lines = [column for row in rows for column in row.split("\t")]
    except BitextmineError as e:
        parser.error(str(e))
    pieces, _ = tokenizers[0].encode(lines, configs[0].max_pieces)
    if not len(pieces.ids):
        parser.error(f"{args.text}: no text")
    tables = []
    for folder, config, own in zip(args.trained, configs, ngrams, strict=True):
        shared = len(set(ngrams[0]) & set(own))
        print(f"{folder}: {config.piece_dim} dimensions, {shared:,} of the {len(ngrams[0]):,} n-grams")
        table = with_ngrams_of(ngrams[0], own, piece_vectors(read_weights(config, folder / WEIGHTS)))
        tables.append(table / mean_norm(table, pieces))
    weights = {PIECES: np.concatenate(tables, axis=1)}
    if args.length_share:
        weights[CHARACTERS] = piece_characters(tokenizers[0].pieces(), configs[0].ngrams)
    write_folder(args.out, made, weights, first / TOKENIZER, ngrams=ngrams[0], dtype="float32")


if __name__ == "__main__":
    try:
        main()
    except BitextmineError as e:
        sys.exit(f"error: {e}")
