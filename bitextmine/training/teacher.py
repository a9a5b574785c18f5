"""Choose the pairs that a teacher teaches on, and provide them with its vectors."""

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitextmine.console import counted
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import open_embedding
from bitextmine.encoder.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import PACKAGED
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import replacing
from bitextmine.languages.codes import UNDETERMINED
from bitextmine.run import Run
from bitextmine.training.data.cache import CHUNK_PAIRS, MORE_ROOM, LineFilter, PairCache, pair_chunks
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.sampling import PairSource
from bitextmine.training.recipe import PairCorpus, Recipe

log = logging.getLogger(__name__)

# Sentences that a teacher encodes at a time: it sorts them by length, and a killed run loses at most these.
BLOCK = 2048


class Line(NamedTuple):
    """A pair of a corpus: its number in the file, from 0, and its two sentences."""

    number: int
    src: str
    tgt: str


def text_key(text: str) -> int:
    """Return a 64-bit hash of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def chosen_lines(
    recipe: Recipe, corpus: PairCorpus, count: int, on_pairs: Callable[[int], object] = lambda n: None
) -> list[Line]:
    """Return ``count`` distinct pairs of a corpus, in its order, or all if there are fewer.

    They have the smallest `text_key`, so that most stay chosen when a corpus grows or the count rises.
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
        wanted = max(0.0, total - given[~open_].sum()) * mass / mass[open_].sum()
        full = open_ & (wanted >= size)
        given[open_] = np.minimum(wanted, size)[open_]
        if not full.any():
            break
        open_ &= ~full
    return [int(n) for n in np.ceil(given - 1e-9)]


# --- taught pairs --------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TaughtPairs:
    """Tokenised pairs, a teacher's vectors (sentences, dim), and the rows (2, n) int64 for both sides of the pairs."""

    pairs: TokenPairs
    vectors: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """Return the pairs of ``rows`` (m,) int, in that order, with the teacher's unit vectors (2, m, dim) float32."""
        p, vectors = self.pairs, self.vectors[self.rows[:, rows]].astype(np.float32)
        length = np.linalg.norm(vectors, axis=2, keepdims=True)
        units = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
        return TokenPairs(p.src.take(rows, max_pieces), p.tgt.take(rows, max_pieces), p.keys[:, rows], units)


def open_lessons(
    folder: Path,
    recipe: Recipe,
    caches: Sequence[PairCache],
    tokenizer: Tokenizer,
    teacher: Encoder,
    run: Run,
) -> list[PairSource]:
    """Return the pairs of teacher.lines lines of the corpora, with the teacher's vectors.

    Pairs that [data] filters out, or that share a sentence with a held-out pair, are left out. The sentences and their
    embedding are kept in ``folder`` (or data.cache), and serve other recipes that choose the same. The lines take
    about 1 KB of memory each. Raises BitextmineError if no pair is left, vectors are NaN or all zeros, or the disk is
    full.
    """
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    chosen = _choose(recipe, caches, tokenizer, run)
    if not chosen:
        raise BitextmineError("recipe: teacher: no pair is left to teach on; see teacher.corpora and lines")
    row: dict[str, int] = {}
    for _, sides, _, lines in chosen:
        for side in sorted(set(sides)):
            for line in lines:
                row.setdefault((line.src, line.tgt)[side], len(row))
    vectors = _embedded(folder, teacher, list(row), run)
    corpora = []
    for cache, sides, pairs, lines in chosen:
        # Drawn as often as the whole corpus that they stand for.
        weight = cache.corpus.weight * len(cache.train) / len(pairs)
        rows = np.array([[row[(line.src, line.tgt)[side]] for line in lines] for side in sides])
        taught = TaughtPairs(pairs, vectors, rows)
        corpora.append(PairSource(dataclasses.replace(cache.corpus, weight=weight), taught))
    size = counted(sum(len(corpus.train) for corpus in corpora), "pair")
    log.info("%s teaches on %s of %s", teacher.name, size, counted(len(chosen), "corpus", "corpora"))
    return corpora


def _choose(
    recipe: Recipe, caches: Sequence[PairCache], tokenizer: Tokenizer, run: Run
) -> list[tuple[PairCache, tuple[int, int], TokenPairs, list[Line]]]:
    """Return for each corpus the columns taught to each side, and the pieces and texts of the pairs to teach on."""
    taught = [(cache, sides) for cache in caches if (sides := taught_sides(recipe, cache.corpus)) is not None]
    sizes, weights = ([len(cache.train) for cache, _ in taught], [cache.corpus.weight for cache, _ in taught])
    counts = shares(sizes, weights, recipe.teacher.lines)
    keys = [cache.valid.records(0, len(cache.valid))["keys"].ravel() for cache in caches]
    held_out = np.unique(np.concatenate([np.zeros(0, np.uint64), *keys]))
    chosen = []
    with run.progress(None, "choose lines for the teacher", "pairs") as bar:
        for (cache, sides), count in zip(taught, counts, strict=True):
            if count >= len(cache.train):
                count = cache.counts["read"]  # all; the filters below leave those to train on
            lines = chosen_lines(recipe, cache.corpus, count, bar.update) if count else []
            texts = [line.src for line in lines], [line.tgt for line in lines]
            pairs, kept = LineFilter(recipe, cache.corpus, (tokenizer, tokenizer)).tokenized(texts)
            free = np.flatnonzero(~np.isin(pairs.keys, held_out).any(axis=0))
            pairs = TokenPairs(pairs.src.take(free), pairs.tgt.take(free), pairs.keys[:, free])
            if len(pairs):
                chosen.append((cache, sides, pairs, [lines[row] for row in kept[free]]))
    return chosen


def _embedded(folder: Path, teacher: Encoder, texts: Sequence[str], run: Run) -> np.ndarray:
    """Return the teacher's vectors (texts, dim) float16, from an embedding in the folder."""
    content = "".join(f"{text}\n" for text in texts).encode()
    name = hashlib.sha256(teacher.hash.encode() + content).hexdigest()[:20]
    corpus, npy = (folder / f"teacher-{name}.{suffix}" for suffix in ("txt", "npy"))
    with explained(f"{corpus}: cannot write", MORE_ROOM):
        folder.mkdir(parents=True, exist_ok=True)
        if not corpus.exists():
            with replacing(corpus) as file:
                file.write(content)
    options = EmbedOptions(out=npy, chunk_lines=BLOCK)
    vectors, _ = open_embedding(embed_corpus(corpus, teacher, run, options, lang=UNDETERMINED))
    if not vectors[:BLOCK].any():
        raise BitextmineError(f"recipe: teacher.model: {teacher.name}: its vectors are all zeros")
    return vectors


def open_teacher(recipe: Recipe, device: str = "auto") -> Encoder | None:
    """Return the teacher of a recipe, None without one; BitextmineError if it cannot be loaded."""
    name = recipe.teacher.model
    if not name:
        return None
    try:
        local = name not in PACKAGED and recipe.path(name).exists()
        return load_encoder(recipe.path(name) if local else name, device)
    except BitextmineError as e:
        raise type(e)(f"recipe: teacher.model: {e}; --set teacher.model=FOLDER names another") from None


def taught_sides(recipe: Recipe, corpus: PairCorpus) -> tuple[int, int] | None:
    """Return, for each side of a pair, the column whose vector it learns; None if the corpus is not taught.

    A side learns its own vector if the teacher reads its language, else that of the other side.
    """
    teacher = recipe.teacher
    if not teacher.model or not teacher.teaches_on(corpus):
        return None
    src, tgt = (not teacher.languages or lang in teacher.languages for lang in corpus.langs)
    return (0 if src else 1, 1 if tgt else 0) if src or tgt else None
