"""bitextmine filter"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language, Limit, Setting
from bitextmine.mining.choices import Dedup
from bitextmine.scoring.choices import DUPLICATES, PRESETS


@click.command(
    cls=Command,
    name="filter",
    example="bitextmine filter scored.tsv --rejected bad.tsv > clean.tsv",
    remote=("path", "output", "rejected"),
)
@click.argument("path", metavar="[SCORED.tsv]", default="-")
@options.stream_output
@click.option("--rejected", metavar="FILE", help="Where the others go, with the rule that each fails.")
@click.option(
    "--preset",
    type=click.Choice([*PRESETS, "none"]),
    help="A set of rules; cheap needs no scores.  [default: mild, unless rules are given]",
)
@click.option(
    "--rules", "rules_file", metavar="RULES.toml", help="Rules from a file, after those of the preset."
)
@click.option(
    "--min", "least", type=Limit(), multiple=True, metavar="COL=X", help="Keep X and more; may be repeated."
)
@click.option(
    "--max", "most", type=Limit(), multiple=True, metavar="COL=X", help="Keep X and less; may be repeated."
)
@click.option(
    "--equal", type=Setting(), multiple=True, metavar="COL=TEXT", help="Keep just this; may be repeated."
)
@click.option(
    "--duplicates",
    type=click.Choice(DUPLICATES),
    help=f"Keep the first of equal pairs; near: {Dedup.NEAR.meaning}.  [default: as the preset says, else none]",
)
@options.memory(
    "Most that the search for duplicates may take, as 500M or 2G; 100 million pairs need 1G.", default="2G"
)
@click.option(
    "--explain",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show N pairs just outside and just inside each rule.",
)
@click.option(
    "--columns",
    metavar="NAME,...",
    help="What the last columns are, as given to 'score', where no header names them.",
)
@options.scol
@options.tcol
@options.read_header
@options.max_line
@click.option(
    "--src",
    type=Language(),
    default="",
    metavar="L",
    help="For a rule on lang, where 'score' did not add it, and for .tmx and .jsonl.",
)
@click.option("--tgt", type=Language(), default="", metavar="L", help="Likewise.")
@options.ray(
    "Have a Ray cluster compute columns and the keys of duplicates; the table of pairs seen stays on this machine.",
    rows=False,
    gpus=False,
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
    **options: Any,
) -> None:
    """Keep the sentence pairs that meet every rule.

    A rule is on a column: its name, or its position from 1. What 'score' wrote has names; what has none is named with
    --columns. What 'score' did not add is computed from the texts, but for cosine, margin and quality. Rows of another
    width than most and invalid UTF-8 count as malformed. A header is copied.

    \b
    bitextmine filter scored.tsv --preset strict --min numbers=1 --explain 3 > clean.tsv
    bitextmine filter pairs.tsv --max length_ratio=2.5 --duplicates near > clean.tsv
    bitextmine filter pairs.parquet --scol en --tcol fr --min bicleaner=0.5 -o clean.parquet
    """
    from bitextmine.files.layout import Columns
    from bitextmine.scoring.filter import FilterOptions, filter_rows
    from bitextmine.scoring.rules import choose_rules

    rules = choose_rules(preset, rules_file, {"min": least, "max": most, "equal": equal}, duplicates)
    chosen = FilterOptions(Columns(src=scol, tgt=tcol, header=header), **options)
    click.echo(filter_rows(path, output, rules, chosen, rejected=rejected).to_table(), err=True)
