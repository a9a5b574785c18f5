"""bitextmine export"""

from __future__ import annotations

import click

from bitextmine.cli.shell import Command
from bitextmine.exporting.forms import FORMS


@click.command(
    cls=Command, name="export", example="bitextmine export model --to sentence-transformers exported"
)
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="OUT")
@click.option(
    "--to",
    type=click.Choice(FORMS),
    required=True,
    help="sentence-transformers: a folder for SentenceTransformer(OUT); onnx: OUT/model.onnx with OUT/tokenizer.json.",
)
@click.option("--force", is_flag=True, help="Write into OUT even if there is something in it.")
def export(model: str, out: str, to: str, force: bool) -> None:
    """Write an encoder for another library, which then needs no bitextmine.

    For what 'bitextmine train' makes without n-grams. sentence-transformers has no module for the columns that tell
    order and length either; ONNX Runtime computes them. Vectors are the same.

    \b
    bitextmine export model --to sentence-transformers exported
    bitextmine export model --to onnx exported
    """
    from bitextmine.exporting.run import export_encoder

    click.echo(str(export_encoder(model, out, to=to, force=force)))
