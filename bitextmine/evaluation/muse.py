"""P@1 by the rules of MUSE's sent_translation task (Lample et al., 2018), on two files aligned line by line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.bench import open_bench
from bitextmine.evaluation.ranking import RankingOptions, RetrievalReport, rank_muse, results_of
from bitextmine.files.corpora import corpus_language
from bitextmine.files.lines import iter_lines
from bitextmine.files.storage import place
from bitextmine.run import Run
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

# facebookresearch/MUSE, src/evaluation/sent_translation.py and evaluator.py
MUSE_LINES = 800_000
MUSE_KEYS = 200_000
MUSE_QUERIES = 2_000
MUSE_SEED = 1234

FileName = str | os.PathLike[str]


def evaluate_muse(
    files: tuple[FileName, FileName],
    langs: tuple[str | None, str | None],
    ranking: RankingOptions,
    run: Run,
    *,
    model: FileName | Encoder = "default",
    work: FileName | None = None,
) -> RetrievalReport:
    """Measure P@1 both ways, where line i of one file is the translation of line i of the other.

    Every sentence of the pool is a candidate, and neighbourhoods are taken among the queries. The protocol needs more
    than 200,000 lines; with fewer the report says so. Languages default to those of the file names. `work` is a folder
    that keeps texts and embeddings for the next run with the same model.

    Raises:
        UsageError: the scorer, which needs candidates, is asked for.
        BitextmineError: the files are not aligned, or their languages are unknown or the same.
    """
    if ranking.rescore:
        raise UsageError("--rescore goes with --queries: MUSE's protocol has no candidates to score again")
    names = place(files[0]).name, place(files[1]).name
    options = "--src-lang", "--tgt-lang"
    sides = [corpus_language(*each) for each in zip(files, langs, options, strict=True)]
    if sides[0] == sides[1]:
        raise BitextmineError(f"{names[0]} and {names[1]} are both in '{sides[0]}'; give two languages")
    results, notes = [], []
    with open_bench(model, work, run) as bench:
        *keys, at, sentences = muse_keys(
            iter_lines(files[0], run.errors), iter_lines(files[1], run.errors), names
        )
        if len(keys[0]) < MUSE_KEYS:
            notes.append(
                f"{sentences:,} sentences are left of {names[0]} and {names[1]}, fewer than the {MUSE_KEYS:,} of "
                f"MUSE's protocol: this is {len(at):,} against {len(keys[0]):,}, not {MUSE_QUERIES:,} against 200k"
            )
        vectors = [bench.embed(f"muse.{lang}", side, lang)[1] for lang, side in zip(sides, keys, strict=True)]
        for i, j in ((0, 1), (1, 0)):
            ranked = rank_muse(np.ascontiguousarray(vectors[i][at]), vectors[j], ranking, run)
            results += results_of((sides[i], sides[j]), ranked, at, len(keys[j]), ranking)
    return RetrievalReport(
        tuple(results),
        signature(
            task="retrieval",
            protocol="muse-sent-translation",
            queries=len(at),
            keys=len(keys[0]),
            case="lower",
            k=ranking.k,
            csls=ranking.csls,
            candidates="all",
            neighbourhood="queries",
            interval="wilson-95",
            model=bench.encoder.hash,
        ),
        tuple(notes),
    )


def muse_keys(
    src_lines: Iterable[str], tgt_lines: Iterable[str], names: tuple[str, str]
) -> tuple[list[str], list[str], NDArray[np.int64], int]:
    """Return the keys of both sides and the queries as MUSE's sent_translation chooses them.

    The first 800,000 lines, lowercased and split at white space; only the first of equal sentences on the source side
    is kept, then on the target side (so the order of the two matters, as it does there); shuffled by
    RandomState(1234); the first 200,000 are the keys, RandomState(1234).choice(200000, 2000, replace=False) the
    queries. With fewer sentences all are keys, and up to 2,000 of them queries.

    Returns:
        Source keys, target keys (aligned), positions of the queries among them (int64), and the number of sentences
        before the cut at 200,000.

    Raises:
        BitextmineError: one side has more lines than the other, or no sentence is left.
    """
    pairs: list[tuple[str, str]] = []
    first_lines = (itertools.islice(lines, MUSE_LINES) for lines in (src_lines, tgt_lines))
    for count, (s, t) in enumerate(itertools.zip_longest(*first_lines)):
        if s is None or t is None:
            raise BitextmineError(
                f"{names[0]} and {names[1]} are not aligned: {names[0 if s is None else 1]} ends after {count} lines, "
                "the other goes on"
            )
        pairs.append((_muse_form(s), _muse_form(t)))
    # As np.unique(..., return_index=True): sorted, each at its first occurrence. "\0" between the tokens sorts the
    # joined strings as the lists of tokens sort.
    for which in (0, 1):
        first: dict[str, tuple[str, str]] = {}
        for pair in pairs:
            first.setdefault(pair[which], pair)
        pairs = [first[sentence] for sentence in sorted(first)]
    if not pairs:
        raise BitextmineError(f"{names[0]}: no sentence in it")
    order = np.random.RandomState(MUSE_SEED).permutation(len(pairs))
    kept = [pairs[i] for i in order[:MUSE_KEYS].tolist()]
    size = min(MUSE_QUERIES, len(kept))
    queries = np.random.RandomState(MUSE_SEED).choice(len(kept), size=size, replace=False)
    src_keys, tgt_keys = ([pair[i].replace("\0", " ") for pair in kept] for i in (0, 1))
    return src_keys, tgt_keys, queries.astype(np.int64), len(pairs)


def _muse_form(line: str) -> str:
    return "\0".join(line.lower().split())
