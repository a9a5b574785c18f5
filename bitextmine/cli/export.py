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
        "bitextmine export europe5 --to sentence-transformers exported",
        "bitextmine export model --to onnx exported",
    ),
)
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="OUT")
@click.option(
    "--to",
    type=click.Choice(FORMATS),
    required=True,
    help="sentence-transformers: a folder for SentenceTransformer(OUT, trust_remote_code=True), with a model card; "
    "onnx: OUT/model.onnx and OUT/tokenizer.json.",
)
@options.flag("--force", "Write into OUT even if it is not empty.")
def export(model: str, out: str, to: str, force: bool) -> None:
    """Export an encoder to another library, with the same vectors.

    sentence-transformers: any encoder made by 'bitextmine train', and the packaged ones. Those with n-grams or columns
    for order and length, as all packaged ones, load as a module of bitextmine, which must be installed;
    trust_remote_code=True lets sentence-transformers 6 import it (OUT holds no code). Other encoders need neither.
    OUT/README.md is a model card for the Hugging Face hub.

    onnx: encoders without n-grams (trained with model.ngrams 0), with a unigram vocabulary. N-grams reach across the
    pieces of a word, and no tokenizer for ONNX Runtime makes those, so the packaged encoders cannot go there.
    """
    from bitextmine.exporting.run import export_encoder

    click.echo(str(export_encoder(model, out, to=to, force=force)))
