"""JSON objects and TOML tables in files: read with a message for a person, written complete or not at all."""

import itertools
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import replacing
from bitextmine.files.storage import reading, to_path

# No file of this or another toolkit nests deeper; code that walks through one recursively must not run out of stack.
_DEEPEST = 100
_LARGEST_JSON = 64 << 20
_LARGEST_TOML = 1 << 18
# tomllib takes memory in proportion to the square of the parts of a key.
_LONG_KEY = re.compile(r"""(?:(?:[\w-]{1,100}|"[^"\n]{0,100}"|'[^'\n]{0,100}')[ \t]{0,9}\.[ \t]{0,9}){33}""")


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; ValueError if it is not JSON, or nested more than a hundred deep."""
    return _parsed(json.loads, text)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; ValueError if it is not TOML, larger than 256 KiB, or nested too deep."""
    if len(text) > _LARGEST_TOML:
        raise ValueError(f"more than {_LARGEST_TOML:,} characters")
    if _LONG_KEY.search(text):
        raise ValueError("a key of more than 32 parts")
    table: dict[str, Any] = _parsed(tomllib.loads, text)
    return table


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    level = [value]
    for _ in range(_DEEPEST):
        inside = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, (dict, list)))
        if not (level := list(itertools.chain.from_iterable(inside))):
            return value
    raise ValueError("nested too deep")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON object of a file; BitextmineError if it is missing, unreadable or something else."""
    try:
        value = parse_json(_read(path, _LARGEST_JSON))
    except ValueError as e:
        raise BitextmineError(f"{path}: not valid JSON ({e}); remove it and make it again") from None
    if not isinstance(value, dict):
        raise BitextmineError(f"{path}: holds a JSON {type(value).__name__}, not an object; make it again")
    return value


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the TOML table of a file; BitextmineError if it is missing, unreadable or something else."""
    try:
        return parse_toml(_read(path, 4 * _LARGEST_TOML))
    except ValueError as e:
        raise BitextmineError(f"{path}: not valid TOML: {e}") from None


def _read(path: str | os.PathLike[str], most: int) -> str:
    with explained(f"{path}: cannot read"), reading(to_path(path)) as file:
        data = bytearray()
        while part := file.read(most + 1 - len(data)):  # an unbuffered read may return less than there is
            data += part
    if len(data) > most:
        raise ValueError(f"more than {most:,} bytes")
    return data.decode("utf-8")


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically and durably, with sorted keys: a rerun gives the same bytes."""
    data = json_bytes(content)
    with explained(f"{path}: cannot write"), replacing(path) as file:
        file.write(data)


def json_bytes(content: Mapping[str, Any], **options: Any) -> bytes:
    """Return a JSON object as lines of UTF-8; file names that are not UTF-8 are escaped. Options: of json.dumps."""
    options = {"indent": 1, "sort_keys": True, "allow_nan": False, **options}
    try:
        return json.dumps(content, ensure_ascii=False, **options).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(content, **options).encode() + b"\n"


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping as it comes back from JSON (tuples as lists, keys as text), for comparisons."""
    return dict(json.loads(json.dumps(content, allow_nan=False)))
