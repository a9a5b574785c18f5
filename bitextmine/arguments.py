"""Checks of a caller's arguments; each raises UsageError that names the argument and the value found."""

import math
import operator
import os
import re
import tomllib
from collections.abc import Callable
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.system import parse_size

_TOO_LARGE = 1 << 63  # beyond 64-bit integers


def whole_number(name: str, value: Any, least: int | None = 1) -> int:
    """Return an int of at least `least` and at most 64 bits, also of a NumPy integer."""
    wanted: Any = "" if _is_boolean(value) else value
    try:
        number = operator.index(wanted)
    except TypeError:
        raise UsageError(f"{name}: expected a whole number, found {value!r}") from None
    if least is not None and number < least:
        raise UsageError(f"{name} must be at least {least}, found {number}")
    if abs(number) >= _TOO_LARGE:
        raise UsageError(f"{name}: the number is too large")
    return number


def finite(value: Any) -> float:
    """Return a number or its text as a finite float; NaN for anything else."""
    try:
        number = math.nan if _is_boolean(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def real_number(name: str, value: Any) -> float:
    """Return a finite float; text is refused."""
    number = math.nan if isinstance(value, (str, bytes)) else finite(value)
    if math.isnan(number):
        raise UsageError(f"{name}: expected a number, found {value!r}")
    return number


def yes_or_no(name: str, value: Any) -> bool:
    """Return a bool; anything else is refused, as the text "no" would count as true."""
    if not _is_boolean(value):
        raise UsageError(f"{name}: expected True or False, found {value!r}")
    return bool(value)


def byte_count(value: Any) -> int:
    """Return bytes, given as a whole number or as text with a unit ("2G", `system.parse_size`)."""
    if isinstance(value, str):
        try:
            return parse_size(value)
        except BitextmineError as error:
            raise UsageError(str(error)) from None
    if _is_boolean(value) or not hasattr(value, "__index__") or value < 1:
        raise UsageError(f"expected a size such as 512M or 2G, or a number of bytes, found {value!r}")
    return operator.index(value)


def matching(pattern: str, expected: str) -> Callable[[Any], str]:
    """Return a check that accepts text of a pattern; any other value is "expected ..., found ...", without a name."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise UsageError(f"expected {expected}, found {value!r}")
        return value

    return check


def key_value(value: Any) -> tuple[str, Any]:
    """Return the parts of KEY=VALUE; the value is TOML, or text if it is not valid TOML."""
    if not isinstance(value, str):
        return value
    key, equals, text = value.partition("=")
    if not key or not equals:
        raise UsageError(f"expected KEY=VALUE, found {value!r}")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also too many digits or brackets
        return key, text


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"{name}: unknown value {value!r}; choose one of {', '.join(choices)}")
    return value


def plain_array(value: Any) -> Any:
    """Return a torch tensor as a NumPy array (bfloat16 as float32), and anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    array = value.detach().cpu()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()


def a_path(name: str, value: Any) -> str | os.PathLike[str]:
    """Return the value if it can be the name of a file or a folder."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise UsageError(f"{name}: expected the name of a file or folder, found {value!r}")
    return value


def _is_boolean(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy's as well, which is not imported here
