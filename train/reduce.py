"""A smaller encoder out of a mean-of-subwords one: its piece vectors turned and cut to fewer dimensions.

Example:  python train/reduce.py europe5 corpus.en.zst corpus.fr.zst --dim 256 --storage int4 --out europe5-fast

The new axes are the eigenvectors of the largest eigenvalues of the second moments of sentence vectors (an uncentred
principal component analysis), so that of all projections this one keeps most of the cosines of the given text. --dim
counts the columns for a sentence's length, which --length-share adds where there are none, and those for the order of
its pieces, which --order-columns adds: as the axes come by their eigenvalues, the first ones serve best.
A sentence vector is a sum of piece vectors: turning the pieces turns the sentences, and nothing is trained again.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns.lengths import COLUMNS, piece_characters
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, read_ngrams, resolve, write_folder
from bitextmine.encoder.weights import CHARACTERS, PIECES, STORAGES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.files.lines import iter_lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="an encoder without layers: a folder or a packaged one's name")
    parser.add_argument("texts", nargs="+", help="text like that to be encoded; its first lines are read")
    parser.add_argument("--lines", type=int, default=100_000, help="of each text")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument(
        "--length-share", type=float, help="as model.length_share of a recipe; default: as it is"
    )
    parser.add_argument(
        "--order-columns", type=int, help="of the --dim, for where the pieces stand; default: as it is"
    )
    parser.add_argument("--order-weight", type=float, help="what these count; default: as it is, or else 0.5")
    parser.add_argument("--storage", choices=STORAGES, default="int8")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    folder = resolve(args.model)
    config, tokenizer = read_folder(folder)
    share = config.length_share if args.length_share is None else args.length_share
    lengths = COLUMNS if share else 0
    order = config.order_columns if args.order_columns is None else args.order_columns
    weight = (
        args.order_weight if args.order_weight is not None else config.order_weight or 0.5 if order else 0.0
    )
    dim = args.dim - order - lengths
    if order < 0 or args.lines < 1:
        parser.error(f"--order-columns {order} and --lines {args.lines}: at least 0 and 1")
    if config.layers or not 0 < dim <= config.piece_dim or not 0 <= order <= dim:
        parser.error(
            f"{args.model}: layers {config.layers}: needs none, and of --dim at most {config.piece_dim} for the "
            f"pieces, found {args.dim} less {lengths} for the length and {order} for the order, which may not be more "
            "than the rest"
        )
    if args.storage == "int4" and dim % 4:
        parser.error(f"--dim {args.dim}: in four bits a multiple of 4 for the pieces, found {dim}")
    try:
        made = dataclasses.replace(
            config, dim=args.dim, length_share=share, order_columns=order, order_weight=weight
        )
    except BitextmineError as e:
        parser.error(str(e))
    encoder = load_encoder(folder)
    moments = np.zeros((config.piece_dim, config.piece_dim))
    for text in args.texts:
        lines = (column for line in iter_lines(text) for column in line.split("\t"))
        vectors = encoder.encode(list(itertools.islice(lines, args.lines)))[:, : config.piece_dim]
        moments += (vectors.T @ vectors).astype(np.float64)
    values, axes = np.linalg.eigh(moments)
    kept = axes[:, ::-1][:, :dim].astype(np.float32)
    print(f"{values[::-1][:dim].sum() / values.sum():.4f} of the squared length is kept")

    weights = {PIECES: piece_vectors(read_weights(config, folder / WEIGHTS)) @ kept}
    if share:
        weights[CHARACTERS] = piece_characters(tokenizer.pieces(), config.ngrams)
    ngrams = read_ngrams(folder, config.ngrams)
    write_folder(args.out, made, weights, folder / TOKENIZER, ngrams=ngrams, dtype=args.storage)


if __name__ == "__main__":
    try:
        main()
    except BitextmineError as e:
        sys.exit(f"error: {e}")
