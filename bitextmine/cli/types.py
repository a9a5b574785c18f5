"""Types of option values, checked before any file is opened (exit code 2).

A well-formed value may still name a missing file, device or column: an error of the stage (exit code 1). Nothing heavy
is imported here.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from bitextmine.errors import BitextmineError
from bitextmine.indexing.options import KINDS


class Number(click.FloatRange):
    """A finite float in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert text to a finite float."""
        if not _is_finite(value):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)


def device(value: str) -> str:
    """Accept auto, cpu, cuda or cuda:N."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", value):
        raise click.BadParameter(f"{value!r} is not auto, cpu, cuda or cuda:N.")
    return value


def ray_address(value: str) -> str:
    """Accept the address of a Ray cluster: auto, local or HOST:PORT."""
    from bitextmine.distributed.ray import check_address

    try:
        check_address(value)
    except BitextmineError as error:
        raise click.BadParameter(f"{error}.") from None
    return value


def threshold(estimated: bool) -> Callable[[str], str]:
    """Return a type that accepts a finite number, auto, none and, if allowed, the rules that need an estimate."""

    def check(value: str) -> str:
        from bitextmine.errors import UsageError
        from bitextmine.mining.threshold import parse_threshold

        try:
            parse_threshold(value, estimated=estimated)
        except UsageError as error:
            raise click.BadParameter(f"{str(error).removeprefix('threshold: ')}.") from None
        return value

    return check


def language(value: str) -> str:
    """Accept a language code; "" is the default of some options and refused by `shell.Command` otherwise."""
    from bitextmine.languages.codes import code_problem

    if value and (problem := code_problem(value)):
        raise click.BadParameter(f"{problem}.")
    return value


def npy_file(value: str) -> str:
    """Accept the file name of an embedding."""
    if not value.endswith(".npy") or value == ".npy":
        raise click.BadParameter(f"{value!r}: the file name must end in .npy.")
    return value


def index_type(value: str) -> str:
    """Accept a name in `KINDS` or a FAISS factory string (they all contain a capital letter)."""
    if value.lower() not in KINDS and not re.fullmatch(r"(?=[^A-Z]*[A-Z])[\w,.:()+\[\]-]+", value):
        raise click.BadParameter(
            f"{value!r} is not {', '.join(KINDS)} or a factory string such as IVF1024,SQ8."
        )
    return value


def size(value: str) -> int:
    """Convert 512M, 2G or 1.5GiB to bytes."""
    from bitextmine.system import parse_size

    try:
        return parse_size(value)
    except BitextmineError as error:
        raise click.BadParameter(f"{error}.") from None


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
        if not name or not _is_finite(weight or 1):
            raise click.BadParameter(f"{part!r} is not NAME or NAME=WEIGHT.")
        parsed[name] = float(weight or 1)
    return parsed


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
