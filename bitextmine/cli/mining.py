"""bitextmine mine, align."""

import os
from typing import Annotated

import click

from bitextmine.alignment.options import AlignOptions
from bitextmine.cli.declared import Only, command
from bitextmine.cli.shell import program
from bitextmine.declarations import Opt
from bitextmine.files.formats.names import COMPRESSING, OUTPUT_SUFFIXES
from bitextmine.files.options import Normalize, output
from bitextmine.mining.options import CorpusOptions, MiningOptions
from bitextmine.run import Run
from bitextmine.search.options import SEARCH_MEMORY
from bitextmine.shipped import Model


@command(
    program,
    "mine",
    example=(
        "bitextmine mine --src en --tgt fr",
        "bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz",
        "bitextmine mine a.en b.fr --threshold 3 | cut -f 2,3",
        "bitextmine mine --src en --tgt fr --tgt de -o mined.{src}-{tgt}.tsv",
    ),
    resume="run the same command again to resume",
)
def mine(
    *,
    corpora: CorpusOptions,
    model: Model = "auto",
    mining: MiningOptions,
    ids: Annotated[bool, Opt("--ids", "Add both line numbers, counted from 1, after the score.")] = False,
    origin: Annotated[
        bool,
        Opt(
            "--origin",
            "Add the origin of both sentences at the end (URL or document, paragraph, sentence), from "
            "NAME.LANG.origin.tsv beside the corpora.",
        ),
    ] = False,
    normalize: Normalize = False,
    output: Annotated[
        str,
        output(
            f"Output file: {OUTPUT_SUFFIXES}; add {COMPRESSING} to compress; {{src}} and {{tgt}} stand for the "
            "languages. FILE.json describes the run."
        ),
    ] = "-",
    run: Annotated[
        Run, Only("device", "executor", "batch_tokens", "errors", "max_line", memory=SEARCH_MEMORY)
    ],
) -> None:
    """Find translated sentence pairs in two corpora.

    Prints score, source sentence and target sentence, separated by tabs, best pair first. Embeds a corpus first if its
    embedding is missing or out of date. With several languages, mines every source with every target and embeds each
    corpus once.
    """
    from bitextmine.mining.mine import mine_all
    from bitextmine.mining.texts import find_pairs, output_names

    pairs = find_pairs(corpora, run)
    if origin:  # better now than after the work
        for text in {text for pair in pairs for text in pair}:
            text.origins()
    outputs = output_names(output, pairs, mining.gold)
    done = []
    for bitext, path in zip(mine_all(pairs, outputs, mining, run, model=model), outputs, strict=True):
        bitext.write(path, ids=ids, origin=origin, normalize=normalize, force=mining.force)
        done.append(bitext)
        click.echo(bitext.to_table(), err=True)
    for bitext in done:  # only now: until all are written, an interrupted run resumes from the checkpoints
        bitext.discard_checkpoint()


@command(
    program,
    "align",
    example=(
        "bitextmine align book.en book.fr",
        "bitextmine align page.en.html page.fr.html -o page.tmx",
        "bitextmine align en/ fr/ -o aligned.tsv.gz",
        "bitextmine align film.en.srt film.fr.vtt",
        "bitextmine align book.en book.fr | bitextmine score | bitextmine filter",
        "bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr",
    ),
    resume="with -o, run the same command again to resume",
)
def align(
    *,
    src: Annotated[str, Opt("SRC", remote=True)],
    tgt: Annotated[str, Opt("TGT", remote=True)],
    options: AlignOptions,
    output: Annotated[str, output("Output file.")] = "-",
    run: Annotated[
        Run,
        Only(
            *("device", "batch_tokens", "errors", "max_line"),
            threads=Opt("--jobs", "Documents to align in parallel.", ge=1, default="one per CPU"),
        ),
    ],
) -> None:
    """Align the sentences of documents with their translations.

    SRC and TGT are two documents, or two folders of them, matched by name: plain text, HTML or subtitles, cut into
    sentences unless --presplit.
    Prints score, source sentences and target sentences, separated by tabs, in document order; a sentence without a
    translation stands alone. The score is the log odds of a translation, as in 'mine': 0 means even odds. Blank lines
    are skipped.
    """
    # Documents are aligned in parallel; threads inside NumPy's products would compete with them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bitextmine.alignment.align import align_files

    click.echo(align_files(src, tgt, output, options, run).to_table(), err=True)
