"""P@1: how often the best sentence of a pool is the translation.

Two protocols. *Pools*: sentences in several languages (the queries), each language's with further sentences
that translate none of them (the distractors); a query of one language is looked up in the whole pool of
another, and only its own translation counts. *MUSE*: an aligned pair of files, by the rules of MUSE's
sent_translation task (Lample et al., 2018), see `pools.muse_keys`. The candidates of a pool, all of them, can be
scored again by the scorer of `mine --rescore` (which there scores the best of each line alone).
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluate.pools import (
    MUSE_KEYS,
    MUSE_QUERIES,
    Queries,
    find_distractors,
    language_pairs,
    muse_keys,
    queries_of,
    read_queries,
)
from bitextmine.evaluate.precision import RetrievalReport, RetrievalResult, results_of
from bitextmine.evaluate.ranking import rank_in_pool, rank_muse
from bitextmine.files.lines import corpus_language, iter_lines
from bitextmine.files.streams import open_output
from bitextmine.mine.bitext import one_cell
from bitextmine.mine.dedup import Unique, unique_lines
from bitextmine.mine.packing import packed_rows
from bitextmine.mine.piece_features import PieceFeatures
from bitextmine.mine.scorer import Rescorer, packaged_scorer, row_pieces, with_pieces
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["Distractors", "evaluate_retrieval"]

# A folder of files, or sentences by language.
Distractors = str | os.PathLike[str] | Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class _Pool:
    """A language's sentences, each once; the first rows of `unique` are those of the queries, in their
    order.
    """

    text: Path
    vectors: NDArray
    unique: Unique
    lines: int


def evaluate_retrieval(
    *,
    queries: str | os.PathLike[str] | Mapping[str, Sequence[str]] | None = None,
    distractors: Distractors | None = None,
    pairs: str = "all",
    pivot: str | None = "en",
    src_file: str | os.PathLike[str] | None = None,
    tgt_file: str | os.PathLike[str] | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    rescore: bool = False,
    work: str | os.PathLike[str] | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
    errors: str = "strict",
    memory: int | None = None,
) -> RetrievalReport:
    """P@1 by cosine, ratio margin (k neighbours) and CSLS (csls neighbours), with 95% intervals.

    Either queries (a TSV file with a header of languages, one sentence per row in each, or for each language a list of
    its sentences) and perhaps distractors (a folder of ``distractors.LANG.txt`` files, plain or compressed, or for each
    language its sentences): the pool of a language is its queries and its distractors, equal sentences once.
    pairs: ``en-fr,fr-en``, or ``all``, which is both ways between the pivot and each other language (the first
    language, where the pivot is none of them; every pair, where it is None). The neighbourhood of a target is taken
    from the whole pool of the source language, and the margins choose among the `candidates` nearest by cosine.
    rescore: and the scorer of `mine --rescore` does, too (`scorer`), in one more measure.

    Or src_file and tgt_file, aligned line by line: MUSE's sent_translation protocol, both ways
    (`pools.muse_keys`, `ranking.rank_muse`); it calls for more than 200,000 lines, and with fewer the report says
    so.

    work: a folder to keep the pools' text and embeddings in, so that the next run with the same model need
    not encode them again; without it they go to a temporary folder. memory: bytes that each search may take (default:
    half of what is free). Raises BitextmineError for input that does not fit.
    """
    if (queries is None) == (src_file is None) or (src_file is None) != (tgt_file is None):
        raise UsageError("give --queries, or else --src-file and --tgt-file")
    if min(k, csls, candidates) < 1:
        raise UsageError(f"k, csls and candidates must be at least 1, found {k}, {csls} and {candidates}")
    if rescore and queries is None:
        raise UsageError("--rescore goes with --queries: MUSE's protocol has no candidates to score again")
    if rescore and k == 1:
        raise UsageError(
            "--rescore -k 1: the scorer looks at margins, and one neighbour makes none; use -k 2 or more"
        )
    asked = None
    if queries is not None:
        asked = queries_of(queries) if isinstance(queries, Mapping) else read_queries(queries, errors)
    directions = [] if asked is None else _directions(asked, pairs, pivot)

    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.device import device_name

    encoder = load_encoder(model, device) if isinstance(model, (str, os.PathLike)) else model
    by_pieces = (
        with_pieces(encoder, model) if rescore else None
    )  # before the work: not every encoder has them
    run = _Run(encoder, by_pieces, k, csls, candidates, device_name(device), batch_tokens, errors, memory)
    with _folder(work) as folder:
        if asked is not None:
            return run.pools(asked, distractors, directions, folder)
        assert src_file is not None
        assert tgt_file is not None
        return run.muse((src_file, tgt_file), (src_lang, tgt_lang), folder)


def _directions(asked: Queries, pairs: str, pivot: str | None) -> list[tuple[str, str]]:
    if pairs == "all" and pivot is not None and pivot not in asked.languages:
        pivot = asked.languages[0]
    return language_pairs(pairs, asked.languages, pivot)


@contextlib.contextmanager
def _folder(work: str | os.PathLike[str] | None) -> Iterator[Path]:
    if work is None:
        with tempfile.TemporaryDirectory(prefix="bitextmine-") as name:
            yield Path(name)
        return
    try:
        Path(work).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(f"{work}: cannot make this folder: {e.strerror or e}") from None
    yield Path(work)


@dataclass(frozen=True)
class _Run:
    encoder: Encoder
    by_pieces: tuple[Encoder, PieceFeatures] | None  # `with_pieces`, where candidates are scored again
    k: int
    csls: int
    candidates: int
    device: str
    batch_tokens: int | None
    errors: str
    memory: int | None

    def embed(self, path: Path, lang: str) -> NDArray:
        from bitextmine.embeddings.embed import embed_corpus

        npy = embed_corpus(path, self.encoder, lang=lang, batch_tokens=self.batch_tokens)
        return open_embedding(npy)[0]

    def pools(
        self,
        asked: Queries,
        distractors: Distractors | None,
        directions: Sequence[tuple[str, str]],
        folder: Path,
    ) -> RetrievalReport:
        pools: dict[str, _Pool] = {}
        notes = []
        for lang in dict.fromkeys(lang for pair in directions for lang in pair):
            extra = None if distractors is None else self._distractors(distractors, lang)
            if distractors is not None and extra is None:
                here = "" if isinstance(distractors, Mapping) else f".{lang}.txt in {distractors}"
                notes.append(f"{lang}: no distractors{here}: its pool is the queries alone")
            pools[lang] = self._pool(asked.sentences[lang], extra, lang, folder)
            repeated = pools[lang].lines - len(pools[lang].unique.rows)
            if repeated:
                notes.append(f"{lang}: {repeated:,} blank or repeated sentences left out of the pool")
        results: list[RetrievalResult] = []
        n = len(asked)
        rescorer = None if self.by_pieces is None else self._rescorer(pools, *self.by_pieces)
        for src, tgt in directions:
            source, target = pools[src], pools[tgt]
            query_rows = source.unique.line_to_row[:n]
            ranked = rank_in_pool(
                np.ascontiguousarray(source.vectors[query_rows]),
                target.vectors,
                source.vectors,
                k=self.k,
                csls=self.csls,
                candidates=self.candidates,
                device=self.device,
                memory=self.memory,
                rescorer=None if rescorer is None else functools.partial(rescorer, src, tgt),
                query_rows=None if rescorer is None else query_rows,
            )
            gold = target.unique.line_to_row[:n]
            results += results_of(src, tgt, ranked, gold, len(target.unique.rows), self.k, self.csls)
        return RetrievalReport(
            tuple(results),
            signature(
                task="retrieval",
                protocol="pools",
                queries=n,
                pools=",".join(f"{lang}={len(pool.unique.rows)}" for lang, pool in pools.items()),
                k=self.k,
                csls=self.csls,
                candidates=self.candidates,
                neighbourhood="source-pool",
                interval="wilson-95",
                model=self.encoder.hash,
                **({} if rescorer is None else {"scorer": packaged_scorer().hash}),
            ),
            tuple(notes),
        )

    def _rescorer(
        self, pools: dict[str, _Pool], encoder: Encoder, features: PieceFeatures
    ) -> Callable[[str, str, NDArray[np.int64], NDArray[np.int64]], Rescorer]:
        """Makes one out of two languages and rows of their pools."""
        pieces = {
            lang: row_pieces(iter_lines(pool.text), pool.unique, encoder) for lang, pool in pools.items()
        }
        scorer = packaged_scorer()
        return lambda src, tgt, rows, targets: Rescorer(
            features, pieces[src].take(rows), pieces[tgt].take(targets), scorer
        )

    def _distractors(self, given: Distractors, lang: str) -> Iterable[str] | None:
        """The further sentences of a language, each on one line; None where there are none."""
        if isinstance(given, Mapping):
            return (one_cell(line) for line in given[lang]) if lang in given else None
        path = find_distractors(given, lang)
        return None if path is None else iter_lines(path, self.errors)

    def _pool(
        self, sentences: Sequence[str], distractors: Iterable[str] | None, lang: str, folder: Path
    ) -> _Pool:
        text = folder / f"pool.{lang}"
        with open_output(text) as out:
            out.writelines(f"{sentence}\n" for sentence in sentences)
            if distractors is not None:
                out.writelines(f"{line}\n" for line in distractors)
        unique = unique_lines(iter_lines(text))
        matrix = self.embed(text, lang)
        return _Pool(text, packed_rows(matrix, unique.rows, folder), unique, unique.lines)

    def muse(
        self,
        files: tuple[str | os.PathLike[str], str | os.PathLike[str]],
        langs: tuple[str | None, str | None],
        folder: Path,
    ) -> RetrievalReport:
        names = (Path(files[0]).name, Path(files[1]).name)
        sides = [corpus_language(path, lang) for path, lang in zip(files, langs, strict=True)]
        if sides[0] == sides[1]:
            raise BitextmineError(f"{names[0]} and {names[1]} are both in '{sides[0]}'; give two languages")
        *keys, at, sentences = muse_keys(
            iter_lines(files[0], self.errors), iter_lines(files[1], self.errors), names
        )
        notes = []
        if len(keys[0]) < MUSE_KEYS:
            notes.append(
                f"{sentences:,} sentences are left of {names[0]} and {names[1]}, fewer than the {MUSE_KEYS:,} of "
                f"MUSE's protocol: this is {len(at):,} against {len(keys[0]):,}, not {MUSE_QUERIES:,} against 200k"
            )
        vectors = []
        for lang, side in zip(sides, keys, strict=True):
            text = folder / f"muse.{lang}"
            with open_output(text) as out:
                out.writelines(f"{sentence}\n" for sentence in side)
            vectors.append(self.embed(text, lang))
        results: list[RetrievalResult] = []
        for i, j in ((0, 1), (1, 0)):
            ranked = rank_muse(
                np.ascontiguousarray(vectors[i][at]),
                vectors[j],
                k=self.k,
                csls=self.csls,
                device=self.device,
                memory=self.memory,
            )
            results += results_of(sides[i], sides[j], ranked, at, len(keys[j]), self.k, self.csls)
        return RetrievalReport(
            tuple(results),
            signature(
                task="retrieval",
                protocol="muse-sent-translation",
                queries=len(at),
                keys=len(keys[0]),
                case="lower",
                k=self.k,
                csls=self.csls,
                candidates="all",
                neighbourhood="queries",
                interval="wilson-95",
                model=self.encoder.hash,
            ),
            tuple(notes),
        )
