"""P@1: how often the best sentence of a pool is the translation, by cosine, ratio margin, CSLS, or scored again.

Two protocols. *Pools*: sentences in several languages (the queries), each language's with further sentences
that translate none of them (the distractors); a query of one language is looked up in the whole pool of
another, and only its own translation counts. *MUSE*: an aligned pair of files, by the rules of MUSE's
sent_translation task (Lample et al., 2018), see `pools.muse_keys`. The candidates of a pool, all of them, can be
scored again by the scorer of `mine --rescore` (which there scores the best of each line alone).

CSLS (2 cos - the two neighbourhood means) ranks as the distance margin does, of which it is the double.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, progress, tab_separated
from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluate.intervals import wilson
from bitextmine.evaluate.pools import (
    MUSE_KEYS,
    MUSE_QUERIES,
    Queries,
    find_distractors,
    language_pairs,
    muse_keys,
    read_queries,
)
from bitextmine.files.corpora import corpus_language
from bitextmine.files.lines import iter_lines
from bitextmine.files.streams import open_output
from bitextmine.mine.dedup import Unique, unique_lines
from bitextmine.mine.margin import margin, neighbourhood_mean
from bitextmine.mine.packing import packed_rows
from bitextmine.mine.piece_features import Aligner
from bitextmine.mine.scorer import Rescorer, packaged_scorer, row_pieces, with_pieces
from bitextmine.signature import signature

if TYPE_CHECKING:
    import pandas

    from bitextmine.encoder import Encoder

__all__ = ["Ranked", "RetrievalReport", "RetrievalResult", "evaluate_retrieval", "rank_in_pool", "rank_muse"]

_BLOCK = 1 << 22


@dataclass(frozen=True)
class RetrievalResult:
    """P@1 of one direction by one measure: shares from 0 to 1, with Wilson's 95% interval."""

    src: str
    tgt: str
    measure: str
    p_at_1: float
    low: float
    high: float
    correct: int
    queries: int
    pool: int


@dataclass(frozen=True)
class RetrievalReport:
    """What `evaluate_retrieval` found."""

    results: tuple[RetrievalResult, ...]
    signature: str
    notes: tuple[str, ...] = field(default=())

    def to_table(self, tabs: bool = False) -> str:
        """The numbers in percent. Aligned: a row per direction, a column per measure. With `tabs`: a row per
        number, all of it, without the remarks."""
        if tabs:
            return tab_separated(
                ["direction", "measure", "P@1", "low", "high", "correct", "queries", "pool"],
                [
                    [
                        f"{r.src}-{r.tgt}",
                        r.measure,
                        *(f"{100 * x:.2f}" for x in (r.p_at_1, r.low, r.high)),
                        *(str(x) for x in (r.correct, r.queries, r.pool)),
                    ]
                    for r in self.results
                ],
            )
        measures = list(dict.fromkeys(r.measure for r in self.results))
        rows: dict[tuple[str, str], list[str]] = {}
        for r in self.results:
            cells = rows.setdefault((r.src, r.tgt), [f"{r.src}-{r.tgt}", f"{r.queries:,}", f"{r.pool:,}"])
            cells.append(f"{100 * r.p_at_1:.2f} [{100 * r.low:.2f}, {100 * r.high:.2f}]")
        table = aligned(["P@1", "queries", "pool", *measures], list(rows.values()))
        return "\n".join([table, *self.notes, self.signature])

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"kind": "retrieval evaluation", **asdict(self)}

    def to_frame(self) -> pandas.DataFrame:
        """A row per direction and measure, with the fields of `RetrievalResult` as columns, for notebooks; shares
        from 0 to 1."""
        import pandas

        return pandas.DataFrame([asdict(r) for r in self.results])


@dataclass(frozen=True)
class Ranked:
    """For each query the row of the pool that each measure puts first, int64 (q,); rescored: None where nothing is."""

    cosine: NDArray[np.int64]
    ratio: NDArray[np.int64]
    csls: NDArray[np.int64]
    rescored: NDArray[np.int64] | None = None


def rank_in_pool(
    queries: NDArray,
    pool: NDArray,
    src_pool: NDArray,
    *,
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    device: str = "cpu",
    memory: int | None = None,
    rescorer: Callable[[NDArray[np.int64], NDArray[np.int64]], Rescorer] | None = None,
    query_rows: NDArray[np.int64] | None = None,
) -> Ranked:
    """Rank a pool (m, d) for queries (q, d), the neighbourhood of a target taken from src_pool (n, d).

    src_pool holds the queries too. The margins choose among the `candidates` nearest by cosine (all of a
    smaller pool): those are the targets whose neighbourhoods are looked up. Ties go to the lower row.
    rescorer: makes one out of increasing rows of src_pool and of pool; query_rows (q,): where src_pool has the queries.
    Raises ValueError for one of these without the other.
    """
    from bitextmine.search.exact import search_one
    from bitextmine.search.neighbours import Neighbours
    from bitextmine.search.options import SearchOptions

    if (rescorer is None) != (query_rows is None):
        raise ValueError("rescorer and query_rows go together")
    most = max(k, csls)
    how = SearchOptions(device=device, memory=memory)
    with progress(len(queries), "search", "queries") as bar:
        sim, ids = search_one(queries, pool, max(most, candidates), how, progress=bar.update)
    targets = np.unique(ids[:, :candidates][ids[:, :candidates] >= 0])
    with progress(len(targets), "neighbourhoods", "candidates") as bar:
        back, back_ids = search_one(
            np.ascontiguousarray(pool[targets]), src_pool, most, how, progress=bar.update
        )
    place = np.searchsorted(targets, ids[:, :candidates])

    def first(kind: str, width: int) -> NDArray[np.int64]:
        mean_src = neighbourhood_mean(sim[:, :width], ids[:, :width])
        mean_tgt = neighbourhood_mean(back[:, :width], back_ids[:, :width])
        there = ids[:, :candidates] >= 0
        cos = np.where(there, sim[:, :candidates].astype(np.float64), -np.inf)
        score = margin(cos, mean_src[:, None], mean_tgt[np.where(there, place, 0)], kind)
        return _first(score, ids[:, :candidates])

    rescored = None
    if rescorer is not None and query_rows is not None:
        # A repeated query is one row of the source side.
        rows, some, number = np.unique(query_rows, return_index=True, return_inverse=True)
        near = Neighbours(sim[some], _numbers(ids[some], targets), back, _numbers(back_ids, rows))
        there = ids[some, :candidates] >= 0
        query, column = np.nonzero(there)
        score = np.full(there.shape, -np.inf)
        score[query, column] = rescorer(rows, targets).scores(
            query, near.fwd_id[query, column], near.fwd_sim[query, column].astype(np.float64), near, k
        )
        rescored = _first(score, ids[some, :candidates])[number]
    return Ranked(ids[:, 0], first("ratio", k), first("distance", csls), rescored)


def _first(score: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """(q,) the id of the highest score, the lowest of equals; ids (q, c), -1 for none."""
    best = (ids >= 0) & (score == score.max(axis=1, keepdims=True))
    found: NDArray[np.int64] = np.where(best, ids, np.iinfo(np.int64).max).min(axis=1)
    return found


def _numbers(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each id is in ``known`` (increasing); len(known) for one that is not; -1 stays."""
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    found: NDArray[np.int64] = np.where(ids < 0, -1, np.where(known[place] == ids, place, len(known)))
    return found


def rank_muse(
    queries: NDArray,
    pool: NDArray,
    *,
    k: int = 4,
    csls: int = 10,
    device: str = "cpu",
    memory: int | None = None,
) -> Ranked:
    """Rank a pool (m, d) for queries (q, d) as MUSE does: the neighbourhood of a target are the nearest *queries*,
    and every sentence of the pool is a candidate. Ties go to the lower row."""
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    with progress(len(queries), "search", "queries") as bar:
        how = SearchOptions(device=device, memory=memory)
        found = search_both(queries, pool, max(k, csls), how, progress=bar.update)

    def means(width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return (
            neighbourhood_mean(found.fwd_sim[:, :width], found.fwd_id[:, :width]),
            neighbourhood_mean(found.bwd_sim[:, :width], found.bwd_id[:, :width]),
        )

    best = {"ratio": np.full(len(queries), -np.inf), "distance": np.full(len(queries), -np.inf)}
    where = {kind: np.zeros(len(queries), dtype=np.int64) for kind in best}
    widths = {"ratio": means(k), "distance": means(csls)}
    asked = queries.astype(np.float32)
    # Blocks of similarities (queries x step) of 32 MiB in float64, of which a few live at a time.
    step = max(1, _BLOCK // max(1, len(queries)))
    for start in range(0, len(pool), step):
        cos = asked @ np.asarray(pool[start : start + step], dtype=np.float32).T
        for kind, (mean_src, mean_tgt) in widths.items():
            score = margin(cos, mean_src[:, None], mean_tgt[None, start : start + step], kind)
            top = score.argmax(axis=1)
            value = score[np.arange(len(score)), top]
            better = value > best[kind]
            best[kind][better] = value[better]
            where[kind][better] = top[better] + start
    return Ranked(found.fwd_id[:, 0], where["ratio"], where["distance"])


def _results(
    src: str, tgt: str, ranked: Ranked, gold: NDArray[np.int64], pool: int, k: int, csls: int
) -> list[RetrievalResult]:
    rows = []
    for measure, found in (
        ("cosine", ranked.cosine),
        (f"ratio-{k}", ranked.ratio),
        (f"csls-{csls}", ranked.csls),
        (f"rescored-{k}", ranked.rescored),
    ):
        if found is None:
            continue
        correct = int((found == gold).sum())
        low, high = wilson(correct, len(gold))
        rows.append(
            RetrievalResult(src, tgt, measure, correct / len(gold), low, high, correct, len(gold), pool)
        )
    return rows


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
    queries: str | os.PathLike[str] | None = None,
    distractors: str | os.PathLike[str] | None = None,
    pairs: str = "all",
    pivot: str | None = "en",
    src_file: str | os.PathLike[str] | None = None,
    tgt_file: str | os.PathLike[str] | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str = "default",
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

    Either queries (a TSV file with a header of languages, one sentence per row in each) and perhaps
    distractors (a folder of ``distractors.LANG.txt`` files, plain or compressed): the pool of a language is
    its queries and its distractors, equal sentences once. pairs: ``en-fr,fr-en``, or ``all``, which is both
    ways between the pivot and each other language (the first language, where the pivot is none of them;
    every pair, where it is None). The neighbourhood of a target is taken from the whole pool of the source
    language, and the margins choose among the `candidates` nearest by cosine. rescore: and the scorer of
    `mine --rescore` does, too (`rescoring`), in one more measure.

    Or src_file and tgt_file, aligned line by line: MUSE's sent_translation protocol, both ways
    (`pools.muse_keys`, `rank_muse`); it calls for more than 200,000 lines, and with fewer the report says
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
    asked = None if queries is None else read_queries(queries, errors)
    directions = [] if asked is None else _directions(asked, pairs, pivot)

    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.device import device_name

    encoder = load_encoder(model, device)
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
    by_pieces: tuple[Encoder, Aligner] | None  # `with_pieces`, where candidates are scored again
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
        distractors: str | os.PathLike[str] | None,
        directions: Sequence[tuple[str, str]],
        folder: Path,
    ) -> RetrievalReport:
        pools: dict[str, _Pool] = {}
        notes = []
        for lang in dict.fromkeys(lang for pair in directions for lang in pair):
            extra = None if distractors is None else find_distractors(distractors, lang)
            if distractors is not None and extra is None:
                notes.append(
                    f"{lang}: no distractors.{lang}.txt in {distractors}: its pool is the queries alone"
                )
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
            results += _results(src, tgt, ranked, gold, len(target.unique.rows), self.k, self.csls)
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
        self, pools: dict[str, _Pool], encoder: Encoder, aligner: Aligner
    ) -> Callable[[str, str, NDArray[np.int64], NDArray[np.int64]], Rescorer]:
        """Makes one out of two languages and rows of their pools."""
        pieces = {lang: row_pieces(pool.text, pool.unique, encoder) for lang, pool in pools.items()}
        scorer = packaged_scorer()
        return lambda src, tgt, rows, targets: Rescorer(
            aligner, pieces[src].take(rows), pieces[tgt].take(targets), scorer
        )

    def _pool(self, sentences: list[str], distractors: Path | None, lang: str, folder: Path) -> _Pool:
        text = folder / f"pool.{lang}"
        with open_output(text) as out:
            out.writelines(f"{sentence}\n" for sentence in sentences)
            if distractors is not None:
                out.writelines(f"{line}\n" for line in iter_lines(distractors, self.errors))
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
            results += _results(sides[i], sides[j], ranked, at, len(keys[j]), self.k, self.csls)
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
