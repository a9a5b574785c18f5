"""Options that several commands share, and `with_run`, which turns those about resources into one `Run`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import click

from bitextmine.cli import types
from bitextmine.mining.choices import Choice, Margin

Decorator = Callable[[Any], Any]
SHARE: dict[str, Any] = {"min": 0, "max": 1, "min_open": True, "max_open": True}


def text(
    name: str, metavar: str | None, help: str, *, dest: str | None = None, shown: Any = None, **more: Any
) -> Decorator:
    """Make an option with a value; `shown` is a default that the help shows."""
    if shown is not None:
        more |= {"default": shown, "show_default": True}
    return click.option(name, *([dest] if dest else []), metavar=metavar, help=help, **more)


def number(
    name: str, help: str, *, default: float | None = None, dest: str | None = None, **limits: Any
) -> Decorator:
    """Make an option for a finite number within limits."""
    return text(name, "X", help, dest=dest, shown=default, type=types.Number(**limits))


def count(
    name: str,
    help: str,
    *,
    default: int | None = None,
    dest: str | None = None,
    least: int = 1,
    most: int | None = None,
) -> Decorator:
    """Make an option for a whole number; without a default, `help` says what applies."""
    return text(name, "N", help, dest=dest, shown=default, type=click.IntRange(least, most))


def flag(name: str, help: str, **more: Any) -> Decorator:
    """Make an option without a value."""
    return click.option(name, is_flag=True, help=help, **more)


def choice(name: str, choices: type[Choice], default: Choice, about: str) -> Decorator:
    """Make an option for one of a stage's choices; the help explains each."""
    meanings = "; ".join(f"{one}: {one.meaning}" for one in choices)
    kind = click.Choice([one.value for one in choices])
    return text(name, None, f"{about} {meanings}.", shown=default.value, type=kind)


def language(name: str, help: str, **more: Any) -> Decorator:
    """Make an option for a language code."""
    return text(name, "LANG", help, type=types.language, **more)


def margin(about: str) -> Decorator:
    """Make --margin."""
    return choice("--margin", Margin, Margin.RATIO, about)


def neighbours(help: str, least: int = 1) -> Decorator:
    """Make -k."""
    return count("-k", help, default=4, least=least)


def seed(help: str = "Random seed.", **more: Any) -> Decorator:
    """Make --seed."""
    return count("--seed", help, **{"default": 1, "least": 0, "most": 2**32 - 1, **more})


def threshold(help: str, estimated: bool = False) -> Decorator:
    """Make --threshold; `estimated` allows the rules that need an estimate."""
    metavar = "NUMBER|auto|none" + "|fBETA|precision=X|fpr=X" * estimated
    return text("--threshold", metavar, help, shown="auto", type=types.threshold(estimated))


def memory(help: str, default: str | None = None) -> Decorator:
    """Make --memory; without a default, half of the free memory applies."""
    return text(
        "--memory",
        "SIZE",
        help + "  [default: half of the free memory]" * (default is None),
        shown=default,
        type=types.size,
    )


def header(help: str = "The first line names the columns, or does not.  [default: detect]") -> Decorator:
    """Make --header/--no-header."""
    return click.option("--header/--no-header", default=None, help=help)


model = text(
    "--model",
    "NAME|FOLDER",
    "Encoder: a built-in one, a folder made by 'bitextmine train', sentence-transformers or LASER2, or "
    "ORG/NAME[@REVISION] on the Hugging Face Hub.  [default: default, or $BITEXTMINE_MODEL]",
    default="default",
    envvar="BITEXTMINE_MODEL",
)
cache = text(
    "--cache",
    "FOLDER",
    "Keep embeddings in this folder, for example when the corpora are read-only.  [default: beside each corpus, or "
    "$BITEXTMINE_CACHE]",
    envvar="BITEXTMINE_CACHE",
)
wait = click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="If another process is writing an embedding, wait for it or stop.",
)
report_format = text(
    "--format",
    None,
    "Output format; json holds the most detail.",
    dest="report_format",
    shown="table",
    type=click.Choice(["table", "tsv", "json"]),
)
scol = text("--scol", "COL", "Source column: a position from 1, or a name in the header.  [default: detect]")
tcol = text("--tcol", "COL", "Target column, likewise.")


def output(help: str) -> Decorator:
    """Make -o; the default is standard output."""
    return click.option(
        "-o", "--output", default="-", metavar="FILE", help=f"{help}  [default: standard output]"
    )


stream_output = output(
    "Output file: .tsv, .jsonl, .tmx or .parquet, or two with NAME.{lang}; add .gz, .bz2, .xz or .zst to compress."
)


def pairs_argument(name: str, metavar: str, required: bool = False) -> Decorator:
    """Add the argument for a file of pairs: a path (by default standard input), or two as `TwoFiles`."""

    def one(ctx: click.Context, param: click.Parameter, files: tuple[str, ...]) -> Any:
        if len(files) < 2:
            return files[0] if files else "-"
        if len(files) == 2 and all(files):
            from bitextmine.files.formats.names import TwoFiles

            return TwoFiles((files[0], files[1]))
        raise click.BadParameter("expected a file of pairs, or two: sources and targets.", ctx, param)

    return click.argument(name, metavar=metavar, nargs=-1, required=required, callback=one)


search_memory = memory("Memory limit for exact search, e.g. 500M or 2G; too small a limit is an error.")
resamples = count("--resamples", "Bootstrap resamples.", default=2000)
data = text("--data", "FOLDER", "Folder of the corpora.  [default: as in the recipe, or the current folder]")
new_model = text("--out", "FOLDER", "Model folder to create.", required=True)
lang = language("--lang", "Language of the corpus, if its file name does not tell.")
overwrite = flag("--force", "Embed again even if up to date, and overwrite files of other programs.")


def with_corpora(several_names: bool) -> Decorator:
    """Add the options that name source and target corpora; `several_names` makes --name repeatable."""
    folder = "Folder of the corpora.  [default: current folder]"
    named = "Which corpora to take if --dir holds several: news for news.en and news.fr."
    return lambda command: apply(
        command,
        language("--src", "Source language; its corpus is looked up in --dir. Repeatable.", multiple=True),
        language("--tgt", "Target language, likewise.", multiple=True),
        text("--dir", "FOLDER", folder, dest="directory", default="."),
        text("--name", "NAME", named + " Repeatable." * several_names, multiple=several_names),
        text("--src-file", "FILE", "Source corpus, by file name. Repeatable.", multiple=True),
        text("--tgt-file", "FILE", "Target corpus, likewise.", multiple=True),
    )


# --- resources: what a command computes with -------------------------------------------------------------


def _set_max_line(ctx: click.Context, param: click.Parameter, value: int) -> None:
    from bitextmine.files.streams import longest_line  # here: --help loads nothing but this package

    longest_line(value)


max_line = text(
    "--max-line",
    "SIZE",
    "Longest line to read; a longer one is an error.",
    shown="10M",
    type=types.size,
    expose_value=False,
    callback=_set_max_line,
)
device = text("--device", "auto|cpu|cuda|cuda:N", "Device to compute on.", shown="auto", type=types.device)
batch_tokens = count(
    "--batch-tokens", "Subword pieces per batch; fewer need less memory.  [default: fits the device]"
)
errors = text(
    "--errors",
    None,
    "Invalid UTF-8: stop and report the line, or read it as U+FFFD.",
    shown="strict",
    type=click.Choice(["strict", "replace"]),
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
    about = (
        f"Have a Ray cluster {about} auto: the cluster this machine belongs to; local: a new one on this machine, for "
        "this command; HOST:PORT: the cluster with this head. Needs the extra 'ray'."
    )
    report = "Append seconds, tasks, workers and memory of each stage.  [default: only log them]"
    options = [
        text("--ray", "auto|local|HOST:PORT", about, type=types.ray_address),
        count("--ray-cpus", "CPUs per Ray worker.", default=1),
        *([count("--ray-gpus", "GPUs per Ray worker.", default=0, least=0)] if gpus else []),
        *([count("--ray-rows", "Maximum lines per shard.  [default: from the corpus size]")] if rows else []),
        text("--ray-report", "FILE.jsonl", report),
    ]
    return lambda command: apply(command, *options)


def explicit(name: str) -> bool:
    """Return True if an option was given on the command line, not by the environment or a default."""
    source = click.get_current_context().get_parameter_source(name)
    return source == click.core.ParameterSource.COMMANDLINE
