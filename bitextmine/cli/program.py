"""The `bitextmine` command and its subcommands, in the order of a pipeline.

Commands import their stages when they run, so that `bitextmine --help` does not wait for torch.
"""

from __future__ import annotations

import click

from bitextmine.cli.adapt import adapt
from bitextmine.cli.align import align
from bitextmine.cli.embed import embed
from bitextmine.cli.encoder import encoder
from bitextmine.cli.evaluate import evaluate
from bitextmine.cli.export import export
from bitextmine.cli.filter import filter_command
from bitextmine.cli.index import index
from bitextmine.cli.info import info
from bitextmine.cli.mine import mine
from bitextmine.cli.report import report
from bitextmine.cli.score import score
from bitextmine.cli.shell import Program, hold_standard_streams
from bitextmine.cli.split import split
from bitextmine.cli.train import train
from bitextmine.version import __version__


@click.group(
    cls=Program,
    example="bitextmine mine --src en --tgt fr",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Tab completion for bash (for zsh and fish: zsh_source, fish_source):
eval "$(_BITEXTMINE_COMPLETE=bash_source bitextmine)\"""",
)
@click.version_option(__version__, prog_name="bitextmine", message="%(prog)s %(version)s")
def program() -> None:
    """Find translated sentence pairs in two piles of text.

    A corpus is a text file with one sentence per line; its last suffix is its language: corpus.fr,
    corpus.fr.gz (or .bz2, .xz, .zst). "-" stands for standard input or output.
    """


def main() -> None:
    """Run the installed command."""
    hold_standard_streams()
    program(prog_name="bitextmine")


for _command in (
    train,
    adapt,
    encoder,
    export,
    split,
    embed,
    index,
    mine,
    align,
    evaluate,
    info,
    report,
    score,
    filter_command,
):
    program.add_command(_command)
