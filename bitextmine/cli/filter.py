"""bitextmine filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import limit, setting
from bitextmine.mining.choices import Dedup
from bitextmine.scoring.choices import DUPLICATES, JOINS, PRESETS

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="filter",
    example=(
        "bitextmine filter scored.tsv --rejected bad.tsv > clean.tsv",
        "bitextmine filter scored.tsv --preset strict --min numbers=1 --explain 3 > clean.tsv",
        "bitextmine filter pairs.tsv --max length_ratio=2.5 --duplicates near > clean.tsv",
        'bitextmine filter corpus.en corpus.de --duplicates near -o "clean.{lang}"',
        "bitextmine filter pairs.parquet --scol en --tcol fr --min bicleaner=0.5 -o clean.parquet",
        "bitextmine mine a.en b.fr --origin | bitextmine filter --preset none --join paragraph > paragraphs.tsv",
    ),
    remote=("path", "output", "rejected"),
)
@options.pairs_argument("path", "[SCORED.tsv | SRC TGT]")
@options.stream_output
@options.text("--rejected", "FILE", "Output file for rejected rows, each with the rule it failed.")
@click.option(
    "--preset",
    type=click.Choice([*PRESETS, "none"]),
    help="Set of rules; cheap needs no scores.  [default: mild, unless rules are given]",
)
@options.text("--rules", "RULES.toml", "More rules, applied after the preset.", dest="rules_file")
@click.option(
    "--min", "least", type=limit, multiple=True, metavar="COL=X", help="Keep rows with COL >= X. Repeatable."
)
@click.option(
    "--max", "most", type=limit, multiple=True, metavar="COL=X", help="Keep rows with COL <= X. Repeatable."
)
@click.option(
    "--equal", type=setting, multiple=True, metavar="COL=TEXT", help="Keep rows with this text. Repeatable."
)
@click.option(
    "--duplicates",
    type=click.Choice(DUPLICATES),
    help=f"Keep the first of equal pairs; near: {Dedup.NEAR.meaning}.  [default: set by the preset, or none]",
)
@click.option(
    "--join",
    type=click.Choice(JOINS),
    help="Join the sentence pairs that are kept to one pair for each pair of paragraphs or documents. Needs the "
    "origins that mine --origin writes.",
)
@options.count("--explain", "Show N pairs just outside and just inside each rule.", default=0, least=0)
@options.text(
    "--columns", "NAME,...", "Names of the last columns if there is no header, as given to 'score'."
)
@options.scol
@options.tcol
@options.header()
@options.language(
    "--src",
    "Source language, for a rule on lang that 'score' did not add, and for .tmx and .jsonl.",
    default="",
)
@options.language("--tgt", "Target language, likewise.", default="")
@options.with_run(
    options.memory("Memory limit for finding duplicates; 100 million pairs need 1G.", default="2G"),
    options.cluster(
        "compute columns and duplicate keys; the table of seen pairs stays on this machine.",
        rows=False,
        gpus=False,
    ),
)
def filter_command(
    path: str,
    output: str,
    preset: str | None,
    rules_file: str | None,
    least: tuple[tuple[str, Any], ...],
    most: tuple[tuple[str, Any], ...],
    equal: tuple[tuple[str, Any], ...],
    duplicates: str | None,
    rejected: str | None,
    scol: str | None,
    tcol: str | None,
    header: bool | None,
    run: Run,
    **options: Any,
) -> None:
    """Keep the sentence pairs that pass every rule.

    A rule tests a column, by its name or its position from 1. The header that 'score' writes names the columns; without
    one, --columns does. Columns that 'score' did not add are computed from the texts, except cosine, margin and
    quality. Rows with an unusual number of columns or invalid UTF-8 are rejected as malformed. A header is copied.
    """
    from bitextmine.files.layout import Columns
    from bitextmine.scoring.filter import FilterOptions, filter_rows
    from bitextmine.scoring.rules import choose_rules

    rules = choose_rules(preset, rules_file, {"min": least, "max": most, "equal": equal}, duplicates)
    chosen = FilterOptions(Columns(src=scol, tgt=tcol, header=header), **options)
    click.echo(filter_rows(path, output, rules, chosen, run, rejected=rejected).to_table(), err=True)
