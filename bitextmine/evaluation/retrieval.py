"""P@1 in pools: how often the best sentence of a pool is the translation.

The queries are sentences in several languages, and each language has further sentences that translate none of them
(the distractors). A query of one language is looked up in the whole pool of another, where only its own translation
counts. `muse` has the other protocol.
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
from bitextmine.evaluation.bench import Bench, open_bench
from bitextmine.evaluation.pools import (
    Queries,
    find_distractors,
    language_pairs,
    queries_of,
    read_queries,
    sentences_of,
)
from bitextmine.evaluation.ranking import (
    RankingOptions,
    RetrievalReport,
    RetrievalResult,
    rank_in_pool,
    results_of,
)
from bitextmine.files.corpus import Corpus
from bitextmine.files.lines import iter_lines
from bitextmine.mining.dedup import Unique, unique_lines
from bitextmine.mining.scorer import Rescorer, Scoring, Sentences, open_scoring
from bitextmine.mining.sides import packed_rows
from bitextmine.run import Run
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

FileName = str | os.PathLike[str]
# A file or folder, or sentences by language.
QueriesLike = FileName | Mapping[str, Sequence[str]]
Distractors = FileName | Mapping[str, Iterable[str]]


def evaluate_retrieval(
    queries: Mapping[str, Sequence[str]] | FileName,
    distractors: Mapping[str, Iterable[str]] | FileName | None = None,
    *,
    pairs: str = "all",
    pivot: str | None = "en",
    model: FileName | Encoder = "default",
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    rescore: bool = False,
    device: str = "auto",
    memory: int | str | None = None,
) -> RetrievalReport:
    """Measure P@1, how often the best sentence of a pool is the translation, as ``evaluate retrieval`` does.

    `queries` are lists of sentences by language, row i of each a translation of row i of the others, or a TSV file with
    a header of languages. `distractors` are further sentences by language, which translate none of the queries, or a
    folder of ``distractors.LANG.txt`` files. `pairs` are directions, as "en-fr,fr-en"; "all" means to and from `pivot`
    (the first language for "en" if there is no English; None: every pair). `k` and `csls` are the neighbours of ratio
    margin and CSLS, which choose among the `candidates` nearest by cosine; `rescore` measures the scorer of `mine`,
    too. `memory` limits each search, in bytes or as text such as "2G" (default: half of what is free).

    Returns:
        A report with results (src, tgt, measure, p_at_1, low, high, correct, queries, pool; shares from 0 to 1, with
        95% intervals), ``to_frame()``, ``to_dict()``, ``to_table()``, signature and notes. Nothing is left on disk.

    Raises:
        BitextmineError: lists of different lengths, an empty sentence, or an unknown direction.
        UsageError: an argument of the wrong type.

    >>> queries = {"en": ["Good morning.", "I do not eat meat."], "fr": ["Bonjour.", "Je ne mange pas de viande."]}
    >>> report = evaluate_retrieval(queries, {"fr": ["Le train pour Paris part à midi."]}, pairs="en-fr")
    >>> report.to_frame()[["measure", "p_at_1", "queries", "pool"]].to_dict("list")
    {'measure': ['cosine', 'ratio-4', 'csls-10'], 'p_at_1': [1.0, 1.0, 1.0], 'queries': [2, 2, 2], 'pool': [3, 3, 3]}
    """
    ranking = RankingOptions(k, csls, candidates, rescore)
    run = Run(device, memory=memory)  # type: ignore[arg-type]  # text is parsed
    return evaluate_pools(queries, distractors, ranking, run, pairs=pairs, pivot=pivot, model=model)


def evaluate_pools(
    queries: QueriesLike,
    distractors: Distractors | None,
    ranking: RankingOptions,
    run: Run,
    *,
    pairs: str = "all",
    pivot: str | None = "en",
    model: FileName | Encoder = "default",
    work: FileName | None = None,
) -> RetrievalReport:
    """Measure P@1 as `evaluate_retrieval` does.

    The pool of a language is its queries and distractors, equal sentences once. The neighbourhood of a target is taken
    from the whole pool of the source language. `work` is a folder that keeps the pools' text and embeddings for the
    next run with the same model.
    """
    if isinstance(queries, Mapping):
        asked = queries_of(queries)
    else:
        asked = read_queries(a_path("queries", queries), run.errors)
    if distractors is not None and not isinstance(distractors, Mapping):
        a_path("distractors", distractors)
    directions = language_pairs(pairs, asked.languages, pivot)
    with open_bench(model, work, run) as bench:
        # Before the work: not every encoder has pieces to compare.
        scoring = open_scoring(bench.encoder, model, ranking.rescore)
        pools, notes = _pools(bench, asked, distractors, directions)
        rescorer = None if scoring is None else _rescorer(pools, scoring)
        results = [
            result
            for direction in directions
            for result in _direction(pools, direction, len(asked), ranking, run, rescorer)
        ]
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
    """The distinct sentences of a language; the queries come first."""

    text: Path
    vectors: NDArray
    unique: Unique


# Makes a scorer from two languages and rows of their pools.
_RescorerOf = Callable[[str, str, NDArray[np.int64], NDArray[np.int64]], Rescorer]


def _pools(
    bench: Bench, asked: Queries, distractors: Distractors | None, directions: Sequence[tuple[str, str]]
) -> tuple[dict[str, _Pool], list[str]]:
    """Return the pools of all languages in the directions, and notes on them."""
    pools: dict[str, _Pool] = {}
    notes = []
    for lang in dict.fromkeys(lang for pair in directions for lang in pair):
        extra = None if distractors is None else _distractors(distractors, lang, bench.run.errors)
        if distractors is not None and extra is None:
            here = "" if isinstance(distractors, Mapping) else f".{lang}.txt in {distractors}"
            notes.append(f"{lang}: no distractors{here}: its pool is the queries alone")
        text, matrix = bench.embed(f"pool.{lang}", itertools.chain(asked.sentences[lang], extra or ()), lang)
        unique = unique_lines(iter_lines(text))
        pools[lang] = _Pool(text, packed_rows(matrix, unique.rows, bench.folder), unique)
        if repeated := unique.lines - len(unique.rows):
            notes.append(f"{lang}: {repeated:,} blank or repeated sentences left out of the pool")
    for lang in distractors if isinstance(distractors, Mapping) else ():
        if lang not in pools:
            notes.append(f"{lang}: distractors not used: no direction from or to this language is measured")
    return pools, notes


def _distractors(given: Distractors, lang: str, errors: str) -> Iterable[str] | None:
    if isinstance(given, Mapping):
        return sentences_of(given[lang], "distractors", lang) if lang in given else None
    path = find_distractors(given, lang)
    return None if path is None else iter_lines(path, errors)


def _rescorer(pools: Mapping[str, _Pool], scoring: Scoring) -> _RescorerOf:
    from bitextmine.embeddings.embed import corpus_pieces

    pieces = {
        lang: Sentences(corpus_pieces(Corpus(pool.text), scoring.encoder), pool.unique.rows)
        for lang, pool in pools.items()
    }
    return lambda src, tgt, rows, targets: Rescorer(
        scoring.pieces,
        pieces[src].take(rows),
        pieces[tgt].take(targets),
        scoring.scorer,
        sizes=(len(pieces[src]), len(pieces[tgt])),
    )


def _direction(
    pools: Mapping[str, _Pool],
    direction: tuple[str, str],
    queries: int,
    ranking: RankingOptions,
    run: Run,
    rescorer: _RescorerOf | None,
) -> list[RetrievalResult]:
    """Return P@1 from one language to another, by each measure."""
    src, tgt = (pools[lang] for lang in direction)
    query_rows = src.unique.line_to_row[:queries]
    asked = np.ascontiguousarray(src.vectors[query_rows])
    scorer = None if rescorer is None else functools.partial(rescorer, *direction)
    ranked = rank_in_pool(asked, tgt.vectors, src.vectors, ranking, run, scorer, query_rows)
    gold = tgt.unique.line_to_row[:queries]
    return results_of(direction, ranked, gold, len(tgt.unique.rows), ranking)
