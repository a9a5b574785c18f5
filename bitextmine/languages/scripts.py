"""Scripts: what letters a text is written in, and what a language is written in."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from bitextmine.languages.codes import same_code

__all__ = ["count_scripts", "script", "scripts_of"]

# How the names of letters in the Unicode Character Database begin, where that is not the name of their script.
_SCRIPTS = {"CJK": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana", "IDEOGRAPHIC": "Han"}
# Letters that belong to no script of a language: ª, º, ß in old fonts, mathematical letters.
_OTHER = {"MODIFIER", "FEMININE", "MASCULINE", "MATHEMATICAL", "SCRIPT", "MICRO", "DOUBLE-STRUCK"}

_WRITTEN = {
    "Cyrillic": "ab ba be bg ce cv kk kv ky mk mn os ru sr tg tt uk",
    "Greek": "el",
    "Arabic": "ar ckb fa ks ps sd ug ur",
    "Hebrew": "he yi",
    "Devanagari": "hi mr ne sa",
    "Bengali": "as bn",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "Oriya": "or",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Tibetan": "bo dz",
    "Myanmar": "my",
    "Khmer": "km",
    "Georgian": "ka",
    "Armenian": "hy",
    "Ethiopic": "am ti",
    "Han": "zh",
    "Han Hiragana Katakana": "ja",
    "Hangul Han": "ko",
}
_OF = {code: frozenset(scripts.split()) for scripts, codes in _WRITTEN.items() for code in codes.split()}
_LATIN = frozenset({"Latin"})
_BOTH = {code: frozenset({"Latin", "Cyrillic"}) for code in ("sr", "uz", "az", "mn", "kk", "tg")}


@lru_cache(maxsize=1 << 14)
def script(letter: str) -> str:
    """The script of a letter: Latin, Cyrillic, Han."""
    first = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
    return "Latin" if first in _OTHER else _SCRIPTS.get(first, first.capitalize())


def scripts_of(language: str) -> frozenset[str]:
    """The scripts that a language is written in; Latin for one that is not known."""
    code = same_code(language)
    return _BOTH.get(code) or _OF.get(code, _LATIN)


def count_scripts(texts: Iterable[str], characters: int) -> Counter[str]:
    """How many letters of each script there are in the first ``characters`` of each text."""
    letters: Counter[str] = Counter()
    for text in texts:
        letters.update(script(c) for c in text[:characters] if c.isalpha())
    return letters
