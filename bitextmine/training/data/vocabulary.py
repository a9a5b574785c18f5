"""Train a SentencePiece vocabulary on a sample of the corpora, balanced over languages."""

import itertools
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from bitextmine.console import progress
from bitextmine.encoder.folder import TOKENIZER
from bitextmine.encoder.tokenizer import Tokenizer, speller
from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import replacing
from bitextmine.files.journal import Journal
from bitextmine.languages.codes import language
from bitextmine.training.data.cache import PairCache, pair_chunks
from bitextmine.training.model.start import Start
from bitextmine.training.recipe import Recipe

log = logging.getLogger(__name__)

# SentencePiece refuses longer sentences itself; bytes.
LONGEST_LINE = 4192
# A line of Chinese has a third of the characters of its translation, and pieces of many lengths.
UNSPACED_LINES = 3
# The largest share of unknown words, for a vocabulary to continue from, without a warning.
MOST_UNKNOWN = 0.03
# With a larger one the language cannot be learned.
UNREADABLE = 0.5


def open_vocabulary(
    recipe: Recipe, work: Path, start: Start | None = None, journal: Journal | None = None
) -> Tokenizer:
    """Return the vocabulary of a run, trained if need be; with ``start`` it is that encoder's.

    It lies in the work folder, so that a finished model in the output folder stays usable meanwhile. The journal of the
    training records that it was made.

    Raises:
        BitextmineError: as `train_vocabulary`, or a corpus cannot be read.
    """
    path, latin = work / TOKENIZER, recipe.model.transliterate
    if start:
        with replacing(path) as file:
            file.write((start.folder / TOKENIZER).read_bytes())
        return Tokenizer(path, latin)
    made = any("vocabulary" in record for record in journal or ())
    if not made or not path.exists():
        wanted = recipe.vocabulary.size
        log.info("training a vocabulary of %d pieces", wanted)
        train_vocabulary(recipe, path, itertools.chain.from_iterable(sample_lines(recipe).values()))
        if (size := Tokenizer(path).vocab_size) < wanted / 2:
            log.warning(
                "the corpora fill a vocabulary of only %d pieces, not %d: add text, or ask for fewer with --vocabulary",
                size,
                wanted,
            )
        if journal is not None:
            journal.append({"vocabulary": wanted}, sync=True)
    return Tokenizer(path, latin)


def sample_lines(recipe: Recipe) -> dict[str, list[str]]:
    """Return up to vocabulary.lines_per_language lines of each language, each line of its corpora equally likely.

    Languages without spaces give UNSPACED_LINES times as many. Reservoir sampling: memory does not grow with the
    corpora.
    """
    lines: dict[str, list[str]] = {lang: [] for corpus in recipe.data.corpora for lang in corpus.langs}
    seen = dict.fromkeys(lines, 0)
    rows, few = {lang: language(lang) for lang in lines}, recipe.vocabulary.lines_per_language
    most = {lang: few * (1 if row is None or row.spaces else UNSPACED_LINES) for lang, row in rows.items()}
    rng = random.Random(recipe.train.seed)
    with progress(None, "sample lines", "pairs") as bar:
        for corpus in recipe.data.corpora:
            for sides in pair_chunks(recipe, corpus, 10_000):
                for pair in zip(*sides, strict=True):
                    for lang, line in zip(corpus.langs, pair, strict=True):
                        seen[lang] += 1
                        if len(lines[lang]) < most[lang]:
                            lines[lang].append(line)
                        elif (slot := int(rng.random() * seen[lang])) < most[lang]:
                            lines[lang][slot] = line
                bar.update(len(sides[0]))
    return lines


def train_vocabulary(recipe: Recipe, path: Path, lines: Iterable[str]) -> None:
    """Train a unigram SentencePiece model of the recipe's size on ``lines`` and write it to ``path``.

    There are no control pieces: sentence vectors need neither begin, end nor padding; piece 0 is the unknown piece. The
    vocabulary is smaller than requested if the lines cannot fill it.

    Raises:
        BitextmineError: SentencePiece cannot train on the lines.
    """
    v = recipe.vocabulary
    kept = list(map(speller(recipe.model.transliterate), filter(str.strip, lines)))
    if not kept:
        raise BitextmineError("the corpora contain no text to train a vocabulary on")
    try:
        with explained(f"{path}: cannot write the vocabulary", "; free some space"), replacing(path) as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(kept),
                model_writer=file,
                vocab_size=v.size,
                model_type="unigram",
                character_coverage=v.coverage,
                max_sentence_length=LONGEST_LINE,
                normalization_rule_name="nmt_nfkc_cf" if v.fold_case else "nmt_nfkc",
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                num_threads=2,
                minloglevel=2,
                hard_vocab_limit=False,
            )
    except RuntimeError as e:
        raise BitextmineError(
            f"recipe: vocabulary.size: SentencePiece could not train {v.size} pieces on {len(kept)} lines: {e}"
        ) from None


def unknown_shares(caches: Sequence[PairCache], tokenizer: Tokenizer) -> dict[str, float]:
    """Return, by language, the unknown share of the pieces with letters, of up to 2,000 pairs of each corpus."""
    lettered = np.array([any(map(str.isalpha, piece)) for piece in tokenizer.pieces()])
    lettered[0] = True  # the unknown piece
    counts: dict[str, np.ndarray] = {}
    for cache in caches:
        sample = cache.train.take(np.arange(min(len(cache.train), 2_000)))
        for lang, side in zip(cache.corpus.langs, (sample.src, sample.tgt), strict=True):
            counts[lang] = counts.get(lang, 0) + np.bincount(side.ids, minlength=len(lettered)) * lettered
    return {lang: float(count[0] / max(1, count.sum())) for lang, count in counts.items()}


def check_unknown(start: Start, shares: Mapping[str, float]) -> None:
    """Warn of languages with words that are unknown to an encoder to continue from; shares: `unknown_shares`.

    Raises:
        BitextmineError: most words of a language are unknown.
    """
    for lang, share in shares.items():
        problem = (
            f"{lang}: {100 * share:.0f}% of the words are unknown to the vocabulary of {start.name}, and nothing is "
            "learned from them: train from scratch, without --from (train/new-language.md)"
        )
        if share > UNREADABLE:
            raise BitextmineError(problem)
        if share > MOST_UNKNOWN:
            log.warning("%s", problem)
