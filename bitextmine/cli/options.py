"""Options that several commands share."""

from __future__ import annotations

import click

from bitextmine.cli.types import Device, Memory

model = click.option(
    "--model",
    default="default",
    envvar="BITEXTMINE_MODEL",
    metavar="NAME|FOLDER",
    help="Encoder: the one in the package, or a folder of 'bitextmine train', sentence-transformers or LASER2.  "
    "[default: default, or $BITEXTMINE_MODEL]",
)
device = click.option(
    "--device",
    type=Device(),
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="Where to compute.",
)
memory = click.option(
    "--memory",
    type=Memory(),
    metavar="SIZE",
    help="Most that exact search may take, as 500M or 2G; too little is refused.  [default: half of what is free]",
)
SEED = click.IntRange(0, 2**32 - 1)

batch_tokens = click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Subword pieces per batch; less takes less memory.  [default: fits the device]",
)
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="Invalid UTF-8: stop and name the line, or read it as U+FFFD.",
)

form = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "tsv", "json"]),
    default="table",
    show_default=True,
    help="For eyes, for programs, or everything.",
)

header = click.option(
    "--header/--no-header", default=None, help="Whether the first line names the columns.  [default: look]"
)
scol = click.option(
    "--scol",
    metavar="COL",
    help="Column of the source: position from 1, or name in the header.  [default: look]",
)
tcol = click.option("--tcol", metavar="COL", help="Column of the target, likewise.")
stream_output = click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the rows go.  [default: standard output]"
)
