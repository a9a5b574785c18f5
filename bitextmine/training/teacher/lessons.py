"""Pairs that a teacher teaches on, each with its vectors."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from bitextmine.console import counted, progress
from bitextmine.embeddings.vectors import open_precomputed
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.languages import identify as languages
from bitextmine.training.cache import PairCache
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.teacher.choosing import Line, chosen_lines, shares, text_key
from bitextmine.training.teacher.source import TeacherSource, taught_sides
from bitextmine.training.teacher.store import VectorStore
from bitextmine.training.tokenizing import language_rule, tokenized_lines

__all__ = ["Lessons", "Taught", "open_lessons"]

log = logging.getLogger(__name__)

# Sentences that a teacher encodes at a time: what a killed run loses, and it sorts them by length.
BLOCK = 2048
NOT_FINITE = "holds NaN or infinite numbers: such a teacher teaches nothing"


class Chosen(NamedTuple):
    """Pairs that are to be taught: of which corpus, which column's vector each side is taught (`taught_sides`), as
    pieces, and as text."""

    cache: PairCache
    sides: tuple[int, int]
    pairs: TokenPairs
    lines: list[Line]


class Rows(Protocol):
    """Vectors by their place."""

    def rows(self, places: np.ndarray) -> np.ndarray:
        """(n, dim) float32 of places (n,) int64."""


class VectorFile:
    """Vectors that another tool made of a side of a corpus, row i of line i."""

    def __init__(self, path: Path, lines: int) -> None:
        self.path = path
        try:
            self._matrix = open_precomputed(path, lines)
        except UsageError:
            raise BitextmineError(
                f"{path}: no .npy; 'bitextmine embed --vectors' with --dim makes one of vectors without a header"
            ) from None
        self.dim = int(self._matrix.shape[1])

    def rows(self, places: np.ndarray) -> np.ndarray:
        return np.asarray(self._matrix[places], dtype=np.float32)


@dataclasses.dataclass(frozen=True)
class TaughtPairs:
    """Tokenised pairs with the places of the teacher's vectors: places (2, n) int64, of the source side's in
    vectors[0] and of the target side's in vectors[1]. Where the teacher reads one side only, both are of that one."""

    pairs: TokenPairs
    vectors: tuple[Rows, Rows]
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """The pairs of ``rows`` (m,) int, in that order, with the teacher's unit rows (2, m, dim) float32."""
        p = self.pairs
        found = np.stack(
            [side.rows(places[rows]) for side, places in zip(self.vectors, self.places, strict=True)]
        )
        length = np.linalg.norm(found, axis=2, keepdims=True)
        units = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
        return TokenPairs(p.src.take(rows, max_pieces), p.tgt.take(rows, max_pieces), p.keys[:, rows], units)


@dataclasses.dataclass(frozen=True)
class Taught:
    """What a corpus gives to be taught; a `Sampler` draws from it as from a `PairCache`."""

    corpus: Corpus
    train: TaughtPairs


@dataclasses.dataclass(frozen=True)
class Lessons:
    """All that a teacher teaches on: its corpora, and the numbers in its vectors."""

    teacher: TeacherSource
    dim: int
    corpora: list[Taught]

    def __len__(self) -> int:
        return sum(len(taught.train) for taught in self.corpora)


def open_lessons(
    folder: Path,
    recipe: Recipe,
    caches: Sequence[PairCache],
    tokenizer: Tokenizer,
    teacher: TeacherSource,
    *,
    show_progress: bool | None = None,
) -> Lessons:
    """The recipe's lessons: its teacher.lines of the corpora, less what would not be trained on either (the filters of
    [data], what shares a sentence with a held-out pair), and what the teacher makes of them.

    Its vectors are kept in ``folder`` (or data.cache), in float16, by what teacher and sentence are: those that are
    there are not made again, whatever recipe they were made for. A killed run goes on after the last 2,048 of them.
    Takes memory for the chosen lines, about 1 KB each.

    Raises BitextmineError for corpora that cannot be read, for vectors that are NaN, of several dimensions or of
    another number of lines, for no pair to teach on, and for a disk that is full.
    """
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    found = [
        (number, cache, sides)
        for number, cache in enumerate(caches, 1)
        if (sides := taught_sides(recipe, cache.corpus)) is not None
    ]
    counts = shares(
        [len(cache.train) for _, cache, _ in found],
        [cache.corpus.weight for _, cache, _ in found],
        recipe.teacher.lines,
    )
    held_out = np.unique(np.concatenate([np.zeros(0, np.uint64), *map(_held_out, caches)]))
    known = functools.cache(lambda: languages.Languages("data.language_filter"))
    chosen: list[Chosen] = []
    with progress(None, "choose lines for the teacher", "pairs", show_progress) as bar:
        for (number, cache, sides), count in zip(found, counts, strict=True):
            if count >= len(cache.train):
                count = cache.counts["read"]  # all: what is not trained on goes below
            lines = chosen_lines(recipe, cache.corpus, count, bar.update) if count else []
            rule = language_rule(recipe, number, known)
            texts = [line.src for line in lines], [line.tgt for line in lines]
            pairs, kept = tokenized_lines(texts, tokenizer, recipe, rule)
            free = np.flatnonzero(~np.isin(pairs.keys, held_out).any(axis=0))
            pairs = TokenPairs(pairs.src.take(free), pairs.tgt.take(free), pairs.keys[:, free])
            if len(pairs):
                chosen.append(Chosen(cache, sides, pairs, [lines[row] for row in kept[free]]))
    if not chosen:
        raise BitextmineError(
            "recipe: teacher: no pair is left that it could teach on; see teacher.corpora and lines"
        )
    try:
        if teacher.encoder is None:
            dim, taught = _from_files(recipe, chosen)
        else:
            dim, taught = _from_encoder(folder, teacher, teacher.encoder, chosen, show_progress)
    except OSError as e:
        raise BitextmineError(
            f"{e.filename or folder}: cannot keep the teacher's vectors: {e.strerror or e}; free some space, or name "
            "a folder with more as data.cache in the recipe"
        ) from None
    lessons = Lessons(teacher, dim, taught)
    if not any(_some(one.train) for one in taught):
        raise BitextmineError(
            f"recipe: teacher.model: {teacher.name}: its vectors are all zeros: such a teacher teaches nothing"
        )
    log.info(
        "%s teaches on %s of %s",
        teacher.name,
        counted(len(lessons), "pair"),
        counted(len(taught), "corpus", "corpora"),
    )
    return lessons


def _held_out(cache: PairCache) -> np.ndarray:
    return np.asarray(cache.valid.records(0, len(cache.valid))["keys"]).ravel()


def _taught(cache: PairCache, pairs: TaughtPairs) -> Taught:
    """Drawn as often as the whole corpus is, of whose pairs these are some."""
    weight = cache.corpus.weight * len(cache.train) / len(pairs)
    return Taught(dataclasses.replace(cache.corpus, weight=weight), pairs)


def _from_files(recipe: Recipe, chosen: Sequence[Chosen]) -> tuple[int, list[Taught]]:
    taught = []
    dims: dict[int, Path] = {}
    for cache, sides, pairs, lines in chosen:
        files: dict[int, VectorFile] = {}
        numbers = np.array([line.number for line in lines], dtype=np.int64)
        for side in sorted(set(sides)):
            name = (cache.corpus.src_vectors, cache.corpus.tgt_vectors)[side]
            file = files[side] = VectorFile(recipe.path(name), cache.counts["read"])
            dims.setdefault(file.dim, file.path)
            for begin in range(0, len(numbers), BLOCK):
                part = numbers[begin : begin + BLOCK]
                wrong = _not_finite(file.rows(part))
                if wrong is not None:
                    raise BitextmineError(f"{file.path}: row {part[wrong] + 1} {NOT_FINITE}")
        taught.append(
            _taught(
                cache, TaughtPairs(pairs, (files[sides[0]], files[sides[1]]), np.stack([numbers, numbers]))
            )
        )
    if len(dims) > 1:
        (one, first), (other, second) = list(dims.items())[:2]
        raise BitextmineError(
            f"{first}: vectors of {one} numbers, but {second} has {other}: they are not of one teacher"
        )
    return next(iter(dims)), taught


def _from_encoder(
    folder: Path,
    teacher: TeacherSource,
    encoder: Encoder,
    chosen: Sequence[Chosen],
    show_progress: bool | None,
) -> tuple[int, list[Taught]]:
    settings = encoder.network.settings(None)
    store = VectorStore(
        folder, {"model": teacher.name, "hash": teacher.hash, "settings": settings}, encoder.dim
    )
    keys = []
    texts: dict[int, tuple[str, Corpus, int]] = {}
    for cache, sides, _, lines in chosen:
        sentences = {side: [(line.src, line.tgt)[side] for line in lines] for side in sorted(set(sides))}
        each = {side: list(map(text_key, found)) for side, found in sentences.items()}
        keys.append(np.array([each[side] for side in sides], dtype=np.uint64))
        for side, found in sentences.items():
            for key, text, line in zip(each[side], found, lines, strict=True):
                texts.setdefault(key, (text, cache.corpus, line.number))
    with store.filling():
        wanted = np.fromiter(texts, dtype=np.uint64, count=len(texts))
        missing = wanted[store.places(wanted) < 0]
        if len(missing):
            log.info(
                "%s: %s to encode, %s known",
                teacher.name,
                counted(len(missing), "sentence"),
                len(texts) - len(missing),
            )
        with progress(len(missing), "teacher", "sentences", show_progress) as bar:
            for begin in range(0, len(missing), BLOCK):
                block = missing[begin : begin + BLOCK]
                asked = [texts[int(key)] for key in block]
                vectors = np.asarray(encoder.encode([text for text, _, _ in asked]))
                wrong = _not_finite(vectors)
                if wrong is not None:
                    text, corpus, number = asked[wrong]
                    raise BitextmineError(
                        f"recipe: teacher.model: {teacher.name}: its vector of line {number + 1} of {corpus.name} "
                        f"({text[:60]!r}) {NOT_FINITE}"
                    )
                store.add(block, vectors)
                bar.update(len(block))
    return encoder.dim, [
        _taught(cache, TaughtPairs(pairs, (store, store), np.stack([store.places(side) for side in found])))
        for (cache, _, pairs, _), found in zip(chosen, keys, strict=True)
    ]


def _some(pairs: TaughtPairs) -> bool:
    """Whether any of the first vectors is not all zeros."""
    return any(
        side.rows(places[:BLOCK]).any() for side, places in zip(pairs.vectors, pairs.places, strict=True)
    )


def _not_finite(vectors: np.ndarray) -> int | None:
    """The first row that holds a number that is none."""
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    return int(wrong[0]) if len(wrong) else None
