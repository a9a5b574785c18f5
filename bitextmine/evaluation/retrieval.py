"""P@1 in pools: how often the best sentence of a pool is the translation.

The sentences are given in several languages (the queries), each language's with further sentences that translate none
of them (the distractors); a query of one language is looked up in the whole pool of another, and only its own
translation counts. The candidates of a pool, all of them, can be scored again by the scorer of `mine --rescore` (which
there scores the best of each line alone). The other protocol is in `muse`.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import a_path
from bitextmine.evaluation.bench import Bench, RankingOptions, open_bench
from bitextmine.evaluation.pools import (
    Queries,
    find_distractors,
    language_pairs,
    queries_of,
    read_queries,
    sentences_of,
)
from bitextmine.evaluation.precision import RetrievalReport, RetrievalResult, results_of
from bitextmine.evaluation.ranking import rank_in_pool
from bitextmine.files.lines import iter_lines
from bitextmine.mining.dedup import Unique, unique_lines
from bitextmine.mining.packing import packed_rows
from bitextmine.mining.scorer import Rescorer, Scoring, open_scoring, row_pieces
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["Distractors", "evaluate_retrieval"]

# A folder of files, or sentences by language.
Distractors = str | os.PathLike[str] | Mapping[str, Iterable[str]]


def evaluate_retrieval(
    queries: str | os.PathLike[str] | Mapping[str, Sequence[str]],
    distractors: Distractors | None = None,
    ranking: RankingOptions | None = None,
    *,
    pairs: str = "all",
    pivot: str | None = "en",
    model: str | os.PathLike[str] | Encoder = "default",
    work: str | os.PathLike[str] | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    memory: int | str | None = None,
    errors: str = "strict",
) -> RetrievalReport:
    """P@1 by cosine, ratio margin and CSLS, with 95% intervals.

    queries: a TSV file with a header of languages, one sentence per row in each, or for each language a list of its
    sentences. distractors: a folder of ``distractors.LANG.txt`` files, plain or compressed, or for each language its
    sentences. The pool of a language is its queries and its distractors, equal sentences once. pairs: ``en-fr,fr-en``,
    or ``all``, which is both ways between the pivot and each other language (the first language for "en" where
    there is no English; every pair, where it is None). The neighbourhood of a target is taken from the whole pool of
    the source language, and the margins, and the scorer where it is asked for, choose among the nearest by cosine.

    work: a folder to keep the pools' text and embeddings in, so that the next run with the same model need
    not encode them again; without it they go to a temporary folder. memory: bytes that each search may take (default:
    half of what is free). Raises BitextmineError for input that does not fit.
    """
    ranking = ranking or RankingOptions()
    if isinstance(queries, Mapping):
        asked = queries_of(queries)
    else:
        asked = read_queries(a_path("queries", queries), errors)
    if distractors is not None and not isinstance(distractors, Mapping):
        a_path("distractors", distractors)
    directions = language_pairs(pairs, asked.languages, pivot)
    with open_bench(model, work, device, batch_tokens, memory) as bench:
        # Before the work: not every encoder has pieces to compare.
        scoring = open_scoring(bench.encoder, model, ranking.rescore)
        pools, notes = _pools(bench, asked, distractors, directions, errors)
        rescorer = None if scoring is None else _rescorer(pools, scoring)
        results: list[RetrievalResult] = []
        for src, tgt in directions:
            results += _direction(bench, ranking, len(asked), (src, pools[src]), (tgt, pools[tgt]), rescorer)
    return RetrievalReport(
        tuple(results),
        signature(
            task="retrieval",
            protocol="pools",
            queries=len(asked),
            pools=",".join(f"{lang}={len(pool.unique.rows)}" for lang, pool in pools.items()),
            k=ranking.k,
            csls=ranking.csls,
            candidates=ranking.candidates,
            neighbourhood="source-pool",
            interval="wilson-95",
            model=bench.encoder.hash,
            **({} if scoring is None else {"scorer": scoring.scorer.hash}),
        ),
        tuple(notes),
    )


@dataclass(frozen=True)
class _Pool:
    """A language's sentences, each once; the first rows of `unique` are those of the queries, in their
    order.
    """

    text: Path
    vectors: NDArray
    unique: Unique


# Makes a scorer out of two languages and rows of their pools.
_RescorerOf = Callable[[str, str, NDArray[np.int64], NDArray[np.int64]], Rescorer]


def _pools(
    bench: Bench,
    asked: Queries,
    distractors: Distractors | None,
    directions: Sequence[tuple[str, str]],
    errors: str,
) -> tuple[dict[str, _Pool], list[str]]:
    """The pools of all languages that are looked at, and what a person should know about them."""
    pools: dict[str, _Pool] = {}
    notes = []
    for lang in dict.fromkeys(lang for pair in directions for lang in pair):
        extra = None if distractors is None else _distractors(distractors, lang, errors)
        if distractors is not None and extra is None:
            here = "" if isinstance(distractors, Mapping) else f".{lang}.txt in {distractors}"
            notes.append(f"{lang}: no distractors{here}: its pool is the queries alone")
        text, matrix = bench.embed(f"pool.{lang}", itertools.chain(asked.sentences[lang], extra or ()), lang)
        unique = unique_lines(iter_lines(text))
        pools[lang] = _Pool(text, packed_rows(matrix, unique.rows, bench.folder), unique)
        repeated = unique.lines - len(unique.rows)
        if repeated:
            notes.append(f"{lang}: {repeated:,} blank or repeated sentences left out of the pool")
    for lang in distractors if isinstance(distractors, Mapping) else ():
        if lang not in pools:
            notes.append(f"{lang}: distractors not used: no direction from or to this language is measured")
    return pools, notes


def _distractors(given: Distractors, lang: str, errors: str) -> Iterable[str] | None:
    """The further sentences of a language, each on one line; None where there are none."""
    if isinstance(given, Mapping):
        return sentences_of(given[lang], "distractors", lang) if lang in given else None
    path = find_distractors(given, lang)
    return None if path is None else iter_lines(path, errors)


def _rescorer(pools: Mapping[str, _Pool], scoring: Scoring) -> _RescorerOf:
    pieces = {
        lang: row_pieces(iter_lines(pool.text), pool.unique, scoring.encoder) for lang, pool in pools.items()
    }
    return lambda src, tgt, rows, targets: Rescorer(
        scoring.pieces,
        pieces[src].take(rows),
        pieces[tgt].take(targets),
        scoring.scorer,
        sizes=(len(pieces[src]), len(pieces[tgt])),
    )


def _direction(
    bench: Bench,
    ranking: RankingOptions,
    queries: int,
    source: tuple[str, _Pool],
    target: tuple[str, _Pool],
    rescorer: _RescorerOf | None,
) -> list[RetrievalResult]:
    """P@1 from one language to another, by each measure."""
    (src, src_pool), (tgt, tgt_pool) = source, target
    query_rows = src_pool.unique.line_to_row[:queries]
    ranked = rank_in_pool(
        np.ascontiguousarray(src_pool.vectors[query_rows]),
        tgt_pool.vectors,
        src_pool.vectors,
        k=ranking.k,
        csls=ranking.csls,
        candidates=ranking.candidates,
        device=bench.device,
        memory=bench.memory,
        rescorer=None if rescorer is None else functools.partial(rescorer, src, tgt),
        query_rows=None if rescorer is None else query_rows,
    )
    gold = tgt_pool.unique.line_to_row[:queries]
    return results_of(src, tgt, ranked, gold, len(tgt_pool.unique.rows), ranking.k, ranking.csls)
