"""P@1 in pools: how often the best sentence of a pool is the translation.

The queries are sentences in several languages, and each language has further sentences that translate none of them
(the distractors). A query of one language is looked up in the whole pool of another, where only its own translation
counts. `evaluate_muse` has the other protocol.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import a_path
from bitextmine.declarations import keywords
from bitextmine.embeddings.selection import SelectedVectors
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.options import RankingOptions
from bitextmine.evaluation.pools import (
    Queries,
    find_distractors,
    language_pairs,
    queries_of,
    read_queries,
    sentences_of,
)
from bitextmine.evaluation.ranking import (
    CANDIDATES,
    CSLS,
    SECOND_WEIGHT,
    RetrievalReport,
    RetrievalResult,
    rank_in_pool,
    results_of,
)
from bitextmine.evaluation.report import FileName
from bitextmine.files.corpus import Corpus, corpus_language
from bitextmine.files.source import Source
from bitextmine.mining.dedup import Unique, unique_lines
from bitextmine.mining.piece_features import Sentences
from bitextmine.mining.scorer import Rescorer, Scoring, open_scoring
from bitextmine.mining.sides import packed_rows
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

Distractors = FileName | Mapping[str, Iterable[str]]


@keywords
def evaluate_retrieval(
    queries: FileName | Mapping[str, Sequence[str]],
    distractors: Distractors | None = None,
    *,
    pairs: str = "all",
    model: FileName | Encoder = "auto",
    options: RankingOptions,
    run: Run,
) -> RetrievalReport:
    """Measure P@1, how often the best sentence of a pool is the translation, as ``evaluate retrieval`` does.

    The pool of a language is its queries and distractors, equal sentences once. The neighbourhood of a target is taken
    from the whole pool of the source language.

    Args:
        queries: lists of sentences by language, row i of each a translation of row i of the others, or a TSV file with
            a header of languages.
        distractors: further sentences by language, which translate none of the queries, or a folder of
            ``distractors.LANG.txt`` files.
        pairs: directions, as "en-fr,fr-en"; "all" means to and from English, or the first language without it.
        model: an encoder, or the name of one.
        options: the measures; or its fields, such as ``k`` and ``rescore``, as keywords.
        run: resources; or its fields, such as ``device``.

    Returns:
        A report with results (src, tgt, measure, p_at_1, low, high, correct, queries, pool; shares from 0 to 1, with
        95% intervals), ``to_frame()``, ``to_dict()``, ``to_table()``, signature and notes.

    Raises:
        BitextmineError: lists of different lengths, an empty sentence, or an unknown direction.
        UsageError: an argument of the wrong type.

    >>> queries = {"en": ["Good morning.", "I do not eat meat."], "fr": ["Bonjour.", "Je ne mange pas de viande."]}
    >>> report = evaluate_retrieval(queries, {"fr": ["Le train pour Paris part à midi."]}, pairs="en-fr")
    >>> report.to_frame()[["measure", "p_at_1", "queries", "pool"]].to_dict("list")
    {'measure': ['cosine', 'ratio-4', 'csls-10'], 'p_at_1': [1.0, 1.0, 1.0], 'queries': [2, 2, 2], 'pool': [3, 3, 3]}
    """
    ranking = options
    if isinstance(queries, Mapping):
        asked = queries_of(queries)
    else:
        asked = read_queries(Source.of(a_path("queries", queries), run))
    if distractors is not None and not isinstance(distractors, Mapping):
        a_path("distractors", distractors)
    directions, count = language_pairs(pairs, list(asked)), len(next(iter(asked.values())))
    from bitextmine.encoder import load_encoder

    model = choose_model(model, asked)
    encoder = load_encoder(model, run.device)
    # Before the work: not every encoder has pieces to compare.
    scoring = open_scoring(encoder, model, ranking.rescore)
    second = None if ranking.second is None else load_encoder(ranking.second, run.device)
    pools, notes = _pools(encoder, run, asked, distractors, directions)
    with contextlib.ExitStack() as during:
        if second is not None:
            for lang, pool in pools.items():
                kept = during.enter_context(SelectedVectors(pool.text, second, run))
                pools[lang] = replace(pool, second=kept)
        results = [
            result
            for direction in directions
            for result in _direction(pools, direction, count, ranking, run, scoring)
        ]
    sizes = ",".join(f"{lang}={len(pool.unique.rows)}" for lang, pool in pools.items())
    parts = {"task": "retrieval", "protocol": "pools", "queries": count, "pools": sizes}
    parts |= _how(ranking, encoder, "source-pool")
    if scoring is not None:
        parts["scorer"] = scoring.scorer.hash
    if second is not None:
        parts |= {"second": second.hash, "second_weight": f"{SECOND_WEIGHT:g}"}
    return RetrievalReport(tuple(results), signature=signature(**parts), notes=tuple(notes))


def _how(ranking: RankingOptions, encoder: Encoder, of: str) -> dict[str, Any]:
    """Return the parts of a signature that both protocols have."""
    where = {"k": ranking.k, "csls": CSLS, "candidates": CANDIDATES, "neighbourhood": of}
    return {**where, "interval": "wilson-95", "model": encoder.hash}


@dataclass(frozen=True)
class _Pool:
    """The distinct sentences of a language; the queries come first."""

    text: Corpus
    vectors: NDArray
    unique: Unique
    second: SelectedVectors | None = None

    def sentences(self, scoring: Scoring) -> Sentences:
        from bitextmine.embeddings.embed import corpus_pieces

        return Sentences(corpus_pieces(self.text, scoring.encoder), self.unique.rows)

    def second_vectors(self, rows: NDArray[np.int64], run: Run) -> NDArray:
        """Return the vectors of rows by the second encoder."""
        assert self.second is not None
        lines = self.unique.rows[rows]
        new = self.second.missing(lines)
        with run.progress(len(new), f"embed {self.text.name} again") as bar:
            self.second.encode(new, bar.update)
        return self.second.take(lines)


def _pools(
    encoder: Encoder,
    run: Run,
    asked: Queries,
    distractors: Distractors | None,
    directions: Sequence[tuple[str, str]],
) -> tuple[dict[str, _Pool], list[str]]:
    """Return the pools of all languages in the directions, and notes on them."""
    from bitextmine.embeddings.embed import embed_lines

    pools: dict[str, _Pool] = {}
    notes = []
    for lang in dict.fromkeys(lang for pair in directions for lang in pair):
        extra = None if distractors is None else _distractors(distractors, lang, run)
        if distractors is not None and extra is None:
            here = "" if isinstance(distractors, Mapping) else f".{lang}.txt in {distractors}"
            notes.append(f"{lang}: no distractors{here}: its pool is the queries alone")
        text = Corpus([*asked[lang], *(extra or ())], lang, name=f"the pool in {lang}")
        unique = unique_lines(text.lines())
        pools[lang] = _Pool(text, packed_rows(embed_lines(text, encoder, run), unique.rows), unique)
        if repeated := unique.lines - len(unique.rows):
            notes.append(f"{lang}: {repeated:,} blank or repeated sentences left out of the pool")
    for lang in distractors if isinstance(distractors, Mapping) else ():
        if lang not in pools:
            notes.append(f"{lang}: distractors not used: no direction from or to this language is measured")
    return pools, notes


def _distractors(given: Distractors, lang: str, run: Run) -> Iterable[str] | None:
    if isinstance(given, Mapping):
        return sentences_of(given[lang], "distractors", lang) if lang in given else None
    path = find_distractors(given, lang)
    return None if path is None else Source.of(path, run).lines()


def _direction(
    pools: Mapping[str, _Pool],
    direction: tuple[str, str],
    queries: int,
    ranking: RankingOptions,
    run: Run,
    scoring: Scoring | None,
) -> list[RetrievalResult]:
    """Return P@1 from one language to another, by each measure."""
    src, tgt = (pools[lang] for lang in direction)
    query_rows, gold = (pool.unique.line_to_row[:queries] for pool in (src, tgt))

    def rescorer(rows: NDArray[np.int64], targets: NDArray[np.int64]) -> Rescorer:
        assert scoring is not None
        a, b = (pool.sentences(scoring) for pool in (src, tgt))
        sides = a.take(rows), b.take(targets)
        return Rescorer(scoring.pieces, *sides, scoring.scorer, sizes=(len(a), len(b)))

    def second(rows: NDArray[np.int64], targets: NDArray[np.int64]) -> tuple[NDArray, NDArray]:
        return src.second_vectors(rows, run), tgt.second_vectors(targets, run)

    scorer = None if scoring is None else rescorer
    again = None if src.second is None else second
    ranked = rank_in_pool(query_rows, src.vectors, tgt.vectors, ranking, run, scorer, again)
    return results_of(direction, ranked, gold, len(tgt.unique.rows))


# facebookresearch/MUSE, src/evaluation/sent_translation.py and evaluator.py
MUSE_LINES = 800_000
MUSE_KEYS = 200_000
MUSE_QUERIES = 2_000
MUSE_SEED = 1234


def evaluate_muse(
    files: tuple[FileName, FileName],
    langs: tuple[str | None, str | None],
    ranking: RankingOptions,
    run: Run,
    *,
    model: FileName | Encoder = "auto",
) -> RetrievalReport:
    """Measure P@1 both ways, where line i of one file is the translation of line i of the other.

    The neighbourhood of a target is taken among the queries. The protocol needs more
    than 200,000 lines; with fewer the report says so. Languages default to those of the file names. BitextmineError:
    the files are not aligned, or their languages are unknown or the same.
    """
    if ranking.rescore or ranking.second is not None:
        option = "--rescore" if ranking.rescore else "--second"
        raise UsageError(f"{option} goes with --queries: MUSE's protocol has no candidates to score again")
    sources = Source.of(files[0], run), Source.of(files[1], run)
    names = sources[0].path.name, sources[1].path.name
    options = "--src-lang", "--tgt-lang"
    sides = [corpus_language(*each) for each in zip(sources, langs, options, strict=True)]
    if sides[0] == sides[1]:
        raise BitextmineError(f"{names[0]} and {names[1]} are both in '{sides[0]}'; give two languages")
    from bitextmine.embeddings.embed import embed_lines
    from bitextmine.encoder import load_encoder

    results, notes, encoder = [], [], load_encoder(choose_model(model, sides), run.device)
    *keys, at, sentences = muse_keys(sources[0].lines(), sources[1].lines(), names)
    if len(keys[0]) < MUSE_KEYS:
        notes.append(
            f"{sentences:,} sentences are left of {names[0]} and {names[1]}, fewer than the {MUSE_KEYS:,} of "
            f"MUSE's protocol: this is {len(at):,} against {len(keys[0]):,}, not {MUSE_QUERIES:,} against 200k"
        )
    texts = (Corpus(side, lang, name=f"muse.{lang}") for lang, side in zip(sides, keys, strict=True))
    vectors = [embed_lines(text, encoder, run) for text in texts]
    for i, j in ((0, 1), (1, 0)):
        ranked = rank_in_pool(np.arange(len(at)), vectors[i][at], vectors[j], ranking, run)
        results += results_of((sides[i], sides[j]), ranked, at, len(keys[j]))
    parts = {"protocol": "muse-sent-translation", "queries": len(at), "keys": len(keys[0]), "case": "lower"}
    mark = signature(task="retrieval", **parts, **_how(ranking, encoder, "queries"))
    return RetrievalReport(tuple(results), signature=mark, notes=tuple(notes))


def muse_keys(
    src_lines: Iterable[str], tgt_lines: Iterable[str], names: tuple[str, str]
) -> tuple[list[str], list[str], NDArray[np.int64], int]:
    """Return the keys of both sides, the queries, and the number of sentences, as MUSE's sent_translation does.

    The first 800,000 lines, lowercased and split at white space; only the first of equal sentences on the source side
    is kept, then on the target side (so the order of the two matters, as it does there); shuffled by
    RandomState(1234); the first 200,000 are the keys, RandomState(1234).choice(200000, 2000, replace=False) the
    queries. With fewer sentences all are keys, and up to 2,000 of them queries.

    The queries are positions among the keys (int64); the number is that before the cut at 200,000. BitextmineError: one
    side has more lines than the other, or no sentence is left.
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
