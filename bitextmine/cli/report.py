"""bitextmine report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="report",
    example=(
        "bitextmine report bitext.tsv -o report.html",
        "bitextmine report crawl.tsv.gz --scol 4 --tcol 5 --score-col 3 -o report.html",
        "bitextmine mine --src en --tgt fr | bitextmine report - --threshold 3 -o report.html",
    ),
    remote=("bitext", "output", "manifest"),
)
@options.pairs_argument("bitext", "BITEXT.tsv | SRC TGT", required=True)
@click.option(
    "-o", "--output", required=True, metavar="FILE.html", help='Output page; "-" is standard output.'
)
@options.threshold("Score to mark and count at. auto: the threshold the file was mined with.")
@options.text(
    "--score-col",
    "COL",
    "Score column: a position from 1, or a name in the header.  [default: detect]",
    dest="score",
)
@options.scol
@options.tcol
@options.header()
@options.text("--manifest", "FILE.json", "How it was mined.  [default: BITEXT.tsv.json]")
@options.with_run(options.errors)
def report(
    bitext: str,
    output: str,
    score: str | None,
    scol: str | None,
    tcol: str | None,
    header: bool | None,
    run: Run,
    **options: Any,
) -> None:
    """Summarise a file of sentence pairs on an HTML page.

    The page needs no network. It shows scores and thresholds, lengths, languages, suspicious high scores, examples, and
    how the file was made. Reads the output of 'mine', 'score' and 'filter', and any other pairs as tab-separated lines,
    .jsonl, .tmx or .parquet, with or without scores; or two files, of sources and of their translations.
    """
    if (
        Path(output).suffix.lower() not in ("", ".html", ".htm")
        and Path(output).resolve() != Path(bitext).resolve()
    ):
        raise click.UsageError(f"-o {output}: the page is HTML; name it FILE.html")
    from bitextmine.console import counted
    from bitextmine.reporting import Columns, write_report

    columns = Columns(score, scol, tcol, header)
    pairs = write_report(bitext, output, columns=columns, errors=run.errors, **options)
    if output != "-":
        click.echo(f"{output}: a report on {counted(pairs, 'pair')}", err=True)
