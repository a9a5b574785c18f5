"""Mining from end to end: two corpora in, scored sentence pairs out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import progress
from bitextmine.embeddings.store import embedding_paths, open_embedding
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpora import corpus_language, find_corpus
from bitextmine.files.lines import iter_lines
from bitextmine.mine.bitext import Bitext
from bitextmine.mine.dedup import LEVELS, Unique, unique_lines
from bitextmine.mine.duplicates import closest_lines, every_line, first_lines
from bitextmine.mine.gold import Gold, pair_codes, read_gold
from bitextmine.mine.margin import MARGINS
from bitextmine.mine.noise import MIN_LINES, NullFit, fit_null
from bitextmine.mine.packing import IN_MEMORY, packed_rows, zero_rows
from bitextmine.mine.piece_features import Aligner
from bitextmine.mine.retrieval import RETRIEVALS, NeighboursLike, Rescore, candidates, retrieve_scored
from bitextmine.mine.scorer import Rescorer, packaged_scorer, row_pieces, with_pieces
from bitextmine.mine.threshold import Tuned, counts_around, parse_threshold, tune
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["DUPLICATES", "SEARCHES", "Side", "load_side", "mine", "mine_sides", "rescorer"]

DUPLICATES = ("first", "all")
SEARCHES = ("auto", "exact", "index")

# Up to so many similarities exact search takes minutes on two cores and seconds on a GPU; above, an index
# is built.
EXACT_UP_TO = 10**12


@dataclass(frozen=True)
class Side:
    """One corpus as mining sees it: where it is, which of its lines are mined, and their vectors.

    matrix: float16 (lines, d), the embedding of all lines; vectors: float16 (rows of unique, d), those that
    are mined, none of them zero. dedup: the level that `unique` was made with. unknown: lines (after
    deduplication) left out because the encoder knows nothing in them.
    """

    corpus: Path
    lang: str
    npy: Path
    unique: Unique
    matrix: NDArray
    vectors: NDArray
    dedup: str = "exact"
    unknown: int = 0

    def counts(self) -> dict[str, Any]:
        """What became of the lines."""
        return {
            "corpus": self.corpus.name,
            "lang": self.lang,
            "lines": self.unique.lines,
            "mined_lines": len(self.unique.rows),
            "repeated": self.unique.repeated,
            "empty_or_unknown": self.unique.empty,
        }


def load_side(
    corpus: str | os.PathLike[str],
    npy: str | os.PathLike[str],
    *,
    lang: str = "",
    dedup: str = "exact",
    errors: str = "strict",
    in_memory: int = IN_MEMORY,
) -> Side:
    """Read a corpus and its embedding, collapse equal lines, leave out what cannot be mined. What is left is held in
    memory up to `in_memory` bytes, else in a temporary file beside the embedding.

    Raises BitextmineError when the embedding has not one row per line, and when no line can be mined.
    """
    unique = unique_lines(iter_lines(corpus, errors), dedup)
    matrix, _ = open_embedding(npy, rows=unique.lines)
    blank = unique.empty
    unique = unique.without(zero_rows(matrix, unique.rows))
    if not len(unique.rows):
        raise BitextmineError(
            f"{corpus}: nothing to mine: {unique.lines} line(s), {blank} of them blank, "
            f"{unique.empty - blank} with nothing in them that the model knows"
        )
    return Side(
        Path(corpus),
        lang,
        Path(npy),
        unique,
        matrix,
        packed_rows(matrix, unique.rows, Path(npy).parent, in_memory),
        dedup,
        unique.empty - blank,
    )


def _gold_in_rows(gold: Gold, src: Side, tgt: Side, path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The gold pairs as codes of row pairs, each once; those of lines that are never mined get codes below
    0.
    """
    for side, lines in ((src, gold.src), (tgt, gold.tgt)):
        if int(lines.max()) >= side.unique.lines:
            raise BitextmineError(
                f"{path}: line number {int(lines.max()) + 1}, but {side.corpus.name} has {side.unique.lines} "
                "lines; these files do not belong together"
            )
    s, t = src.unique.line_to_row[gold.src], tgt.unique.line_to_row[gold.tgt]
    codes = pair_codes(s, t, len(tgt.unique.rows))
    return np.unique(np.where((s < 0) | (t < 0), -1 - np.arange(len(codes)), codes))


def mine_sides(
    src: Side,
    tgt: Side,
    neighbours: NeighboursLike,
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: str | float | None = "none",
    gold: str | os.PathLike[str] | None = None,
    fpr: float = 0.01,
    duplicates: str = "first",
    rescore: Rescore | None = None,
    made_by: dict[str, object] | None = None,
    errors: str = "strict",
) -> Bitext:
    """Everything after the search: margins (or other scores, by ``rescore``), retrieval, threshold, duplicates; see
    `mine`."""
    _check_matching(retrieval, k, margin)
    best = candidates(neighbours, k, margin)
    pairs = retrieve_scored(best, neighbours, k, retrieval, margin, rescore)
    rule = parse_threshold(threshold)
    notes: list[str] = []
    tuned: Tuned | None = None
    null: NullFit | None = None
    cut: float | None = None
    how = "none"
    if isinstance(rule, float):
        cut, how = rule, "given"
    elif rule == "auto" and gold is not None:
        standard = _gold_in_rows(read_gold(gold, errors), src, tgt, gold)
        codes = pair_codes(pairs.src, pairs.tgt, len(tgt.unique.rows))
        tuned = tune(pairs.score, np.isin(codes, standard), len(standard))
        cut, how = tuned.threshold, "gold"
        notes.append(
            f"threshold {cut:.4f}: the best F1 on the {len(standard):,} gold pairs ({100 * tuned.f1:.2f}, an"
            " optimistic number: the same pairs chose it)"
        )
    elif rule == "auto" and min(len(src.unique.rows), len(tgt.unique.rows)) < MIN_LINES:
        notes.append(
            f"no threshold: {len(src.unique.rows)} x {len(tgt.unique.rows)} lines are too few to estimate how noise"
            f" scores ({MIN_LINES} are needed); cut the pairs with --threshold after a look at the scores"
        )
    elif rule == "auto":
        null = fit_null(neighbours, best, k=k, margin=margin, retrieval=retrieval, rescore=rescore)
        cut, how = null.threshold(fpr), f"fpr-{fpr:g}"
        kept = (
            f"{100 * null.precision(cut):.1f}% of the pairs kept are true"
            if (null.s1 >= cut).any()
            else "and no pair scores so high: try a higher --fpr, or more neighbours (-k)"
        )
        notes.append(
            f"threshold {cut:.4f}: about {100 * fpr:g}% of the {null.side} lines without a translation get a pair; "
            f"an estimated {100 * null.noise_share:.0f}% of the lines have none, {kept}"
        )
        if margin == "absolute":
            notes.append(
                "plain cosines part true pairs from noise too badly to estimate this well: the rate may be several "
                "times lower than stated; use --margin ratio"
            )
    counts = [_count(t, n, null) for t, n in counts_around(pairs.score, cut)]
    details: dict[str, Any] = {
        "candidates": len(pairs),
        "threshold": {"value": cut, "rule": how},
        "counts": counts,
        "rows": {"src": src.counts(), "tgt": tgt.counts()},
    }
    if tuned is not None:
        details["tuned"] = {"f1": tuned.f1, "precision": tuned.precision, "recall": tuned.recall}
    if null is not None:
        details["null"] = {
            "fpr": fpr,
            "side": null.side,
            "share_without_translation": null.noise_share,
            "precision": null.precision(cut) if cut is not None else None,
        }
    if cut is not None:
        pairs = pairs.take(pairs.score >= cut)
    if src.dedup == "near":
        lines = closest_lines(
            pairs, src.unique, tgt.unique, src.matrix, tgt.matrix, every=duplicates == "all"
        )
    else:
        lines = (every_line if duplicates == "all" else first_lines)(pairs, src.unique, tgt.unique)
    return Bitext(
        src_line=lines.src,
        tgt_line=lines.tgt,
        score=lines.score,
        src_corpus=src.corpus,
        tgt_corpus=tgt.corpus,
        signature=signature(
            **(made_by or {}),
            k=k,
            margin=margin,
            retrieval=retrieval,
            threshold="none" if cut is None else f"{cut:.6f}",
            threshold_by=how,
            duplicates=duplicates,
        ),
        details=details,
        notes=tuple(notes),
        errors=errors,
    )


def _count(threshold: float, pairs: int, null: NullFit | None) -> dict[str, float | int]:
    row: dict[str, float | int] = {"threshold": threshold, "pairs": pairs}
    if null is not None:
        row["false_positive_rate"] = null.rate(threshold)
        row["precision"] = null.precision(threshold)
    return row


def _check_choices(**given: tuple[str, tuple[str, ...]]) -> None:
    for option, (value, choices) in given.items():
        if value not in choices:
            raise UsageError(f"{option}: unknown value {value!r}; choose one of {', '.join(choices)}")


def _check_matching(retrieval: str, k: int, margin: str) -> None:
    if retrieval == "matching" and k == 1 and margin != "absolute":
        raise UsageError(
            f"--retrieval matching -k 1: with one neighbour no pair scores above the {margin}'s neutral value, and "
            "matching would keep none; use -k 2 or more, or --retrieval max"
        )


def find_neighbours(
    src: Side,
    tgt: Side,
    k: int,
    *,
    search: str = "auto",
    device: str = "auto",
    memory: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[NeighboursLike, str]:
    """The k nearest neighbours of both sides' rows, and how they were found, for the signature.

    search: "exact"; "index": through the FAISS indexes beside the embeddings, built where they are missing
    or of other vectors, candidates rescored exactly; "auto": exact up to EXACT_UP_TO similarities.

    memory, of exact search: bytes that it may take, vectors that are held in memory included. checkpoint: the file
    that exact search goes on from, if it is there, and leaves behind, if it takes more than seconds.
    """
    n, m = len(src.unique.rows), len(tgt.unique.rows)
    if search == "index" or (search == "auto" and n * m > EXACT_UP_TO):
        from bitextmine.index.both import search_both_indexed
        from bitextmine.index.file import open_index

        indexes = [open_index(side.npy) for side in (src, tgt)]
        kinds = dict.fromkeys(str(index.facts["factory"]) for index in indexes)
        with progress(n + m, "search", "lines") as bar:
            found: NeighboursLike = search_both_indexed(
                src.vectors,
                tgt.vectors,
                indexes[0],
                indexes[1],
                k,
                x_rows=src.unique.line_to_row,
                y_rows=tgt.unique.line_to_row,
                memory=memory,
                progress=bar.update,
            )
        return found, f"index-{'/'.join(kinds)}"
    from bitextmine.encoder.device import device_name
    from bitextmine.search.checkpoint import Checkpoint
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions
    from bitextmine.search.pages import is_mapped

    if memory is not None:
        memory = max(1, memory - sum(v.nbytes for v in (src.vectors, tgt.vectors) if not is_mapped(v)))
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    with progress(n, "search", "lines") as bar, saved or contextlib.nullcontext():
        found = search_both(
            src.vectors,
            tgt.vectors,
            k,
            SearchOptions(device=device_name(device), memory=memory),
            progress=bar.update,
            checkpoint=saved,
        )
    return found, "exact"


def mine(
    *,
    src: str | None = None,
    tgt: str | None = None,
    directory: str | os.PathLike[str] = ".",
    name: str | None = None,
    src_corpus: str | os.PathLike[str] | None = None,
    tgt_corpus: str | os.PathLike[str] | None = None,
    model: str = "default",
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: str | float | None = "auto",
    gold: str | os.PathLike[str] | None = None,
    fpr: float = 0.01,
    rescore: bool = False,
    dedup: str = "exact",
    duplicates: str = "first",
    search: str = "auto",
    device: str = "auto",
    batch_tokens: int | None = None,
    errors: str = "strict",
    force: bool = False,
    memory: int | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Bitext:
    """Mine sentence pairs out of two corpora; write them with the result's ``write``.

    src, tgt: languages; the corpus of each is looked for in `directory` (`name` chooses among several), or
    given as src_corpus and tgt_corpus. Embeddings lie beside the corpora; what is missing or was made of
    another text or with another model is made now (everything, with `force`).

    k: neighbours per line. margin: ratio, distance, absolute. retrieval: max, matching, intersect, union, forward,
    backward. threshold: a number, "none", or "auto": the best F1 on `gold` (a TSV of line numbers from 1)
    if that is given, else the score that a share `fpr` of the lines without a translation reach, estimated
    from the corpora. rescore: the score of a pair is not its margin but the logarithm of the odds that it is a
    translation, from its margin and from how well the pieces match (`rescoring`); needs an encoder without layers, and
    holds pieces of both corpora and what they say of pairs, about 300 bytes a line. dedup: which lines count as the
    same (exact, near, none; see `dedup.line_key`); one of them is mined. duplicates: "first": a pair names the first of
    equal lines; "all": every repetition gets its pair (`duplicates`). search: "exact", "index" (FAISS, built where
    missing), "auto": exact up to EXACT_UP_TO similarities. errors: what to do about invalid UTF-8, strict or replace.

    memory: bytes that exact search may take (default: half of what is free). If it takes more than seconds, it keeps
    what it has found in a file beside the source's embedding; a run that was killed, whenever that was, goes on from
    there, and writing the result removes it.

    output: where the result will be written, so that a name that would destroy what it is made of is refused before
    the work.

    Raises BitextmineError for anything a user can put right: wrong choices, corpora that are missing,
    ambiguous, the same file, or without a line to mine, and gold that does not fit them.
    """
    _check_choices(
        margin=(margin, MARGINS),
        retrieval=(retrieval, RETRIEVALS),
        dedup=(dedup, LEVELS),
        duplicates=(duplicates, DUPLICATES),
        search=(search, SEARCHES),
    )
    if k < 1:
        raise UsageError(f"k must be at least 1, found {k}")
    _check_matching(retrieval, k, margin)
    if rescore and k == 1:
        raise UsageError(
            "--rescore -k 1: with one neighbour there is no margin to start from; use -k 2 or more"
        )
    if not 0 < fpr < 1:
        raise UsageError(f"fpr: expected a rate between 0 and 1, found {fpr}")
    rule = parse_threshold(threshold)
    if gold is not None and rule != "auto":
        raise UsageError(f"--gold is given, but --threshold is {rule}; --gold is for --threshold auto")
    paths = [
        _corpus(directory, lang, name, path, side)
        for lang, path, side in ((src, src_corpus, "source"), (tgt, tgt_corpus, "target"))
    ]
    if os.path.realpath(paths[0]) == os.path.realpath(paths[1]):
        raise BitextmineError(f"{paths[0]}: is both the source and the target corpus; mining needs two")
    if output is not None and os.fspath(output) != "-":
        _check_output(output, [*paths, *(part for path in paths for part in embedding_paths(path))], gold)
    langs = [corpus_language(path, lang) for path, lang in zip(paths, (src, tgt), strict=True)]
    if gold is not None:
        read_gold(gold, errors)  # before the work, not after it

    from bitextmine.embeddings.embed import embed_corpus
    from bitextmine.encoder import load_encoder

    encoder = load_encoder(model, device)
    by_pieces = (
        with_pieces(encoder, model) if rescore else None
    )  # before the work: not every encoder has them
    npys = [
        embed_corpus(path, encoder, lang=lang, errors=errors, batch_tokens=batch_tokens, force=force)
        for path, lang in zip(paths, langs, strict=True)
    ]
    made_by: dict[str, object] = {"src": langs[0], "tgt": langs[1], "model": encoder.hash}
    del encoder
    sides = [
        load_side(
            path,
            npy,
            lang=lang,
            dedup=dedup,
            errors=errors,
            in_memory=IN_MEMORY if memory is None else min(IN_MEMORY, memory // 8),
        )
        for path, npy, lang in zip(paths, npys, langs, strict=True)
    ]
    # More neighbours than there are lines would be empty columns: the same means, for more memory and time.
    k = max(1, min(k, max(len(side.unique.rows) for side in sides)))
    # One neighbour more than the margin needs: the null distribution takes one away.
    spare = 1 if rule == "auto" and gold is None else 0
    left = npys[0].with_name(f"{npys[0].stem}-{npys[1].stem}.search.part")
    neighbours, way = find_neighbours(
        sides[0], sides[1], k + spare, search=search, device=device, memory=memory, checkpoint=left
    )
    made_by |= {"search": way, "dedup": dedup}
    with progress(None, "compare pieces", "pairs", disable=None if rescore else True) as bar:
        again = None
        if by_pieces is not None:
            again = rescorer(sides, *by_pieces, errors, bar.update)
            made_by["scorer"] = again.scorer.hash
        mined = mine_sides(
            sides[0],
            sides[1],
            neighbours,
            k=k,
            margin=margin,
            retrieval=retrieval,
            threshold=threshold,
            gold=gold,
            fpr=fpr,
            duplicates=duplicates,
            rescore=again,
            made_by=made_by,
            errors=errors,
        )
    return replace(mined, leftover=left)


def rescorer(
    sides: Sequence[Side],
    encoder: Encoder,
    aligner: Aligner,
    errors: str = "strict",
    on_pairs: Callable[[int], object] = lambda n: None,
) -> Rescorer:
    """What scores the candidates of the two sides again, with the scorer in the package. aligner: of the encoder's
    `piece_rows`; ``on_pairs`` is told of pairs whose pieces are compared."""
    src, tgt = (row_pieces(side.corpus, side.unique, encoder, errors) for side in sides)
    return Rescorer(aligner, src, tgt, packaged_scorer(), on_pairs)


def _check_output(
    output: str | os.PathLike[str], inputs: Sequence[Path], gold: str | os.PathLike[str] | None
) -> None:
    kept = {os.path.realpath(path): path for path in (*inputs, *([] if gold is None else [Path(gold)]))}
    for made in (os.fspath(output), f"{os.fspath(output)}.json"):
        if (path := kept.get(os.path.realpath(made))) is not None:
            raise UsageError(
                f"-o {output} would replace {path}, which the pairs are mined from; name another file"
            )


def _corpus(
    directory: str | os.PathLike[str],
    lang: str | None,
    name: str | None,
    path: str | os.PathLike[str] | None,
    side: str,
) -> Path:
    if path is not None:
        if os.fspath(path) == "-":
            option = "--src-file" if side == "source" else "--tgt-file"
            raise UsageError(
                f"{option}: the {side} corpus cannot be standard input: it is read more than once"
            )
        return Path(path)
    if lang is None:
        raise UsageError(f"no {side} corpus: give its language or its file")
    return find_corpus(directory, lang, name)
