"""Types of option values, options that several commands share, and groups of them that become one value (`Run`).

Values are checked before any file is opened (exit code 2). A well-formed value may still name a missing file, device or
column: an error of the stage (exit code 1). Nothing heavy is imported here.
"""

import contextlib
import dataclasses
import functools
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from bitextmine.declarations import Choice
from bitextmine.errors import BitextmineError
from bitextmine.mining.choices import Margin
from bitextmine.search.options import INDEX_KINDS

Decorator = Callable[[Any], Any]
SHARE: dict[str, Any] = {"min": 0, "max": 1, "min_open": True, "max_open": True}


# --- types ------------------------------------------------------------------------------------------------


class Number(click.FloatRange):
    """A finite float in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert text to a finite float."""
        if not _is_finite(value):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)


def matching(pattern: str, problem: str) -> Callable[[str], str]:
    """Return a type that accepts text of a pattern; any other value is an error, followed by `problem`."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise click.BadParameter(f"{value!r}{problem}")
        return value

    return check


a_device = matching(r"auto|cpu|cuda(:\d{1,4})?", " is not auto, cpu, cuda or cuda:N.")
npy_file = matching(r"(?s).+\.npy", ": the file name must end in .npy.")
index_type = matching(  # FAISS factory strings all contain a capital letter
    rf"(?i:{'|'.join(INDEX_KINDS)})|(?=[^A-Z]*[A-Z])[\w,.:()+\[\]-]+",
    f" is not {', '.join(INDEX_KINDS)} or a factory string such as IVF1024,SQ8.",
)


@contextlib.contextmanager
def _as_bad_parameter() -> Iterator[None]:
    """Turn an error of a stage's own check into Click's."""
    try:
        yield
    except BitextmineError as error:
        raise click.BadParameter(f"{str(error).removeprefix('threshold: ')}.") from None


def a_threshold(estimated: bool) -> Callable[[str], str]:
    """Return a type that accepts a finite number, auto, none and, if allowed, the rules that need an estimate."""

    def check(value: str) -> str:
        from bitextmine.mining.choices import parse_threshold

        with _as_bad_parameter():
            parse_threshold(value, estimated=estimated)
        return value

    return check


def a_language(value: str) -> str:
    """Accept a language code; "" is the default of some options and refused by `shell.Command` otherwise."""
    from bitextmine.languages.codes import code_problem

    if value and (problem := code_problem(value)):
        raise click.BadParameter(f"{problem}.")
    return value


def a_size(value: str) -> int:
    """Convert 512M, 2G or 1.5GiB to bytes."""
    from bitextmine.system import parse_size

    with _as_bad_parameter():
        return parse_size(value)


def directions(value: str) -> str:
    """Accept pairs of languages, such as en-fr,fr-en, or all."""
    for pair in [] if value == "all" else value.split(","):
        if not re.fullmatch(r"\w+(-\w+)+", pair.strip()):  # a code may contain a hyphen: pt-BR
            raise click.BadParameter(f"{pair!r} is not a pair of languages such as en-fr, nor all.")
    return value


def setting(value: str) -> tuple[str, Any]:
    """Split KEY=VALUE; the value is TOML, or text if it is not valid TOML."""
    import tomllib

    key, equals, text = value.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{value!r} is not KEY=VALUE.")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also too many digits or brackets
        return key, text


def limit(value: str) -> tuple[str, float]:
    """Split COL=X with a number X."""
    key, number = setting(value)
    if isinstance(number, int) and abs(number) > sys.float_info.max:
        raise click.BadParameter(f"{value!r}: the number has too many digits.")
    if isinstance(number, bool) or not isinstance(number, (int, float)) or math.isnan(number):
        raise click.BadParameter(f"{value!r}: {number!r} is not a number.")
    return key, number


def weights(value: str) -> dict[str, float]:
    """Convert NAME=WEIGHT,NAME to a dict; the weight defaults to 1."""
    parsed = {}
    for part in value.split(","):
        name, _, weight = part.partition("=")
        if not name or not _is_finite(weight or 1) or float(weight or 1) < 0:
            raise click.BadParameter(f"{part!r} is not NAME or NAME=WEIGHT, with a weight of at least 0.")
        parsed[name] = float(weight or 1)
    return parsed


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


# --- options ----------------------------------------------------------------------------------------------


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
    return text(name, "X", help, dest=dest, shown=default, type=Number(**limits))


def count(
    name: str, help: str, *, default: Any = None, least: int = 1, most: int | None = None, **more: Any
) -> Decorator:
    """Make an option for a whole number; without a default, `help` says what applies."""
    return text(name, "N", help, shown=default, type=click.IntRange(least, most), **more)


def flag(name: str, help: str, **more: Any) -> Decorator:
    """Make an option without a value."""
    return click.option(name, is_flag=True, help=help, **more)


def switch(names: str, default: bool | None, help: str) -> Decorator:
    """Make an option that is on or off, such as --wait/--no-wait."""
    return click.option(names, default=default, show_default=default is not None, help=help)


def pick(name: str, choices: Iterable[str], help: str, **more: Any) -> Decorator:
    """Make an option for one of some texts."""
    return text(name, None, help, type=click.Choice(list(choices)), **more)


def choice(name: str, choices: type[Choice], default: Choice, about: str) -> Decorator:
    """Make an option for one of a stage's choices; the help explains each."""
    meanings = "; ".join(f"{one}: {one.meaning}" for one in choices)
    return pick(name, [one.value for one in choices], f"{about} {meanings}.", shown=default.value)


def language(name: str, help: str, **more: Any) -> Decorator:
    """Make an option for a language code."""
    return text(name, "LANG", help, type=a_language, **more)


def neighbours(help: str, least: int = 1) -> Decorator:
    """Make -k."""
    return count("-k", help, default=4, least=least)


def seed(help: str = "Random seed.", **more: Any) -> Decorator:
    """Make --seed."""
    return count("--seed", help, **{"default": 1, "least": 0, "most": 2**32 - 1, **more})


def threshold(help: str, estimated: bool = False) -> Decorator:
    """Make --threshold; `estimated` allows the rules that need an estimate."""
    metavar = "NUMBER|auto|none" + "|fBETA|precision=X|fpr=X" * estimated
    return text("--threshold", metavar, help, shown="auto", type=a_threshold(estimated))


def memory(help: str, default: str | None = None) -> Decorator:
    """Make --memory; without a default, half of the free memory applies."""
    help += "  [default: half of the free memory]" * (default is None)
    return text("--memory", "SIZE", help, shown=default, type=a_size)


margin = choice("--margin", Margin, Margin.RATIO, "Margin of a pair.")
normalize = flag(
    "--normalize", "Remove markup, mojibake, control characters and runs of spaces from the output."
)
model = text(
    "--model",
    "auto|NAME|FOLDER",
    "Encoder. auto: of those that ship (europe5, europe20) the first that knows the languages. Or one of them, a "
    "folder made by 'bitextmine train', sentence-transformers or LASER2, or ORG/NAME[@REVISION] on the Hugging Face "
    "Hub.  [default: auto, or $BITEXTMINE_MODEL]",
    default="auto",
    envvar="BITEXTMINE_MODEL",
)
cache = text(
    "--cache",
    "FOLDER",
    "Keep embeddings in this folder, for example when the corpora are read-only.  [default: beside each corpus, or "
    "$BITEXTMINE_CACHE]",
    envvar="BITEXTMINE_CACHE",
)
wait = switch("--wait/--no-wait", True, "Wait for another process that is writing an embedding, or stop.")


def old_output(help: str) -> Decorator:
    """Make -o; the default is standard output."""
    return click.option(
        "-o", "--output", default="-", metavar="FILE", help=f"{help}  [default: standard output]"
    )


search_memory = memory("Memory limit for exact search, e.g. 500M or 2G; too small a limit is an error.")
resamples = count("--resamples", "Bootstrap resamples.", default=2000)
data = text("--data", "FOLDER", "Folder of the corpora.  [default: as in the recipe, or the current folder]")
new_model = text("--out", "FOLDER", "Model folder to create.", required=True)
lang = language("--lang", "Language of the corpus, if its file name does not say.")
overwrite = flag("--force", "Embed again even if up to date, and overwrite foreign files.")


# --- groups of options that reach a command as one value --------------------------------------------------


def packed(name: str, make: Callable[[dict[str, Any]], Any], *options: Decorator) -> Decorator:
    """Add options to a command; `make` takes their values out of its keywords and returns the parameter `name`."""

    def add(command: Callable[..., Any]) -> Any:
        @functools.wraps(command)
        def call(*args: Any, **given: Any) -> Any:
            given[name] = make(given)
            return command(*args, **given)

        for option in reversed(options):
            call = option(call)
        return call

    return add


def with_corpora(several_names: bool) -> Decorator:
    """Add the arguments and options that name corpora, as `corpora`."""

    def make(given: dict[str, Any]) -> Any:
        from bitextmine.mining.options import CorpusOptions

        sides = {
            name: given.pop(name) for name in ("src", "tgt", "src_file", "tgt_file", "directory", "name")
        }
        return CorpusOptions(given["corpora"], **sides)

    folder = "Folder of the corpora.  [default: current folder]"
    named = "Name of the corpora if --dir has several: news for news.en and news.fr."
    return packed(
        "corpora",
        make,
        click.argument("corpora", metavar="[SRC TGT]", nargs=-1),
        language("--src", "Source language; its corpus is looked up in --dir. Repeatable.", multiple=True),
        language("--tgt", "Target language, likewise.", multiple=True),
        text("--dir", "FOLDER", folder, dest="directory", default="."),
        text("--name", "NAME", named + " Repeatable." * several_names, multiple=several_names),
        text("--src-file", "FILE", "Source corpus, by file name. Repeatable.", multiple=True),
        text("--tgt-file", "FILE", "Target corpus, likewise.", multiple=True),
    )


def with_columns(*more: Decorator, header: str = ".  [default: detect]") -> Decorator:
    """Add `more`, --scol, --tcol and --header, as `where`: the `Columns` of a file of pairs."""

    def make(given: dict[str, Any]) -> Any:
        from bitextmine.files.formats.columns import Columns

        score = given.pop("score_col", None)
        return Columns(score, given.pop("scol"), given.pop("tcol"), given.pop("header"))

    source = "Source column: a position from 1, or a name in the header.  [default: detect]"
    return packed(
        "where",
        make,
        *more,
        text("--scol", "COL", source),
        text("--tcol", "COL", "Target column, likewise."),
        switch("--header/--no-header", None, f"The first line names the columns or is data{header}"),
    )


max_line = text(
    "--max-line", "SIZE", "Longest line to read; a longer one is an error.", shown="10M", type=a_size
)
device = text("--device", "auto|cpu|cuda|cuda:N", "Device to compute on.", shown="auto", type=a_device)
batch_tokens = count(
    "--batch-tokens", "Subword pieces per batch; fewer need less memory.  [default: fits the device]"
)
errors = pick(
    "--errors",
    ("strict", "replace"),
    "Invalid UTF-8: stop and report the line, or read it as U+FFFD.",
    shown="strict",
)


def with_run(*resources: Decorator) -> Decorator:
    """Add `resources` and --max-line to a command, which gets their values as one `Run`, its parameter `run`."""

    def make(given: dict[str, Any]) -> Any:
        from bitextmine.run import Run

        if (ray := given.pop("ray", None)) is not None:
            given["executor"] = f"ray://{ray}"
        names = {field.name for field in dataclasses.fields(Run)} & given.keys()
        return Run(**{name: given.pop(name) for name in names})

    return packed("run", make, *resources, max_line)


def cluster(about: str, rows: bool = True, gpus: bool = True) -> Decorator:
    """Make --executor."""
    options = [
        text("--executor", "local|ray|ray://HOST:PORT", f"Where to {about}", shown="local"),
        text("--ray", "auto|local|HOST:PORT", "Alias.", hidden=True),
    ]
    return lambda command: functools.reduce(lambda made, add: add(made), reversed(options), command)


def explicit(name: str) -> bool:
    """Return True if an option was given on the command line, not by the environment or a default."""
    source = click.get_current_context().get_parameter_source(name)
    return source == click.core.ParameterSource.COMMANDLINE
