"""Sentence pairs from TSV or paired files."""

from __future__ import annotations

from collections.abc import Iterator

from bitextmine.errors import BitextmineError
from bitextmine.text import iter_lines
from bitextmine.train.recipe import Corpus, Recipe

__all__ = ["read_pairs"]


def read_pairs(recipe: Recipe, corpus: Corpus) -> Iterator[tuple[str, str]]:
    """The pairs of a corpus in file order; streams.

    Raises BitextmineError for a line without a second column, and for paired files of different lengths.
    """
    errors = recipe.data.errors
    if corpus.pairs:
        path = recipe.path(corpus.pairs)
        for number, line in enumerate(iter_lines(path, errors), 1):
            columns = line.split("\t", 2)
            if len(columns) < 2:
                raise BitextmineError(f"{path}: line {number}: one column, but a pair is source, tab, target")
            yield columns[0], columns[1]
        return
    src, tgt = recipe.path(corpus.src), recipe.path(corpus.tgt)
    targets = iter_lines(tgt, errors)
    count = 0
    for source in iter_lines(src, errors):
        target = next(targets, None)
        if target is None:
            more = sum(1 for _ in iter_lines(src, errors))
            raise BitextmineError(f"{src} has {more} lines, but {tgt} has {count}: they are not aligned")
        count += 1
        yield source, target
    if next(targets, None) is not None:
        more = sum(1 for _ in iter_lines(tgt, errors))
        raise BitextmineError(f"{src} has {count} lines, but {tgt} has {more}: they are not aligned")
