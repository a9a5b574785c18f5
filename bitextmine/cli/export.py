"""bitextmine export."""

from __future__ import annotations

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.exporting import FORMATS


@click.command(
    cls=Command,
    name="export",
    example=(
        "bitextmine export model --to sentence-transformers exported",
        "bitextmine export model --to onnx exported",
    ),
)
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="OUT")
@click.option(
    "--to",
    type=click.Choice(FORMATS),
    required=True,
    help="sentence-transformers: a folder for SentenceTransformer(OUT); onnx: OUT/model.onnx and OUT/tokenizer.json.",
)
@options.flag("--force", "Write into OUT even if it is not empty.")
def export(model: str, out: str, to: str, force: bool) -> None:
    """Export an encoder to another library, with the same vectors.

    Works for models made by 'bitextmine train' without n-grams. sentence-transformers has no module for the order and
    length columns either; ONNX Runtime computes them.
    """
    from bitextmine.exporting.run import export_encoder

    click.echo(str(export_encoder(model, out, to=to, force=force)))
