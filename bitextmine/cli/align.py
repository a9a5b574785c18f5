"""bitextmine align."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bitextmine.alignment.choices import FORMATS, LINK_FORMATS
from bitextmine.cli import options
from bitextmine.cli.shell import Command

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="align",
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
    "Instead of SRC and TGT: a list with a source file, a tab and a target file on each line.",
    dest="pairs",
)
@options.flag("--blank-lines", "Blank lines separate documents in SRC and TGT.")
@options.flag("--documents", "Match documents by content, in two folders or with --blank-lines.")
@options.count("--max-size", "Maximum sentences in a link, both sides together.", default=6, least=2, most=16)
@options.flag(
    "--presplit", "Take each line as a sentence. Without it, pages and paragraphs are cut into sentences."
)
@options.flag(
    "--ids", "Add the line numbers, counted from 1, after the score (and the document, if there are several)."
)
@click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    help=f"{'; '.join(f'{name}: {use}' for name, use in LINK_FORMATS.items())}; or pairs alone.  [default: by FILE's "
    "suffix, or tsv]",
)
@options.language("--src-lang", "Language of SRC.  [default: as in book.en, book.en.txt]")
@options.language("--tgt-lang", "Likewise.  [default: TGT's suffix]")
@click.option(
    "--jobs",
    "threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Documents to align in parallel.  [default: one per CPU]",
)
@options.output("Output file.")
@options.model
@options.with_run(options.device, options.batch_tokens, options.errors)
def align(src: str | None, tgt: str | None, output: str, run: Run, **options: Any) -> None:
    """Align the sentences of documents with their translations.

    SRC and TGT are two documents, or two folders of them, matched by name: one sentence per line, plain text or HTML.
    Prints score, source sentences and target sentences, separated by tabs, in document order; a sentence without a
    translation stands alone. The score is the log odds of a translation, as that of mine: 0 is as likely as not. Blank
    lines are skipped.
    """
    # Documents are aligned in parallel; threads inside NumPy's products would compete with them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bitextmine.alignment.run import AlignOptions, align_files

    click.echo(align_files(src, tgt, output, AlignOptions(**options), run).to_table(), err=True)
