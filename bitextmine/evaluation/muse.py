"""P@1 by the rules of MUSE's sent_translation task (Lample et al., 2018), on two files aligned line by line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.bench import RankingOptions, open_bench
from bitextmine.evaluation.precision import RetrievalReport, RetrievalResult, results_of
from bitextmine.evaluation.ranking import rank_muse
from bitextmine.files.corpora import corpus_language
from bitextmine.files.lines import iter_lines
from bitextmine.files.storage import place
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["MUSE_KEYS", "MUSE_LINES", "MUSE_QUERIES", "MUSE_SEED", "evaluate_muse", "muse_keys"]

# facebookresearch/MUSE, src/evaluation/sent_translation.py and evaluator.py
MUSE_LINES = 800_000
MUSE_KEYS = 200_000
MUSE_QUERIES = 2_000
MUSE_SEED = 1234


def evaluate_muse(
    src_file: str | os.PathLike[str],
    tgt_file: str | os.PathLike[str],
    ranking: RankingOptions | None = None,
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    work: str | os.PathLike[str] | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    memory: int | None = None,
    errors: str = "strict",
) -> RetrievalReport:
    """P@1 both ways by cosine, ratio margin and CSLS, with 95% intervals.

    Line i of one file is the translation of line i of the other, every sentence of the pool is a candidate, and
    neighbourhoods are taken among the queries.

    It calls for more than 200,000 lines; with fewer the report says so. work: a folder to keep texts and embeddings in,
    so that the next run with the same model need not encode them again. memory: bytes that each search may take
    (default: half of what is free).

    Raises UsageError where the scorer is asked for, which needs candidates, BitextmineError for files that are not
    aligned, or of which the languages cannot be told or are the same.
    """
    ranking = ranking or RankingOptions()
    if ranking.rescore:
        raise UsageError("--rescore goes with --queries: MUSE's protocol has no candidates to score again")
    files = (src_file, tgt_file)
    with open_bench(model, work, device, batch_tokens, memory) as bench:
        names = (place(src_file).name, place(tgt_file).name)
        sides = [
            corpus_language(path, lang, option)
            for path, lang, option in zip(
                files, (src_lang, tgt_lang), ("--src-lang", "--tgt-lang"), strict=True
            )
        ]
        if sides[0] == sides[1]:
            raise BitextmineError(f"{names[0]} and {names[1]} are both in '{sides[0]}'; give two languages")
        *keys, at, sentences = muse_keys(iter_lines(src_file, errors), iter_lines(tgt_file, errors), names)
        notes = []
        if len(keys[0]) < MUSE_KEYS:
            notes.append(
                f"{sentences:,} sentences are left of {names[0]} and {names[1]}, fewer than the {MUSE_KEYS:,} of "
                f"MUSE's protocol: this is {len(at):,} against {len(keys[0]):,}, not {MUSE_QUERIES:,} against 200k"
            )
        vectors = [bench.embed(f"muse.{lang}", side, lang)[1] for lang, side in zip(sides, keys, strict=True)]
        results: list[RetrievalResult] = []
        for i, j in ((0, 1), (1, 0)):
            ranked = rank_muse(
                np.ascontiguousarray(vectors[i][at]),
                vectors[j],
                k=ranking.k,
                csls=ranking.csls,
                device=bench.device,
                memory=memory,
            )
            results += results_of(sides[i], sides[j], ranked, at, len(keys[j]), ranking.k, ranking.csls)
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
    """MUSE's sent_translation: the keys of both sides (aligned) and the positions of the queries among them.

    The first 800,000 lines, lowercased and split at white space; only the first of equal sentences on the
    source side is kept, then on the target side (so the order of the two matters, as it does there);
    shuffled by RandomState(1234); the first 200,000 are the keys, RandomState(1234).choice(200000, 2000,
    replace=False) the queries. With fewer sentences than that, all are keys, and up to 2,000 of them
    queries. Returns (source keys, target keys, query positions int64, how many sentences there were before
    the cut at 200,000).

    Raises BitextmineError when one side has more lines than the other, and when nothing is left.
    """
    pairs: list[tuple[str, str]] = []
    count = 0
    for count, (s, t) in enumerate(itertools.zip_longest(_first(src_lines), _first(tgt_lines)), start=1):
        if s is None or t is None:
            shorter = names[0] if s is None else names[1]
            raise BitextmineError(
                f"{names[0]} and {names[1]} are not aligned: {shorter} ends after {count - 1} lines, the other goes on"
            )
        pairs.append((_muse_form(s), _muse_form(t)))
    # np.unique(..., return_index=True): sorted, each at its first occurrence. "\0" between the tokens sorts
    # the joined strings as the lists of tokens sort.
    for which in (0, 1):
        first: dict[str, tuple[str, str]] = {}
        for pair in pairs:
            first.setdefault(pair[which], pair)
        pairs = [first[sentence] for sentence in sorted(first)]
    if not pairs:
        raise BitextmineError(f"{names[0]}: no sentence in it")
    order = np.random.RandomState(MUSE_SEED).permutation(len(pairs))
    kept = [pairs[i] for i in order[:MUSE_KEYS].tolist()]
    queries = np.random.RandomState(MUSE_SEED).choice(
        len(kept), size=min(MUSE_QUERIES, len(kept)), replace=False
    )
    src_keys, tgt_keys = ([pair[i].replace("\0", " ") for pair in kept] for i in (0, 1))
    return src_keys, tgt_keys, queries.astype(np.int64), len(pairs)


def _first(lines: Iterable[str]) -> Iterator[str]:
    return itertools.islice(lines, MUSE_LINES)


def _muse_form(line: str) -> str:
    return "\0".join(line.lower().split())
