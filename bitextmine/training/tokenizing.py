"""A corpus as pieces: read, tokenised, filtered line by line, and kept on disk under a hash of what it is made of."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.storage import open_bytes
from bitextmine.languages import identify as languages
from bitextmine.system import processors
from bitextmine.training.pairfile import PairFile, PairWriter, TokenPairs, sentence_keys
from bitextmine.training.pairs import corpus_files, filter_codes, pair_chunks
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.staging import staged_files

__all__ = ["FILTERED", "FORM", "TokenizedCorpus", "language_rule", "tokenized_corpus", "tokenized_lines"]

Item = TypeVar("Item")

# Changes with the form of the files and with what the code makes of the same text.
FORM = 3
CHUNK_PAIRS = 25_000
# Pieces beyond which nobody counts.
LONGEST = 1 << 16
# Why a pair goes by itself, whatever the others are, in the order in which it is asked.
FILTERED = ("too short", "lengths too different", "copied", "other language")


@dataclasses.dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus' pairs but for those that the line-by-line filters drop; ``stem`` begins the names of its files."""

    corpus: Corpus
    stem: Path
    pairs: PairFile
    counts: dict[str, int]
    cut: int


def tokenized_corpus(
    folder: Path,
    recipe: Recipe,
    number: int,
    tokenizer: Tokenizer,
    known: Callable[[], languages.Languages],
    on_pairs: Callable[[int], object],
) -> TokenizedCorpus:
    """The corpus of that number (from 1) in the recipe, made where it is not in ``folder`` yet.

    known makes the identifier of languages, where the recipe asks for one; on_pairs is told how many pairs were read.
    Raises BitextmineError as pair_chunks does, and for a corpus of which no pair is left. OSError passes through.
    """
    corpus = recipe.data.corpora[number - 1]
    stem = folder / _key(recipe, corpus, tokenizer)
    manifest = Path(f"{stem}.json")
    if not manifest.exists():
        _build(stem, recipe, corpus, tokenizer, language_rule(recipe, number, known), on_pairs)
    content = read_json(manifest)
    counts = {key: int(value) for key, value in content["counts"].items()}
    if not counts["kept"]:
        reasons = ", ".join(
            f"{value} {key}" for key, value in counts.items() if value and key not in ("read", "kept")
        )
        raise BitextmineError(
            f"{corpus.name}: none of its {counts['read']} pairs is left after filtering"
            + (f" ({reasons}); see min_pieces, max_ratio and language_filter in [data]" if reasons else "")
        )
    pairs = PairFile(Path(f"{stem}.pieces"), Path(f"{stem}.index"), np.dtype(content["dtype"]))
    return TokenizedCorpus(corpus, stem, pairs, counts, int(content["cut"]))


def _key(recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256()
    for path in corpus_files(recipe, corpus):
        try:
            with open_bytes(path) as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as e:
            raise BitextmineError(f"{path}: cannot be read: {e.strerror}") from None
        digest.update(path.suffix.encode())  # which says how it is packed
    digest.update(hashlib.sha256(tokenizer.path.read_bytes()).digest())
    d = recipe.data
    rules: list[Any] = [FORM, d.errors, d.min_pieces, d.max_ratio, d.max_ratio_slack, recipe.model.max_pieces]
    if d.language_filter:
        rules += [*corpus.langs, d.language_share]
    digest.update(json.dumps(rules).encode())
    return digest.hexdigest()[:20]


@dataclasses.dataclass(frozen=True)
class LanguageRule:
    """Which sides are in their language: ``codes`` are the corpus' languages as ``known`` calls them."""

    known: languages.Languages
    codes: tuple[str, str]
    share: float

    def fits(self, side: int, lines: list[str]) -> np.ndarray:
        """(n,) bool."""
        return self.known.share(lines, self.codes[side]) >= self.share


def language_rule(
    recipe: Recipe, number: int, known: Callable[[], languages.Languages]
) -> LanguageRule | None:
    """The rule of the corpus of that number (from 1) where the recipe asks for one; ``known`` makes the identifier."""
    if not recipe.data.language_filter:
        return None
    codes = filter_codes(known(), recipe.data.corpora[number - 1], number)
    return LanguageRule(known(), codes, recipe.data.language_share)


def tokenized_lines(
    texts: tuple[list[str], list[str]], tokenizer: Tokenizer, recipe: Recipe, rule: LanguageRule | None
) -> tuple[TokenPairs, np.ndarray]:
    """Sources and targets of n pairs, as pieces, less those pairs that the filters drop; (m,) int64, which stayed."""
    src, tgt = (_side(i, texts[i], tokenizer, recipe, rule) for i in (0, 1))
    keep = _filter(src, tgt, recipe, dict.fromkeys(("read", "kept", *FILTERED), 0))
    keys = np.stack([src.keys[keep], tgt.keys[keep]])
    return TokenPairs(src.pieces.take(keep), tgt.pieces.take(keep), keys), keep


@dataclasses.dataclass(frozen=True)
class TokenizedSide:
    """One side of a chunk of pairs: its pieces, how many there were before they were cut (as far as that matters),
    sentence keys, whether it is in its language, sentences cut."""

    pieces: Pieces
    lengths: np.ndarray
    keys: np.ndarray
    fits: np.ndarray
    cut: int


def _build(
    stem: Path,
    recipe: Recipe,
    corpus: Corpus,
    tokenizer: Tokenizer,
    rule: LanguageRule | None,
    on_pairs: Callable[[int], object],
) -> None:
    """Tokenises a corpus into STEM.pieces, STEM.index and STEM.json: one chunk is read while the two sides of the one
    before are tokenised and a third is written."""
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
    counts = dict.fromkeys(("read", "kept", *FILTERED), 0)
    cut = 0
    # A vocabulary for each side: they remember words, of which the two languages share few, one thread at a time.
    tokenizers = (tokenizer, Tokenizer(tokenizer.path))
    with ThreadPoolExecutor(2, thread_name_prefix="tokenise") as pool:

        def tokenise(texts: tuple[list[str], list[str]]) -> list[TokenizedSide]:
            work = [pool.submit(_side, i, texts[i], tokenizers[i], recipe, rule) for i in (0, 1)]
            return [job.result() for job in work]

        def sides() -> Iterator[list[TokenizedSide]]:
            with contextlib.closing(_ahead(pair_chunks(recipe, corpus, CHUNK_PAIRS))) as chunks:
                yield from map(tokenise, chunks)

        with (
            staged_files([Path(f"{stem}.pieces"), Path(f"{stem}.index")]) as (pieces, index),
            contextlib.closing(_ahead(sides())) as chunks,
        ):
            writer = PairWriter(pieces, index, dtype)
            for src, tgt in chunks:
                keep = _filter(src, tgt, recipe, counts)
                keys = np.stack([src.keys[keep], tgt.keys[keep]])
                writer.write(src.pieces.take(keep), tgt.pieces.take(keep), keys)
                cut += src.cut + tgt.cut
                on_pairs(len(src.pieces))
    write_json(
        Path(f"{stem}.json"),
        {
            "kind": "bitextmine-pair-cache",
            "corpus": corpus.name,
            "counts": counts,
            "cut": cut,
            "dtype": dtype.name,
        },
    )


def _side(
    number: int, lines: list[str], tokenizer: Tokenizer, recipe: Recipe, rule: LanguageRule | None
) -> TokenizedSide:
    d, most = recipe.data, recipe.model.max_pieces
    # As many pieces as it takes to see that the other side, of at most max_pieces, is too short for this one.
    enough = min(math.ceil(d.max_ratio * (most + d.max_ratio_slack)), LONGEST)
    pieces, _ = tokenizer.encode(lines, max(most, enough), threads=max(1, processors() // 2))
    lengths = pieces.lengths
    cut = int((lengths > most).sum())
    if cut:
        pieces = pieces.take(np.arange(len(pieces)), most)
    fits = np.ones(len(lines), dtype=bool) if rule is None else rule.fits(number, lines)
    return TokenizedSide(pieces, lengths, sentence_keys(pieces), fits, cut)


def _filter(src: TokenizedSide, tgt: TokenizedSide, recipe: Recipe, counts: dict[str, int]) -> np.ndarray:
    """Row numbers of the pairs to keep; counts what goes, and why."""
    d = recipe.data
    lengths = np.stack([src.lengths, tgt.lengths])
    shorter, longer = lengths.min(axis=0), lengths.max(axis=0)
    wrong = (
        shorter < d.min_pieces,
        longer + d.max_ratio_slack > d.max_ratio * (shorter + d.max_ratio_slack),
        src.keys == tgt.keys,
        ~(src.fits & tgt.fits),
    )
    left = np.ones(len(shorter), dtype=bool)
    for reason, found in zip(FILTERED, wrong, strict=True):
        counts[reason] += int((left & found).sum())
        left &= ~found
    counts["read"] += len(left)
    counts["kept"] += int(left.sum())
    return np.flatnonzero(left)


def _ahead(items: Iterator[Item]) -> Generator[Item]:
    """The same items, the next one being made on a thread while one is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        made = thread.submit(next, items, None)
        while (item := made.result()) is not None:
            made = thread.submit(next, items, None)
            yield item
