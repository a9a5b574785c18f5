"""Tokenised pairs on disk: made once per text and vocabulary, and of these what a recipe trains on and holds out."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import math
import os
import platform
import shutil
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bitextmine.console import counted, progress
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.languages import identify as languages
from bitextmine.train.pairfile import PairFile, PairWriter, sentence_keys
from bitextmine.train.pairs import corpus_files, filter_codes, pair_chunks
from bitextmine.train.recipe import Corpus, Recipe
from bitextmine.train.selection import choose

__all__ = ["DROPPED", "PairCache", "open_caches"]

log = logging.getLogger(__name__)

Item = TypeVar("Item")

# Changes with the form of the files and with what the code makes of the same text.
FORM = 3
CHUNK_PAIRS = 25_000
# Pieces beyond which nobody counts.
LONGEST = 1 << 16
# Why a pair is not trained on, in the order in which it is asked.
DROPPED = (
    "too short",
    "lengths too different",
    "copied",
    "other language",
    "repeated",
    "sharing a held-out sentence",
)


@dataclasses.dataclass(frozen=True)
class PairCache:
    """The tokenised pairs of one corpus.

    train: what training draws from; valid: what is held out to measure P@1 on.
    counts: pairs "read", pairs "kept" (train and valid), and for each reason in DROPPED how many were dropped: they
    add up. cut: sentences that were longer than model.max_pieces.
    """

    corpus: Corpus
    train: PairFile
    valid: PairFile
    counts: dict[str, int]
    cut: int = 0

    def __str__(self) -> str:
        """The counts in words."""
        said = f"{self.corpus.name}: {self.counts['read']:,} pairs read, {self.counts['kept']:,} kept"
        why = [f"{self.counts[reason]:,} {reason}" for reason in DROPPED if self.counts[reason]]
        said += f" ({len(self.valid):,} of them held out)"
        return said + (f"; dropped: {', '.join(why)}" if why else "")


def open_caches(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer, *, show_progress: bool | None = None
) -> list[PairCache]:
    """The recipe's corpora, tokenised, from ``folder`` (or data.cache), where those that are missing are made.

    A cache is known by a hash of the text, the vocabulary and the filter, so that none is ever stale, and runs may
    share a folder. Memory does not grow with the corpora; on disk a pair takes 64 bytes and 2 for each of its pieces
    (4 when the vocabulary has more than 65,536), and 24 more while repeats are looked for.

    Raises BitextmineError for corpora that cannot be read (see pair_chunks), for one of which nothing is left to
    train on, and for a disk that is full.
    """
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        disable = None if show_progress is None else not show_progress
        known = functools.cache(lambda: languages.Languages("data.language_filter"))
        with progress(None, "tokenise", "pairs", disable) as bar:
            files = [
                _tokenized(folder, recipe, number, tokenizer, known, bar.update)
                for number in range(1, len(recipe.data.corpora) + 1)
            ]
        caches = _select(folder, recipe, files, disable)
    except OSError as e:
        raise BitextmineError(
            f"{folder}: cannot write the token cache: {e.strerror or e}; free some space, or name a folder with more "
            "as data.cache in the recipe"
        ) from None
    for cache in caches:
        log.info("%s", cache)
        if cache.cut:
            log.warning(
                "%s: %s of more than %d pieces (model.max_pieces) cut",
                cache.corpus.name,
                counted(cache.cut, "sentence"),
                recipe.model.max_pieces,
            )
        if not len(cache.train):
            raise BitextmineError(
                f"{cache.corpus.name}: no pair is left to train on after holding out {len(cache.valid)}"
            )
    return caches


# --- a corpus -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Tokenized:
    """A corpus' pairs but for those that the line-by-line filters drop; ``stem`` begins the names of its files."""

    corpus: Corpus
    stem: Path
    pairs: PairFile
    counts: dict[str, int]
    cut: int


def _tokenized(
    folder: Path,
    recipe: Recipe,
    number: int,
    tokenizer: Tokenizer,
    known: Callable[[], languages.Languages],
    on_pairs: Callable[[int], object],
) -> Tokenized:
    corpus = recipe.data.corpora[number - 1]
    stem = folder / _key(recipe, corpus, tokenizer)
    manifest = Path(f"{stem}.json")
    if not manifest.exists():
        rule = None
        if recipe.data.language_filter:
            codes = filter_codes(known(), corpus, number)
            rule = LanguageRule(known(), codes, recipe.data.language_share)
        _build(stem, recipe, corpus, tokenizer, rule, on_pairs)
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
    return Tokenized(corpus, stem, pairs, counts, int(content["cut"]))


def _key(recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256()
    for path in corpus_files(recipe, corpus):
        try:
            with path.open("rb") as file:
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


@dataclasses.dataclass(frozen=True)
class Side:
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
    counts = dict.fromkeys(("read", "kept", *DROPPED[:4]), 0)
    cut = 0
    # A vocabulary for each side: they remember words, of which the two languages share few, one thread at a time.
    tokenizers = (tokenizer, Tokenizer(tokenizer.path))
    with ThreadPoolExecutor(2, thread_name_prefix="tokenise") as pool:

        def tokenise(texts: tuple[list[str], list[str]]) -> list[Side]:
            work = [pool.submit(_side, i, texts[i], tokenizers[i], recipe, rule) for i in (0, 1)]
            return [job.result() for job in work]

        def sides() -> Iterator[list[Side]]:
            with contextlib.closing(_ahead(pair_chunks(recipe, corpus, CHUNK_PAIRS))) as chunks:
                yield from map(tokenise, chunks)

        with (
            _written(stem, (".pieces", ".index")) as (pieces, index),
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
) -> Side:
    d, most = recipe.data, recipe.model.max_pieces
    # As many pieces as it takes to see that the other side, of at most max_pieces, is too short for this one.
    enough = min(math.ceil(d.max_ratio * (most + d.max_ratio_slack)), LONGEST)
    pieces, _ = tokenizer.encode(lines, max(most, enough), threads=max(1, (os.cpu_count() or 1) // 2))
    lengths = pieces.lengths
    cut = int((lengths > most).sum())
    if cut:
        pieces = pieces.take(np.arange(len(pieces)), most)
    fits = np.ones(len(lines), dtype=bool) if rule is None else rule.fits(number, lines)
    return Side(pieces, lengths, sentence_keys(pieces), fits, cut)


def _filter(src: Side, tgt: Side, recipe: Recipe, counts: dict[str, int]) -> np.ndarray:
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
    for reason, found in zip(DROPPED, wrong, strict=False):
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


@contextlib.contextmanager
def _written(stem: Path, endings: tuple[str, ...]) -> Iterator[list[Any]]:
    """Files STEM + ending to write, which get their names when all are complete and safe on disk."""
    names = [Path(f"{stem}{ending}") for ending in endings]
    parts = [_part(name) for name in names]
    try:
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(part.open("wb")) for part in parts]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for part, name in zip(parts, names, strict=True):
            part.replace(name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _part(name: Path) -> Path:
    """What a file is called while it is written: the name tells the process, so that others may use the folder."""
    return name.with_name(f"{name.name}.{platform.node()}.{os.getpid()}.part")


def _sweep(folder: Path) -> None:
    """Removes what killed runs of this machine left half made; one of them may have had this process' number."""
    for path in folder.glob(f"*.{platform.node()}.*.part"):
        number = path.name.split(".")[-2]
        if number.isdigit() and (int(number) == os.getpid() or not _alive(int(number))):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# --- of all corpora -------------------------------------------------------------------------------------------


def _select(folder: Path, recipe: Recipe, files: list[Tokenized], disable: bool | None) -> list[PairCache]:
    d = recipe.data
    rules = json.dumps([FORM, d.deduplicate, d.valid_pairs, *(file.stem.name for file in files)])
    place = folder / f"selection-{hashlib.sha256(rules.encode()).hexdigest()[:20]}"
    manifest = place / "selection.json"
    if not manifest.exists():
        passes = 2 + d.deduplicate
        total = passes * sum(len(file.pairs) for file in files)
        with (
            progress(total, "find repeats" if d.deduplicate else "hold out", "pairs", disable) as bar,
            _folder(place) as made,
        ):
            chosen = choose(
                [file.pairs for file in files],
                [(made / f"{i}.train", made / f"{i}.valid") for i in range(len(files))],
                deduplicate=d.deduplicate,
                valid_pairs=d.valid_pairs,
                on_pairs=bar.update,
            )
            content = [dataclasses.asdict(part) for part in chosen]
            write_json(made / "selection.json", {"kind": "bitextmine-pair-selection", "corpora": content})
    found = read_json(manifest)["corpora"]
    caches = []
    for i, (file, part) in enumerate(zip(files, found, strict=True)):
        counts = {
            **file.counts,
            "kept": part["train"] + part["valid"],
            "repeated": part["repeated"],
            "sharing a held-out sentence": part["shared"],
        }
        train, valid = (
            PairFile(file.pairs.pieces, place / f"{i}.{what}", file.pairs.dtype)
            for what in ("train", "valid")
        )
        caches.append(PairCache(file.corpus, train, valid, counts, file.cut))
    return caches


@contextlib.contextmanager
def _folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete."""
    part = _part(place)
    part.mkdir()
    try:
        yield part
        for path in part.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        try:
            part.replace(place)
        except OSError:
            if not place.exists():  # another run was as fast
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
