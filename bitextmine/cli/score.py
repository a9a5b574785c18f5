"""bitextmine score"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language
from bitextmine.scoring.columns.names import MEANINGS, default_columns

_TABLE = "\n".join(f"{name:18}  {meaning}" for name, meaning in MEANINGS.items())
_HELP = f"""Add columns to sentence pairs: one line out for each line in, behind a header that names the columns.

Reads tab-separated lines, or .jsonl, .tmx and .parquet by their suffix: what 'mine' and 'score' write, source and
target first, or columns that a header or --scol and --tcol name. A column that is there already is replaced. A row of
another width than most, or that is not UTF-8, keeps its place, with empty scores.

\b
{_TABLE}

\b
bitextmine mine --src en --tgt fr | bitextmine score | bitextmine filter > clean.tsv
zstdcat crawl.tsv.zst | bitextmine score | bitextmine filter --rejected bad.tsv > clean.tsv
bitextmine score pairs.tsv --columns cosine --score-only | paste - pairs.tsv | sort -k 1,1gr
"""


@click.command(
    cls=Command,
    name="score",
    help=_HELP,
    example="bitextmine score pairs.tsv > scored.tsv",
    remote=("path", "output"),
)
@click.argument("path", metavar="[PAIRS.tsv]", default="-")
@options.stream_output
@click.option(
    "--columns",
    metavar="NAME,...",
    help=f"Columns to add, in this order.  [default: {','.join(default_columns(languages=False))}, and lang before "
    "quality where --src and --tgt are given]",
)
@click.option(
    "--score-only",
    is_flag=True,
    help="Print the added columns alone, for 'paste': one line for each line, and no header if there was none.",
)
@click.option(
    "--src",
    type=Language(),
    default="",
    metavar="L",
    help="The language that the sources should be in, and its name in .tmx and .jsonl.",
)
@click.option(
    "--tgt", type=Language(), default="", metavar="L", help="The language that the targets should be in."
)
@options.scol
@options.tcol
@options.header(
    "Whether the first line names the columns; with --no-header no such line is written, either.  "
    "[default: look, and write one]"
)
@options.max_line
@click.option(
    "--strict", is_flag=True, help="Stop at a row that is no pair, instead of leaving its scores empty."
)
@options.model
@options.neighbours("Neighbours that the margin is taken over.")
@options.margin("How a pair is compared with its neighbours.")
@options.count(
    "--window", default=4096, help="Pairs of the stream that the margin's neighbours are looked for among."
)
@click.option(
    "--src-index",
    metavar="FILE",
    help="Look for them in this embedded corpus instead (corpus.en, .npy or .faiss), and in --tgt-index: such margins "
    "compare with those of 'mine'.",
)
@click.option("--tgt-index", metavar="FILE", help="See --src-index.")
@options.device
@options.ray("Have a Ray cluster compute the columns.", rows=False)
@options.batch_tokens
def score(
    path: str, output: str, scol: str | None, tcol: str | None, header: bool | None, **options: Any
) -> None:
    """Add columns to sentence pairs, and print what was done."""
    from bitextmine.files.layout import Columns
    from bitextmine.scoring.score import ScoreOptions
    from bitextmine.scoring.score import score as score_rows

    where = Columns(src=scol, tgt=tcol, header=header)
    click.echo(score_rows(path, output, ScoreOptions(where, **options)).to_table(), err=True)
