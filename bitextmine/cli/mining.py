"""bitextmine mine, align."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from bitextmine.alignment.choices import FORMATS, LINK_FORMATS
from bitextmine.cli import options
from bitextmine.cli.shell import program
from bitextmine.mining.choices import Dedup, Duplicates, Retrieval, SearchWay

if TYPE_CHECKING:
    from bitextmine.run import Run


@program.command(
    "mine",
    example=(
        "bitextmine mine --src en --tgt fr",
        "bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz",
        "bitextmine mine a.en b.fr --threshold 3 | cut -f 2,3",
        "bitextmine mine --src en --tgt fr --tgt de -o mined.{src}-{tgt}.tsv",
    ),
    resume="run the same command again to resume",
    remote=("corpora", "directory", "src_file", "tgt_file", "gold", "output"),
)
@options.with_corpora(several_names=False)
@options.model
@options.neighbours("Neighbours for the margin.")
@options.margin
@options.choice("--retrieval", Retrieval, Retrieval.MAX, "Choice of pairs among the candidates.")
@options.threshold(
    "Lowest score to keep. auto: best F1 on --gold, else f1. f1, f0.5, ...: best expected F-measure, estimated from "
    "the corpora; f0.5 prefers precision. precision=0.95: lowest score at which an estimated 95% of the pairs are "
    "true. fpr=0.01: score reached by an estimated 1% of the lines without a translation.",
    estimated=True,
)
@options.text(
    "--gold",
    "FILE",
    "Known pairs, all or a sample, to tune --threshold auto on: source line, tab, target line, counted from 1.",
)
@options.switch(
    "--rescore/--no-rescore",
    None,
    "Compare the subwords of each pair, too. Scores and --threshold are then log odds of a translation (0: even odds), "
    "not margins.  [default: on if the encoder has a scorer, the margin is ratio and k >= 2]",
)
@options.switch(
    "--clean/--no-clean",
    True,
    "Drop junk, boilerplate, copies and, with the extra 'languages', text in the wrong language.",
)
@options.choice("--dedup", Dedup, Dedup.EXACT, "Mine duplicate lines once.")
@options.choice("--duplicates", Duplicates, Duplicates.FIRST, "Pairs to print for duplicate lines.")
@options.choice("--search", SearchWay, SearchWay.AUTO, "Search for neighbours.")
@options.packed(
    "columns",
    lambda given: {name: given.pop(name) for name in ("ids", "origin", "normalize")},
    options.flag("--ids", "Add both line numbers, counted from 1, after the score."),
    options.flag(
        "--origin",
        "Add the origin of both sentences at the end (URL or document, paragraph, sentence), from NAME.LANG.origin.tsv "
        "beside the corpora.",
    ),
    options.normalize,
)
@options.output(
    "Output file: .tsv, .jsonl, .tmx or .parquet; add .gz, .bz2, .xz or .zst to compress; {src} and {tgt} stand for "
    "the languages. FILE.json describes the run."
)
@options.cache
@options.wait
@options.overwrite
@options.with_run(
    options.search_memory,
    options.device,
    options.cluster("encode and search."),
    options.batch_tokens,
    options.errors,
)
def mine(corpora: Any, model: str, output: str, columns: dict[str, bool], run: Run, **options: Any) -> None:
    """Find translated sentence pairs in two corpora.

    Prints score, source sentence and target sentence, separated by tabs, best pair first. Embeds a corpus first if its
    embedding is missing or out of date. With several languages, mines every source with every target and embeds each
    corpus once.
    """
    from bitextmine.encoder import load_encoder
    from bitextmine.mining.options import split_options
    from bitextmine.mining.run import embed_all, mine_texts
    from bitextmine.mining.scorer import open_scoring
    from bitextmine.mining.texts import find_pairs, output_names

    mining, work = split_options(options, run)
    pairs = find_pairs(*corpora)
    if columns["origin"]:  # better now than after the work
        for text in {text for pair in pairs for text in pair}:
            text.origins()
    outputs = output_names(output, pairs, mining.gold)
    embedded, encoder = None, None
    done = []
    with contextlib.ExitStack() as stack:
        if len(pairs) > 1:
            stack.enter_context(run.executor.open())  # once for all of them
            encoder = load_encoder(model, run.device_here)
            rescored = open_scoring(encoder, model, mining.wants_rescoring) is not None
            embedded = embed_all(pairs, outputs, model, encoder, work, rescored)
        for (source, target), place in zip(pairs, outputs, strict=True):
            bitext = mine_texts(
                (source, target), mining, work, model=encoder or model, output=place, embedded=embedded
            )
            bitext.write(place, **columns, force=work.force)
            done.append(bitext)
            click.echo(bitext.to_table(), err=True)
    for bitext in done:  # only now: until all are written, an interrupted run resumes from the checkpoints
        bitext.discard_checkpoint()


@program.command(
    "align",
    example=(
        "bitextmine align book.en book.fr",
        "bitextmine align page.en.html page.fr.html -o page.tmx",
        "bitextmine align en/ fr/ -o aligned.tsv.gz",
        "bitextmine align book.en book.fr | bitextmine score | bitextmine filter",
        "bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr",
    ),
    resume="with -o, run the same command again to resume",
    remote=("src", "tgt", "pairs", "output"),
)
@click.argument("src", required=False, metavar="[SRC")
@click.argument("tgt", required=False, metavar="TGT]")
@options.text(
    "--list",
    "FILE",
    "Instead of SRC and TGT: a file with source file, tab, target file on each line.",
    dest="pairs",
)
@options.flag("--blank-lines", "Blank lines separate documents in SRC and TGT.")
@options.flag(
    "--documents", "Match documents by content instead of name or order, in folders or with --blank-lines."
)
@options.count("--max-size", "Maximum sentences in a link, both sides together.", default=6, least=2, most=16)
@options.flag(
    "--presplit", "Take each line as a sentence instead of cutting pages and paragraphs into sentences."
)
@options.flag(
    "--ids", "Add the line numbers, counted from 1, after the score (and the document, if there are several)."
)
@options.flag(
    "--origin",
    "Add the origin of source and target at the end: URL or document, paragraph and sentence, from "
    "NAME.LANG.origin.tsv beside each document, or from align's own splitting.",
)
@options.normalize
@options.pick(
    "--format",
    FORMATS,
    f"{'; '.join(f'{name}: {use}' for name, use in LINK_FORMATS.items())}; others: only pairs.  [default: by the "
    "suffix of --output, or tsv]",
)
@options.language(
    "--src-lang", "Language of SRC.  [default: from the file name, as in book.en or book.en.txt]"
)
@options.language("--tgt-lang", "Language of TGT, likewise.")
@options.count("--jobs", "Documents to align in parallel.  [default: one per CPU]", dest="threads")
@options.output("Output file.")
@options.model
@options.with_run(options.device, options.batch_tokens, options.errors)
def align(src: str | None, tgt: str | None, output: str, run: Run, **options: Any) -> None:
    """Align the sentences of documents with their translations.

    SRC and TGT are two documents, or two folders of them, matched by name: plain text or HTML, cut into sentences
    unless --presplit.
    Prints score, source sentences and target sentences, separated by tabs, in document order; a sentence without a
    translation stands alone. The score is the log odds of a translation, as in 'mine': 0 means even odds. Blank lines
    are skipped.
    """
    # Documents are aligned in parallel; threads inside NumPy's products would compete with them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bitextmine.alignment.run import AlignOptions, align_files

    click.echo(align_files(src, tgt, output, AlignOptions(**options), run).to_table(), err=True)
