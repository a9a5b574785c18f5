"""bitextmine score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.scoring.choices import MEANINGS, default_columns

if TYPE_CHECKING:
    from bitextmine.run import Run

_TABLE = "\n".join(f"{name:18}  {meaning}" for name, meaning in MEANINGS.items())
_HELP = f"""Add score columns to sentence pairs, one output line per input line, after a header that names the columns.

Reads tab-separated lines, or .jsonl, .tmx, .xlf and .parquet by suffix, or a folder of the library datasets: the output
of 'mine' and 'score', source and target in the first two columns, or columns named by a header or by --scol and
--tcol. Or two files, sources and translations line by line, such as corpus.en and corpus.de. Languages stated in the
file (.tmx, .jsonl, a header, the names of two files) need no --src and --tgt. Replaces a column that already exists.
Rows with an unusual number of columns or invalid UTF-8 stay in place, with empty scores.

\b
{_TABLE}
"""


@click.command(
    cls=Command,
    name="score",
    help=_HELP,
    example=(
        "bitextmine score pairs.tsv > scored.tsv",
        "bitextmine mine --src en --tgt fr | bitextmine score | bitextmine filter > clean.tsv",
        'bitextmine score corpus.en corpus.de | bitextmine filter -o "clean.{lang}.gz"',
        "bitextmine score pairs.tsv --columns cosine --score-only | paste - pairs.tsv | sort -k 1,1gr",
    ),
    remote=("path", "output"),
)
@options.pairs_argument("path", "[PAIRS.tsv | SRC TGT]")
@options.stream_output
@options.text(
    "--columns",
    "NAME,...",
    f"Columns to add, in this order.  [default: {','.join(default_columns(languages=False))}, with lang before "
    "quality if --src and --tgt are given]",
)
@options.flag(
    "--score-only",
    "Print only the added columns, for 'paste': one line per input line, with a header only if the input has one.",
)
@options.language("--src", "Expected language of the sources; also its name in .tmx and .jsonl.", default="")
@options.language("--tgt", "Expected language of the targets, likewise.", default="")
@options.scol
@options.tcol
@options.header(
    "The first line names the columns, or does not; --no-header also writes none.  [default: detect, and write one]"
)
@options.flag("--strict", "Stop at a malformed row instead of leaving its scores empty.")
@options.model
@options.neighbours("Neighbours for the margin.")
@options.margin("How a pair is compared with its neighbours.")
@options.count("--window", "Pairs of the stream to search for the margin's neighbours.", default=4096)
@options.text(
    "--src-index",
    "FILE",
    "Search this embedded corpus instead (corpus.en, .npy or .faiss), together with --tgt-index; such margins are "
    "comparable with those of 'mine'.",
)
@options.text("--tgt-index", "FILE", "See --src-index.")
@options.with_run(options.device, options.cluster("compute the columns.", rows=False), options.batch_tokens)
def score(
    path: Any, output: str, scol: str | None, tcol: str | None, header: bool | None, run: Run, **options: Any
) -> None:
    """Add score columns to sentence pairs and report the counts."""
    from bitextmine.files.layout import Columns
    from bitextmine.scoring.score import ScoreOptions
    from bitextmine.scoring.score import score as score_rows

    where = Columns(src=scol, tgt=tcol, header=header)
    click.echo(score_rows(path, output, ScoreOptions(where, **options), run).to_table(), err=True)
