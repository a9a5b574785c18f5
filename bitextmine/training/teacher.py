"""Choose the pairs that a teacher teaches on, and provide them with its vectors."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bitextmine.console import counted
from bitextmine.embeddings.vectors import open_precomputed
from bitextmine.encoder.encoder import PRECOMPUTED, Encoder, load_encoder
from bitextmine.encoder.folder import PACKAGED, WEIGHTS, read_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import piece_vectors, read_weights, unrolled
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import locked_folder, sync_file
from bitextmine.files.journal import Journal
from bitextmine.languages import identify as languages
from bitextmine.run import Run
from bitextmine.training.cache import LineFilter, PairCache
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.pairs import pair_chunks
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.sampling import Source

log = logging.getLogger(__name__)

CHUNK_PAIRS = 25_000
# Sentences that a teacher encodes at a time: it sorts them by length, and a killed run loses at most these.
BLOCK = 2048
NOT_FINITE = "contains NaN or infinite numbers, so the teacher is unusable"


# --- choosing lines ------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A pair of a corpus: its number in the file, from 0, and its two sentences."""

    number: int
    src: str
    tgt: str


def text_key(text: str) -> int:
    """Return a 64-bit hash of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def chosen_lines(
    recipe: Recipe, corpus: Corpus, count: int, on_pairs: Callable[[int], object] = lambda n: None
) -> list[Line]:
    """Return ``count`` distinct pairs of a corpus, in its order, or all if there are fewer.

    They have the smallest `text_key`, so that most stay chosen when a corpus grows or the count rises. Memory holds
    some ``count`` + 25,000 pairs. Raises BitextmineError as `pair_chunks`.
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
    """Return how many of ``total`` each corpus gives: in proportion to size times weight, at most its size.

    The others make up for a corpus that is too small.
    """
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


# --- taught pairs --------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TaughtPairs:
    """Tokenised pairs and the places (2, n) int64 of the teacher's vectors for their sides, in vectors[0] and [1]."""

    pairs: TokenPairs
    vectors: Sequence[VectorStore | np.ndarray]
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """Return the pairs of ``rows`` (m,) int, in that order, with the teacher's unit vectors (2, m, dim) float32."""
        p = self.pairs
        vectors = (side[places[rows]] for side, places in zip(self.vectors, self.places, strict=True))
        found = np.stack([np.asarray(one, dtype=np.float32) for one in vectors])
        length = np.linalg.norm(found, axis=2, keepdims=True)
        units = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
        return TokenPairs(p.src.take(rows, max_pieces), p.tgt.take(rows, max_pieces), p.keys[:, rows], units)


@dataclasses.dataclass(frozen=True)
class Lessons:
    """All taught pairs, and the dimensions of the teacher's vectors."""

    teacher: TeacherSource
    dim: int
    corpora: list[Source]

    def __len__(self) -> int:
        return sum(len(taught.train) for taught in self.corpora)


class _Chosen(NamedTuple):
    """Pairs to teach on: their corpus, the columns taught to each side, pieces and text."""

    cache: PairCache
    sides: tuple[int, int]
    pairs: TokenPairs
    lines: list[Line]


def open_lessons(
    folder: Path,
    recipe: Recipe,
    caches: Sequence[PairCache],
    tokenizer: Tokenizer,
    teacher: TeacherSource,
    run: Run | None = None,
) -> Lessons:
    """Return the pairs of teacher.lines lines of the corpora, with the teacher's vectors.

    Pairs that [data] filters out, or that share a sentence with a held-out pair, are left out. An encoder's vectors are
    kept in ``folder`` (or data.cache) by teacher and sentence, and serve other recipes too; an interrupted run resumes
    after the last 2,048 of them. The chosen lines take about 1 KB of memory each.

    Raises:
        BitextmineError: a corpus cannot be read, no pair is left, vectors are NaN, all zeros, of several dimensions or
            of another number of lines, or the disk is full.
    """
    run = run or Run()
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    chosen = _choose(recipe, caches, tokenizer, run)
    if not chosen:
        raise BitextmineError("recipe: teacher: no pair is left to teach on; see teacher.corpora and lines")
    try:
        if teacher.encoder is None:
            dim, vectors, places = _from_files(recipe, chosen)
        else:
            dim, vectors, places = _from_encoder(folder, teacher, teacher.encoder, chosen, run)
    except OSError as e:
        raise BitextmineError(
            f"{e.filename or folder}: cannot keep the teacher's vectors: {e.strerror or e}; free some space, or set "
            "data.cache in the recipe to a folder with more"
        ) from None
    lessons = Lessons(teacher, dim, [])
    for one, sides, at in zip(chosen, vectors, places, strict=True):
        # Drawn as often as the whole corpus that they stand for.
        weight = one.cache.corpus.weight * len(one.cache.train) / len(one.pairs)
        corpus = dataclasses.replace(one.cache.corpus, weight=weight)
        lessons.corpora.append(Source(corpus, TaughtPairs(one.pairs, sides, at)))
    first = (pair for sides, at in zip(vectors, places, strict=True) for pair in zip(sides, at, strict=True))
    if not any(side[rows[:BLOCK]].any() for side, rows in first):
        raise BitextmineError(
            f"recipe: teacher.model: {teacher.name}: its vectors are all zeros, so the teacher is unusable"
        )
    pairs, corpora = counted(len(lessons), "pair"), counted(len(chosen), "corpus", "corpora")
    log.info("%s teaches on %s of %s", teacher.name, pairs, corpora)
    return lessons


def _choose(recipe: Recipe, caches: Sequence[PairCache], tokenizer: Tokenizer, run: Run) -> list[_Chosen]:
    found = [
        (number, cache, sides)
        for number, cache in enumerate(caches, 1)
        if (sides := taught_sides(recipe, cache.corpus)) is not None
    ]
    sizes, weights = [len(one.train) for _, one, _ in found], [one.corpus.weight for _, one, _ in found]
    counts = shares(sizes, weights, recipe.teacher.lines)
    keys = [cache.valid.records(0, len(cache.valid))["keys"].ravel() for cache in caches]
    held_out = np.unique(np.concatenate([np.zeros(0, np.uint64), *keys]))
    known = functools.cache(lambda: languages.Languages("data.language_filter"))
    chosen = []
    with run.progress(None, "choose lines for the teacher", "pairs") as bar:
        for (number, cache, sides), count in zip(found, counts, strict=True):
            if count >= len(cache.train):
                count = cache.counts["read"]  # all; the filters below leave those to train on
            lines = chosen_lines(recipe, cache.corpus, count, bar.update) if count else []
            texts = [line.src for line in lines], [line.tgt for line in lines]
            pairs, kept = LineFilter.of(recipe, number, known).tokenized(texts, tokenizer)
            free = np.flatnonzero(~np.isin(pairs.keys, held_out).any(axis=0))
            pairs = TokenPairs(pairs.src.take(free), pairs.tgt.take(free), pairs.keys[:, free])
            if len(pairs):
                chosen.append(_Chosen(cache, sides, pairs, [lines[row] for row in kept[free]]))
    return chosen


# Dimensions; vectors and places of both sides of each choice.
_Found = tuple[int, list[list[Any]], list[np.ndarray]]


def _from_files(recipe: Recipe, chosen: Sequence[_Chosen]) -> _Found:
    vectors, places = [], []
    dims: dict[int, Path] = {}
    for one in chosen:
        files: dict[int, np.ndarray] = {}
        numbers = np.array([line.number for line in one.lines], dtype=np.int64)
        for side in sorted(set(one.sides)):
            path = recipe.path((one.cache.corpus.src_vectors, one.cache.corpus.tgt_vectors)[side])
            files[side] = open_precomputed(path, one.cache.counts["read"])
            dims.setdefault(files[side].shape[1], path)
            for begin in range(0, len(numbers), BLOCK):
                part = numbers[begin : begin + BLOCK]
                wrong = _not_finite(np.asarray(files[side][part], dtype=np.float32))
                if wrong is not None:
                    raise BitextmineError(f"{path}: row {part[wrong] + 1} {NOT_FINITE}")
        vectors.append([files[side] for side in one.sides])
        places.append(np.stack([numbers, numbers]))
    if len(dims) > 1:
        (dim, first), (other, second) = list(dims.items())[:2]
        raise BitextmineError(
            f"{first} has {dim} dimensions, but {second} has {other}: they come from different teachers"
        )
    return int(next(iter(dims))), vectors, places


def _from_encoder(
    folder: Path, teacher: TeacherSource, encoder: Encoder, chosen: Sequence[_Chosen], run: Run
) -> _Found:
    identity = {"model": teacher.name, "hash": teacher.hash, "settings": encoder.network.settings(None)}
    store = VectorStore(folder, identity, encoder.dim)
    keys = []
    texts: dict[int, tuple[str, Corpus, int]] = {}
    for one in chosen:
        each = {}
        for side in sorted(set(one.sides)):
            sentences = [(line.src, line.tgt)[side] for line in one.lines]
            each[side] = list(map(text_key, sentences))
            for key, text, line in zip(each[side], sentences, one.lines, strict=True):
                texts.setdefault(key, (text, one.cache.corpus, line.number))
        keys.append(np.array([each[side] for side in one.sides], dtype=np.uint64))
    with store.filling():
        wanted = np.fromiter(texts, dtype=np.uint64, count=len(texts))
        missing = wanted[store.places(wanted) < 0]
        if len(missing):
            known = len(texts) - len(missing)
            log.info("%s: %s to encode, %s known", teacher.name, counted(len(missing), "sentence"), known)
        with run.progress(len(missing), "teacher", "sentences") as bar:
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
    return (
        encoder.dim,
        [[store, store]] * len(chosen),
        [np.stack(list(map(store.places, one))) for one in keys],
    )


def _not_finite(vectors: np.ndarray) -> int | None:
    """Return the first row with NaN or infinity."""
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    return int(wrong[0]) if len(wrong) else None


@dataclasses.dataclass(frozen=True)
class TeacherSource:
    """A teacher; encoder: None if the corpora come with its vectors; hash: changes with the vectors."""

    name: str
    hash: str
    encoder: Encoder | None


def open_teacher(recipe: Recipe, device: str = "auto") -> TeacherSource | None:
    """Return the teacher of a recipe, None without one.

    Raises:
        BitextmineError: the encoder cannot be loaded, or the vectors cannot be read.
    """
    name = recipe.teacher.model
    if not name:
        return None
    if name == PRECOMPUTED:
        return TeacherSource(PRECOMPUTED, _hash_of_vectors(recipe), None)
    try:
        local = name not in PACKAGED and recipe.path(name).exists()
        encoder = load_encoder(recipe.path(name) if local else name, device)
    except BitextmineError as e:
        raise type(e)(f"recipe: teacher.model: {e}; --set teacher.model=FOLDER names another") from None
    return TeacherSource(encoder.name, encoder.hash, encoder)


def taught_sides(recipe: Recipe, corpus: Corpus) -> tuple[int, int] | None:
    """Return, for each side of a pair, the column whose vector it learns; None if the corpus is not taught.

    A side learns its own vector if the teacher reads its language, else that of the other side.
    """
    teacher = recipe.teacher
    if not teacher.model or (teacher.corpora and corpus.files[0] not in teacher.corpora):
        return None
    files = (corpus.src_vectors, corpus.tgt_vectors)
    src, tgt = (
        bool(file or teacher.model != PRECOMPUTED) and (not teacher.languages or lang in teacher.languages)
        for file, lang in zip(files, corpus.langs, strict=True)
    )
    return (0 if src else 1, 1 if tgt else 0) if src or tgt else None


def teacher_pieces(teacher: TeacherSource, tokenizer: Tokenizer, dim: int) -> np.ndarray:
    """Return the teacher's piece vectors, before its layers, (V, dim) float32.

    Raises:
        BitextmineError: 'bitextmine train' did not make the teacher, or its vocabulary or dimensions are not the
            student's.
    """
    folder = teacher.encoder.folder if teacher.encoder else None
    if folder is None:
        raise BitextmineError(
            f"recipe: teacher.model: {teacher.name} has no piece vectors to learn from (embedding): only encoders of "
            "'bitextmine train' do"
        )
    config, theirs = read_folder(folder)
    differ = f"recipe: teacher.model: {folder}: teacher and student disagree: its"
    if theirs.pieces() != tokenizer.pieces():
        raise BitextmineError(
            f"{differ} vocabulary, of {config.vocab_size} pieces, is not the student's, of {tokenizer.vocab_size}"
        )
    if config.piece_dim != dim:
        raise BitextmineError(f"{differ} pieces have {config.piece_dim} dimensions, the student's {dim}")
    _, weights = unrolled(config, read_weights(config, folder / WEIGHTS))
    return np.ascontiguousarray(piece_vectors(weights)[: config.vocab_size])


def _hash_of_vectors(recipe: Recipe) -> str:
    digest = hashlib.sha256()
    for name in (name for corpus in recipe.data.corpora for name in (corpus.src_vectors, corpus.tgt_vectors)):
        digest.update(b"\0")
        path = recipe.path(name)
        try:
            if name:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as e:
            raise BitextmineError(f"{path}: cannot read the teacher's vectors: {e.strerror}") from None
    return digest.hexdigest()[:16]


NUMBER = np.dtype("<f2")


class VectorStore:
    """Vectors of ``dim`` numbers, in a folder of ``parent`` that is named after ``identity``, the way they were made.

    Blocks of rows are appended and never change. A block counts once the journal has its keys, which it gets when the
    vectors are safe on disk. OSError passes through `filling` and `add`.
    """

    def __init__(self, parent: Path, identity: Mapping[str, Any], dim: int) -> None:
        self.dim = dim
        self.identity = {"dim": dim, **identity}
        name = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:20]
        self.folder = parent / f"teacher-{name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._vectors = self.folder / "vectors"
        self._journal: Journal | None = None
        self._file = os.open(self._vectors, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        weakref.finalize(self, os.close, self._file)
        self._index(np.zeros(0, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self._keys)

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Read the keys, and allow `add` in the block; waits while another run fills the store."""
        with (
            locked_folder(self.folder),
            Journal(self.folder / "journal", "teacher", self.identity) as self._journal,
        ):
            size, whole, keys = self.dim * NUMBER.itemsize, 0, [np.zeros(0, dtype=np.uint64)]
            there = os.fstat(self._file).st_size // size
            for number, record in enumerate(self._journal):
                if whole + len(record["keys"]) > there:  # lost with the power
                    self._journal.truncate(number)
                    break
                keys.append(np.array(record["keys"], dtype=np.uint64))
                whole += len(keys[-1])
            os.ftruncate(self._file, whole * size)
            self._index(np.concatenate(keys))
            yield

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Append m rows: keys (m,) uint64, all of them new; vectors (m, dim)."""
        assert self._journal is not None
        with self._vectors.open("ab") as file:
            file.write(np.ascontiguousarray(vectors, dtype=NUMBER).data)
            sync_file(file)
        self._journal.append({"keys": keys.tolist()}, sync=True)
        self._index(np.concatenate([self._keys, keys]))

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of each key, (n,) int64, -1 for unknown keys (n,) uint64."""
        if not len(self):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[at] == keys, self._places[at], -1)

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        """Return the vectors (n, dim) of rows (n,) int64; BitextmineError if they cannot be read."""
        size = self.dim * NUMBER.itemsize
        try:
            raw = b"".join(map(os.pread, repeat(self._file), repeat(size), (places * size).tolist()))
        except OSError as e:
            path = self._vectors
            raise BitextmineError(f"{path}: cannot read the teacher's vectors: {e.strerror}") from None
        if len(raw) != size * len(places):
            raise BitextmineError(
                f"{self._vectors}: cut short; remove {self.folder} to compute the vectors again"
            )
        return np.frombuffer(raw, dtype=NUMBER).reshape(len(places), self.dim)

    def _index(self, keys: np.ndarray) -> None:
        self._keys = keys
        self._places = np.argsort(keys, kind="stable")
        self._sorted = keys[self._places]
