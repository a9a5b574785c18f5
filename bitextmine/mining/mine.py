"""Mining from end to end: two corpora in, scored sentence pairs out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.declarations import keywords
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.source import Source
from bitextmine.mining.bitext import Bitext, check_output, inputs_of
from bitextmine.mining.calibration import Calibration, calibrate, neutral_score, probability
from bitextmine.mining.cleaning import VERSION, clean_lines, cleaning_notes, near_copies
from bitextmine.mining.dedup import closest_lines, every_line, first_lines
from bitextmine.mining.gold import Gold, gold_in_rows, pair_codes, read_gold
from bitextmine.mining.margin import LOG_ODDS, NEUTRAL, BestBothWays, candidates
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.noise import (
    MIN_LINES,
    Decoys,
    counts_source,
    fit_null,
    removed,
    search_within,
    without_pairs,
)
from bitextmine.mining.options import (
    F_MEASURE,
    PRECISION,
    Dedup,
    Duplicates,
    Margin,
    MiningOptions,
    Retrieval,
    WorkOptions,
    check_matching,
    rule_of,
)
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.piece_features import Sentences
from bitextmine.mining.scorer import Rescorer, Scoring, open_scoring
from bitextmine.mining.second import (
    Evidence,
    Judge,
    Opinion,
    Second,
    SecondFailed,
    consult,
    doubtful,
    fit_to_gold,
    hopeful,
)
from bitextmine.mining.sides import IN_MEMORY, Side, load_side
from bitextmine.mining.texts import Pair, text_of
from bitextmine.mining.threshold import (
    SAMPLE,
    Cut,
    Estimate,
    NoEstimate,
    cut_by_estimate,
    cut_by_gold,
    mentioned_share,
)
from bitextmine.search.checkpoint import remove_checkpoint
from bitextmine.search.neighbours import Neighbours
from bitextmine.shipped import choose_model
from bitextmine.signature import signature
from bitextmine.system import return_freed_memory

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


@keywords
def mine(
    src: Iterable[str] | str | os.PathLike[str],
    tgt: Iterable[str] | str | os.PathLike[str],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "auto",
    options: MiningOptions,
    work: WorkOptions,
) -> Bitext:
    """Find the sentence pairs in two texts, as the command ``mine`` does.

    Lines in memory are embedded there and leave no file behind. Embeddings of corpora in files lie beside them, as the
    command puts them, and are used again. A long search leaves a checkpoint there, which the result's
    ``discard_checkpoint()`` removes.

    Args:
        src: the path of a corpus (one sentence per line, plain or compressed), or the lines themselves.
        tgt: the same in the other language.
        src_lang: the language, for the signature and for cleaning; the suffix of a corpus tells it.
        tgt_lang: the same for the target.
        model: an encoder, or the name of one for `load_encoder`; auto: that of `shipped.choose_model`.
        options: what a pair is; or its fields as keywords, such as ``k`` and ``threshold``, which win over it.
        work: how the work is done; or its fields and those of `Run`, such as ``search`` and ``device``, as keywords.

    Returns:
        The pairs, best first: a `Bitext`, which has a length, iterates over (score, src_line, tgt_line, src, tgt) with
        line numbers from 1, and has ``to_frame()``, ``write(path)``, ``threshold``, ``signature`` and ``notes``.

    Raises:
        BitextmineError: for whatever the command refuses.
        UsageError: a value has the wrong type or is out of range.
        TypeError: an option is unknown.

    >>> en = ["Good morning.", "The train to Paris leaves at noon.", "I do not eat meat."]
    >>> fr = ["Je ne mange pas de viande.", "Bonjour.", "Le train pour Paris part à midi."]
    >>> found = mine(en, fr, src_lang="en", tgt_lang="fr", threshold="none")
    >>> for pair in sorted(found, key=lambda pair: pair.src_line):
    ...     print(pair.src_line, pair.tgt_line, pair.src, pair.tgt, sep=" | ")
    1 | 2 | Good morning. | Bonjour.
    2 | 3 | The train to Paris leaves at noon. | Le train pour Paris part à midi.
    3 | 1 | I do not eat meat. | Je ne mange pas de viande.
    >>> found.to_frame().columns.tolist()
    ['score', 'src_line', 'tgt_line', 'src', 'tgt']
    """
    if src_lang is not None and src_lang == tgt_lang:
        raise UsageError(f"src_lang and tgt_lang are both {src_lang!r}; mining needs two languages")
    source, target = text_of(src, "src", src_lang, work.run), text_of(tgt, "tgt", tgt_lang, work.run)
    return mine_texts((source, target), options, work, model=model)


def mine_all(
    pairs: Sequence[Pair],
    outputs: Sequence[str | os.PathLike[str]],
    options: MiningOptions,
    work: WorkOptions,
    *,
    model: str | os.PathLike[str],
) -> Iterator[tuple[Bitext, str | os.PathLike[str]]]:
    """Yield the pairs of sentences of each pair of corpora, with their output; each corpus is embedded once.

    Raises:
        BitextmineError: as `mine_texts`, for all of them before the work.
        SecondFailed: as `mine_texts`, after the result without the second encoder.
    """
    from bitextmine.encoder import as_encoder, load_encoder

    encoder, embedded = None, None
    model = choose_model(model, [text.lang for pair in pairs for text in pair])
    with contextlib.ExitStack() as stack:
        if len(pairs) > 1:
            stack.enter_context(work.run.executor.open())  # once for all of them
            encoder = load_encoder(model, work.run.device_here)
            rescored = open_scoring(encoder, model, options.wants_rescoring) is not None
            embedded = embed_all(pairs, outputs, encoder, work, rescored)
            if options.second is not None and not work.run.executor.distributed:
                options = replace(options, second=as_encoder(options.second, work.run.device_here))
        for texts, output in zip(pairs, outputs, strict=True):
            try:
                mined = mine_texts(
                    texts, options, work, model=encoder or model, output=output, embedded=embedded
                )
            except SecondFailed as e:
                yield e.first, output
                raise
            yield mined, output


def mine_texts(
    texts: Pair,
    options: MiningOptions | None = None,
    work: WorkOptions | None = None,
    *,
    model: str | os.PathLike[str] | Encoder = "auto",
    output: str | os.PathLike[str] | None = None,
    embedded: Mapping[Corpus, Path | NDArray[Any]] | None = None,
) -> Bitext:
    """Mine sentence pairs from two corpora; write them with the result's ``write``.

    Embeddings of corpora in files lie beside them; those that are missing, or of another text or model, are made now.
    Lines in memory are embedded there. Exact search that takes more than seconds keeps its progress in a file beside
    the source's embedding, from which an interrupted run resumes; `Bitext.discard_checkpoint` removes it.

    Args:
        texts: source and target.
        options: the definition of a pair.
        work: how the work is done.
        model: an encoder, or the name of one for `load_encoder`; auto: that of `shipped.choose_model`.
        output: the later output, to refuse it before the work if it would destroy an input.
        embedded: embeddings of both corpora that `embed_all` has just made.

    Raises:
        BitextmineError: corpora are missing, the same file, or without a line to mine; gold does not fit them; files of
            other programs are in the places of embeddings.
        SecondFailed: the second encoder fails; the error has the result without it.
    """
    from bitextmine.distributed.encoding import ClusterEncoding
    from bitextmine.encoder import as_encoder

    options, work, (src, tgt) = options or MiningOptions(), work or WorkOptions(), texts
    if embedded is None:
        _check_inputs([texts], [output], work, options.gold)
    gold = None if options.gold is None else read_gold(Source.of(options.gold, work.run))
    model = choose_model(model, (src.lang, tgt.lang))
    encoder = as_encoder(model, work.run.device_here)
    # Before the work: not every encoder has pieces to compare.
    scoring = open_scoring(encoder, model, options.wants_rescoring)
    second = None
    if options.second is not None:
        if scoring is None:
            raise BitextmineError(
                f"--second judges log odds, and the encoder {encoder.name} has no scorer for them: add --rescore, or "
                "name an encoder that has one"
            )
        other = as_encoder(options.second, work.run.device_here)
        second = Second(other, options.second_budget, work.run, work.cache)
    with contextlib.ExitStack() as cluster:
        cluster.enter_context(work.run.executor.open())
        embedded = embedded or embed_all([texts], [output], encoder, work, scoring is not None)
        if options.second is not None and second is not None and work.run.executor.distributed:
            there = cluster.enter_context(ClusterEncoding(work.run.executor, second.encoder, work.run.device))
            second = replace(second, elsewhere=there.vectors)
        made_by: dict[str, object] = {"src": src.lang, "tgt": tgt.lang, "model": encoder.hash}
        del encoder
        sides, cleaning = _cleaned_sides(texts, [embedded[text] for text in texts], options, work)
        # Neighbours beyond the number of lines would be empty columns.
        k = max(1, min(options.k, max(len(side.unique.rows) for side in sides)))
        checkpoint = _checkpoint(sides)
        with _unchanged(sides, checkpoint), contextlib.ExitStack() as during:
            # One neighbour more than the margin needs: noise shows where a pair is taken away.
            spare = 1 if options.estimates_noise or scoring is not None else 0
            with ThreadPoolExecutor(1, thread_name_prefix="tokenise") as pool:
                cut = None if scoring is None else pool.submit(_tokenise, sides, scoring)
                neighbours, way = find_neighbours(sides[0], sides[1], k + spare, work, checkpoint=checkpoint)
            if second is None:
                cluster.close()
            made_by |= {"search": way, "dedup": options.dedup, "clean": cleaning}
            rescore = None
            if scoring is not None and cut is not None:
                made_by["scorer"] = scoring.scorer.hash
                bar = during.enter_context(work.run.progress(None, "compare pieces", "pairs"))
                rescore = Rescorer(scoring.pieces, *cut.result(), scoring.scorer, bar.update)
                scoring = cut = None  # the tokenizer is no longer needed
                return_freed_memory()
            mined = mine_sides(*sides, neighbours, options, Basis(k, rescore, made_by, gold, second))
    return replace(mined, checkpoint=checkpoint)


def _tokenise(sides: tuple[Side, Side], scoring: Scoring) -> tuple[Sentences, Sentences]:
    """Return the pieces of both sides' rows, for rescoring."""
    import scipy.optimize  # noqa: F401  # takes a tenth of a second, which the calibration then need not wait for

    from bitextmine.embeddings.embed import corpus_pieces

    src, tgt = (Sentences(corpus_pieces(side.text, scoring.encoder), side.unique.rows) for side in sides)
    return src, tgt


def embed_all(
    pairs: Sequence[Pair],
    outputs: Sequence[str | os.PathLike[str] | None],
    encoder: Encoder,
    work: WorkOptions,
    keep_pieces: bool = True,
) -> dict[Corpus, Path | NDArray[Any]]:
    """Return the embeddings of all corpora, made if necessary, for `mine_texts`: a file, or vectors of lines in memory.

    `keep_pieces` keeps the tokenised lines for rescoring. BitextmineError: `mine_texts`
    would refuse a corpus or an output.
    """
    from bitextmine.distributed.encoding import encoding_of
    from bitextmine.embeddings.embed import check_embedding, check_lines, embed_corpus, embed_lines

    _check_inputs(pairs, outputs, work)
    options = EmbedOptions(cache=work.cache, force=work.force, keep_pieces=keep_pieces)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    for text in texts:
        if text.source is not None:
            check_embedding(text.source, encoder, options, lang=text.lang)
    for text in texts:  # before the first is embedded
        if text.source is not None:
            check_lines(text, text.name)
    run = work.run
    with encoding_of(run, encoder) as encoding:
        return {
            text: embed_lines(text, encoder, run, keep_pieces)
            if text.source is None
            else embed_corpus(text, encoder, run, options, encoding=encoding)
            for text in texts
        }


def _check_inputs(
    pairs: Sequence[Pair],
    outputs: Sequence[str | os.PathLike[str] | None],
    work: WorkOptions,
    gold: str | os.PathLike[str] | None = None,
) -> None:
    """Refuse bad inputs and outputs before the work."""
    texts = [text for pair in pairs for text in pair]
    for (src, tgt), output in zip(pairs, outputs, strict=True):
        if src.source and tgt.source and src.source.identity == tgt.source.identity:
            raise BitextmineError(f"{src.source}: is both the source and the target corpus; mining needs two")
        if output is not None:
            check_output(output, (src.lang, tgt.lang), inputs_of(texts, gold), force=work.force)
    if work.run.executor.distributed and any(text.source is None for text in texts):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")


def _cleaned_sides(
    texts: Pair, embeddings: Sequence[Path | NDArray[Any]], options: MiningOptions, work: WorkOptions
) -> tuple[tuple[Side, Side], str]:
    """Return both sides without the lines that the rules leave out, and the rules for the signature."""
    memory = work.run.memory
    in_memory = IN_MEMORY if memory is None else min(IN_MEMORY, memory // 8)
    src, tgt = (
        load_side(text, embedding, dedup=options.dedup, in_memory=in_memory)
        for text, embedding in zip(texts, embeddings, strict=True)
    )
    if not options.clean:
        return (src, tgt), "none"
    found = clean_lines((src, tgt), [text.lang for text in texts])
    return_freed_memory()  # of millions of words; the search needs large blocks
    src, tgt = (
        side.without(dropped, counts)
        for side, dropped, counts in zip((src, tgt), found.dropped, found.counts, strict=True)
    )
    return (src, tgt), f"{VERSION}-languages" if found.identified else VERSION


def _checkpoint(sides: Sequence[Side]) -> Path | None:
    """Return the place for the progress of exact search: beside the source's embedding, named after both."""
    src, tgt = (side.npy for side in sides)
    return None if src is None or tgt is None else src.with_name(f"{src.stem}-{tgt.stem}.search.part")


@contextlib.contextmanager
def _unchanged(sides: Sequence[Side], checkpoint: Path | None) -> Iterator[None]:
    """Raise BitextmineError, and drop the checkpoint, if the vectors of a side have changed during the block."""
    try:
        yield
    finally:  # also after an error, whose cause the change may be
        try:
            for side in sides:
                side.check()
        except BitextmineError:
            if checkpoint is not None:
                remove_checkpoint(checkpoint)
            raise


@dataclass(frozen=True)
class Basis:
    """The basis of pairs, beside the neighbours.

    Attributes:
        k: neighbours that count (None: those of the options).
        rescore: gives log odds in place of margins.
        made_by: parts for the head of the signature.
        gold: the known pairs of the options, if they have been read.
        second: an encoder for the pairs in doubt.
    """

    k: int | None = None
    rescore: Rescorer | None = None
    made_by: Mapping[str, object] = field(default_factory=dict)
    gold: Gold | None = None
    second: Second | None = None


def mine_sides(
    src: Side,
    tgt: Side,
    neighbours: Neighbours,
    options: MiningOptions | None = None,
    basis: Basis | None = None,
) -> Bitext:
    """Do everything after the search: candidates, their scores, the cut.

    The neighbours have k columns, and one more to rescore or to estimate a threshold. SecondFailed: the second encoder
    fails; the error has the result without it.
    """
    options, basis, sides = options or MiningOptions(), basis or Basis(), (src, tgt)
    wanted, k = options.k, basis.k or options.k
    options = replace(options, k=k)
    check_matching(options.retrieval, k, options.margin)
    candidates = find_candidates(sides, neighbours, options)
    scored = score_candidates(candidates, sides, options, basis.rescore)
    gold = basis.gold or (None if options.gold is None else read_gold(options.gold))
    basis = replace(basis, gold=gold)

    def result(scored: Scored, notes: tuple[str, ...] = ()) -> Bitext:
        return _result(candidates, scored, sides, options, basis, (*_clamped(k, wanted), *notes))

    if basis.second is None:
        return result(scored)
    try:
        asked = ask_second(basis.second, candidates, scored, sides, options, basis)
    except BitextmineError as e:
        remedy = "the pairs are those of the first encoder alone; run the same command again to go on"
        raise SecondFailed(f"{e}; {remedy}", result(scored, (f"warning: {e}",))) from e
    assert asked.opinion is not None
    width = len(tgt.unique.rows)
    kept = [_likely(some, options, gold) for some in (scored, asked)]
    before, after = (pair_codes(pairs.src, pairs.tgt, width) for pairs in kept)
    changed = np.setxor1d(before, after)
    return result(asked, (asked.opinion.note(len(src.unique.rows) + width, len(changed)),))


def _result(
    candidates: Candidates,
    scored: Scored,
    sides: tuple[Side, Side],
    options: MiningOptions,
    basis: Basis,
    notes: tuple[str, ...],
) -> Bitext:
    """Return the pairs above the cut that the options ask for."""
    (src, tgt), k = sides, options.k
    cut = choose_cut(candidates, scored, sides, options, basis.gold)
    pairs, calibration = scored.pairs, scored.calibration
    details: dict[str, Any] = {
        "candidates": len(pairs),
        "threshold": {"value": cut.value, "rule": cut.rule},
        "counts": cut.counts(pairs.score),
        "rows": {"src": src.counts(), "tgt": tgt.counts()},
        **({} if calibration is None else {"log_odds": calibration.details()}),
        **({} if scored.opinion is None else {"second": scored.opinion.details()}),
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
            **basis.made_by,
            **({} if scored.opinion is None else {"second": scored.opinion.hash}),
            k=k,
            margin=options.margin,
            retrieval=options.retrieval,
            threshold="none" if cut.value is None else f"{cut.value:.6f}",
            threshold_by=cut.rule,
            duplicates=options.duplicates,
        ),
        details=details,
        notes=(*cleaning_notes(sides), *notes, *cut.notes),
        gold=options.gold,
        estimate=cut.estimate,
    )


@dataclass(frozen=True)
class Candidates:
    """The neighbours of both sides' rows, and the best candidate of each row by margin."""

    neighbours: Neighbours
    best: BestBothWays


def find_candidates(sides: tuple[Side, Side], neighbours: Neighbours, options: MiningOptions) -> Candidates:
    """Return the candidates, without near copies if both sides lost lines to cleaning.

    Only the one-to-one pairs that stand out from their neighbourhoods are compared.
    """
    k, margin = options.k, options.margin
    best = candidates(neighbours, k, margin)
    if not all(side.cleaned for side in sides):
        return Candidates(neighbours, best)
    compared = np.zeros(0, dtype=np.int64)
    for _ in range(k):  # the neighbour that moves up may be a copy, too
        pairs = retrieve(best, Retrieval.MAX, margin)
        codes = pair_codes(pairs.src, pairs.tgt, len(sides[1].unique.rows))
        new = (pairs.score > NEUTRAL[margin]) & ~np.isin(codes, compared)
        pairs, compared = pairs.take(new), np.concatenate([compared, codes[new]])
        copies = pairs.take(near_copies(pairs, sides))
        if not len(copies):
            break
        neighbours = without_pairs(neighbours, copies, neighbours.fwd_id.shape[1])
        best = candidates(neighbours, k, margin)
    return Candidates(neighbours, best)


@dataclass(frozen=True)
class Scored:
    """The retrieved pairs, best first, by margin or by calibrated log odds.

    Attributes:
        pairs: the pairs.
        calibration: that of the log odds; None by margin.
        best: the best candidates of all rows with these log odds; None by margin.
        opinion: that of a second encoder, if it was asked.
    """

    pairs: ScoredPairs
    calibration: Calibration | None = None
    best: BestBothWays | None = None
    opinion: Opinion | None = None


def score_candidates(
    found: Candidates, sides: tuple[Side, Side], options: MiningOptions, rescorer: Rescorer | None
) -> Scored:
    """Return the pairs by margin, or with a rescorer by its log odds, calibrated to these corpora."""
    if rescorer is None:
        return Scored(retrieve(found.best, options.retrieval, options.margin))
    k, neighbours, lines = options.k, found.neighbours, [len(side.unique.rows) for side in sides]
    raw = rescorer(found.best, neighbours, k)
    pairs, share = retrieve(raw, Retrieval.MAX, LOG_ODDS), rescorer.scorer.share
    if not all(side.cleaned for side in sides):
        pairs = pairs.take(~near_copies(pairs, sides))
    likely = pairs.take(pairs.score >= neutral_score(pairs.score, share))
    taken = removed(likely, neighbours, k, options.margin, rescorer) if min(lines) >= MIN_LINES else ()
    calibration = calibrate(pairs.score, share, lines, taken)
    best = calibration.apply(raw)
    return Scored(retrieve(best, options.retrieval, LOG_ODDS), calibration, best)


def ask_second(
    second: Second,
    found: Candidates,
    scored: Scored,
    sides: tuple[Side, Side],
    options: MiningOptions,
    basis: Basis,
) -> Scored:
    """Return the pairs chosen again with a second encoder's opinion on those in doubt; BitextmineError if it fails."""
    best, calibration, rescorer = scored.best, scored.calibration, basis.rescore
    assert best is not None and calibration is not None and rescorer is not None
    pairs = hopeful(best, found.neighbours, options.k)
    if not all(side.cleaned for side in sides):
        pairs = pairs.take(~near_copies(pairs, sides))
    raw = rescorer.scores(pairs.src, pairs.tgt, pairs.score, found.neighbours, options.k)
    pairs = ScoredPairs(pairs.src, pairs.tgt, calibration.log_odds(raw))
    lines, width = [len(side.unique.rows) for side in sides], len(sides[1].unique.rows)
    likely = _likely(scored, options, basis.gold)
    kept = np.isin(pair_codes(pairs.src, pairs.tgt, width), pair_codes(likely.src, likely.tgt, width))
    decisions = len(likely) + float(probability(scored.pairs.score).sum())
    asked = doubtful(pairs, kept, decisions, second.budget * sum(lines))
    judge = None if basis.gold is None else _judge(basis.gold, sides, scored, options)
    opinion = consult(second, sides, best, pairs, asked, judge)
    again = retrieve(opinion.best, options.retrieval, LOG_ODDS)
    return replace(scored, pairs=again, best=opinion.best, opinion=opinion)


def _likely(scored: Scored, options: MiningOptions, gold: Gold | None) -> ScoredPairs:
    """Return the pairs that the threshold keeps, those above even odds if that takes more than their scores."""
    pairs = scored.pairs
    kind, number = rule_of(options.threshold)  # type: ignore[arg-type]
    value = number if kind == "given" else 0.0
    if gold is None and kind in (F_MEASURE, PRECISION):
        assert scored.calibration is not None
        estimate = Estimate(pairs.score, probability(pairs.score), 0, "", scored.calibration.unseen)
        cut = estimate.at_f(number) if kind == F_MEASURE else estimate.at_precision(number)
        value = 0.0 if cut is None else cut
    return pairs.take(pairs.score >= value)


def _judge(gold: Gold, sides: tuple[Side, Side], scored: Scored, options: MiningOptions) -> Judge:
    """Return a fit to the gold pairs; of a sample, only pairs with a line that it mentions are judged."""
    assert options.gold is not None
    ends, known = gold_in_rows(gold, sides, options.gold)
    width = len(sides[1].unique.rows)

    def marks(pairs: ScoredPairs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        correct = np.isin(pair_codes(pairs.src, pairs.tgt, width), known)
        return correct, np.isin(pairs.src, ends[0]) | np.isin(pairs.tgt, ends[1])

    sample = mentioned_share(scored.pairs.score, *marks(scored.pairs)) < SAMPLE

    def judge(pairs: ScoredPairs, evidence: NDArray[np.float64]) -> Evidence:
        correct, mentioned = marks(pairs)
        some = mentioned if sample else np.ones(len(pairs), dtype=bool)
        return fit_to_gold(pairs.score[some], evidence[some], correct[some])

    return judge


def choose_cut(
    found: Candidates, scored: Scored, sides: tuple[Side, Side], options: MiningOptions, gold: Gold | None
) -> Cut:
    """Return the cut that the options ask for; BitextmineError if they ask for one that cannot be had."""
    pairs = scored.pairs
    kind, number = rule_of(options.threshold)  # type: ignore[arg-type]
    if kind in ("given", "none"):
        return Cut(number if kind == "given" else None, kind)
    n, m = (len(side.unique.rows) for side in sides)
    if gold is not None:
        assert options.gold is not None
        ends, known = gold_in_rows(gold, sides, options.gold)
        correct = np.isin(pair_codes(pairs.src, pairs.tgt, m), known)
        mentioned = np.isin(pairs.src, ends[0]) | np.isin(pairs.tgt, ends[1])
        return cut_by_gold(pairs.score, correct, mentioned, len(known), options.gold)
    if min(n, m) < MIN_LINES:
        few = f"{n} x {m} lines are too few to estimate how noise scores ({MIN_LINES} are needed)"
        if options.threshold != "auto":
            raise NoEstimate(f"--threshold {options.threshold}: {few}; give a number, or --threshold none")
        note = f"no threshold: {few}; cut the pairs with --threshold after a look at the scores"
        return Cut(None, "none", (note,))
    if doubt := _doubt(options, min(n, m)):
        if options.threshold != "auto":
            raise NoEstimate(f"--threshold {options.threshold}: no estimate: {doubt}; use -k 4")
        return Cut(None, "none", (f"warning: no threshold and no estimate: {doubt}; use -k 4",))
    cut = cut_by_estimate(kind, number, estimate_pairs(found, scored, sides, options))
    if options.margin != Margin.ABSOLUTE or scored.calibration is not None:
        return cut
    return replace(cut, notes=(*cut.notes, _PLAIN_COSINES))


def estimate_pairs(
    found: Candidates, scored: Scored, sides: tuple[Side, Side], options: MiningOptions
) -> Estimate:
    """Return the scores of the pairs, and the probabilities that they are true."""
    n, m = (len(side.unique.rows) for side in sides)
    if scored.calibration is None:

        def decoys() -> list[Decoys]:
            return [search_within(side.vectors, options.k, options.margin) for side in sides]

        return fit_null(found.neighbours, found.best, decoys, options)
    lines, counted_side = (n, "source") if counts_source(n, m, options.retrieval) else (m, "target")
    pairs = scored.pairs
    true = probability(pairs.score)
    if not all(side.cleaned for side in sides):  # copies look like the best of translations
        true[near_copies(pairs, sides)] = 0
    return Estimate(pairs.score, true, lines, counted_side, scored.calibration.unseen)


def _doubt(options: MiningOptions, lines: int) -> str:
    """Return the reason why margins allow no estimate; empty if they do."""
    if options.k == 1 and options.margin != Margin.ABSOLUTE:
        return "with one neighbour every pair of nearest lines has the same margin, right or wrong"
    if 2 * options.k > lines:
        return f"{options.k:,} neighbours are most of the {lines:,} lines, so margins tell little"
    return ""


_PLAIN_COSINES = (
    "plain cosine separates true pairs from noise too poorly for a reliable estimate: the true rate may be several "
    "times lower; use --margin ratio"
)


def _clamped(k: int, wanted: int) -> list[str]:
    """Return a note if there are fewer neighbours than were asked for; of the default nobody asked."""
    if wanted in (k, MiningOptions.k):
        return []
    return [f"warning: -k {wanted:,}: the corpora have {counted(k, 'line')} to search, so k is {k:,}"]


def _in_lines(pairs: ScoredPairs, src: Side, tgt: Side, duplicates: Duplicates) -> ScoredPairs:
    """Turn pairs of rows into pairs of lines."""
    every = duplicates == Duplicates.ALL
    if src.dedup == Dedup.NEAR:
        return closest_lines(pairs, src.unique, tgt.unique, src.matrix, tgt.matrix, every=every)
    return (every_line if every else first_lines)(pairs, src.unique, tgt.unique)
