"""Values that a caller gave, checked for their type and range; messages name the argument and what was found."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.system import parse_size

__all__ = ["a_path", "memory_bytes", "one_of", "real_number", "whole_number", "yes_or_no"]


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """An int, or what can stand for one, as NumPy's do. UsageError for anything else, and for one below `least`."""
    try:
        found = None if _is_boolean(value) else operator.index(value)
    except TypeError:
        found = None
    if found is None:
        raise UsageError(f"{name}: expected a whole number, found {value!r}")
    if found < least:
        raise UsageError(f"{name} must be at least {least}, found {found}")
    return found


def real_number(name: str, value: Any) -> float:
    """A finite float. UsageError for anything else, text included."""
    try:
        found = math.nan if isinstance(value, (str, bytes)) or _is_boolean(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{name}: expected a number, found {value!r}")
    return found


def yes_or_no(name: str, value: Any) -> bool:
    """A bool. UsageError for anything else, as the text "no" would count as true."""
    if not _is_boolean(value):
        raise UsageError(f"{name}: expected True or False, found {value!r}")
    return bool(value)


def memory_bytes(value: Any, name: str = "memory") -> int | None:
    """Bytes, from a whole number of them or from text with a unit ("2G", `system.parse_size`); None stays None.

    Raises UsageError for anything else.
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return parse_size(value)
        except BitextmineError as error:
            raise UsageError(f"{name}: {error}") from None
    return whole_number(name, value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices; UsageError otherwise."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"{name}: unknown value {value!r}; choose one of {', '.join(choices)}")
    return value


def a_path(name: str, value: Any) -> str | os.PathLike[str]:
    """The value, if it can be the name of a file or a folder; UsageError otherwise."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise UsageError(f"{name}: expected the name of a file or folder, found {value!r}")
    return value


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in (
        "bool",
        "bool_",
    )  # NumPy's, which is not imported here
