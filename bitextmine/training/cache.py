"""Tokenised pairs on disk: made once per text and vocabulary, and of these what a recipe trains on and holds out."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import logging
import re
from pathlib import Path

from bitextmine.console import counted, progress
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import remove_left
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.languages import identify as languages
from bitextmine.training.pairfile import PairFile
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.selection import choose
from bitextmine.training.staging import staged_folder
from bitextmine.training.tokenizing import FILTERED, FORM, TokenizedCorpus, tokenized_corpus

__all__ = ["DROPPED", "PairCache", "open_caches"]

log = logging.getLogger(__name__)

# What `staging` calls a token file, its manifest or a selection until it is complete; the folder may hold other files.
_HALF_MADE = re.compile(r"\.([0-9a-f]{20}\.(pieces|index|json)|selection-[0-9a-f]{20})(\.\d+)?\.tmp")

# Why a pair is not trained on, in the order in which it is asked.
DROPPED = (*FILTERED, "repeated", "sharing a held-out sentence")


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
        known = functools.cache(lambda: languages.Languages("data.language_filter"))
        with progress(None, "tokenise", "pairs", show_progress) as bar:
            files = [
                tokenized_corpus(folder, recipe, number, tokenizer, known, bar.update)
                for number in range(1, len(recipe.data.corpora) + 1)
            ]
        caches = _select(folder, recipe, files, show_progress)
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


def _sweep(folder: Path) -> None:
    """Removes what killed runs left half made: the next run may be of another recipe, and would not write the same."""
    for path in folder.glob(".*.tmp"):
        if _HALF_MADE.fullmatch(path.name):
            remove_left(path, folder=path.is_dir())


def _select(
    folder: Path, recipe: Recipe, files: list[TokenizedCorpus], show_progress: bool | None
) -> list[PairCache]:
    d = recipe.data
    rules = json.dumps([FORM, d.deduplicate, d.valid_pairs, *(file.stem.name for file in files)])
    place = folder / f"selection-{hashlib.sha256(rules.encode()).hexdigest()[:20]}"
    manifest = place / "selection.json"
    if not manifest.exists():
        passes = 2 + d.deduplicate
        total = passes * sum(len(file.pairs) for file in files)
        with (
            progress(total, "find repeats" if d.deduplicate else "hold out", "pairs", show_progress) as bar,
            staged_folder(place) as made,
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
