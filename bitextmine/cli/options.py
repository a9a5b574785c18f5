"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from bitextmine.cli.types import Device, Language, Limit, Memory, RayAddress, Threshold
from bitextmine.mining.choices import Choice, Margin

Decorator = Callable[[Any], Any]
SEED = click.IntRange(0, 2**32 - 1)

model = click.option(
    "--model",
    default="default",
    envvar="BITEXTMINE_MODEL",
    metavar="NAME|FOLDER",
    help="Encoder: the one in the package, a folder of 'bitextmine train', sentence-transformers or LASER2, or "
    "ORG/NAME[@REVISION] of the Hugging Face hub.  "
    "[default: default, or $BITEXTMINE_MODEL]",
)
device = click.option(
    "--device",
    type=Device(),
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="Where to compute.",
)
batch_tokens = click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Subword pieces per batch; less takes less memory.  [default: fits the device]",
)
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="Invalid UTF-8: stop and name the line, or read it as U+FFFD.",
)


def _set_max_line(ctx: click.Context, param: click.Parameter, value: int) -> None:
    from bitextmine.files.streams import longest_line  # here: --help loads nothing but this room

    longest_line(value)


max_line = click.option(
    "--max-line",
    type=Memory(),
    default="10M",
    show_default=True,
    metavar="SIZE",
    expose_value=False,
    callback=_set_max_line,
    help="Longest line that is read; a longer one is an error, before it fills the memory.",
)
cache = click.option(
    "--cache",
    envvar="BITEXTMINE_CACHE",
    metavar="FOLDER",
    help="Keep vectors here, as where corpora cannot be written beside.  [default: beside them, or $BITEXTMINE_CACHE]",
)
wait = click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait for an embedding that another process is writing, or stop.",
)
form = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "tsv", "json"]),
    default="table",
    show_default=True,
    help="For eyes, for programs, or everything.",
)

scol = click.option(
    "--scol",
    metavar="COL",
    help="Column of the source: position from 1, or name in the header.  [default: look]",
)
tcol = click.option("--tcol", metavar="COL", help="Column of the target, likewise.")
stream_output = click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Where the rows go: .tsv, .jsonl, .tmx or .parquet; .gz, .bz2, .xz or .zst behind compress.  "
    "[default: standard output]",
)


def plan(command: Any) -> Any:
    """--plan, --assume."""
    for option in (
        click.option(
            "--assume",
            type=Limit(),
            multiple=True,
            metavar="NAME=X",
            help="For --plan: workers=8, processors=16 of each, embed=50000 lines a second and processor, or another "
            "of the rates that it prints; may be repeated.  [default: one worker, its --ray-cpus, what was measured]",
        ),
        click.option(
            "--plan",
            is_flag=True,
            help="Print what it would take, in shards, tiles, bytes, memory and time, and do nothing.",
        ),
    ):
        command = option(command)
    return command


def ray(about: str, rows: bool = True, gpus: bool = True) -> Decorator:
    """--ray and what goes with it; rows, gpus: --ray-rows and --ray-gpus, too. `about` says what the cluster does."""
    options = [
        click.option(
            "--ray",
            type=RayAddress(),
            metavar="auto|local|HOST:PORT",
            help=f"{about} auto: the Ray cluster that this machine belongs to; local: one that is started here for the "
            "command; or the one with that head. Needs the extra 'ray'.",
        ),
        count("--ray-cpus", default=1, help="Processors of each worker of --ray."),
    ]
    if gpus:
        options.append(
            click.option(
                "--ray-gpus",
                type=click.IntRange(min=0),
                default=0,
                show_default=True,
                metavar="N",
                help="GPUs of each worker of --ray.",
            )
        )
    if rows:
        options.append(
            count(
                "--ray-rows", default=None, help="Most lines in a shard of --ray.  [default: by the corpora]"
            )
        )

    options.append(
        click.option(
            "--ray-report",
            metavar="FILE.jsonl",
            help="Add a line for each stage of --ray: seconds, tasks, workers, memory.  [default: the log says it]",
        )
    )

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def choice(name: str, choices: type[Choice], default: Choice, about: str) -> Decorator:
    """One of a stage's choices, with what each means; `about` opens the help."""
    return click.option(
        name,
        type=click.Choice([one.value for one in choices]),
        default=default.value,
        show_default=True,
        help=f"{about} {meanings(choices)}",
    )


def meanings(choices: Iterable[Choice]) -> str:
    """Every choice with what it means, in a sentence."""
    return "; ".join(f"{one}: {one.meaning}" for one in choices) + "."


def margin(about: str) -> Decorator:
    """--margin."""
    return choice("--margin", Margin, Margin.RATIO, about)


def count(name: str, *, default: int | None, help: str, least: int = 1) -> Decorator:
    """A number from ``least``; without a default, the help tells what holds."""
    return click.option(
        name,
        type=click.IntRange(min=least),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=help,
    )


def neighbours(help: str, least: int = 1) -> Decorator:
    """-k."""
    return count("-k", default=4, help=help, least=least)


def seed(help: str) -> Decorator:
    """--seed."""
    return click.option("--seed", type=SEED, default=1, show_default=True, metavar="N", help=help)


def threshold(help: str, precision: bool = False) -> Decorator:
    """--threshold; precision: whether it may be precision=SHARE."""
    return click.option(
        "--threshold",
        type=Threshold(precision),
        default="auto",
        show_default=True,
        metavar="NUMBER|auto|none|precision=X" if precision else "NUMBER|auto|none",
        help=help,
    )


def memory(help: str, default: str | None = None) -> Decorator:
    """--memory; without a default, half of what is free."""
    return click.option(
        "--memory",
        type=Memory(),
        default=default,
        show_default=default is not None,
        metavar="SIZE",
        help=help if default else f"{help}  [default: half of what is free]",
    )


def header(help: str) -> Decorator:
    """--header."""
    return click.option("--header/--no-header", default=None, help=help)


search_memory = memory("Most that exact search may take, as 500M or 2G; too little is refused.")
read_header = header("Whether the first line names the columns.  [default: look]")
resamples = count("--resamples", default=2000, help="Of the bootstrap.")
lang = click.option(
    "--lang", type=Language(), metavar="L", help="Language of the corpus, where its name does not tell."
)


def explicit(name: str) -> bool:
    """Whether an option was given on the command line, and not by the environment or by default."""
    source = click.get_current_context().get_parameter_source(name)
    return source == click.core.ParameterSource.COMMANDLINE
