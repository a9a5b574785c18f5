"""The languages: one row of `table.tsv` each; everything that depends on a language reads its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Language:
    """A row of the table; empty where nothing is known.

    Attributes:
        code: ISO 639-1 code, or 639-3 if there is none; aliases: other codes, the identifier's (`identify`) included.
        spaces: words are separated by spaces.
        length: characters of a translation per character of English, median over kinds of text (None: unknown).
        digits: the ten digits of its script ("": 0 to 9 only).
        units, tens: number words from 0 on, and for 20, 30, ..., 90.
        numbers: other number words (inflected, ordinal, fractions) with their values.
        negation: words and parts of words that negate.
        abbreviations: words whose full stop does not end a sentence, as they are spelled.
    """

    code: str
    aliases: tuple[str, ...]
    name: str
    scripts: frozenset[str]
    spaces: bool
    length: float | None
    digits: str
    units: tuple[str, ...]
    tens: tuple[str, ...]
    numbers: Mapping[str, int]
    negation: tuple[str, ...]
    abbreviations: frozenset[str]


@cache
def languages() -> Mapping[str, Language]:
    """Return all rows by code."""
    text = resources.files(__package__).joinpath("table.tsv").read_text(encoding="utf-8")
    header, *lines = (line.split("\t") for line in text.splitlines())
    rows = (_row(dict(zip(header, line, strict=True))) for line in lines)
    return {row.code: row for row in rows}


def _row(cells: Mapping[str, str]) -> Language:
    words = cells["numbers"].split()
    return Language(
        cells["code"],
        tuple(cells["aliases"].split()),
        cells["name"],
        frozenset(cells["scripts"].split()),
        cells["spaces"] == "yes",
        float(cells["length"]) if cells["length"] else None,
        cells["digits"],
        tuple(cells["units"].split()),
        tuple(cells["tens"].split()),
        dict(zip(words[::2], map(int, words[1::2]), strict=True)),
        tuple(cells["negation"].split()),
        frozenset(cells["abbreviations"].split()),
    )
