"""The command `bitextmine`: its name, its help, its commands in the order of the work.

Stages are imported inside the commands: `bitextmine --help` must not wait for torch.
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
from bitextmine.cli.train import train
from bitextmine.version import __version__


@click.group(
    cls=Program,
    example="bitextmine mine --src en --tgt fr",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Completion with the Tab key (bash; zsh_source and fish_source for those shells):
eval "$(_BITEXTMINE_COMPLETE=bash_source bitextmine)\"""",
)
@click.version_option(__version__, prog_name="bitextmine", message="%(prog)s %(version)s")
def program() -> None:
    """Sentence pairs out of two piles of text.

    A corpus is a text file with one sentence per line; its language is its last suffix: corpus.fr,
    corpus.fr.gz, .bz2, .xz or .zst. "-" is standard input or standard output.
    """


def main() -> None:
    """The entry point of the installed command."""
    hold_standard_streams()
    program(prog_name="bitextmine")


for _command in (
    train,
    adapt,
    encoder,
    export,
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
