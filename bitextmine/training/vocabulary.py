"""Training a SentencePiece vocabulary on a sample of the corpora, balanced over their languages."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import sentencepiece

from bitextmine.console import progress
from bitextmine.encoder.folder import TOKENIZER
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing
from bitextmine.files.storage import Remote
from bitextmine.training.growing import grown_vocabulary
from bitextmine.training.pairs import pair_chunks
from bitextmine.training.recipe import Corpus, Recipe
from bitextmine.training.start import Start

__all__ = ["content_pieces", "open_vocabulary", "sample_lines", "train_vocabulary"]

log = logging.getLogger(__name__)

# SentencePiece refuses longer sentences itself; bytes.
LONGEST_LINE = 4192


def open_vocabulary(recipe: Recipe, work: Path, start: Start | None = None) -> Tokenizer:
    """The run's vocabulary, in its work folder: a model that is already in the folder of the model stays usable
    meanwhile. Made where the one that lies there is of another recipe or of other corpora. That of ``start``, and what
    it grew by, where training goes on from an encoder.

    Raises BitextmineError as `train_vocabulary` does, and for corpora that cannot be read.
    """
    path = work / TOKENIZER
    given = start.folder / TOKENIZER if start else recipe.vocabulary.tokenizer
    if given and not recipe.vocabulary.grow:
        source = Tokenizer(recipe.path(os.fspath(given)) if start is None else given).path
        if source.resolve() != path.resolve():
            with replacing(path) as file:
                file.write(source.read_bytes())
        return Tokenizer(path)
    # The note says for which recipe and data the vocabulary was made: another one must not use it.
    note = work / "vocabulary.json"
    digest = start.digest(recipe) if start else recipe.digest()
    made_for = json.dumps([digest, [_sizes(recipe, corpus) for corpus in recipe.data.corpora]])
    if not (path.exists() and note.exists() and note.read_text(encoding="utf-8") == made_for):
        note.unlink(missing_ok=True)
        if start:
            _grow(recipe, start, path)
            with replacing(note) as file:
                file.write(made_for.encode())
            return Tokenizer(path)
        log.info("training a vocabulary of %d pieces", recipe.vocabulary.size)
        lines = sample_lines(recipe)
        train_vocabulary(recipe, path, (line for part in lines.values() for line in part))
        with replacing(note) as file:
            file.write(made_for.encode())
        found = Tokenizer(path).vocab_size
        if found < recipe.vocabulary.size / 2:
            log.warning(
                "the corpora fill a vocabulary of %d pieces only, not of %d: give more text, or ask for fewer with "
                "--vocabulary",
                found,
                recipe.vocabulary.size,
            )
    return Tokenizer(path)


def _grow(recipe: Recipe, start: Start, path: Path) -> None:
    """Writes the vocabulary of ``start`` with new pieces of the corpora to ``path``."""
    fresh = path.with_name("new-pieces.model")
    lines = sample_lines(recipe)
    train_vocabulary(recipe, fresh, (line for part in lines.values() for line in part))
    grown, count = grown_vocabulary(start.tokenizer, Tokenizer(fresh), recipe.vocabulary.grow)
    with replacing(path) as file:
        file.write(grown)
    fresh.unlink()
    log.info("%d new pieces in a vocabulary of %d", count, start.config.vocab_size)


def _sizes(recipe: Recipe, corpus: Corpus) -> list[int]:
    paths = [recipe.corpus(name) for name in corpus.files]
    try:
        return [path.size() if isinstance(path, Remote) else path.stat().st_size for path in paths]
    except OSError as e:
        raise BitextmineError(f"{paths[0]}: cannot be read: {e.strerror}") from None


def sample_lines(recipe: Recipe, show_progress: bool | None = None) -> dict[str, list[str]]:
    """Up to vocabulary.lines_per_language lines of each language, every line of its corpora with the same chance
    (reservoir sampling: memory does not grow with the corpora). ``show_progress``: None shows a bar on a terminal."""
    wanted = recipe.vocabulary.lines_per_language
    lines: dict[str, list[str]] = {lang: [] for corpus in recipe.data.corpora for lang in corpus.langs}
    seen = dict.fromkeys(lines, 0)
    rng = random.Random(recipe.train.seed)
    with progress(None, "sample lines", "pairs", show_progress) as bar:
        for corpus in recipe.data.corpora:
            for sides in pair_chunks(recipe, corpus, 10_000):
                for pair in zip(*sides, strict=True):
                    for lang, line in zip(corpus.langs, pair, strict=True):
                        sample = lines[lang]
                        seen[lang] += 1
                        if len(sample) < wanted:
                            sample.append(line)
                        elif (slot := int(rng.random() * seen[lang])) < wanted:
                            sample[slot] = line
                bar.update(len(sides[0]))
    return lines


def train_vocabulary(recipe: Recipe, path: Path, lines: Iterable[str]) -> None:
    """Trains a SentencePiece model of the recipe's size and type on ``lines`` and writes it to ``path``.

    No control pieces: sentence vectors need neither begin, end nor padding; piece 0 is the unknown one. A
    unigram vocabulary is smaller than asked where the lines cannot fill it; for BPE that is an error.
    Raises BitextmineError when SentencePiece cannot make a vocabulary of the lines.
    """
    v = recipe.vocabulary
    kept = [line for line in lines if line.strip()]
    if not kept:
        raise BitextmineError("the corpora hold no text to train a vocabulary on")
    try:
        with replacing(path) as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(kept),
                model_writer=file,
                vocab_size=v.size,
                model_type=v.type,
                character_coverage=v.coverage,
                max_sentence_length=LONGEST_LINE,
                normalization_rule_name="nmt_nfkc_cf" if v.fold_case else "nmt_nfkc",
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                num_threads=2,
                minloglevel=2,
                hard_vocab_limit=v.type != "unigram",
            )
    except OSError as e:
        raise BitextmineError(
            f"{path}: cannot write the vocabulary: {e.strerror or e}; free some space"
        ) from None
    except RuntimeError as e:
        raise BitextmineError(
            f"recipe: vocabulary.size: SentencePiece could not train {v.size} pieces on {len(kept)} lines: {e}"
        ) from None


def content_pieces(tokenizer: Tokenizer) -> np.ndarray:
    """(V,) bool, the pieces with a letter or a digit in them: those worth predicting."""
    return np.array([any(map(str.isalnum, piece)) for piece in tokenizer.pieces()])
