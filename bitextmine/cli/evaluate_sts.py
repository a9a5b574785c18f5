"""bitextmine evaluate sts"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.reports import print_report
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Directions, Language


@click.command(
    "sts",
    cls=Command,
    example="bitextmine evaluate sts stsb.en.csv stsb.de.csv --pairs en-de",
    remote=("files",),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--pairs",
    type=Directions(),
    metavar="en-de,de-en,...",
    help="Also across languages: first sentences of one file, second ones of the other; all: to and from --pivot.  "
    "[default: none]",
)
@click.option(
    "--pivot",
    type=Language(),
    default="en",
    show_default=True,
    metavar="L",
    help="The language that 'all' pairs with the rest; en is the first one where there is no English.",
)
@options.model
@options.resamples
@options.seed("Of the bootstrap.")
@options.form
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def evaluate_sts(files: tuple[str, ...], form: str, **options: Any) -> None:
    """Measure how well cosines follow the similarity that people saw in sentence pairs: Spearman's correlation x 100.

    FILE is comma- or tab-separated: sentence1, sentence2, score, or the columns of the STS benchmark, or what a header
    names. Its name tells the language: stsb.de.dev.csv, stsb-de-dev.csv. Intervals (95%) are the bootstrap's.

    \b
    bitextmine evaluate sts stsb.en.dev.csv
    bitextmine evaluate sts stsb.*.dev.csv --pairs en-de,en-es,en-fr,en-it --format json
    """
    from bitextmine.evaluation.sts import evaluate_sts as evaluate_files

    print_report(evaluate_files(files, **options), form)
