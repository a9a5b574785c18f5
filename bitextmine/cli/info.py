"""bitextmine info."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(cls=Command, name="info", example="bitextmine info corpus.fr.npy", remote=("paths",))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--verify", is_flag=True, help="Compare an encoder, embedding or index with its checksum.")
@options.with_run(options.errors)
def info(paths: tuple[str, ...], verify: bool, run: Run) -> None:
    """Describe a model, embedding (finished or not), index, mined file or corpus.

    Prints one "name: value" per line, taken from the manifest. "default" is the built-in encoder.
    """
    from bitextmine.info import describe

    for number, path in enumerate(paths):
        if len(paths) > 1:
            click.echo(f"{chr(10) if number else ''}{path}")
        for name, value in describe(path, run.errors, verify=verify).items():
            click.echo(f"{name}: {value}")
