"""Numbers written in words or Roman numerals, in the languages whose number words are known.

The tables only ever excuse a digit that the other side has in words; that a word of one language looks like a
number of another ("once", eleven in Spanish) therefore punishes nobody.
"""

from __future__ import annotations

import functools
import operator
import re
import unicodedata

from bitextmine.languages.table import languages

# Languages whose composed numbers follow the rules below; of a word that means two numbers the first language counts.
_LANGUAGES = ("en", "fr", "de", "es", "it")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ROMAN = re.compile(r"(?=[IVXLC])(C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?:e|er|ème|th|st|nd|rd)?\.?")
_ROMAN_UNITS = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
_ROMAN_TENS = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]


def _plain(text: str) -> str:
    """Remove case, accents, hyphens and apostrophes: "Dix-Sept" -> "dixsept"."""
    if text.isascii():  # most words, and much faster
        return text.lower().replace("-", "").replace("'", "")
    return "".join(
        c
        for c in unicodedata.normalize("NFKD", text.casefold())
        if not unicodedata.combining(c) and c not in "-'"
    )


@functools.cache
def _words(*more: str) -> dict[str, int]:
    words: dict[str, int] = {}
    for language in (*_LANGUAGES, *more):
        row = languages()[language]
        units, tens = ([_plain(name) for name in names] for names in (row.units, row.tens))
        for value, name in enumerate(units):
            words.setdefault(name, value)
        for ten, name in enumerate(tens, start=2):
            words.setdefault(name, 10 * ten)
            for unit in range(1, 20 if language == "fr" and ten in (6, 8) else 10):
                value = 10 * ten + unit
                joined = {
                    "de": f"{units[unit]}und{name}",
                    "it": f"{name[:-1] if units[unit][0] in 'aeiou' else name}{units[unit]}",
                    "es": f"{name[:-1]}i{units[unit]}" if ten == 2 else f"{name}y{units[unit]}",
                }.get(language, f"{name}{units[unit]}")
                words.setdefault(joined, value)
                if language == "fr" and unit in (1, 11):
                    words.setdefault(f"{name}et{units[unit]}", value)
        for name, value in row.numbers.items():
            words.setdefault(_plain(name), value)
    # Ordinals by rule: deuxième, vierte(r/n/s), zwanzigste(r/n/s), undicesimo
    ordinals: dict[str, int] = {}
    for word, value in words.items():
        for ending in ("ieme", "iemes", "te", "ten", "ter", "tes", "ste", "sten", "ster", "stes"):
            ordinals.setdefault(word + ending, value)
            ordinals.setdefault(word.removesuffix("e") + ending, value)
        for ending in ("esimo", "esima"):
            ordinals.setdefault(word[:-1] + ending, value)
    for word, value in ordinals.items():
        words.setdefault(word, value)
    return words | {"cinquieme": 5, "ersten": 1, "erster": 1, "erstes": 1, "dritten": 3, "dritter": 3}


def word_values(text: str, *more: str) -> list[int]:
    """Return the numbers that a text has in words: single words, and two or three in a row ("vingt et un").

    more: codes of languages whose words count besides those of `_LANGUAGES`.
    """
    known = _words(*more)
    tokens = [_plain(token) for token in _WORD.findall(text)]
    pairs = list(map(operator.add, tokens, tokens[1:]))
    triples = map(operator.add, pairs, tokens[2:])
    return [known[word] for word in (*tokens, *pairs, *triples) if word in known]


def roman_value(word: str) -> int:
    """Return the value (1 to 399) of a Roman numeral in capitals, perhaps with an ordinal ending; 0 for other words."""
    match = _ROMAN.fullmatch(word)
    if match is None:
        return 0
    hundreds, tens, units = match.groups()
    return 100 * len(hundreds) + 10 * _ROMAN_TENS.index(tens) + _ROMAN_UNITS.index(units)
