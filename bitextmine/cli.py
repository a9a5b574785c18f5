"""The command line. Each command reads its options, calls its stage and prints what that returns.

Stages are imported inside the commands: `bitextmine --help` must not wait for torch.
"""

from __future__ import annotations

import click

from bitextmine import __version__
from bitextmine.shell import Program


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
    corpus.fr.gz, corpus.fr.xz, corpus.fr.zst. "-" is standard input or standard output.
    """


def main() -> None:
    """The entry point of the installed command."""
    program(prog_name="bitextmine")
