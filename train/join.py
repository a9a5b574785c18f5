"""One encoder out of two mean-of-subwords ones that share vocabulary and n-grams: their vectors side by side.

Example:  python train/join.py first second --text corpus.en --length-share 0.12 --out both

The mistakes of two trainings are not the same, and the mean of their cosines makes fewer. The piece vectors are scaled
so that the sentences of either have the same mean norm; columns for a sentence's length are made new. `reduce.py` then
brings the whole to the size of one.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import shutil
from pathlib import Path

import numpy as np

from bitextmine.encoder.folder import CONFIG, NGRAMS, TOKENIZER, WEIGHTS, read_folder
from bitextmine.encoder.lengths import COLUMNS, piece_characters
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import CHARACTERS, PIECES, piece_vectors, read_weights, write_weights
from bitextmine.manifest import write_json
from bitextmine.text import iter_lines

LINES = 10_000


def mean_norm(vectors: np.ndarray, pieces: Pieces) -> float:
    """Of the sums over the sentences."""
    spans = zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    return float(np.mean([np.linalg.norm(vectors[pieces.ids[a:b]].sum(axis=0)) for a, b in spans]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--text", required=True, help=f"like that to be encoded; {LINES:,} lines are read")
    parser.add_argument("--length-share", type=float, default=0.0, help="as model.length_share of a recipe")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    configs, tokenizers = zip(*(read_folder(folder) for folder in (args.first, args.second)), strict=True)
    if any(config.layers for config in configs):
        parser.error("only encoders without layers can be joined")
    for name in (TOKENIZER, *([NGRAMS] if any(config.ngrams for config in configs) else [])):
        if (args.first / name).read_bytes() != (args.second / name).read_bytes():
            parser.error(f"{args.first / name} and {args.second / name} differ")
    rows = itertools.islice(iter_lines(args.text), LINES)
    lines = [column for row in rows for column in row.split("\t")]
    pieces, _ = tokenizers[0].encode(lines, configs[0].max_pieces)
    both = [
        piece_vectors(read_weights(config, folder / WEIGHTS))
        for config, folder in zip(configs, (args.first, args.second), strict=True)
    ]
    weights = {PIECES: np.concatenate([vectors / mean_norm(vectors, pieces) for vectors in both], axis=1)}
    dim = weights[PIECES].shape[1]
    if args.length_share:
        weights[CHARACTERS] = piece_characters(tokenizers[0].pieces(), configs[0].ngrams)
        dim += COLUMNS
    args.out.mkdir(parents=True, exist_ok=True)
    write_weights(weights, args.out / WEIGHTS, dtype="float32")
    for name in (TOKENIZER, *([NGRAMS] if configs[0].ngrams else [])):
        shutil.copyfile(args.first / name, args.out / name)
    config = dataclasses.replace(configs[0], dim=dim, length_share=args.length_share)
    write_json(args.out / CONFIG, config.to_json())


if __name__ == "__main__":
    main()
