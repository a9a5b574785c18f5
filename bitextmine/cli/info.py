"""bitextmine info"""

from __future__ import annotations

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command


@click.command(cls=Command, name="info", example="bitextmine info corpus.fr.npy", remote=("paths",))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@options.errors
@options.max_line
def info(paths: tuple[str, ...], errors: str) -> None:
    """Tell what a file or a folder is.

    Models ("default" is the one in the package), embeddings (finished or not), indexes, mined files and corpora:
    one "what: which" per line, as far as the manifest knows.
    """
    from bitextmine.info import describe

    for number, path in enumerate(paths):
        if len(paths) > 1:
            click.echo(f"{chr(10) if number else ''}{path}")
        for name, value in describe(path, errors).items():
            click.echo(f"{name}: {value}")
