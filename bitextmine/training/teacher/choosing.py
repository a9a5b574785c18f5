"""Which lines of the corpora a teacher reads: a sample by hash, the same wherever the lines stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from bitextmine.training.pairs import pair_chunks
from bitextmine.training.recipe import Corpus, Recipe

__all__ = ["Line", "chosen_lines", "shares", "text_key"]

CHUNK_PAIRS = 25_000


class Line(NamedTuple):
    """A pair of a corpus: its number in the file, from 0, and its two sentences."""

    number: int
    src: str
    tgt: str


def text_key(text: str) -> int:
    """64 bits of a hash of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def chosen_lines(
    recipe: Recipe, corpus: Corpus, count: int, on_pairs: Callable[[int], object] = lambda n: None
) -> list[Line]:
    """``count`` pairs of a corpus in its order, or all that there are, each pair of sentences once: those with the
    smallest `text_key`, so that most of them stay the same when a corpus grows or a few more are asked for.

    Reads the corpus once, in memory for some ``count`` + 25,000 pairs; on_pairs is told how many were read.
    Raises BitextmineError as `pair_chunks` does.
    """
    kept: dict[int, Line] = {}
    limit = 1 << 64
    read = 0
    for sources, targets in pair_chunks(recipe, corpus, CHUNK_PAIRS):
        for number, (src, tgt) in enumerate(zip(sources, targets, strict=True), read):
            key = text_key(f"{src}\t{tgt}")
            if key < limit:
                kept.setdefault(key, Line(number, src, tgt))
        read += len(sources)
        on_pairs(len(sources))
        if len(kept) > count:
            smallest = sorted(kept)[:count]
            kept = {key: kept[key] for key in smallest}
            limit = smallest[-1]
    return sorted(kept.values())


def shares(sizes: Sequence[int], weights: Sequence[float], total: int) -> list[int]:
    """How many of ``total`` each of several corpora gives: in proportion to its size times its weight, at most its
    size; what one cannot give the others do."""
    size, mass = np.array(sizes, dtype=np.float64), np.array(sizes) * np.array(weights, dtype=np.float64)
    given = np.zeros(len(size))
    open_ = mass > 0
    while open_.any():
        left = max(0.0, total - given[~open_].sum())
        wanted = left * mass / mass[open_].sum()
        full = open_ & (wanted >= size)
        if not full.any():
            given[open_] = wanted[open_]
            break
        given[full] = size[full]
        open_ &= ~full
    return [int(n) for n in np.ceil(given - 1e-9)]
