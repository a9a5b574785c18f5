"""bitextmine info, report, score, filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import program
from bitextmine.mining.choices import Dedup
from bitextmine.scoring.choices import DUPLICATES, JOINS, MEANINGS, PRESETS, default_columns

if TYPE_CHECKING:
    from bitextmine.run import Run


@program.command("info", example="bitextmine info corpus.fr.npy", remote=("paths",))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@options.flag("--verify", "Compare an encoder, embedding or index with its checksum.")
@options.with_run(options.errors)
def info(paths: tuple[str, ...], verify: bool, run: Run) -> None:
    """Describe a model, embedding, index, mined file or corpus.

    Prints one "name: value" per line, taken from the manifest. "default" is the default encoder.
    """
    from bitextmine.files.source import Source
    from bitextmine.info import describe

    for number, path in enumerate(paths):
        if len(paths) > 1:
            click.echo(f"{chr(10) if number else ''}{path}")
        for name, value in describe(Source.of(path, run), verify=verify).items():
            click.echo(f"{name}: {value}")


@program.command(
    "report",
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
@options.threshold("Threshold to mark in the charts. auto: the one the file was mined with.")
@options.with_columns(
    options.text(
        "--score-col", "COL", "Score column: a position from 1, or a name in the header.  [default: detect]"
    )
)
@options.text("--manifest", "FILE.json", "Manifest of the mining run.  [default: BITEXT.tsv.json]")
@options.with_run(options.errors)
def report(bitext: str, output: str, where: Any, run: Run, **options: Any) -> None:
    """Summarise a file of sentence pairs on an HTML page.

    The page needs no network. It shows scores and thresholds, lengths, languages, suspicious pairs with high scores,
    examples, and the signature of the run. Reads the output of 'mine', 'score' and 'filter', other pairs as
    tab-separated lines, .jsonl, .tmx or .parquet, with or without scores, or two files, sources and translations.
    """
    page = Path(output)
    if page.suffix.lower() not in ("", ".html", ".htm") and page.resolve() != Path(bitext).resolve():
        raise click.UsageError(f"-o {output}: the page is HTML; name it FILE.html")
    from bitextmine.console import counted
    from bitextmine.files.source import Source
    from bitextmine.reporting import write_report

    pairs = write_report(Source.of(bitext, run), output, columns=where, **options)
    if output != "-":
        click.echo(f"{output}: a report on {counted(pairs, 'pair')}", err=True)


_TABLE = "\n".join(f"{name:18}  {meaning}" for name, meaning in MEANINGS.items())
_HELP = f"""Add score columns to sentence pairs.

Writes a header, then one output line per input line. Replaces a column that already exists. Rows with an unusual number
of columns or invalid UTF-8 stay in place, with empty scores. Columns see texts without markup, mojibake and control
characters.

Reads tab-separated lines, .jsonl, .tmx, .xlf and .parquet by suffix, folders of the library datasets, or two files,
sources and translations line by line, such as corpus.en and corpus.de. Source and target are the first two columns,
those that 'mine' and 'score' write, or those named by a header or by --scol and --tcol. --src and --tgt are not needed
if the file states its languages (.tmx, .jsonl, a header, the names of two files); given, they choose among these.

\b
{_TABLE}
"""


@program.command(
    "score",
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
    "--score-only", "Print only the added columns, for 'paste', with a header only if the input has one."
)
@options.language("--src", "Expected language of the sources; also its name in .tmx and .jsonl.", default="")
@options.language("--tgt", "Expected language of the targets, likewise.", default="")
@options.with_columns(
    header="; with --no-header, the output has none either.  [default: detect, and write one]"
)
@options.normalize
@options.flag("--strict", "Stop at a malformed row instead of leaving its scores empty.")
@options.model
@options.neighbours("Neighbours for the margin.")
@options.margin
@options.count(
    "--window", "Number of consecutive pairs in which the margin's neighbours are searched.", default=4096
)
@options.text(
    "--src-index",
    "FILE",
    "Search for neighbours in this embedded corpus instead (corpus.en, .npy or .faiss), as 'mine' does; needs "
    "--tgt-index.",
)
@options.text("--tgt-index", "FILE", "Target corpus, likewise; needs --src-index.")
@options.with_run(options.device, options.cluster("compute the columns.", rows=False), options.batch_tokens)
def score(path: Any, output: str, run: Run, **options: Any) -> None:
    """Add score columns to sentence pairs and report the counts."""
    from bitextmine.scoring.score import ScoreOptions
    from bitextmine.scoring.score import score as score_rows

    click.echo(score_rows(path, output, ScoreOptions(**options), run).to_table(), err=True)


def _rules(given: dict[str, Any]) -> Any:
    from bitextmine.scoring.rules import choose_rules

    limits = {kind: given.pop(kind) for kind in ("min", "max", "equal")}
    return choose_rules(given.pop("preset"), given.pop("rules_file"), limits, given.pop("duplicates"))


@program.command(
    "filter",
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
@options.packed(
    "rules",
    _rules,
    options.pick(
        "--preset",
        [*PRESETS, "none"],
        "Ready-made rules; cheap needs no scores.  [default: mild, unless rules are given]",
    ),
    options.text("--rules", "RULES.toml", "Further rules, applied after the preset.", dest="rules_file"),
    options.text("--min", "COL=X", "Keep rows with COL >= X. Repeatable.", type=options.limit, multiple=True),
    options.text("--max", "COL=X", "Keep rows with COL <= X. Repeatable.", type=options.limit, multiple=True),
    options.text(
        "--equal",
        "COL=TEXT",
        "Keep rows with COL equal to TEXT. Repeatable.",
        type=options.setting,
        multiple=True,
    ),
    options.pick(
        "--duplicates",
        DUPLICATES,
        f"Keep only the first of equal pairs. near: {Dedup.NEAR.meaning}.  [default: set by the preset, or none]",
    ),
)
@options.pick(
    "--join",
    JOINS,
    "Join the kept sentence pairs into paragraph or document pairs. Needs the output of mine --origin or align "
    "--origin.",
)
@options.count("--explain", "Show N pairs just outside and just inside each rule.", default=0, least=0)
@options.text(
    "--columns", "NAME,...", "Names of the last columns if there is no header, as passed to 'score'."
)
@options.with_columns()
@options.language(
    "--src",
    "Source language, for .tmx and .jsonl, and for rules on lang if the column is missing.",
    default="",
)
@options.language("--tgt", "Target language, likewise.", default="")
@options.with_run(
    options.memory("Memory limit for duplicates; 100 million pairs need 1G.", default="2G"),
    options.cluster(
        "compute columns and duplicate keys; the table of seen pairs stays on this machine.",
        rows=False,
        gpus=False,
    ),
)
def filter_command(
    path: str, output: str, rules: Any, rejected: str | None, run: Run, **options: Any
) -> None:
    """Keep the sentence pairs that pass every rule.

    A rule tests a column, by name or by position from 1. Names come from the header that 'score' writes, or from
    --columns. Missing columns are computed from the texts, except cosine, margin and quality. Rows with an unusual
    number of columns or invalid UTF-8 are rejected as malformed. A header is copied.
    """
    from bitextmine.scoring.filter import FilterOptions, filter_rows

    found = filter_rows(path, output, rules, FilterOptions(**options), run, rejected=rejected)
    click.echo(found.to_table(), err=True)
