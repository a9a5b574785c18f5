"""Mining from end to end: two corpora in, scored sentence pairs out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.declarations import keywords
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.source import Source
from bitextmine.mining.bitext import Bitext, check_output, inputs_of
from bitextmine.mining.calibration import Calibration, Removed, calibrate, neutral_score, probability
from bitextmine.mining.cleaning import clean_sides, cleaning_notes, near_copies
from bitextmine.mining.dedup import closest_lines, every_line, first_lines
from bitextmine.mining.gold import Gold, GoldRows, pair_codes, read_gold
from bitextmine.mining.margin import LOG_ODDS, NEUTRAL, BestBothWays, candidates
from bitextmine.mining.neighbours import find_neighbours, progress_path
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
)
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.piece_features import Sentences
from bitextmine.mining.scorer import Rescorer, Scoring, open_scoring
from bitextmine.mining.second import (
    Evidence,
    Opinion,
    Second,
    SecondFailed,
    consult,
    doubtful,
    fit_to_gold,
    hopeful,
    within_lines,
)
from bitextmine.mining.sides import IN_MEMORY, Sides, load_side
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
from bitextmine.run import Run
from bitextmine.search.checkpoint import remove_checkpoint
from bitextmine.search.neighbours import Neighbours
from bitextmine.shipped import choose_model
from bitextmine.signature import signature
from bitextmine.system import return_freed_memory

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

Output = str | os.PathLike[str] | None
_PLAIN_COSINES = (
    "plain cosine separates true pairs from noise too poorly for a reliable estimate: the true rate may be several "
    "times lower; use --margin ratio"
)


@keywords
def mine(
    src: Iterable[str] | str | os.PathLike[str],
    tgt: Iterable[str] | str | os.PathLike[str],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "auto",
    options: MiningOptions,
    run: Run,
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
        run: resources; or its fields, such as ``device``.

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
    source, target = text_of(src, "src", src_lang, run), text_of(tgt, "tgt", tgt_lang, run)
    [bitext] = mine_all([(source, target)], [None], options, run, model=model)
    return bitext


def mine_all(
    pairs: Sequence[Pair],
    outputs: Sequence[Output],
    options: MiningOptions,
    run: Run,
    *,
    model: str | os.PathLike[str] | Encoder = "auto",
) -> Iterator[Bitext]:
    """Yield the pairs of sentences of each pair of corpora; each corpus is embedded once.

    Embeddings of corpora in files lie beside them; those that are missing, or of another text or model, are made now.
    Exact search that takes more than seconds keeps its progress in a file beside the source's embedding, from which an
    interrupted run resumes; `Bitext.discard_checkpoint` removes it. Outputs (None: unknown) that would destroy an input
    are refused before the work.

    Raises:
        BitextmineError: corpora are missing, the same file, or without a line to mine; gold does not fit them; files of
            other programs are in the places of embeddings.
        SecondFailed: the second encoder fails, after the result without it.
    """
    from bitextmine.distributed.encoding import encoding_of
    from bitextmine.encoder import load_encoder

    _check_inputs(pairs, outputs, options, run)
    gold = None if options.gold is None else read_gold(Source.of(options.gold, run))
    model = choose_model(model, [text.lang for pair in pairs for text in pair])
    encoder = load_encoder(model, run.device_here)
    # Before the work: not every encoder has pieces to compare.
    scoring = open_scoring(encoder, model, options.wants_rescoring)
    if options.second is not None and scoring is None:
        raise BitextmineError(
            f"--second judges log odds, and the encoder {encoder.name} has no scorer for them: add --rescore, or "
            "name an encoder that has one"
        )
    other = None if options.second is None else load_encoder(options.second, run.device_here)
    with contextlib.ExitStack() as cluster:
        cluster.enter_context(run.executor.open())
        embeddings = _embed_all(pairs, encoder, options, run, keep_pieces=scoring is not None)
        there = cluster.enter_context(encoding_of(run, other))
        elsewhere = None if there is None else there.vectors
        second = (
            None if other is None else Second(other, options.second_budget, run, options.cache, elsewhere)
        )
        model_hash = encoder.hash
        del encoder
        for texts in pairs:
            sides, cleaning = _cleaned_sides(texts, [embeddings[text] for text in texts], options, run)
            try:
                yield _mine_pair(sides, options, run, scoring, gold, second, (model_hash, cleaning))
            except SecondFailed as e:
                yield e.first
                raise


def _check_inputs(pairs: Sequence[Pair], outputs: Sequence[Output], options: MiningOptions, run: Run) -> None:
    texts = [text for pair in pairs for text in pair]
    for (src, tgt), output in zip(pairs, outputs, strict=True):
        if src.source and tgt.source and src.source.identity == tgt.source.identity:
            raise BitextmineError(f"{src.source}: is both the source and the target corpus; mining needs two")
        if output is not None:
            check_output(output, (src.lang, tgt.lang), inputs_of(texts, options.gold), force=options.force)
    if run.executor.distributed and any(text.source is None for text in texts):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")


def _embed_all(
    pairs: Sequence[Pair], encoder: Encoder, mining: MiningOptions, run: Run, *, keep_pieces: bool
) -> dict[Corpus, Path | NDArray[Any]]:
    """Return the embeddings of all corpora, made if necessary: a file, or vectors of lines in memory.

    `keep_pieces` keeps the tokenised lines for rescoring.
    """
    from bitextmine.distributed.encoding import encoding_of
    from bitextmine.embeddings.embed import check_embedding, check_lines, embed_corpus, embed_lines

    options = EmbedOptions(cache=mining.cache, force=mining.force, keep_pieces=keep_pieces)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    files = [(text, text.source) for text in texts if text.source is not None]
    for text, source in files:
        check_embedding(source, encoder, options, lang=text.lang)
    for text, _ in files:  # before the first is embedded
        check_lines(text, text.name)
    with encoding_of(run, encoder) as encoding:
        return {
            text: embed_lines(text, encoder, run, keep_pieces)
            if text.source is None
            else embed_corpus(text, encoder, run, options, encoding=encoding)
            for text in texts
        }


def _cleaned_sides(
    texts: Pair, embeddings: Sequence[Path | NDArray[Any]], options: MiningOptions, run: Run
) -> tuple[Sides, str]:
    """Return both sides without the lines that the rules leave out, and the rules for the signature."""
    in_memory = IN_MEMORY if run.memory is None else min(IN_MEMORY, run.memory // 8)
    src, tgt = (
        load_side(text, embedding, dedup=options.dedup, in_memory=in_memory)
        for text, embedding in zip(texts, embeddings, strict=True)
    )
    if not options.clean:
        return (src, tgt), "none"
    sides, version = clean_sides((src, tgt))
    return_freed_memory()  # of millions of words; the search needs large blocks
    return sides, version


def _mine_pair(
    sides: Sides,
    options: MiningOptions,
    run: Run,
    scoring: Scoring | None,
    gold: Gold | None,
    second: Second | None,
    hashes: tuple[str, str],
) -> Bitext:
    """Search the neighbours of two sides, tokenise their lines meanwhile, and mine them.

    `hashes` are those of the encoder and of the cleaning, for the signature.
    """
    # Neighbours beyond the number of lines would be empty columns.
    options = replace(options, k=max(1, min(options.k, max(len(side.unique.rows) for side in sides))))
    checkpoint = progress_path(sides)
    with _unchanged(sides, checkpoint), contextlib.ExitStack() as during:
        # One neighbour more than the margin needs: noise shows where a pair is taken away.
        k = options.k + (options.estimates_noise or scoring is not None)
        with ThreadPoolExecutor(1, thread_name_prefix="tokenise") as pool:
            tokenised = None if scoring is None else pool.submit(_tokenise, sides, scoring)
            neighbours, way = find_neighbours(sides, k, options.search, run)
        src, tgt = (side.text.lang for side in sides)
        made_by: dict[str, object] = {"src": src, "tgt": tgt, "model": hashes[0], "search": way}
        made_by |= {"dedup": options.dedup, "clean": hashes[1]}
        rescorer = None
        if scoring is not None and tokenised is not None:
            made_by["scorer"] = scoring.scorer.hash
            bar = during.enter_context(run.progress(None, "compare pieces", "pairs"))
            rescorer = Rescorer(scoring.pieces, *tokenised.result(), scoring.scorer, bar.update)
            return_freed_memory()
        mined = mine_sides(
            sides, neighbours, options, rescorer=rescorer, gold=gold, second=second, made_by=made_by
        )
    return replace(mined, checkpoint=checkpoint)


def _tokenise(sides: Sides, scoring: Scoring) -> tuple[Sentences, Sentences]:
    import scipy.optimize  # noqa: F401  # takes a tenth of a second, which the calibration then need not wait for

    from bitextmine.embeddings.embed import corpus_pieces

    src, tgt = (Sentences(corpus_pieces(side.text, scoring.encoder), side.unique.rows) for side in sides)
    return src, tgt


@contextlib.contextmanager
def _unchanged(sides: Sides, checkpoint: Path | None) -> Iterator[None]:
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


# --- the steps after the search: candidates, their scores, the cut ---


def mine_sides(
    sides: Sides,
    neighbours: Neighbours,
    options: MiningOptions,
    *,
    rescorer: Rescorer | None = None,
    gold: Gold | None = None,
    second: Second | None = None,
    made_by: Mapping[str, object] | None = None,
) -> Bitext:
    """Do everything after the search; `made_by` are parts for the head of the signature.

    The sides have options.k neighbours, and one more to rescore or to estimate a threshold.

    Raises:
        BitextmineError: the options ask for a threshold that cannot be had.
        SecondFailed: the second encoder fails; the error has the result without it.
    """
    known = None if gold is None else GoldRows.of(gold, sides)
    candidates = find_candidates(sides, neighbours, options)
    scored = score_candidates(candidates, rescorer)

    def result(scored: Scored, *notes: str) -> Bitext:
        return _bitext(scored, choose_cut(scored, known), made_by or {}, notes)

    if second is None:
        return result(scored)
    try:
        asked = ask_second(second, scored, known)
    except BitextmineError as e:
        remedy = "the pairs are those of the first encoder alone; run the same command again to go on"
        raise SecondFailed(f"{e}; {remedy}", result(scored, f"warning: {e}")) from e
    assert asked.opinion is not None
    before, after = (candidates.codes(_likely(each, known)) for each in (scored, asked))
    return result(asked, asked.opinion.note(sum(candidates.lines), len(np.setxor1d(before, after))))


@dataclass(frozen=True)
class Candidates:
    """The neighbours of both sides' rows, and the best candidate of each row by margin."""

    sides: Sides
    options: MiningOptions
    neighbours: Neighbours
    best: BestBothWays

    @property
    def lines(self) -> tuple[int, int]:
        """Return the numbers of rows of both sides."""
        src, tgt = self.sides
        return len(src.unique.rows), len(tgt.unique.rows)

    def codes(self, pairs: ScoredPairs) -> NDArray[np.int64]:
        """Return one number per pair, for set operations."""
        return pair_codes(pairs.src, pairs.tgt, self.lines[1])

    def copies(self, pairs: ScoredPairs) -> NDArray[np.bool_]:
        """Return a mask (p,) of near copies, which look like translations, if cleaning has not taken them away."""
        if all(side.cleaned for side in self.sides):
            return np.zeros(len(pairs), dtype=bool)
        return near_copies(pairs, self.sides)


def find_candidates(sides: Sides, neighbours: Neighbours, options: MiningOptions) -> Candidates:
    """Return the candidates, without near copies if both sides lost lines to cleaning.

    Only the one-to-one pairs that stand out from their neighbourhoods are compared.
    """
    k, margin = options.k, options.margin
    found = Candidates(sides, options, neighbours, candidates(neighbours, k, margin))
    if not all(side.cleaned for side in sides):
        return found
    compared = np.zeros(0, dtype=np.int64)
    for _ in range(k):  # the neighbour that moves up may be a copy, too
        pairs = retrieve(found.best, Retrieval.MAX, margin)
        codes = found.codes(pairs)
        new = (pairs.score > NEUTRAL[margin]) & ~np.isin(codes, compared)
        pairs, compared = pairs.take(new), np.concatenate([compared, codes[new]])
        copies = pairs.take(near_copies(pairs, sides))
        if not len(copies):
            break
        neighbours = without_pairs(neighbours, copies, neighbours.fwd_id.shape[1])
        found = replace(found, neighbours=neighbours, best=candidates(neighbours, k, margin))
    return found


@dataclass(frozen=True)
class Scored:
    """The retrieved pairs, best first, by margin or by a rescorer's calibrated log odds.

    `best` are the best candidates of all rows, with these scores; `opinion` is a second encoder's, if it was asked.
    """

    of: Candidates
    pairs: ScoredPairs
    best: BestBothWays
    rescorer: Rescorer | None = None
    calibration: Calibration | None = None
    opinion: Opinion | None = None


def score_candidates(found: Candidates, rescorer: Rescorer | None = None) -> Scored:
    """Return the pairs by margin, or with a rescorer by its log odds, calibrated to these corpora."""
    options, neighbours = found.options, found.neighbours
    if rescorer is None:
        return Scored(found, retrieve(found.best, options.retrieval, options.margin), found.best)
    raw, share = rescorer(found.best, neighbours, options.k), rescorer.scorer.share
    pairs = retrieve(raw, Retrieval.MAX, LOG_ODDS)
    pairs = pairs.take(~found.copies(pairs))
    taken: tuple[Removed, ...] = ()
    if min(found.lines) >= MIN_LINES:
        likely = pairs.take(pairs.score >= neutral_score(pairs.score, share))
        taken = removed(likely, neighbours, options.k, options.margin, rescorer)
    calibration = calibrate(pairs.score, share, found.lines, taken)
    best = calibration.apply(raw)
    return Scored(found, retrieve(best, options.retrieval, LOG_ODDS), best, rescorer, calibration)


def ask_second(second: Second, scored: Scored, gold: GoldRows | None) -> Scored:
    """Return the pairs chosen again with a second encoder's opinion on those in doubt; BitextmineError if it fails."""
    found, calibration, rescorer = scored.of, scored.calibration, scored.rescorer
    assert calibration is not None and rescorer is not None
    neighbours, k = found.neighbours, found.options.k
    pairs = hopeful(scored.best, neighbours, k)
    pairs = pairs.take(~found.copies(pairs))
    raw = rescorer.scores(pairs.src, pairs.tgt, pairs.score, neighbours, k)
    pairs = ScoredPairs(pairs.src, pairs.tgt, calibration.log_odds(raw))
    likely = _likely(scored, gold)
    kept = np.isin(found.codes(pairs), found.codes(likely))
    decisions = len(likely) + float(probability(scored.pairs.score).sum())
    asked = doubtful(pairs, kept, decisions)
    asked = within_lines(pairs, asked, second.most_lines(pairs.take(asked), found.sides))
    judge = None
    if gold is not None:
        sample = mentioned_share(scored.pairs.score, *gold.marks(scored.pairs)) < SAMPLE

        def judge(
            pairs: ScoredPairs, log_odds: NDArray[np.float64], evidence: NDArray[np.float64]
        ) -> Evidence:
            """Fit the evidence to gold; of a sample, only pairs with a line that it mentions are judged."""
            correct, mentioned = gold.marks(pairs)
            some = mentioned if sample else np.ones(len(pairs), dtype=bool)
            return fit_to_gold(log_odds[some], evidence[some], correct[some])

    opinion = consult(second, found.sides, scored.best, pairs, asked, judge)
    again = retrieve(opinion.best, found.options.retrieval, LOG_ODDS)
    return replace(scored, pairs=again, best=opinion.best, opinion=opinion)


def _likely(scored: Scored, gold: GoldRows | None) -> ScoredPairs:
    """Return the pairs that the threshold keeps, those above even odds if that takes more than their scores."""
    pairs, (kind, number) = scored.pairs, scored.of.options.rule
    value: float | None = number if kind == "given" else 0.0
    if gold is None and kind in (F_MEASURE, PRECISION):
        assert scored.calibration is not None
        known = Estimate(pairs.score, probability(pairs.score), 0, "", scored.calibration.unseen)
        value = known.at_f(number) if kind == F_MEASURE else known.at_precision(number)
    return pairs.take(pairs.score >= (value or 0.0))


def choose_cut(scored: Scored, gold: GoldRows | None = None) -> Cut:
    """Return the cut that the options ask for; BitextmineError if they ask for one that cannot be had."""
    pairs, options, (n, m) = scored.pairs, scored.of.options, scored.of.lines
    kind, number = options.rule
    if kind in ("given", "none"):
        return Cut(number if kind == "given" else None, kind)
    if gold is not None:
        return cut_by_gold(pairs.score, *gold.marks(pairs), len(gold.codes), gold.path)
    reason = ""
    if min(n, m) < MIN_LINES:
        reason = (
            f"{n} x {m} lines are too few to estimate how noise scores ({MIN_LINES} are needed); look at the scores "
            "and give a number as --threshold"
        )
    elif options.k == 1 and options.margin != Margin.ABSOLUTE:
        reason = (
            "with one neighbour every pair of nearest lines has the same margin, right or wrong; use -k 4"
        )
    if reason:
        if options.threshold != "auto":
            raise NoEstimate(f"--threshold {options.threshold}: {reason}")
        return Cut(None, "none", (f"no threshold: {reason}",))
    cut = cut_by_estimate(kind, number, estimate_pairs(scored))
    if options.margin != Margin.ABSOLUTE or scored.calibration is not None:
        return cut
    return replace(cut, notes=(*cut.notes, _PLAIN_COSINES))


def estimate_pairs(scored: Scored) -> Estimate:
    """Return the scores of the pairs, and the probabilities that they are true."""
    found, options, (n, m) = scored.of, scored.of.options, scored.of.lines
    if scored.calibration is None:

        def decoys() -> list[Decoys]:
            return [search_within(side.vectors, options.k, options.margin) for side in found.sides]

        return fit_null(found.neighbours, found.best, decoys, options)
    pairs, true = scored.pairs, probability(scored.pairs.score)
    true[found.copies(pairs)] = 0
    lines, side = (n, "source") if counts_source(n, m, options.retrieval) else (m, "target")
    return Estimate(pairs.score, true, lines, side, scored.calibration.unseen)


def _bitext(scored: Scored, cut: Cut, made_by: Mapping[str, object], notes: Sequence[str]) -> Bitext:
    pairs, opinion, options, (src, tgt) = scored.pairs, scored.opinion, scored.of.options, scored.of.sides
    details: dict[str, Any] = {
        "candidates": len(pairs),
        "threshold": {"value": cut.value, "rule": cut.rule},
        "counts": cut.counts(pairs.score),
        "rows": {"src": src.counts(), "tgt": tgt.counts()},
        **({} if scored.calibration is None else {"log_odds": scored.calibration.details()}),
        **({} if opinion is None else {"second": opinion.details()}),
        **cut.details(),
    }
    if cut.value is not None:
        pairs = pairs.take(pairs.score >= cut.value)
    every = options.duplicates == Duplicates.ALL
    if options.dedup == Dedup.NEAR:
        lines = closest_lines(pairs, src.unique, tgt.unique, src.matrix, tgt.matrix, every=every)
    else:
        lines = (every_line if every else first_lines)(pairs, src.unique, tgt.unique)
    return Bitext(
        src_index=lines.src,
        tgt_index=lines.tgt,
        score=lines.score,
        src=src.text,
        tgt=tgt.text,
        signature=signature(
            **made_by,
            **({} if opinion is None else {"second": opinion.hash}),
            k=options.k,
            margin=options.margin,
            retrieval=options.retrieval,
            threshold="none" if cut.value is None else f"{cut.value:.6f}",
            threshold_by=cut.rule,
            duplicates=options.duplicates,
        ),
        details=details,
        notes=(*cleaning_notes(src, tgt), *notes, *cut.notes),
        gold=options.gold,
        estimate=cut.estimate,
    )
