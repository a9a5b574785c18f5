"""bitextmine align"""

from __future__ import annotations

import os
from typing import Any

import click

from bitextmine.alignment.choices import FORMATS, LINK_FORMATS
from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language


@click.command(
    cls=Command,
    name="align",
    example="bitextmine align book.en book.fr",
    resume="with -o, the same command again goes on where this one stopped",
    remote=("src", "tgt", "pairs", "output"),
)
@click.argument("src", required=False, metavar="[SRC")
@click.argument("tgt", required=False, metavar="TGT]")
@click.option(
    "--list",
    "pairs",
    metavar="FILE",
    help="Instead of SRC and TGT: a source file, a tab and a target file per line.",
)
@click.option("--blank-lines", is_flag=True, help="Blank lines separate documents in SRC and TGT.")
@click.option(
    "--documents", is_flag=True, help="Match documents by content, of two folders or with --blank-lines."
)
@click.option(
    "--max-size",
    type=click.IntRange(2, 16),
    default=6,
    show_default=True,
    metavar="N",
    help="Most sentences in one link, of both sides together.",
)
@click.option(
    "--ids", is_flag=True, help="Add columns after the score: document, if many, and line numbers, from 1."
)
@click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    help=f"{'; '.join(f'{name}: {use}' for name, use in LINK_FORMATS.items())}; or pairs alone.  [default: by FILE's "
    "suffix, else tsv]",
)
@click.option("--src-lang", type=Language(), metavar="L", help="For tmx and jsonl.  [default: SRC's suffix]")
@click.option("--tgt-lang", type=Language(), metavar="L", help="Likewise.")
@click.option(
    "--jobs",
    "threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Documents at a time.  [default: the processors]",
)
@click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where it goes.  [default: standard output]"
)
@options.model
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def align(
    src: str | None,
    tgt: str | None,
    output: str,
    threads: int | None,
    device: str,
    batch_tokens: int | None,
    errors: str,
    **options: Any,
) -> None:
    """Align the sentences of documents that are translations of each other.

    SRC and TGT are two files with a sentence per line, or two folders of them that are matched by name. Prints score,
    source sentences and target sentences, separated by tabs, in order; what has no counterpart stands alone. A score of
    1 is a perfect match, 0 that of random sentences. Blank lines are passed over.

    \b
    bitextmine align en/ fr/ -o aligned.tsv.gz
    bitextmine align book.en book.fr | bitextmine score | bitextmine filter
    bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr
    """
    # Documents are aligned side by side: threads inside NumPy's products would be in each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bitextmine.alignment.run import AlignOptions, align_files
    from bitextmine.run import Run

    run = Run(device, threads=threads, batch_tokens=batch_tokens, errors=errors)
    click.echo(align_files(src, tgt, output, AlignOptions(**options), run).to_table(), err=True)
