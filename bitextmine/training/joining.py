"""One encoder out of several mean-of-subwords ones that share a vocabulary: their vectors side by side.

The mistakes of two trainings are not the same, and the mean of their cosines makes fewer. `reducing` then brings the
whole to the size of one, and adds columns for the order.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bitextmine.console import counted
from bitextmine.encoder.columns.lengths import COLUMNS, piece_characters
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, read_ngrams, resolve, write_folder
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import CHARACTERS, PIECES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.lines import iter_lines
from bitextmine.training.outputs import check_model_output, model_output

__all__ = ["LINES", "JoinedPart", "join_encoders"]

LINES = 10_000


@dataclasses.dataclass(frozen=True)
class JoinedPart:
    """What an encoder gave to a joined one: ``dim`` dimensions, and vectors for ``shared`` of the ``ngrams`` that the
    joined one has, which are those of the first encoder."""

    model: str
    dim: int
    shared: int
    ngrams: int


def join_encoders(
    models: Sequence[str | os.PathLike[str]],
    text: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    length_share: float = 0.0,
    errors: str = "strict",
    force: bool = False,
) -> list[JoinedPart]:
    """Writes the model folder ``out``: the vectors of ``models`` (folders or names of packaged encoders) side by side.

    The piece vectors are scaled so that the sentences of each have the same mean norm over the first LINES lines of
    ``text`` (columns of a TSV count as sentences). Columns for a sentence's length are made new, where length_share
    (as model.length_share of a recipe) is not 0. The n-grams are those of the first model; where another lacks one, its
    part is zeros. force: a model in ``out`` may be written over.

    Raises UsageError for encoders that cannot be joined (fewer than two, layers, columns for the order, vocabularies
    that differ) and for an impossible length_share; BitextmineError for files that cannot be read or written.
    """
    names = [os.fspath(model) for model in models]
    if len(names) < 2:
        raise UsageError("there is nothing to join with one encoder; name two or more")
    place = Path(out)
    check_model_output(place, force)
    folders = [resolve(name) for name in names]
    first = folders[0]
    configs, tokenizers = zip(*map(read_folder, folders), strict=True)
    for name, config in zip(names, configs, strict=True):
        if config.layers:
            raise UsageError(
                f"{name}: it has {counted(config.layers, 'layer')}; only encoders without layers can be joined"
            )
    for folder in folders[1:]:
        if (first / TOKENIZER).read_bytes() != (folder / TOKENIZER).read_bytes():
            raise UsageError(
                f"{first / TOKENIZER} and {folder / TOKENIZER} differ: only encoders of one vocabulary can be joined"
            )
    for name, config in zip(names, configs, strict=True):
        if config.order_columns:
            raise UsageError(
                f"{name}: it has columns for the order: join the encoders first, 'encoder reduce' adds them then"
            )
    try:
        dim = sum(config.piece_dim for config in configs) + (COLUMNS if length_share else 0)
        made = dataclasses.replace(configs[0], dim=dim, length_share=length_share)
    except BitextmineError as e:
        raise UsageError(str(e)) from None
    ngrams = [read_ngrams(folder, config.ngrams) for folder, config in zip(folders, configs, strict=True)]
    rows = itertools.islice(iter_lines(text, errors), LINES)
    pieces, _ = tokenizers[0].encode(
        [part for row in rows for part in row.split("\t")], configs[0].max_pieces
    )
    if not len(pieces.ids):
        raise BitextmineError(
            f"{os.fspath(text)}: no text; name a file with sentences like those to be encoded"
        )

    parts, tables = [], []
    for name, folder, config, own in zip(names, folders, configs, ngrams, strict=True):
        parts.append(JoinedPart(name, config.piece_dim, len(set(ngrams[0]) & set(own)), len(ngrams[0])))
        table = _with_ngrams_of(ngrams[0], own, piece_vectors(read_weights(config, folder / WEIGHTS)))
        tables.append(table / _mean_norm(table, pieces))
    weights = {PIECES: np.concatenate(tables, axis=1)}
    if length_share:
        weights[CHARACTERS] = piece_characters(tokenizers[0].pieces(), configs[0].ngrams)
    with model_output(place, force) as folder:
        write_folder(folder, made, weights, first / TOKENIZER, ngrams=ngrams[0], dtype="float32")
    return parts


def _mean_norm(vectors: np.ndarray, pieces: Pieces) -> float:
    """Of the sums over the sentences."""
    spans = zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    return float(np.mean([np.linalg.norm(vectors[pieces.ids[a:b]].sum(axis=0)) for a, b in spans]))


def _with_ngrams_of(names: Sequence[str], own: Sequence[str], vectors: np.ndarray) -> np.ndarray:
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
