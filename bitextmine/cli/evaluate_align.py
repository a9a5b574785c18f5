"""bitextmine evaluate align"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.reports import print_report
from bitextmine.cli.shell import Command


@click.command(
    "align",
    cls=Command,
    example="bitextmine evaluate align found.txt --gold gold.de-fr",
    remote=("found", "golds"),
)
@click.argument("found", nargs=-1, required=True, metavar="FOUND...")
@click.option(
    "--gold",
    "golds",
    required=True,
    multiple=True,
    metavar="FILE",
    help="The true alignment of FOUND; once for each of several, in the same order.",
)
@options.resamples
@options.seed("Of the bootstrap.")
@options.form
@options.errors
@options.max_line
def evaluate_align(found: tuple[str, ...], golds: tuple[str, ...], form: str, **options: Any) -> None:
    """Score alignments as Vecalign does: strict and lax precision, recall and F1.

    Files have a link per line, [0, 1]:[2], sentences from 0, as 'align --format vecalign' prints them, or are the TSV
    of 'align --ids'. Blank lines part documents. A link counts as correct if it is in the gold (strict), or shares a
    sentence with a gold link on both sides (lax). Recall is over gold links that have both sides.

    \b
    bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr
    """
    from bitextmine.evaluation.alignment import evaluate_alignment

    print_report(evaluate_alignment(found, golds, **options), form)
