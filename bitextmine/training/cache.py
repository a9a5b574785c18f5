"""Tokenised pairs on disk: made once per text and vocabulary, then split into training and held-out pairs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import math
import re
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bitextmine.console import counted
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import remove_left, replacing
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.storage import open_bytes
from bitextmine.languages import identify as languages
from bitextmine.run import Run
from bitextmine.system import processors
from bitextmine.training.outputs import staged_folder
from bitextmine.training.pairfile import PairFile, PairWriter, TokenPairs, choose, sentence_keys
from bitextmine.training.pairs import corpus_files, filter_codes, pair_chunks
from bitextmine.training.recipe import Corpus, Recipe

log = logging.getLogger(__name__)

Item = TypeVar("Item")

# Changes with the file format and with the result for the same text.
VERSION = 3
CHUNK_PAIRS = 25_000
# Sentences of more pieces count as having this many.
LONGEST = 1 << 16
# Reasons to drop a pair, in the order in which they are checked: by itself, then because of other pairs.
FILTERED = ("too short", "lengths too different", "copied", "other language")
DROPPED = (*FILTERED, "repeated", "sharing a held-out sentence")

# Staged names of token files, their manifests and selections; the folder may hold other files.
_STAGED = re.compile(r"\.([0-9a-f]{20}\.(pieces|index|json)|selection-[0-9a-f]{20})(\.\d+)?\.tmp")


@dataclasses.dataclass(frozen=True)
class PairCache:
    """The tokenised pairs of one corpus.

    Attributes:
        corpus: its entry in the recipe.
        train: the pairs that training draws from.
        valid: the held-out pairs that P@1 is measured on.
        counts: pairs "read", pairs "kept" (train and valid), and the pairs dropped for each reason in DROPPED; they
            add up.
        cut: sentences longer than model.max_pieces.
    """

    corpus: Corpus
    train: PairFile
    valid: PairFile
    counts: dict[str, int]
    cut: int = 0

    def __str__(self) -> str:
        read, kept, held_out = self.counts["read"], self.counts["kept"], len(self.valid)
        why = ", ".join(f"{self.counts[reason]:,} {reason}" for reason in DROPPED if self.counts[reason])
        said = f"{self.corpus.name}: {read:,} pairs read, {kept:,} kept ({held_out:,} of them held out)"
        return said + (f"; dropped: {why}" if why else "")


def open_caches(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer, run: Run | None = None
) -> list[PairCache]:
    """Return the tokenised corpora of a recipe, and make those missing in ``folder`` (or data.cache).

    Names contain a hash of the text, the vocabulary and the filters: a cache is never stale, and runs may share a
    folder. Memory does not grow with the corpora; a pair takes 64 bytes on disk and 2 for each of its pieces (4 if the
    vocabulary has more than 65,536), and 24 more while repeats are found.

    Raises:
        BitextmineError: a corpus cannot be read (see `pair_chunks`) or has no pairs left, or the disk is full.
    """
    run = run or Run()
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(".*.tmp"):  # left by killed runs, maybe of other recipes
            if _STAGED.fullmatch(path.name):
                remove_left(path, folder=path.is_dir())
        known = functools.cache(lambda: languages.Languages("data.language_filter"))
        with run.progress(None, "tokenise", "pairs") as bar:
            corpora = [
                _tokenized(folder, LineFilter.of(recipe, number, known), recipe, tokenizer, bar.update)
                for number in range(1, len(recipe.data.corpora) + 1)
            ]
        caches = _select(folder, recipe, corpora, run)
    except OSError as e:
        raise BitextmineError(
            f"{folder}: cannot write the token cache: {e.strerror or e}; free some space, or set data.cache in the "
            "recipe to a folder with more"
        ) from None
    for cache in caches:
        log.info("%s", cache)
        if cache.cut:
            found, most = counted(cache.cut, "sentence"), recipe.model.max_pieces
            log.warning("%s: %s cut to %d pieces (model.max_pieces)", cache.corpus.name, found, most)
        if not len(cache.train):
            raise BitextmineError(
                f"{cache.corpus.name}: no pair is left to train on after holding out {len(cache.valid)}"
            )
    return caches


# --- filters -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Side:
    """One side of a chunk of pairs; lengths before cutting, up to the longest that the filters tell apart."""

    pieces: Pieces
    lengths: np.ndarray
    keys: np.ndarray
    in_language: np.ndarray
    cut: int


@dataclasses.dataclass(frozen=True)
class LineFilter:
    """The filters that look at one pair at a time.

    ``codes`` are the corpus's languages as the identifier ``known`` calls them; None without data.language_filter.
    """

    recipe: Recipe
    corpus: Corpus
    known: Callable[[], languages.Languages]
    codes: tuple[str, str] | None

    @classmethod
    def of(cls, recipe: Recipe, number: int, known: Callable[[], languages.Languages]) -> LineFilter:
        """Return the filter of corpus ``number`` (from 1) of a recipe."""
        corpus = recipe.data.corpora[number - 1]
        codes = filter_codes(known(), corpus, number) if recipe.data.language_filter else None
        return cls(recipe, corpus, known, codes)

    def tokenized(
        self, texts: tuple[list[str], list[str]], tokenizer: Tokenizer
    ) -> tuple[TokenPairs, np.ndarray]:
        """Tokenise n pairs; return the m that pass, and their rows (m,) int64."""
        src, tgt = (self.side(i, texts[i], tokenizer) for i in (0, 1))
        keep = self.passing(src, tgt, dict.fromkeys(("read", "kept", *FILTERED), 0))
        keys = np.stack([src.keys[keep], tgt.keys[keep]])
        return TokenPairs(src.pieces.take(keep), tgt.pieces.take(keep), keys), keep

    def side(self, number: int, lines: list[str], tokenizer: Tokenizer) -> _Side:
        """Tokenise one side of some pairs."""
        d, most = self.recipe.data, self.recipe.model.max_pieces
        # Enough pieces to see that the other side, of at most max_pieces, is too short for this one.
        enough = min(math.ceil(d.max_ratio * (most + d.max_ratio_slack)), LONGEST)
        pieces, _ = tokenizer.encode(lines, max(most, enough), threads=max(1, processors() // 2))
        lengths = pieces.lengths
        cut = int((lengths > most).sum())
        if cut:
            pieces = pieces.take(np.arange(len(pieces)), most)
        in_language = np.ones(len(lines), dtype=bool)
        if self.codes is not None:
            in_language = self.known().share(lines, self.codes[number]) >= d.language_share
        return _Side(pieces, lengths, sentence_keys(pieces), in_language, cut)

    def passing(self, src: _Side, tgt: _Side, counts: dict[str, int]) -> np.ndarray:
        """Return the rows of the pairs that pass, and add to the counts per reason."""
        d = self.recipe.data
        lengths = np.stack([src.lengths, tgt.lengths])
        shorter, longer = lengths.min(axis=0), lengths.max(axis=0)
        wrong = (
            shorter < d.min_pieces,
            longer + d.max_ratio_slack > d.max_ratio * (shorter + d.max_ratio_slack),
            src.keys == tgt.keys,
            ~(src.in_language & tgt.in_language),
        )
        left = np.ones(len(shorter), dtype=bool)
        for reason, found in zip(FILTERED, wrong, strict=True):
            counts[reason] += int((left & found).sum())
            left &= ~found
        counts["read"] += len(left)
        counts["kept"] += int(left.sum())
        return np.flatnonzero(left)


# --- token files ---------------------------------------------------------------------------------------------


class _Tokenized(NamedTuple):
    """The pairs of a corpus that pass its filters; ``stem`` starts the names of their files."""

    corpus: Corpus
    stem: Path
    pairs: PairFile
    counts: dict[str, int]
    cut: int


def _tokenized(
    folder: Path, rules: LineFilter, recipe: Recipe, tokenizer: Tokenizer, on_pairs: Callable[[int], object]
) -> _Tokenized:
    corpus = rules.corpus
    stem = folder / _key(recipe, corpus, tokenizer)
    manifest = Path(f"{stem}.json")
    if not manifest.exists():
        _build(stem, rules, tokenizer, on_pairs)
    content = read_json(manifest)
    counts = content["counts"]
    if not counts["kept"]:
        reasons = ", ".join(f"{counts[key]} {key}" for key in FILTERED if counts[key])
        raise BitextmineError(
            f"{corpus.name}: none of its {counts['read']} pairs is left after filtering"
            + (f" ({reasons}); see min_pieces, max_ratio and language_filter in [data]" if reasons else "")
        )
    pairs = PairFile(Path(f"{stem}.pieces"), Path(f"{stem}.index"), np.dtype(content["dtype"]))
    return _Tokenized(corpus, stem, pairs, counts, content["cut"])


def _key(recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256()
    for path in corpus_files(recipe, corpus):
        try:
            with open_bytes(path) as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as e:
            raise BitextmineError(f"{path}: cannot read: {e.strerror}") from None
        digest.update(path.suffix.encode())  # the suffix decides on decompression
    digest.update(hashlib.sha256(tokenizer.path.read_bytes()).digest())
    d = recipe.data
    rules: list[Any] = [
        VERSION,
        d.errors,
        d.min_pieces,
        d.max_ratio,
        d.max_ratio_slack,
        recipe.model.max_pieces,
    ]
    if tokenizer.transliterate:
        rules.append("transliterate")
    if d.language_filter:
        rules += [*corpus.langs, d.language_share]
    digest.update(json.dumps(rules).encode())
    return digest.hexdigest()[:20]


def _build(stem: Path, rules: LineFilter, tokenizer: Tokenizer, on_pairs: Callable[[int], object]) -> None:
    """Tokenise a corpus into STEM.pieces, STEM.index and STEM.json.

    A pipeline: one chunk is read while both sides of the one before are tokenised and the one before that is written.
    """
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
    counts = dict.fromkeys(("read", "kept", *FILTERED), 0)
    cut = 0
    # One tokenizer per side: each caches words, few of them shared by two languages, and serves one thread at a time.
    tokenizers = (tokenizer, Tokenizer(tokenizer.path, tokenizer.transliterate))
    with ThreadPoolExecutor(2, thread_name_prefix="tokenise") as pool:

        def tokenise(texts: tuple[list[str], list[str]]) -> list[_Side]:
            work = [pool.submit(rules.side, i, texts[i], tokenizers[i]) for i in (0, 1)]
            return [job.result() for job in work]

        def sides() -> Iterator[list[_Side]]:
            with contextlib.closing(_ahead(pair_chunks(rules.recipe, rules.corpus, CHUNK_PAIRS))) as chunks:
                yield from map(tokenise, chunks)

        with (
            replacing(f"{stem}.pieces") as pieces,
            replacing(f"{stem}.index") as index,
            contextlib.closing(_ahead(sides())) as chunks,
        ):
            writer = PairWriter(pieces, index, dtype)
            for src, tgt in chunks:
                keep = rules.passing(src, tgt, counts)
                keys = np.stack([src.keys[keep], tgt.keys[keep]])
                writer.write(src.pieces.take(keep), tgt.pieces.take(keep), keys)
                cut += src.cut + tgt.cut
                on_pairs(len(src.pieces))
    made = {"corpus": rules.corpus.name, "counts": counts, "cut": cut, "dtype": dtype.name}
    write_json(Path(f"{stem}.json"), {"kind": "bitextmine-pair-cache", **made})


def _ahead(items: Iterator[Item]) -> Generator[Item]:
    """Yield the items, the next one made on a thread while one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        made = thread.submit(next, items, None)
        while (item := made.result()) is not None:
            made = thread.submit(next, items, None)
            yield item


# --- training and held-out pairs -----------------------------------------------------------------------------


def _select(folder: Path, recipe: Recipe, corpora: list[_Tokenized], run: Run) -> list[PairCache]:
    d = recipe.data
    rules = json.dumps([VERSION, d.deduplicate, d.valid_pairs, *(one.stem.name for one in corpora)])
    place = folder / f"selection-{hashlib.sha256(rules.encode()).hexdigest()[:20]}"
    if not (place / "selection.json").exists():
        total = (2 + d.deduplicate) * sum(len(one.pairs) for one in corpora)
        title = "find repeats" if d.deduplicate else "hold out"
        with run.progress(total, title, "pairs") as bar, staged_folder(place) as made:
            chosen = choose(
                [one.pairs for one in corpora],
                [(made / f"{i}.train", made / f"{i}.valid") for i in range(len(corpora))],
                deduplicate=d.deduplicate,
                valid_pairs=d.valid_pairs,
                on_pairs=bar.update,
            )
            content = [dataclasses.asdict(part) for part in chosen]
            write_json(made / "selection.json", {"kind": "bitextmine-pair-selection", "corpora": content})
    caches = []
    parts = read_json(place / "selection.json")["corpora"]
    for i, (one, part) in enumerate(zip(corpora, parts, strict=True)):
        lost = {"repeated": part["repeated"], "sharing a held-out sentence": part["shared"]}
        counts = {**one.counts, "kept": part["train"] + part["valid"], **lost}
        train, valid = (
            PairFile(one.pairs.pieces, place / f"{i}.{name}", one.pairs.dtype) for name in ("train", "valid")
        )
        caches.append(PairCache(one.corpus, train, valid, counts, one.cut))
    return caches
