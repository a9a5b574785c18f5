"""Mining from end to end: two texts in, scored sentence pairs out."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bitextmine.console import counted, progress
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.storage import same_place
from bitextmine.files.streams import read_once
from bitextmine.files.tables import check_languages
from bitextmine.mining.bitext import Bitext, check_output, inputs_of
from bitextmine.mining.calibration import calibrated
from bitextmine.mining.candidates import NeighboursLike, candidates
from bitextmine.mining.cleaning import clean_lines, cleaning_notes, near_copies_of, signed
from bitextmine.mining.cut import choose_cut
from bitextmine.mining.dedup import Dedup, unique_lines
from bitextmine.mining.duplicates import closest_lines, every_line, first_lines
from bitextmine.mining.gold import read_gold
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.noise import without_pairs
from bitextmine.mining.options import Duplicates, MiningOptions, WorkOptions, check_matching
from bitextmine.mining.packing import IN_MEMORY
from bitextmine.mining.retrieval import ScoredPairs, retrieve_scored
from bitextmine.mining.scorer import Rescorer, Scoring, open_scoring, row_pieces
from bitextmine.mining.sides import Side, embed_lines, load_side, make_side
from bitextmine.mining.texts import FileText, LinesText, Text
from bitextmine.search.checkpoint import remove_checkpoint
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.embeddings.embed import Encoding
    from bitextmine.encoder import Encoder

__all__ = [
    "check_file",
    "check_two",
    "cluster_encoding",
    "embedded_file",
    "mine_sides",
    "mine_texts",
    "rescorer",
]

log = logging.getLogger(__name__)


def mine_texts(
    src: FileText | LinesText,
    tgt: FileText | LinesText,
    options: MiningOptions | None = None,
    work: WorkOptions | None = None,
    *,
    model: str | os.PathLike[str] | Encoder = "default",
    output: str | os.PathLike[str] | None = None,
    embedded: Mapping[FileText, Path] | None = None,
) -> Bitext:
    """Mine sentence pairs out of two texts; write them with the result's ``write``.

    Embeddings lie beside corpora in files; what is missing or was made of another text or with another model is made
    now (everything, with `work.force`). Lines in memory are embedded there. model: an `Encoder`, or what `load_encoder`
    takes.

    If exact search of corpora in files takes more than seconds, it keeps what it has found in a file beside the
    source's embedding; a run that was killed, whenever that was, goes on from there. The result names that file and
    removes it when it is told to (`Bitext.discard_checkpoint`).

    output: where the result will be written, so that a name that would destroy what it is made of is refused before
    the work. embedded: the embedding files of texts that have just been embedded.

    Raises BitextmineError for anything a user can put right: corpora that are missing, the same file, or without a
    line to mine, gold that does not fit them, and files in the places of embeddings that this program did not make.
    """
    from bitextmine.encoder import as_encoder

    options, work = options or MiningOptions(), work or WorkOptions()
    texts = (src, tgt)
    check_two(src, tgt)
    if output is not None:
        check_output(output, inputs_of(texts, options.gold), force=work.force)
    langs = [text.lang for text in texts]
    if output is not None:
        check_languages(output, (langs[0], langs[1]), "the names of the corpora, or --src and --tgt")
    if options.gold is not None:
        if read_once(options.gold):
            raise UsageError(
                f"gold {options.gold} (--gold): a pipe, and it is read twice; put it into a file"
            )
        read_gold(options.gold, work.errors)  # before the work, not after it

    encoder = as_encoder(model, work.device_here)
    # Before the work: not every encoder has pieces to compare.
    scoring = open_scoring(encoder, model, options.wants_rescoring)
    for text in texts:
        if isinstance(text, FileText):
            check_file(text, encoder, work)
    if work.executor.distributed and not all(isinstance(text, FileText) for text in texts):
        raise UsageError("the workers of a cluster read embeddings from files; give corpora in files")
    with contextlib.ExitStack() as cluster:  # which is in use until the neighbours are found
        encoding = cluster.enter_context(cluster_encoding(model, encoder, work))
        embeddings = [
            embedded[text]
            if embedded and isinstance(text, FileText)
            else _embedded(text, encoder, work, encoding)
            for text in texts
        ]
        made_by: dict[str, object] = {"src": langs[0], "tgt": langs[1], "model": encoder.hash}
        del encoder
        in_memory = IN_MEMORY if work.memory is None else min(IN_MEMORY, work.memory // 8)
        sides = [
            _side(text, embedding, options.dedup, in_memory)
            for text, embedding in zip(texts, embeddings, strict=True)
        ]
        cleaning = clean_lines(sides, langs) if options.clean else None
        if cleaning is not None:
            sides = [
                side.without(*some, in_memory) for side, some in zip(sides, cleaning.by_side(), strict=True)
            ]
        # More neighbours than there are lines would be empty columns: the same means, for more memory and time.
        lines = max(len(side.unique.rows) for side in sides)
        k = max(1, min(options.k, lines))
        if options.k > k > (usual := MiningOptions.k):
            log.warning(
                "k %d: the larger corpus has %s to compare, and a margin over all of them tells little; usual is %d",
                options.k,
                counted(lines, "line"),
                usual,
            )
        # One neighbour more than the margin needs: the null distribution takes one away.
        spare = 1 if options.estimates_noise else 0
        checkpoint = _checkpoint(*sides)
        with _unchanged(sides, checkpoint):
            neighbours, way = find_neighbours(sides[0], sides[1], k + spare, work, checkpoint=checkpoint)
            cluster.close()
            made_by |= {"search": way, "dedup": options.dedup, "clean": signed(cleaning)}
            with progress(None, "compare pieces", "pairs", show=False if scoring is None else None) as bar:
                again = None
                if scoring is not None:
                    again = rescorer(sides, scoring, bar.update)
                    made_by["scorer"] = again.scorer.hash
                mined = mine_sides(
                    sides[0],
                    sides[1],
                    neighbours,
                    options,
                    k=k,
                    rescore=again,
                    made_by=made_by,
                    errors=work.errors,
                )
    return replace(mined, checkpoint=checkpoint)


@contextlib.contextmanager
def _unchanged(sides: Sequence[Side], checkpoint: Path | None) -> Iterator[None]:
    """Raises BitextmineError at the end of the block where the vectors of a side are not what they were at its start.
    What a search kept of them goes, too: the next one would take it for the neighbours of the right ones."""
    error: BitextmineError | None = None
    try:
        yield
    except BitextmineError as e:  # perhaps of that
        error = e
    try:
        for side in sides:
            side.check_vectors()
    except BitextmineError:
        if checkpoint is not None:
            remove_checkpoint(checkpoint)
        raise
    if error is not None:
        raise error


@contextlib.contextmanager
def cluster_encoding(
    model: str | os.PathLike[str] | Encoder, encoder: Encoder, work: WorkOptions
) -> Iterator[Encoding | None]:
    """What embeds corpora on a cluster, None without one. The cluster is connected to when there is something to
    embed."""
    if not work.executor.distributed:
        yield None
        return
    from bitextmine.distributed.encoding import ClusterEncoding

    with ClusterEncoding(
        work.executor, model if isinstance(model, (str, os.PathLike)) else encoder, work.device
    ) as encoding:
        yield encoding


def _embedded(
    text: FileText | LinesText, encoder: Encoder, work: WorkOptions, encoding: Encoding | None
) -> Path | NDArray:
    """The embedding file of a corpus, made where it is missing; of lines in memory the vectors themselves."""
    if isinstance(text, LinesText):
        from bitextmine.encoder.familiar import sampled, warn_unfamiliar

        warn_unfamiliar(encoder, text.name, text.lang, sampled(text.lines()))
        return embed_lines(text, encoder, work.batch_tokens)
    return embedded_file(text, encoder, work, encoding)


def check_two(src: Text, tgt: Text) -> None:
    """Raises BitextmineError where both are the same file."""
    files = [text.path for text in (src, tgt) if isinstance(text, FileText)]
    if len(files) == 2 and same_place(files[0]) == same_place(files[1]):
        raise BitextmineError(f"{files[0]}: is both the source and the target corpus; mining needs two")


def check_file(text: FileText, encoder: Encoder, work: WorkOptions) -> None:
    """Raises BitextmineError where the embedding of a corpus cannot go to its place."""
    from bitextmine.embeddings.embed import check_embedding

    check_embedding(text.path, encoder, cache=work.cache, lang=text.lang, overwrite=work.force)


def embedded_file(
    text: FileText, encoder: Encoder, work: WorkOptions, encoding: Encoding | None = None
) -> Path:
    """The embedding file of a corpus, made where it is missing."""
    from bitextmine.embeddings.embed import embed_corpus

    return embed_corpus(
        text.path,
        encoder,
        lang=text.lang,
        errors=text.errors,
        batch_tokens=work.batch_tokens,
        force=work.force,
        cache=work.cache,
        wait=work.wait,
        encoding=encoding,
    )


def _side(text: Text, embedding: Path | NDArray, dedup: Dedup, in_memory: int) -> Side:
    if isinstance(embedding, Path):
        return load_side(text, embedding, dedup=dedup, in_memory=in_memory)
    return make_side(text, unique_lines(text.lines(), dedup), embedding, dedup=dedup, in_memory=in_memory)


def _checkpoint(src: Side, tgt: Side) -> Path | None:
    """Where exact search keeps what it has found: beside the source's embedding, named after both."""
    if src.npy is None or tgt.npy is None:
        return None
    return src.npy.with_name(f"{src.npy.stem}-{tgt.npy.stem}.search.part")


def mine_sides(
    src: Side,
    tgt: Side,
    neighbours: NeighboursLike,
    options: MiningOptions | None = None,
    *,
    k: int | None = None,
    rescore: Rescorer | None = None,
    made_by: dict[str, object] | None = None,
    errors: str = "strict",
) -> Bitext:
    """Everything after the search: margins (or log odds, by ``rescore``), retrieval, threshold, duplicates.

    neighbours: k columns, and one more where the threshold is estimated. k: how many of them count, where these are
    fewer than `options.k`. made_by: parts to put at the head of the signature. errors: invalid UTF-8 in gold.
    """
    options = options or MiningOptions()
    k = options.k if k is None else k
    check_matching(options.retrieval, k, options.margin)
    best = candidates(neighbours, k, options.margin)
    if src.cleaned and tgt.cleaned:
        copies = near_copies_of(best, (src, tgt), options.margin)
        if len(copies):
            neighbours = without_pairs(neighbours, copies, neighbours.fwd_id.shape[1])
            best = candidates(neighbours, k, options.margin)
    log_odds = None if rescore is None else calibrated(rescore, rescore.scorer.share, best, neighbours, k)
    pairs = retrieve_scored(best, neighbours, k, options.retrieval, options.margin, log_odds)
    cut = choose_cut(pairs, best, neighbours, (src, tgt), options, k, log_odds, errors)
    details: dict[str, Any] = {
        "candidates": len(pairs),
        "threshold": {"value": cut.value, "rule": cut.rule},
        "counts": cut.counts(pairs.score),
        "rows": {"src": src.counts(), "tgt": tgt.counts()},
        **({} if log_odds is None else {"log_odds": {"share_of_pairs": log_odds.share}}),
        **cut.sources(options.fpr),
    }
    lines = _in_lines(cut.keep(pairs), src, tgt, options.duplicates)
    return Bitext(
        src_index=lines.src,
        tgt_index=lines.tgt,
        score=lines.score,
        src=src.text,
        tgt=tgt.text,
        signature=signature(
            **(made_by or {}),
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
    )


def _in_lines(pairs: ScoredPairs, src: Side, tgt: Side, duplicates: Duplicates) -> ScoredPairs:
    """From rows to lines, and what becomes of the lines that are one row."""
    every = duplicates == Duplicates.ALL
    if src.dedup == Dedup.NEAR:
        return closest_lines(pairs, src.unique, tgt.unique, src.matrix, tgt.matrix, every=every)
    return (every_line if every else first_lines)(pairs, src.unique, tgt.unique)


def rescorer(
    sides: Sequence[Side], scoring: Scoring, on_pairs: Callable[[int], object] = lambda n: None
) -> Rescorer:
    """What scores the candidates of the two sides again; ``on_pairs`` is told of pairs whose pieces are compared."""
    src, tgt = (row_pieces(side.text.lines(), side.unique, scoring.encoder) for side in sides)
    return Rescorer(scoring.pieces, src, tgt, scoring.scorer, on_pairs)
