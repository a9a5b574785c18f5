"""One encoder out of several mean-of-subwords ones that share vocabulary and n-grams: their vectors side by side.

Example:  python train/join.py first second --text corpus.en --length-share 0.12 --out both

The mistakes of two trainings are not the same, and the mean of their cosines makes fewer. The piece vectors are scaled
so that the sentences of each have the same mean norm; columns for a sentence's length are made new. `reduce.py` then
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


def ngram_names(folder: Path) -> list[str]:
    path = folder / NGRAMS
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


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
    rows = itertools.islice(iter_lines(args.text), LINES)
    lines = [column for row in rows for column in row.split("\t")]
    pieces, _ = tokenizers[0].encode(lines, configs[0].max_pieces)
    ngrams = ngram_names(first)
    tables = [
        with_ngrams_of(ngrams, ngram_names(folder), piece_vectors(read_weights(config, folder / WEIGHTS)))
        for config, folder in zip(configs, args.trained, strict=True)
    ]
    weights = {PIECES: np.concatenate([table / mean_norm(table, pieces) for table in tables], axis=1)}
    dim = weights[PIECES].shape[1]
    if args.length_share:
        weights[CHARACTERS] = piece_characters(tokenizers[0].pieces(), configs[0].ngrams)
        dim += COLUMNS
    args.out.mkdir(parents=True, exist_ok=True)
    write_weights(weights, args.out / WEIGHTS, dtype="float32")
    for name in (TOKENIZER, *([NGRAMS] if configs[0].ngrams else [])):
        shutil.copyfile(first / name, args.out / name)
    config = dataclasses.replace(
        configs[0], dim=dim, length_share=args.length_share, order_columns=0, order_weight=0.0
    )
    write_json(args.out / CONFIG, config.to_json())


if __name__ == "__main__":
    main()
