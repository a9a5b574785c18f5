"""bitextmine info, report, score, filter."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click

from bitextmine.cli.declared import Only, command
from bitextmine.cli.shell import program
from bitextmine.declarations import Opt
from bitextmine.files.formats.names import INPUT_SUFFIXES
from bitextmine.files.options import PairColumns, StreamOutput, pairs_file
from bitextmine.mining.options import PlainThreshold
from bitextmine.run import Run
from bitextmine.scoring.options import MEANINGS, FilterOptions, RuleOptions, ScoreOptions


@command(program, "info", example="bitextmine info corpus.fr.npy")
def info(
    *,
    paths: Annotated[tuple[str, ...], Opt("PATH...", remote=True)],
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Describe a model, embedding, index, mined file or corpus.

    Prints one "name: value" per line, taken from the manifest. "default" is the default encoder.
    """
    from bitextmine.files.source import Source
    from bitextmine.info import describe

    for number, path in enumerate(paths):
        if len(paths) > 1:
            click.echo(f"{chr(10) if number else ''}{path}")
        for name, value in describe(Source.of(path, run)).items():
            click.echo(f"{name}: {value}")


_HELP = f"""Summarise a file of sentence pairs on an HTML page.

The page needs no network. It shows the scores, suspicious pairs, examples, and the signature of the run. Reads the
output of 'mine', 'score' and 'filter', other pairs ({INPUT_SUFFIXES}), with or without scores, or two files, sources
and translations.
"""


@command(
    program,
    "report",
    help=_HELP,
    example=(
        "bitextmine report bitext.tsv -o report.html",
        "bitextmine report crawl.tsv.gz --scol 4 --tcol 5 --score-col 3 -o report.html",
        "bitextmine mine --src en --tgt fr | bitextmine report - --threshold 3 -o report.html",
    ),
)
def report(
    *,
    bitext: Annotated[tuple[str, ...], Opt("BITEXT.tsv | SRC TGT", remote=True)],
    output: Annotated[
        str, Opt("-o --output", 'Output page; "-" is standard output.', metavar="FILE.html", remote=True)
    ],
    threshold: Annotated[
        PlainThreshold,
        Opt("--threshold", "Threshold to mark in the charts. auto: the one the file was mined with."),
    ] = "auto",
    where: PairColumns,
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Summarise a file of sentence pairs on an HTML page."""
    path, page = pairs_file(bitext), Path(output)
    if page.suffix.lower() not in ("", ".html", ".htm") and page.resolve() != Path(path).resolve():
        raise click.UsageError(f"-o {output}: the page is HTML; name it FILE.html")
    from bitextmine.console import counted
    from bitextmine.files.source import Source
    from bitextmine.reporting import write_report

    source = Source.of(path, run)
    pairs = write_report(source, output, columns=where.columns, threshold=threshold)
    if output != "-":
        click.echo(f"{output}: a report on {counted(pairs, 'pair')}", err=True)


_TABLE = "\n".join(f"{name:18}  {meaning}" for name, meaning in MEANINGS.items())
_SCORE_HELP = f"""Add score columns to sentence pairs.

Writes a header, then one output line per input line. Replaces a column that already exists. Rows with an unusual number
of columns or invalid UTF-8 stay in place, with empty scores. Columns see texts without markup, mojibake and control
characters.

Reads {INPUT_SUFFIXES}, or two files, sources and translations line by line, such as corpus.en and corpus.de. Source and
target are the first two columns, those that 'mine' and 'score' write, or those named by a header or by --scol and
--tcol. --src and --tgt are not needed if the file states its languages, by its format, a header or the names of two
files; given, they choose among these.

\b
{_TABLE}
"""


@command(
    program,
    "score",
    help=_SCORE_HELP,
    example=(
        "bitextmine score pairs.tsv > scored.tsv",
        "bitextmine mine --src en --tgt fr | bitextmine score | bitextmine filter > clean.tsv",
        'bitextmine score corpus.en corpus.de | bitextmine filter -o "clean.{lang}.gz"',
        "bitextmine score pairs.tsv --columns cosine --score-only | paste - pairs.tsv | sort -k 1,1gr",
    ),
)
def score(
    *,
    path: Annotated[tuple[str, ...], Opt("[PAIRS.tsv | SRC TGT]", remote=True)] = (),
    output: StreamOutput = "-",
    options: ScoreOptions,
    where: Annotated[
        PairColumns,
        Only(
            "scol",
            "tcol",
            header=Opt(
                "--header/--no-header",
                "Take the first line as column names, or as data; with --no-header, the output has no header either.",
                default="detect, and write one",
            ),
        ),
    ],
    run: Annotated[Run, Only("device", "executor", "batch_tokens", "max_line")],
) -> None:
    """Add score columns to sentence pairs and report the counts."""
    from bitextmine.scoring.score import score as score_rows

    options = replace(options, where=where.columns)
    click.echo(score_rows(pairs_file(path), output, options, run).to_table(), err=True)


@command(
    program,
    "filter",
    example=(
        "bitextmine filter scored.tsv --rejected bad.tsv > clean.tsv",
        "bitextmine filter scored.tsv --preset strict --min numbers=1 --explain 3 > clean.tsv",
        "bitextmine filter pairs.tsv --max length_ratio=2.5 --duplicates near > clean.tsv",
        'bitextmine filter corpus.en corpus.de --duplicates near -o "clean.{lang}"',
        "bitextmine filter pairs.parquet --scol en --tcol fr --min bicleaner=0.5 -o clean.parquet",
    ),
)
def filter_pairs(
    *,
    path: Annotated[tuple[str, ...], Opt("[SCORED.tsv | SRC TGT]", remote=True)] = (),
    output: StreamOutput = "-",
    rejected: Annotated[
        str | None,
        Opt(
            "--rejected",
            "Output file for rejected rows, each with the rule it failed.",
            metavar="FILE",
            remote=True,
        ),
    ] = None,
    rules: RuleOptions,
    options: FilterOptions,
    where: Annotated[PairColumns, Only("scol", "tcol", "header")],
    run: Annotated[
        Run,
        Only(
            "executor",
            "max_line",
            memory=Opt("--memory", "Memory limit for duplicates; 100 million pairs need 1G.", default="2G"),
        ),
    ],
) -> None:
    """Keep the sentence pairs that pass every rule.

    A rule tests a column, by name or by position from 1. Names come from the header that 'score' writes, or from
    --columns. Missing columns are computed from the texts, except cosine, margin and quality. Rows with an unusual
    number of columns or invalid UTF-8 are rejected as malformed. A header is copied.
    """
    from bitextmine.scoring.filter import filter_rows
    from bitextmine.scoring.rules import choose_rules

    limits = {"min": rules.min, "max": rules.max, "equal": rules.equal}
    chosen = choose_rules(rules.preset, rules.rules, limits, rules.duplicates)
    options = replace(options, where=where.columns)
    done = filter_rows(pairs_file(path), output, chosen, options, run, rejected=rejected)
    click.echo(done.to_table(), err=True)
