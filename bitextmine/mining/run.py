"""Mining from end to end: two corpora in, scored sentence pairs out."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.names import output_format
from bitextmine.mining.bitext import Bitext, check_output, inputs_of
from bitextmine.mining.calibration import calibrated, decoy_log_odds, probability
from bitextmine.mining.candidates import BestBothWays, NeighboursLike, Rescore, candidates
from bitextmine.mining.choices import Margin
from bitextmine.mining.cleaning import Cleaning, clean_lines, cleaning_notes, near_copies_of, signed
from bitextmine.mining.dedup import Dedup, closest_lines, every_line, first_lines
from bitextmine.mining.gold import Gold, gold_in_rows, pair_codes, read_gold
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.noise import MIN_LINES, counts_source, fit_null, search_within, without_pairs
from bitextmine.mining.options import Duplicates, MiningOptions, WorkOptions, check_matching
from bitextmine.mining.retrieval import ScoredPairs, retrieve_scored
from bitextmine.mining.scorer import Rescorer, Scoring, Sentences, open_scoring
from bitextmine.mining.sides import IN_MEMORY, Side, load_side
from bitextmine.mining.texts import Pair, check_two
from bitextmine.mining.threshold import RATE, Cut, Estimate, NoEstimate, cut_by_estimate, cut_by_gold, rule_of
from bitextmine.search.checkpoint import remove_checkpoint
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.embeddings.embed import Encoding
    from bitextmine.encoder import Encoder

log = logging.getLogger(__name__)


def mine_texts(
    src: Corpus,
    tgt: Corpus,
    options: MiningOptions | None = None,
    work: WorkOptions | None = None,
    *,
    model: str | os.PathLike[str] | Encoder = "default",
    output: str | os.PathLike[str] | None = None,
    embedded: Mapping[Corpus, Path] | None = None,
) -> Bitext:
    """Mine sentence pairs from two corpora; write them with the result's ``write``.

    Embeddings of corpora in files lie beside them; those that are missing, or of another text or model, are made now.
    Lines in memory are embedded there. Exact search that takes more than seconds keeps its progress in a file beside
    the source's embedding, from which an interrupted run resumes; `Bitext.discard_checkpoint` removes it.

    Args:
        src: the source.
        tgt: the target.
        options: the definition of a pair.
        work: how the work is done.
        model: an encoder, or the name of one for `load_encoder`.
        output: the later output, to refuse it before the work if it would destroy an input.
        embedded: embedding files of corpora that have just been embedded.

    Raises:
        BitextmineError: corpora are missing, the same file, or without a line to mine; gold does not fit them; files of
            other programs are in the places of embeddings.
    """
    from bitextmine.encoder import as_encoder

    options, work, texts = options or MiningOptions(), work or WorkOptions(), (src, tgt)
    gold = _check_inputs(texts, options, work, output)
    encoder = as_encoder(model, work.run.device_here)
    # Before the work: not every encoder has pieces to compare.
    scoring = open_scoring(encoder, model, options.wants_rescoring)
    for text in texts:
        _check_place(text, encoder, work)
    made_by: dict[str, object] = {"src": src.lang, "tgt": tgt.lang, "model": encoder.hash}
    with contextlib.ExitStack() as cluster:  # in use until the neighbours are found
        encoding = cluster.enter_context(cluster_encoding(model, encoder, work))
        embeddings = [
            (embedded or {}).get(text) or _embedded(text, encoder, work, encoding, scoring is not None)
            for text in texts
        ]
        del encoder
        sides, cleaning = _cleaned_sides(texts, embeddings, options, work)
        k = _usable_k(sides, options)
        checkpoint = _checkpoint(sides)
        with _unchanged(sides, checkpoint):
            # One neighbour more than the margin needs: the null distribution takes one away.
            spare = 1 if options.estimates_noise else 0
            neighbours, way = find_neighbours(sides[0], sides[1], k + spare, work, checkpoint=checkpoint)
            cluster.close()
            made_by |= {"search": way, "dedup": options.dedup, "clean": signed(cleaning)}
            again = None
            with work.run.progress(None, "compare pieces", "pairs") if scoring else _no_bar() as bar:
                if scoring is not None:
                    again = rescorer(sides, scoring, bar.update)
                    made_by["scorer"] = again.scorer.hash
                context = Context(k, again, made_by, gold)
                mined = mine_sides(sides[0], sides[1], neighbours, options, context)
    return replace(mined, checkpoint=checkpoint)


def _no_bar() -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext()


def _check_inputs(
    texts: Pair, options: MiningOptions, work: WorkOptions, output: str | os.PathLike[str] | None
) -> Gold | None:
    """Refuse bad inputs and outputs before the work; return the gold pairs, if there are any."""
    check_two(*texts)
    if output is not None:
        check_output(output, inputs_of(texts, options.gold), force=work.force)
    langs = (texts[0].lang, texts[1].lang)
    if output is not None:
        output_format(output).check_languages(langs, "the names of the corpora, or --src and --tgt")
    if work.run.executor.distributed and any(text.path is None for text in texts):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    return None if options.gold is None else read_gold(options.gold, work.run.errors)


def _check_place(text: Corpus, encoder: Encoder, work: WorkOptions) -> None:
    """Raise BitextmineError if the embedding of a corpus cannot go to its place."""
    from bitextmine.embeddings.embed import EmbedOptions, check_embedding

    if text.path is not None:
        options = EmbedOptions(cache=work.cache, overwrite=work.force)
        check_embedding(text.path, encoder, options, lang=text.lang)


@contextlib.contextmanager
def cluster_encoding(
    model: str | os.PathLike[str] | Encoder, encoder: Encoder, work: WorkOptions
) -> Iterator[Encoding | None]:
    """Yield the encoding on the cluster, which connects when there is something to embed; None without a cluster."""
    if not work.run.executor.distributed:
        yield None
        return
    from bitextmine.distributed.encoding import ClusterEncoding

    model = model if isinstance(model, (str, os.PathLike)) else encoder
    with ClusterEncoding(work.run.executor, model, work.run.device) as encoding:
        yield encoding


def _embedded(
    text: Corpus, encoder: Encoder, work: WorkOptions, encoding: Encoding | None, keep_pieces: bool
) -> Path | NDArray[Any]:
    """Return the embedding file of a corpus, made if necessary, or the vectors of lines in memory."""
    from bitextmine.embeddings.embed import EmbedOptions, embed_corpus, embed_lines

    if text.path is None:
        return embed_lines(text, encoder, work.run, keep_pieces)
    options = EmbedOptions(
        cache=work.cache, force=work.force, wait=work.wait, encoding=encoding, keep_pieces=keep_pieces
    )
    return embed_corpus(text, encoder, work.run, options)


def embed_all(
    pairs: Sequence[Pair],
    outputs: Sequence[str | os.PathLike[str]],
    encoder: Encoder,
    work: WorkOptions,
    keep_pieces: bool = True,
) -> dict[Corpus, Path]:
    """Return the embedding files of all corpora, made if necessary, for `mine_texts`.

    `keep_pieces` keeps the tokenised lines for rescoring.

    Raises:
        BitextmineError: `mine_texts` would refuse a corpus or an output.
    """
    texts = dict.fromkeys(text for pair in pairs for text in pair)
    for (src, tgt), output in zip(pairs, outputs, strict=True):
        check_two(src, tgt)
        check_output(output, inputs_of(texts), force=work.force)
        output_format(output).check_languages(
            (src.lang, tgt.lang), "the names of the corpora, or --src and --tgt"
        )
    for text in texts:
        _check_place(text, encoder, work)
    with cluster_encoding(encoder, encoder, work) as encoding:
        found = {text: _embedded(text, encoder, work, encoding, keep_pieces) for text in texts}
    return {text: npy for text, npy in found.items() if isinstance(npy, Path)}


def _cleaned_sides(
    texts: Pair, embeddings: Sequence[Path | NDArray[Any]], options: MiningOptions, work: WorkOptions
) -> tuple[tuple[Side, Side], Cleaning | None]:
    memory = work.run.memory
    in_memory = IN_MEMORY if memory is None else min(IN_MEMORY, memory // 8)
    src, tgt = (
        load_side(text, embedding, dedup=options.dedup, in_memory=in_memory)
        for text, embedding in zip(texts, embeddings, strict=True)
    )
    if not options.clean:
        return (src, tgt), None
    cleaning = clean_lines((src, tgt), [text.lang for text in texts])
    src, tgt = (
        side.without(*some)
        for side, some in zip((src, tgt), zip(cleaning.dropped, cleaning.counts, strict=True), strict=True)
    )
    return (src, tgt), cleaning


def _usable_k(sides: Sequence[Side], options: MiningOptions) -> int:
    """Return k, or the number of lines if that is smaller: further neighbours would be empty columns."""
    lines = max(len(side.unique.rows) for side in sides)
    k = max(1, min(options.k, lines))
    if options.k > k > MiningOptions.k:
        log.warning(
            "k %d: the larger corpus has only %s, and a margin over all of them tells little; the default is %d",
            options.k,
            counted(lines, "line"),
            MiningOptions.k,
        )
    return k


def _checkpoint(sides: Sequence[Side]) -> Path | None:
    """Return the place for the progress of exact search: beside the source's embedding, named after both."""
    src, tgt = (side.npy for side in sides)
    return None if src is None or tgt is None else src.with_name(f"{src.stem}-{tgt.stem}.search.part")


@contextlib.contextmanager
def _unchanged(sides: Sequence[Side], checkpoint: Path | None) -> Iterator[None]:
    """Raise BitextmineError at the end of the block if the vectors of a side have changed.

    The checkpoint goes, too: the next search would take it for the neighbours of the right vectors.
    """
    error: BitextmineError | None = None
    try:
        yield
    except BitextmineError as e:  # the change may be its cause
        error = e
    try:
        for side in sides:
            side.check()
    except BitextmineError:
        if checkpoint is not None:
            remove_checkpoint(checkpoint)
        raise
    if error is not None:
        raise error


@dataclass(frozen=True)
class Context:
    """Facts of a run that `mine_sides` takes over.

    Attributes:
        k: neighbours that count (None: `options.k`).
        rescore: gives log odds in place of margins.
        made_by: parts for the head of the signature.
        gold: the known pairs of `options.gold`, if they have been read.
    """

    k: int | None = None
    rescore: Rescorer | None = None
    made_by: Mapping[str, object] | None = None
    gold: Gold | None = None


def mine_sides(
    src: Side,
    tgt: Side,
    neighbours: NeighboursLike,
    options: MiningOptions | None = None,
    context: Context | None = None,
) -> Bitext:
    """Do everything after the search: margins (or log odds), retrieval, threshold, duplicates.

    The neighbours have k columns, and one more if the threshold is estimated.
    """
    options, context = options or MiningOptions(), context or Context()
    k, rescore = context.k or options.k, context.rescore
    check_matching(options.retrieval, k, options.margin)
    best = candidates(neighbours, k, options.margin)
    if src.cleaned and tgt.cleaned:
        copies = near_copies_of(best, (src, tgt), options.margin)
        if len(copies):
            neighbours = without_pairs(neighbours, copies, neighbours.fwd_id.shape[1])
            best = candidates(neighbours, k, options.margin)
    log_odds = None
    if rescore is not None:
        decoys = decoy_log_odds(rescore, (src, tgt))
        log_odds = calibrated(rescore, rescore.scorer.share, best, neighbours, k, decoys)
    pairs = retrieve_scored(best, neighbours, k, options.retrieval, options.margin, log_odds)
    found = _Found((src, tgt), neighbours, best, pairs, k, log_odds)
    gold = context.gold
    if gold is None and options.gold is not None:
        gold = read_gold(options.gold)
    cut = _choose_cut(found, options, gold)
    details: dict[str, Any] = {
        "candidates": len(pairs),
        "threshold": {"value": cut.value, "rule": cut.rule},
        "counts": cut.counts(pairs.score),
        "rows": {"src": src.counts(), "tgt": tgt.counts()},
        **({} if log_odds is None else {"log_odds": log_odds.details()}),
        **cut.details(),
    }
    if cut.value is not None:
        pairs = pairs.take(pairs.score >= cut.value)
    lines = _in_lines(pairs, src, tgt, options.duplicates)
    return Bitext(
        src_index=lines.src,
        tgt_index=lines.tgt,
        score=lines.score,
        src=src.text,
        tgt=tgt.text,
        signature=signature(
            **(context.made_by or {}),
            k=k,
            margin=options.margin,
            retrieval=options.retrieval,
            threshold="none" if cut.value is None else f"{cut.value:.6f}",
            threshold_by=cut.rule,
            duplicates=options.duplicates,
        ),
        details=details,
        notes=(*cleaning_notes((src, tgt)), *cut.notes),
        gold=options.gold,
        estimate=cut.estimate,
    )


@dataclass(frozen=True)
class _Found:
    """The scored pairs of a run, before the cut, and their origin."""

    sides: tuple[Side, Side]
    neighbours: NeighboursLike
    best: BestBothWays
    pairs: ScoredPairs
    k: int
    log_odds: Rescore | None


def _choose_cut(found: _Found, options: MiningOptions, gold: Gold | None) -> Cut:
    """Return the cut that the options ask for.

    Raises:
        BitextmineError: gold is of other corpora, or the corpora are too small for an estimate that is asked for.
    """
    kind, number = rule_of(options.threshold)  # type: ignore[arg-type]
    if kind == "given":
        return Cut(number, kind)
    if kind == "none":
        return Cut(None, kind)
    pairs, sides = found.pairs, found.sides
    if gold is not None:
        assert options.gold is not None
        ends, known = gold_in_rows(gold, sides, options.gold)
        correct = np.isin(pair_codes(pairs.src, pairs.tgt, len(sides[1].unique.rows)), known)
        mentioned = np.isin(pairs.src, ends[0]) | np.isin(pairs.tgt, ends[1])
        return cut_by_gold(pairs.score, correct, mentioned, len(known), options.gold)
    n, m = (len(side.unique.rows) for side in sides)
    if min(n, m) < MIN_LINES:
        few = f"{n} x {m} lines are too few to estimate how noise scores ({MIN_LINES} are needed)"
        if options.threshold != "auto":
            raise NoEstimate(f"--threshold {options.threshold}: {few}; give a number, or --threshold none")
        note = f"no threshold: {few}; cut the pairs with --threshold after a look at the scores"
        return Cut(None, "none", (note,))
    lines, counted_side = (n, "source") if counts_source(n, m, options.retrieval) else (m, "target")
    null = None
    if found.log_odds is None or kind == RATE:
        null = fit_null(
            found.neighbours,
            found.best,
            k=found.k,
            margin=options.margin,
            retrieval=options.retrieval,
            rescore=found.log_odds,
            decoys=lambda: [search_within(side.vectors, found.k, options.margin).margins for side in sides],
        )
    if found.log_odds is not None:
        estimate = Estimate(pairs.score, probability(pairs.score), lines, counted_side)
    else:
        assert null is not None
        estimate = Estimate(null.s1, null.true, lines, counted_side)
    cut = cut_by_estimate(kind, number, estimate, null.threshold if null is not None else lambda rate: 0.0)
    if options.margin != Margin.ABSOLUTE or found.log_odds is not None:
        return cut
    return replace(cut, notes=(*cut.notes, _PLAIN_COSINES))


_PLAIN_COSINES = (
    "plain cosines part true pairs from noise too badly to estimate this well: the rate may be several times lower "
    "than stated; use --margin ratio"
)


def _in_lines(pairs: ScoredPairs, src: Side, tgt: Side, duplicates: Duplicates) -> ScoredPairs:
    """Turn pairs of rows into pairs of lines."""
    every = duplicates == Duplicates.ALL
    if src.dedup == Dedup.NEAR:
        return closest_lines(pairs, src.unique, tgt.unique, src.matrix, tgt.matrix, every=every)
    return (every_line if every else first_lines)(pairs, src.unique, tgt.unique)


def rescorer(
    sides: Sequence[Side], scoring: Scoring, on_pairs: Callable[[int], object] = lambda n: None
) -> Rescorer:
    """Return the rescorer of both sides' candidates; ``on_pairs`` gets the numbers of pairs that are compared."""
    from bitextmine.embeddings.embed import corpus_pieces

    src, tgt = (Sentences(corpus_pieces(side.text, scoring.encoder), side.unique.rows) for side in sides)
    return Rescorer(scoring.pieces, src, tgt, scoring.scorer, on_pairs)
