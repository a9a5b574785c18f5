"""Scripts of texts and of languages."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from bitextmine.languages.codes import language

# First words of letters' names in the Unicode Character Database that are not the name of their script.
_SCRIPTS = {"CJK": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana", "IDEOGRAPHIC": "Han"}
_LATIN = frozenset({"Latin"})
# First words of letters that belong to no script: ª, º, µ, mathematical letters. They count as Latin.
_OTHER = {"MODIFIER", "FEMININE", "MASCULINE", "MATHEMATICAL", "SCRIPT", "MICRO", "DOUBLE-STRUCK"}

# Vowel signs and other marks of Indic scripts: parts of words that Python takes for no letters.
MARK = f"[{''.join(c for c in map(chr, range(0x900, 0xE00)) if unicodedata.category(c)[0] == 'M')}]"

# Letters and signs of scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana, Han.
UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ecd\u0f40-\u0fbc\u1000-\u103f\u1780-\u17d3\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_LETTERS = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+")
_SPACED_LETTERS, _ASCII_LETTERS = re.compile(r"[^\W\d_]+"), re.compile("[a-z]+")


def letters_of(low: str) -> list[str]:
    """Return the runs of letters of a text in lower case; in scripts without spaces each letter by itself."""
    if low.isascii():  # the same, in a fraction of the time
        return _ASCII_LETTERS.findall(low)
    return (_LETTERS if UNSPACED_LETTER.search(low) else _SPACED_LETTERS).findall(low)


_WIDE = re.compile("[\u3000-\u9fff\uff00-\uff60]")  # Chinese and Japanese, their punctuation included


def is_spaced(before: str, after: str) -> bool:
    """Return True unless both sides of a seam between two texts are Chinese or Japanese."""
    return not (_WIDE.match(before[-1:]) and _WIDE.match(after[:1]))


def join_sentences(sentences: Iterable[str]) -> str:
    """Join sentences by spaces, Chinese and Japanese ones without."""
    joined = ""
    for sentence in sentences:
        joined += f" {sentence}" if joined and is_spaced(joined, sentence) else sentence
    return joined


@lru_cache(maxsize=1 << 14)
def script(letter: str) -> str:
    """Return the script of a letter, such as Latin, Cyrillic or Han."""
    first = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
    return "Latin" if first in _OTHER else _SCRIPTS.get(first, first.capitalize())


def scripts_of(code: str) -> frozenset[str]:
    """Return the scripts that a language is written in; Latin for an unknown one."""
    row = language(code)
    return _LATIN if row is None else row.scripts


def count_scripts(texts: Iterable[str], characters: int) -> Counter[str]:
    """Count the letters of each script in the first ``characters`` of each text."""
    letters: Counter[str] = Counter()
    for letter, times in Counter("".join(text[:characters] for text in texts)).items():
        if letter.isalpha():
            letters[script(letter)] += times
    return letters


# Scripts of the table of languages with their ISO 15924 codes; others are Zzzz, texts without letters Zyyy.
_ISO = """
Arabic Arab Armenian Armn Bengali Beng Cyrillic Cyrl Devanagari Deva Ethiopic Ethi Georgian Geor Greek Grek
Gujarati Gujr Gurmukhi Guru Han Hani Hangul Kore Hebrew Hebr Kannada Knda Khmer Khmr Lao Laoo Latin Latn Malayalam Mlym
Myanmar Mymr Oriya Orya Sinhala Sinh Tamil Taml Telugu Telu Thaana Thaa Thai Thai Tibetan Tibt
"""
_CODES = dict(zip(_ISO.split()[::2], _ISO.split()[1::2], strict=True))
_JAPANESE = {"Hiragana", "Katakana"}


def script_code(text: str, characters: int = 1000) -> str:
    """Return the ISO 15924 code of the script of most letters at the beginning of a text: Latn, Cyrl, Jpan."""
    letters = count_scripts([text], characters)
    if not letters:
        return "Zyyy"
    most = max(letters, key=lambda name: (letters[name], name))
    if most in _JAPANESE or (most == "Han" and not _JAPANESE.isdisjoint(letters)):
        return "Jpan"
    return _CODES.get(most, "Zzzz")
