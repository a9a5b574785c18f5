"""bitextmine report"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command


@click.command(
    cls=Command,
    name="report",
    example="bitextmine report bitext.tsv -o report.html",
    remote=("bitext", "output", "png", "manifest"),
)
@click.argument("bitext", metavar="BITEXT.tsv")
@click.option("-o", "--output", metavar="FILE.html", help='Where the page goes; "-" is standard output.')
@click.option("--png", metavar="FILE.png", help="The plots alone, as a picture (needs matplotlib).")
@options.threshold("Score to mark and count at. auto: the one that the file was mined with.")
@click.option(
    "--score-col", "score", metavar="COL", help="Column of the score: position from 1, or name in the header."
)
@options.scol
@options.tcol
@options.read_header
@click.option("--manifest", metavar="FILE.json", help="How it was mined.  [default: BITEXT.tsv.json]")
@options.errors
@options.max_line
def report(
    bitext: str, score: str | None, scol: str | None, tcol: str | None, header: bool | None, **options: Any
) -> None:
    """Show what is in a file of sentence pairs.

    Makes one HTML file that needs no network: scores and thresholds, lengths, languages, high scores to doubt,
    examples, how the file was made. Reads what 'mine', 'score' and 'filter' write, and any other pairs in tab-separated
    lines, .jsonl, .tmx or .parquet, with scores or without.

    \b
    bitextmine report crawl.tsv.gz --scol 4 --tcol 5 --score-col 3 -o report.html
    bitextmine mine --src en --tgt fr | bitextmine report - --threshold 3 -o report.html
    """
    if options["output"] is None and options["png"] is None:
        raise click.UsageError("give -o FILE.html, --png FILE.png, or both")
    for option, place, suffixes in (
        ("-o", options["output"], (".html", ".htm")),
        ("--png", options["png"], (".png",)),
    ):
        suffix = Path(place or "").suffix.lower()
        if suffix and suffix not in suffixes and Path(place).resolve() != Path(bitext).resolve():
            raise click.UsageError(f"{option} {place}: call it FILE{suffixes[0]}, which is what it will be")
    from bitextmine.console import counted
    from bitextmine.reporting import Columns, write_report

    pairs = write_report(bitext, columns=Columns(score, scol, tcol, header), **options)
    made = ", ".join(path for path in (options["output"], options["png"]) if path not in (None, "-"))
    if made:
        click.echo(f"{made}: a report on {counted(pairs, 'pair')}", err=True)
