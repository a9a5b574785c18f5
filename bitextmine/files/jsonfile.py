"""JSON objects in files: read with a message for a person, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing, sync_file
from bitextmine.files.storage import open_bytes

__all__ = ["parse_json", "plain", "read_json", "stage_json", "write_json"]

# No file of ours or of other toolkits nests deeper; what walks through one recursively must not run out of stack.
_DEEPEST = 100


def parse_json(text: str) -> Any:
    """The value in a JSON text. ValueError, in words for a message, for anything else, also for what is nested more
    than a hundred deep and for integers of thousands of digits."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    level = [found]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return found
    raise ValueError("nested too deep")


def _inside(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON object from a file; BitextmineError when it is missing, unreadable or something else."""
    try:
        with open_bytes(path) as file:
            found = parse_json(file.read().decode("utf-8"))
    except OSError as e:
        raise BitextmineError(f"{path}: cannot read: {e.strerror or e}") from None
    except ValueError as e:
        raise BitextmineError(f"{path}: not valid JSON ({e}); remove it and make it again") from None
    if not isinstance(found, dict):
        raise BitextmineError(f"{path}: holds a JSON {type(found).__name__}, not an object; make it again")
    return found


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically and durably, with sorted keys: a rerun gives the same bytes."""
    data = _encoded(content)
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None


def stage_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object in place, under a name that a lock of the caller's keeps from others, and bring it to
    disk; OSError passes through."""
    with path.open("wb") as file:
        file.write(_encoded(content))
        sync_file(file)


def _encoded(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return json.dumps(content, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from JSON (tuples as lists, keys as text), for comparisons."""
    result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return result
