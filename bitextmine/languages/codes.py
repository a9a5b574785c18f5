"""The languages: one row of `table.tsv` each, which everything that depends on a language reads; codes and scripts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Annotated, Any

from bitextmine.declarations import Kind
from bitextmine.errors import UsageError

UNDETERMINED = "und"
_NO_LANGUAGE = ("", UNDETERMINED, "mul", "mis", "zxx")  # ISO 639-2: unknown, several, uncoded, none
_CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_SHORT = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})*")


@dataclass(frozen=True)
class Language:
    """A row of the table; empty where nothing is known. In a word of the table "_" is a space.

    Attributes:
        code: ISO 639-1 code, or 639-3 if there is none; aliases: other codes, the identifier's (`identify`) included.
        spaces: words are separated by spaces.
        length: characters of a translation per character of English, median over kinds of text (None: unknown).
        digits: the ten digits of its script ("": 0 to 9 only).
        units, tens: number words from 0 on, and for 20, 30, ..., 90.
        numbers: other number words (inflected, ordinal) with their values.
        ordinals: endings that make a number word an ordinal, in place of its last vowel, if it ends with one.
        composed: the words for 21 to 99, by templates of {ten}, {unit} (1 to 9) and {teen} (11 to 19); {ten-} lacks its
            last letter, and "6:" restricts a template to 60.
        scales: words behind digits with the power of ten that they stand for; "*" is any ending.
        months: names of the months, "/" between forms of one; or one for a numbered month: "#월", as in 6월.
        century: endings that make a year a century: 1800-talet is the 19th.
        clock, morning, afternoon: words beside an hour, and those that make it one before or after noon.
        parts: words for a half, a quarter, noon and midnight with 30, 15, 12 and 0.
        negation: words and parts of words that negate.
        abbreviations: words whose full stop does not end a sentence, as they are spelled.
        speech: words with which a sentence goes on after a quotation: "~asked" also behind a subject, "고*" with up
            to two more letters; "!He" begins another sentence.
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
    ordinals: tuple[str, ...]
    composed: tuple[str, ...]
    scales: Mapping[str, int]
    months: tuple[str, ...]
    century: tuple[str, ...]
    clock: tuple[str, ...]
    morning: tuple[str, ...]
    afternoon: tuple[str, ...]
    parts: Mapping[str, int]
    negation: tuple[str, ...]
    abbreviations: frozenset[str]
    speech: tuple[str, ...]


def _words(cell: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in cell.split())


def _values(cell: str) -> dict[str, int]:
    """Return words with their numbers: "hundred 100 thousand 1000"."""
    words = _words(cell)
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


# How a cell of the table is read, by its column; the others are words.
_CELLS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("code", "name", "digits"), str),
    **dict.fromkeys(("scripts", "abbreviations"), lambda cell: frozenset(cell.split())),
    **dict.fromkeys(("numbers", "scales", "parts"), _values),
    "spaces": lambda cell: cell == "yes",
    "length": lambda cell: float(cell) if cell else None,
}


@cache
def languages() -> Mapping[str, Language]:
    """Return all rows by code."""
    text = resources.files(__package__).joinpath("table.tsv").read_text(encoding="utf-8")
    header, *lines = (line.split("\t") for line in text.splitlines())
    readers = [_CELLS.get(column, _words) for column in header]
    rows = (
        Language(**{column: read(cell) for column, read, cell in zip(header, readers, line, strict=True)})
        for line in lines
    )
    return {row.code: row for row in rows}


def is_code(text: str) -> bool:
    """Return True if a text has the form of a language code: fr, pt-BR, zh_Hans (and also txt)."""
    return _CODE.fullmatch(text) is not None


def is_short_code(text: str) -> bool:
    """Return True for a code of two or three lower-case letters with optional subtags (fr, pt-BR).

    Stricter than `is_code`, for places where a word must not pass for a code, as in the header of a table.
    """
    return _SHORT.fullmatch(text) is not None


def code_problem(code: object) -> str | None:
    """Return the reason why an option's value is no code of a language; None if it is one (fr, pt-BR, zh_Hans)."""
    if isinstance(code, str) and is_code(code) and (language(code) is not None or _is_registered(code)):
        return None
    word = str(code).lower()
    meant = next((row.code for row in languages().values() if row.name.lower() == word), None)
    return f"{code!r} is not a language code such as {meant or 'fr or pt-BR'}"


def _is_registered(code: str) -> bool:
    import langcodes

    return len(first := _first_part(code)) <= 3 and langcodes.tag_is_valid(first)


def is_stated(code: str | None) -> bool:
    """Return True for the code of a language; False for None, "", und, mul, mis and zxx, with any subtags."""
    return code is not None and _first_part(code) not in _NO_LANGUAGE


def language_code(name: str, value: Any) -> str:
    """Return the value of an argument if it is a code of a language, "" for None; UsageError for anything else."""
    if value not in (None, "") and (problem := code_problem(value)):
        raise UsageError(f"{name}: {problem}")
    return value or ""


def check_code(value: Any) -> str:
    """Return a code of a language, or "" for none; UsageError for anything else, without the name of the option."""
    if value != "" and (problem := code_problem(value)):
        raise UsageError(problem)
    return str(value)


LanguageCode = Annotated[str, Kind("LANG", check_code)]


@cache
def _by_alias() -> Mapping[str, Language]:
    return {code: row for row in languages().values() for code in (row.code, *row.aliases)}


def language(code: str) -> Language | None:
    """Return the row of the table for fr, FR, fr-CA, fra or fre, for he also the old code iw; None if unknown."""
    first = _first_part(code)
    return _by_alias().get(first) or _by_alias().get(_current(first))


@lru_cache(maxsize=4096)
def _current(code: str) -> str:
    """Return the current code of a deprecated, three-letter or individual one: he for iw, ms for zsm."""
    if not (2 <= len(code) <= 3 and code.isascii() and code.isalpha()):
        return code
    import langcodes  # takes 50 ms, and nearly all codes are in the table

    return _first_part(langcodes.standardize_tag(code, macro=True))


@lru_cache(maxsize=4096)
def matches(tag: str, wanted: str) -> bool:
    """Return True if a language tag lies in a language range (RFC 4647, extended filtering): en-US and EN in en.

    Languages are compared, not spellings: iw-IL lies in he. Words that are no codes match themselves alone.
    """
    if tag == wanted:
        return True
    if len(_first_part(tag)) > 3 or language_family(tag) != language_family(wanted):
        return False
    asked, rest = _subtags(wanted), _subtags(tag)
    if asked and len(asked[0]) == 4 and len("".join(rest[:1])) != 4:  # zh-CN is in Hans
        import langcodes

        rest.insert(0, str(langcodes.get(tag).maximize().script).lower())
    remaining = iter(rest)
    return all(subtag in remaining for subtag in asked)


def language_family(tag: str) -> str:
    """Return what all variants of a language share: `same_code`; for a word that is no code, the word."""
    return same_code(tag) if len(_first_part(tag)) <= 3 else tag


def _subtags(tag: str) -> list[str]:
    return tag.replace("_", "-").lower().split("-")[1:]


@lru_cache(maxsize=4096)
def same_code(code: str) -> str:
    """Return the table's code of a language, without region and script: fr for fr, FR, fr-FR, fr_CA, fra and fre.

    An unknown code is reduced to its first part in lower case.
    """
    row = language(code)
    return _first_part(code) if row is None else row.code


def usual_length(src: str, tgt: str) -> float | None:
    """Return the usual length of a text in `tgt` over that of its translation in `src`, None if it is not known."""
    source, target = language(src), language(tgt)
    return target.length / source.length if source and target and source.length and target.length else None


def _first_part(code: str) -> str:
    return code.replace("_", "-").partition("-")[0].lower()


# --- scripts ---

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
# Marks that end a sentence; those of them that need no space behind them; what closes behind a mark.
STOPS, WIDE_STOPS = ".!?…‽⁇⁈⁉。！？｡．؟۔।॥።။፧፨։᙮᠃᠉", "。！？｡．"
CLOSING = "\"'”’»›“‘«‹)]}）」』】〉》｣"
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
