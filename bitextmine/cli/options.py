"""Options that several commands share, and `with_run`, which turns those about resources into one `Run`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from bitextmine.cli import types
from bitextmine.mining.choices import Choice, Margin

Decorator = Callable[[Any], Any]
SEED = click.IntRange(0, 2**32 - 1)
SHARE: dict[str, Any] = {"min": 0, "max": 1, "min_open": True, "max_open": True}


def text(name: str, metavar: str, help: str, *, dest: str | None = None, **more: Any) -> Decorator:
    """Make an option for a string."""
    return click.option(name, *([dest] if dest else []), metavar=metavar, help=help, **more)


def number(
    name: str, help: str, *, dest: str | None = None, default: float | None = None, **limits: Any
) -> Decorator:
    """Make an option for a finite number within limits."""
    kind = types.Number(**limits)
    return text(name, "X", help, dest=dest, type=kind, default=default, show_default=default is not None)


def count(name: str, *names: str, default: int | None, help: str, least: int = 1) -> Decorator:
    """Make an option for a whole number; without a default, `help` says what applies."""
    return click.option(
        name,
        *names,
        type=click.IntRange(min=least),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=help,
    )


def choice(name: str, choices: type[Choice], default: Choice, about: str) -> Decorator:
    """Make an option for one of a stage's choices; the help explains each."""
    return click.option(
        name,
        type=click.Choice([one.value for one in choices]),
        default=default.value,
        show_default=True,
        help=f"{about} {meanings(choices)}",
    )


def meanings(choices: Iterable[Choice]) -> str:
    """Return every choice with its meaning, as a sentence."""
    return "; ".join(f"{one}: {one.meaning}" for one in choices) + "."


def language(*names: str, help: str, default: str | None = None, multiple: bool = False) -> Decorator:
    """Make an option for a language code."""
    return click.option(
        *names, type=types.language, default=default, multiple=multiple, metavar="LANG", help=help
    )


def margin(about: str) -> Decorator:
    """Make --margin."""
    return choice("--margin", Margin, Margin.RATIO, about)


def neighbours(help: str, least: int = 1) -> Decorator:
    """Make -k."""
    return count("-k", default=4, help=help, least=least)


def seed(help: str = "Random seed.") -> Decorator:
    """Make --seed."""
    return click.option("--seed", type=SEED, default=1, show_default=True, metavar="N", help=help)


def threshold(help: str, precision: bool = False) -> Decorator:
    """Make --threshold; `precision` allows precision=X."""
    return click.option(
        "--threshold",
        type=types.threshold(precision),
        default="auto",
        show_default=True,
        metavar="NUMBER|auto|none|precision=X" if precision else "NUMBER|auto|none",
        help=help,
    )


def memory(help: str, default: str | None = None) -> Decorator:
    """Make --memory; without a default, half of the free memory applies."""
    return click.option(
        "--memory",
        type=types.size,
        default=default,
        show_default=default is not None,
        metavar="SIZE",
        help=help if default else f"{help}  [default: half of the free memory]",
    )


def header(help: str = "The first line names the columns, or does not.  [default: detect]") -> Decorator:
    """Make --header/--no-header."""
    return click.option("--header/--no-header", default=None, help=help)


def force(help: str) -> Decorator:
    """Make --force."""
    return click.option("--force", is_flag=True, help=help)


model = click.option(
    "--model",
    default="default",
    envvar="BITEXTMINE_MODEL",
    metavar="NAME|FOLDER",
    help="Encoder: a built-in one, a folder made by 'bitextmine train', sentence-transformers or LASER2, or "
    "ORG/NAME[@REVISION] on the Hugging Face Hub.  [default: default, or $BITEXTMINE_MODEL]",
)
cache = click.option(
    "--cache",
    envvar="BITEXTMINE_CACHE",
    metavar="FOLDER",
    help="Keep embeddings in this folder, for example when the corpora are read-only.  [default: beside each corpus, "
    "or $BITEXTMINE_CACHE]",
)
wait = click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="If another process is writing an embedding, wait for it or stop.",
)
report_format = click.option(
    "--format",
    "report_format",
    type=click.Choice(["table", "tsv", "json"]),
    default="table",
    show_default=True,
    help="Output format; json holds the most detail.",
)
scol = click.option(
    "--scol",
    metavar="COL",
    help="Source column: a position from 1, or a name in the header.  [default: detect]",
)
tcol = click.option("--tcol", metavar="COL", help="Target column, likewise.")
stream_output = click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Output file: .tsv, .jsonl, .tmx or .parquet; add .gz, .bz2, .xz or .zst to compress.  "
    "[default: standard output]",
)
search_memory = memory("Memory limit for exact search, e.g. 500M or 2G; too small a limit is an error.")
resamples = count("--resamples", default=2000, help="Bootstrap resamples.")
data = text("--data", "FOLDER", "Folder of the corpora.  [default: as in the recipe, or the current folder]")
new_model = text("--out", "FOLDER", "Model folder to create.", required=True)
lang = language("--lang", help="Language of the corpus, if its file name does not tell.")
overwrite = force("Embed again even if up to date, and overwrite files of other programs.")


def with_corpora(several_names: bool) -> Decorator:
    """Add the options that name source and target corpora; `several_names` makes --name repeatable."""
    found = "Source language; its corpus is looked up in --dir. Repeatable."
    named = "Which corpora to take if --dir holds several: news for news.en and news.fr."
    return lambda command: apply(
        command,
        language("--src", multiple=True, help=found),
        language("--tgt", multiple=True, help="Target language, likewise."),
        text(
            "--dir",
            "FOLDER",
            "Folder of the corpora.  [default: current folder]",
            dest="directory",
            default=".",
        ),
        text("--name", "NAME", named + " Repeatable." * several_names, multiple=several_names),
        text("--src-file", "FILE", "Source corpus, by file name. Repeatable.", multiple=True),
        text("--tgt-file", "FILE", "Target corpus, likewise.", multiple=True),
    )


# --- resources: what a command computes with -------------------------------------------------------------


def _set_max_line(ctx: click.Context, param: click.Parameter, value: int) -> None:
    from bitextmine.files.streams import longest_line  # here: --help loads nothing but this package

    longest_line(value)


max_line = click.option(
    "--max-line",
    type=types.size,
    default="10M",
    show_default=True,
    metavar="SIZE",
    expose_value=False,
    callback=_set_max_line,
    help="Longest line to read; a longer one is an error.",
)
device = click.option(
    "--device",
    type=types.device,
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="Device to compute on.",
)
batch_tokens = click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Subword pieces per batch; fewer need less memory.  [default: fits the device]",
)
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="Invalid UTF-8: stop and report the line, or read it as U+FFFD.",
)


def with_run(*resources: Decorator) -> Decorator:
    """Add `resources` and --max-line to a command, which gets their values as one `Run`, its parameter `run`."""

    def add(command: Callable[..., Any]) -> Any:
        @functools.wraps(command)
        def with_one(*args: Any, **given: Any) -> Any:
            from bitextmine.distributed.options import take_executor
            from bitextmine.run import Run

            given["executor"] = take_executor(given)
            names = {field.name for field in dataclasses.fields(Run)} & given.keys()
            run = Run(**{name: given.pop(name) for name in names})
            return command(*args, run=run, **given)

        return apply(with_one, *resources, max_line)

    return add


def apply(command: Any, *decorators: Decorator) -> Any:
    """Add options to a command, in this order."""
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def cluster(about: str, rows: bool = True, gpus: bool = True) -> Decorator:
    """Make --ray and its companions; the help begins with "Have a Ray cluster" and `about`.

    Args:
        about: the work of the cluster, as a sentence without its subject.
        rows: add --ray-rows.
        gpus: add --ray-gpus.
    """
    options = [
        click.option(
            "--ray",
            type=types.ray_address,
            metavar="auto|local|HOST:PORT",
            help=f"Have a Ray cluster {about} auto: the cluster this machine belongs to; local: a new one on this "
            "machine, for this command; HOST:PORT: the cluster with this head. Needs the extra 'ray'.",
        ),
        count("--ray-cpus", default=1, help="CPUs per Ray worker."),
    ]
    if gpus:
        options.append(count("--ray-gpus", default=0, least=0, help="GPUs per Ray worker."))
    if rows:
        options.append(
            count(
                "--ray-rows", default=None, help="Maximum lines per shard.  [default: from the corpus size]"
            )
        )
    options.append(
        click.option(
            "--ray-report",
            metavar="FILE.jsonl",
            help="Append seconds, tasks, workers and memory of each stage.  [default: only log them]",
        )
    )
    return lambda command: apply(command, *options)


def explicit(name: str) -> bool:
    """Return True if an option was given on the command line, not by the environment or a default."""
    source = click.get_current_context().get_parameter_source(name)
    return source == click.core.ParameterSource.COMMANDLINE
