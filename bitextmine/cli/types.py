"""Kinds of option values: what a command line can tell to be wrong before any file is opened (Click's exit code 2).

What a value names, a file, a device, a column of a table, may still turn out not to be there: that is an error of
the stage (exit code 1). Nothing heavy is imported here, or only to check an option that is given.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import click

from bitextmine.indexing.kinds import KINDS

__all__ = [
    "Device",
    "Directions",
    "IndexType",
    "Language",
    "Limit",
    "Memory",
    "NpyFile",
    "Number",
    "RayAddress",
    "Setting",
    "Threshold",
]


class Device(click.ParamType):
    """auto, cpu, cuda or cuda:N."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", value):
            self.fail(f"{value!r} is not auto, cpu, cuda or cuda:N.", param, ctx)
        return str(value)


class RayAddress(click.ParamType):
    """auto, local or HOST:PORT."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from bitextmine.distributed.options import check_address
        from bitextmine.errors import UsageError

        try:
            check_address(value)
        except UsageError as error:
            self.fail(f"{error}.", param, ctx)
        return str(value)


class Threshold(click.ParamType):
    """A finite number (handed on as it was typed), auto or none; and precision=SHARE, where there are estimates."""

    name = "threshold"

    def __init__(self, precision: bool = False) -> None:
        self._precision = precision

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word, equals, share = value.strip().lower().partition("=")
        if self._precision and word == "precision" and equals:
            if not _is_finite(share) or not 0 < float(share) < 1:
                self.fail(f"{value!r}: a precision is above 0 and below 1, as in precision=0.95.", param, ctx)
        elif value.strip().lower() not in ("auto", "none") and not _is_finite(value):
            also = ", nor precision=0.95" if self._precision else ""
            self.fail(f"{value!r} is not a number, auto or none{also}.", param, ctx)
        return str(value)


class Number(click.FloatRange):
    """A float in a range, neither NaN nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_finite(value):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)


class Language(click.ParamType):
    """The code of a language, as a corpus has it for its suffix; "" is none, where that is the default."""

    name = "language"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from bitextmine.languages.codes import is_code

        if not is_code(value) and (param is None or value != param.default):
            self.fail(f"{value!r} is not the code of a language, such as fr or pt-BR.", param, ctx)
        return str(value)


class NpyFile(click.ParamType):
    """The name of an embedding to write."""

    name = "file.npy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.endswith(".npy") or value == ".npy":
            self.fail(f"{value!r}: the name of an embedding ends in .npy.", param, ctx)
        return str(value)


class IndexType(click.ParamType):
    """A name in `KINDS`, or what may be a FAISS factory string (all of which have a capital letter)."""

    name = "index type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value.lower() not in KINDS and not re.fullmatch(r"(?=[^A-Z]*[A-Z])[\w,.:()+\[\]-]+", value):
            self.fail(
                f"{value!r} is not {', '.join(KINDS)} or a factory string such as IVF1024,SQ8.", param, ctx
            )
        return str(value)


class Memory(click.ParamType):
    """Bytes, from 512M, 2G, 1.5GiB."""

    name = "memory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from bitextmine.errors import BitextmineError
        from bitextmine.system import parse_size

        if isinstance(value, int):  # Click converts what is converted already
            return value
        try:
            return parse_size(value)
        except BitextmineError as error:
            self.fail(f"{error}.", param, ctx)


class Directions(click.ParamType):
    """all, or pairs of languages: en-fr,fr-en."""

    name = "directions"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        for pair in [] if value == "all" else value.split(","):
            if not re.fullmatch(
                r"\w+(-\w+)+", pair.strip()
            ):  # a language itself may hold a hyphen, as pt-BR does
                self.fail(f"{pair!r} is not two languages such as en-fr, and not all.", param, ctx)
        return str(value)


class Setting(click.ParamType):
    """KEY=VALUE as a pair (key, value); the value is read as in TOML, and what TOML cannot read is text."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        import tomllib

        if isinstance(value, tuple):  # Click converts what is converted already
            return value
        key, equals, text = value.partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is not KEY=VALUE.", param, ctx)
        try:
            return key, tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):  # thousands of digits, of brackets, are no TOML either
            return key, text


class Limit(Setting):
    """COL=X, X a number."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        key, number = super().convert(value, param, ctx)
        if isinstance(number, int) and abs(number) > sys.float_info.max:
            self.fail(f"{value!r}: the number has too many digits.", param, ctx)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or math.isnan(number):
            self.fail(f"{value!r}: {number!r} is not a number.", param, ctx)
        return key, number


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
