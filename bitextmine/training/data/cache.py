"""Training pairs: read, tokenised on disk once per text and vocabulary, and split in those trained on and held out."""

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.console import counted
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import remove_left, replacing
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.table import open_table
from bitextmine.files.json_toml import read_json, write_json
from bitextmine.files.source import Source, TwoFiles
from bitextmine.run import Run
from bitextmine.system import ahead, processors
from bitextmine.training.data.pairfile import PairFile, PairWriter, TokenPairs, choose, sentence_keys
from bitextmine.training.recipe import PairCorpus, Recipe

log = logging.getLogger(__name__)

# Changes with the file format and with the result for the same text.
VERSION = 5
CHUNK_PAIRS = 25_000
FIRST = 400  # pairs of each corpus that are read before any work
# Sentences of more pieces count as having this many.
LONGEST = 1 << 16
MOST_OFTEN = 4.0
# The longer side of a pair has at most so many times the pieces of the shorter, SLACK pieces added to both, so that
# short lines pass.
MAX_RATIO, SLACK = 4.0, 10
# Reasons to drop a pair, in the order in which they are checked: by itself, then because of other pairs.
FILTERED = ("too short", "lengths too different", "copied", "fragments")
DROPPED = (*FILTERED, "repeated", "sharing a held-out sentence")

# The remedy where a cache finds no room.
MORE_ROOM = "; free some space, or set data.cache in the recipe to a folder with more"
# The end of a sentence. Chat commands have none: "set an alarm for nine".
_STOP = re.compile(r"[.!?:…。！？।۔؟]\W*$")
# Staged names of token files, their manifests and selections; the folder may hold other files.
_STAGED = re.compile(
    r"\.([0-9a-f]{20}\.(pieces|index|json)|selection-[0-9a-f]{20}\.(json|\d+\.(train|valid)))(\.\d+)?\.tmp"
)


@dataclasses.dataclass(frozen=True)
class PairCache:
    """The tokenised pairs of one corpus of a recipe, to train on and held out.

    counts: pairs "read", pairs "kept" (train and valid), and the pairs dropped for each reason in DROPPED; they add
    up. cut: sentences longer than model.max_pieces.
    """

    corpus: PairCorpus
    train: PairFile
    valid: PairFile
    counts: dict[str, int]
    cut: int = 0

    def __str__(self) -> str:
        read, kept, held_out = self.counts["read"], self.counts["kept"], len(self.valid)
        why = ", ".join(f"{self.counts[reason]:,} {reason}" for reason in DROPPED if self.counts[reason])
        summary = f"{self.corpus.name}: {read:,} pairs read, {kept:,} kept ({held_out:,} of them held out)"
        return summary + (f"; dropped: {why}" if why else "")


def open_caches(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer, run: Run | None = None
) -> list[PairCache]:
    """Return the tokenised corpora of a recipe, and make those missing in ``folder`` (or data.cache).

    Names contain a hash of the text, the vocabulary and the filters: a cache is never stale, and runs may share a
    folder. A pair takes 64 bytes on disk and 2 for each piece (4 if the vocabulary has more than 65,536); memory does
    not grow. Raises BitextmineError if a corpus cannot be read or has no pairs left, or the disk is full.
    """
    run = run or Run()
    if recipe.data.cache:
        folder = recipe.path(recipe.data.cache)
    with explained(f"{folder}: cannot write the token cache", MORE_ROOM):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(".*.tmp"):  # left by killed runs, maybe of other recipes
            if _STAGED.fullmatch(path.name):
                remove_left(path)
        # One tokenizer per side: each remembers words, few of them shared, and serves one thread at a time.
        both = tokenizer, Tokenizer(tokenizer.path, tokenizer.transliterate)
        with run.progress(None, "tokenise", "pairs") as bar:
            corpora = [_tokenized(folder, recipe, corpus, both, bar.update) for corpus in recipe.data.corpora]
        caches = _select(folder, recipe, corpora, run)
    for cache in caches:
        log.info("%s", cache)
        if cache.cut:
            sentences, most = counted(cache.cut, "sentence"), recipe.model.max_pieces
            log.warning("%s: %s cut to %d pieces (model.max_pieces)", cache.corpus.name, sentences, most)
        if not len(cache.train):
            raise BitextmineError(
                f"{cache.corpus.name}: no pair is left to train on after holding out {len(cache.valid)}"
            )
    return balanced(caches, recipe)


def balanced(caches: Sequence[PairCache], recipe: Recipe) -> list[PairCache]:
    """Return the corpora with data.balance in their weights.

    A corpus counts by the pairs of its rarer language to the power of -balance. One that is smaller than a batch gives
    smaller batches, and is drawn more often for it, up to MOST_OFTEN times.
    """
    if not (balance := recipe.data.balance):
        return list(caches)
    pairs = Counter[str]()
    for cache in caches:
        pairs.update(dict.fromkeys(cache.corpus.langs, len(cache.train)))
    most = max(pairs.values())
    weighted = []
    for cache in caches:
        rare = (min(pairs[lang] for lang in cache.corpus.langs) / most) ** -balance
        small = min(MOST_OFTEN, max(1.0, recipe.train.batch / len(cache.train)))
        corpus = dataclasses.replace(cache.corpus, weight=cache.corpus.weight * rare * small)
        weighted.append(dataclasses.replace(cache, corpus=corpus))
    return weighted


# --- corpora -------------------------------------------------------------------------------------------------


def corpus_files(recipe: Recipe, corpus: PairCorpus) -> list[Source]:
    """Return the file of a TSV corpus, or the two of a paired one; BitextmineError for a pipe."""
    files = [recipe.corpus(name) for name in corpus.files]
    for file in files:
        if file.reads_once:
            raise BitextmineError(
                f"{file}: not a regular file; a corpus is read more than once: save it first"
            )
    return files


def pair_chunks(recipe: Recipe, corpus: PairCorpus, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sources and targets of a corpus in file order, ``size`` pairs at a time.

    Raises BitextmineError if a row is not a pair, paired files differ in length, UTF-8 is invalid (unless the recipe
    has it replaced), or a file cannot be read.
    """
    first, *second = corpus_files(recipe, corpus)
    if not second:
        yield from _rows(first, corpus.langs, size)
    else:
        both = TwoFiles.join(first, second[0], errors=first.errors, max_line=first.max_line)
        yield from _rows(both, None, size)


def _rows(source: Source, langs: tuple[str, str] | None, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the pairs of a file; the columns are swapped if it names the languages (``langs``) that way.

    Lines of text may have further cells. Where columns cannot be told apart, the first two are meant.
    """
    table = open_table(source, Columns(errors=source.errors, ragged=True))
    layout = table.layout
    if table.empty:
        return
    sides = [0, 1] if layout.unknown and table.format.lines else [layout.src, layout.tgt]
    if langs and (layout.src_lang, layout.tgt_lang) == langs[::-1]:
        sides.reverse()
    lines = table.format.lines
    for block in table.blocks(size):
        untranslated = getattr(block, "untranslated", ())
        for at, reason in sorted(block.bad().items()):
            if at not in untranslated:
                number = block.start + at + table.header_line
                pair = (
                    "; a pair is source, tab, target; for two files with a side each, name them as src and tgt instead "
                    "of pairs in the recipe"
                )
                place = f"{'line' if lines else 'row'} {number}"
                raise BitextmineError(f"{source}: {place}: {reason}{pair * lines}")
        rows = [row for row in range(len(block)) if row not in untranslated]
        sources, targets = (block.texts(at, rows) for at in sides)
        yield (sources, targets) if lines else (list(map(one_cell, sources)), list(map(one_cell, targets)))


def check_corpora(recipe: Recipe) -> None:
    """Raise BitextmineError if the first lines of a corpus cannot be read."""
    for corpus in recipe.data.corpora:
        next(pair_chunks(recipe, corpus, FIRST), None)


# --- filters -------------------------------------------------------------------------------------------------


class LineFilter:
    """The filters that look at one pair of a corpus at a time, and the counts of pairs by reason.

    ``tokenizers``: one per side.
    """

    def __init__(self, recipe: Recipe, corpus: PairCorpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        self.recipe, self.tokenizers = recipe, tokenizers
        self.counts = dict.fromkeys(("read", "kept", *FILTERED), 0)
        self.share = corpus.fragments
        self.cut = 0  # sentences of more than model.max_pieces

    def tokenized(self, texts: tuple[list[str], list[str]]) -> tuple[TokenPairs, np.ndarray]:
        """Tokenise n pairs; return the m that pass, and their rows (m,) int64."""
        most = self.recipe.model.max_pieces
        # Enough pieces to see that the other side, of at most max_pieces, is too short for this one.
        enough = max(most, min(math.ceil(MAX_RATIO * (most + SLACK)), LONGEST))

        def side(i: int) -> tuple[Pieces, int, np.ndarray, np.ndarray]:
            whole, _ = self.tokenizers[i].encode(texts[i], enough, threads=max(1, processors() // 2))
            pieces, cut = whole.first(most)
            return pieces, cut, whole.lengths, sentence_keys(pieces)

        with ThreadPoolExecutor(2, thread_name_prefix="tokenise") as pool:
            (src, cut, src_lengths, src_keys), (tgt, more, tgt_lengths, tgt_keys) = pool.map(side, (0, 1))
        self.cut += cut + more
        shorter, longer = np.minimum(src_lengths, tgt_lengths), np.maximum(src_lengths, tgt_lengths)
        wrong = (
            shorter == 0,
            longer + SLACK > MAX_RATIO * (shorter + SLACK),
            src_keys == tgt_keys,
            self._fragments(texts) & (src_keys >= np.uint64(min(self.share * 2**64, 2**64 - 1))),
        )
        left = np.ones(len(shorter), dtype=bool)
        for reason, dropped in zip(FILTERED, wrong, strict=True):
            self.counts[reason] += int((left & dropped).sum())
            left &= ~dropped
        keep = np.flatnonzero(left)
        self.counts["read"] += len(left)
        self.counts["kept"] += len(keep)
        return TokenPairs(src.take(keep), tgt.take(keep), np.stack([src_keys[keep], tgt_keys[keep]])), keep

    def _fragments(self, texts: tuple[list[str], list[str]]) -> np.ndarray:
        """Return which pairs have neither capitals nor a full stop, on both sides (n,) bool."""
        if self.share == 1:
            return np.zeros(len(texts[0]), dtype=bool)
        plain = ([text == text.lower() and not _STOP.search(text) for text in side] for side in texts)
        return np.logical_and(*map(np.array, plain))


# --- token files ---------------------------------------------------------------------------------------------


def _tokenized(
    folder: Path,
    recipe: Recipe,
    corpus: PairCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    on_pairs: Callable[[int], object],
) -> PairCache:
    """Return the pairs of a corpus that pass its filters, none of them held out yet."""
    stem = folder / _key(recipe, corpus, tokenizers[0])
    manifest, pieces, index = (Path(f"{stem}.{suffix}") for suffix in ("json", "pieces", "index"))
    if not manifest.exists():
        dtype = np.dtype(np.uint16 if tokenizers[0].vocab_size <= 1 << 16 else np.uint32)
        rules = LineFilter(recipe, corpus, tokenizers)
        # A pipeline: one chunk is read while the one before is tokenised and the one before that is written.
        with (
            replacing(pieces) as to_pieces,
            replacing(index) as to_index,
            contextlib.closing(ahead(pair_chunks(recipe, corpus, CHUNK_PAIRS))) as chunks,
            contextlib.closing(ahead(map(rules.tokenized, chunks))) as tokenized,
        ):
            writer = PairWriter(to_pieces, to_index, dtype)
            read = 0
            for pairs, _ in tokenized:
                writer.write(pairs.src, pairs.tgt, pairs.keys)
                on_pairs(rules.counts["read"] - read)
                read = rules.counts["read"]
            _check_any(corpus, rules.counts)
        made = {"corpus": corpus.name, "counts": rules.counts, "cut": rules.cut, "dtype": dtype.name}
        write_json(manifest, {"kind": "bitextmine-pair-cache", **made})
    content = read_json(manifest)
    file = PairFile(pieces, index, np.dtype(content["dtype"]))
    return PairCache(corpus, file, file, content["counts"], content["cut"])


def _check_any(corpus: PairCorpus, counts: dict[str, int]) -> None:
    if not counts["read"]:
        raise BitextmineError(f"{corpus.name}: empty: there is no pair to train on")
    if not counts["kept"]:
        reasons = ", ".join(f"{counts[key]} {key}" for key in FILTERED if counts[key])
        raise BitextmineError(
            f"{corpus.name}: none of its {counts['read']} pairs is left after filtering"
            + (f" ({reasons})" if reasons else "")
        )


def _key(recipe: Recipe, corpus: PairCorpus, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256()
    for source in corpus_files(recipe, corpus):
        with explained(f"{source}: cannot read"), source.open() as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
        digest.update(source.path.suffix.encode())  # the suffix decides on decompression
    digest.update(hashlib.sha256(tokenizer.path.read_bytes()).digest())
    rules: list[Any] = [VERSION, recipe.errors, MAX_RATIO, SLACK, recipe.model.max_pieces]
    if tokenizer.transliterate:
        rules.append("romanize" if tokenizer.transliterate == "all" else "transliterate")
    if corpus.fragments != 1:
        rules.append(corpus.fragments)
    digest.update(json.dumps(rules).encode())
    return digest.hexdigest()[:20]


# --- training and held-out pairs -----------------------------------------------------------------------------


def _select(folder: Path, recipe: Recipe, corpora: list[PairCache], run: Run) -> list[PairCache]:
    """Return the corpora with pairs held out."""
    files, valid_pairs = [corpus.train for corpus in corpora], recipe.data.valid_pairs
    rules = json.dumps([VERSION, valid_pairs, *(file.pieces.stem for file in files)])
    stem = str(folder / f"selection-{hashlib.sha256(rules.encode()).hexdigest()[:20]}")
    selection = Path(f"{stem}.json")
    parts = [(Path(f"{stem}.{i}.train"), Path(f"{stem}.{i}.valid")) for i in range(len(files))]
    if not selection.exists():
        with run.progress(3 * sum(map(len, files)), "find repeats", "pairs") as bar:
            content = choose(files, parts, valid_pairs, bar.update)
        write_json(selection, {"kind": "bitextmine-pair-selection", "corpora": content})
    caches = []
    numbers = read_json(selection)["corpora"]
    for corpus, file, paths, chosen in zip(corpora, files, parts, numbers, strict=True):
        lost = {"repeated": chosen["repeated"], "sharing a held-out sentence": chosen["shared"]}
        counts = {**corpus.counts, "kept": chosen["train"] + chosen["valid"], **lost}
        train, valid = (PairFile(file.pieces, path, file.dtype) for path in paths)
        caches.append(PairCache(corpus.corpus, train, valid, counts, corpus.cut))
    return caches
