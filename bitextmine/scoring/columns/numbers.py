"""The agreement of the numbers of a pair, in digits, words or Roman numerals."""

import functools
import itertools
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import MARK, Language, language, languages, script_code
from bitextmine.languages.romanize import fold_lookalikes
from bitextmine.scoring.columns.quantities import NUMBER, contradictions, without_common

_DIGIT = re.compile(r"\d")
_DECIMAL_MARK, _THOUSANDS_MARK = "\u066b", "\u066c"  # Arabic
_TIMES = re.compile(r"(?<=:\d\d)[-\u2010-\u2013](?=\d{1,2}:\d\d)")  # between two times
_DIGITS = re.compile(r"\d+")
_ROMAN_WORD = re.compile(r"\b[IVXLC]+(?:e|er|ème|th|st|nd|rd)?\b")
# A decimal part; three digits after a separator are thousands, whose zeros count.
_DECIMALS = re.compile(r"[.,](?!\d{3}$)(\d*?)0*$")
_LONGEST_IN_WORDS = 12  # digits
# The beginning of a longer text counts: the search for groups of digits takes quadratic time on some inputs.
_CHARACTERS = 10_000
_SAMPLE = 100  # characters that tell the script of a text
_MANY = 64  # unmatched numbers: a table, which is not examined further
# Languages whose words count everywhere; of a word with two values the stated language counts, then the first of these.
# Words only ever excuse a digit on the other side, so one that looks like a number of another language ("once", eleven
# in Spanish) punishes nobody.
_LANGUAGES = ("en", "fr", "de", "es", "it")
# "And" is a letter in front of the next word in Hebrew and Arabic, where "one" begins with it.
_LETTERS = re.compile(rf"\b[\u05d5\u0648](?!\u0627\u062d\u062f)(?=\w\w)|(?:[^\W\d_]|{MARK})+(?:-[^\W\d_]+)*")
_CONNECTIVE = 3  # most letters of a word inside a number in words: three hundred and fifty
_LONGEST_WORD = 64  # letters
_ENDING = 5  # most letters behind the stem of a scale
_ROMAN = re.compile(r"((?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))(?:e|er|ème|th|st|nd|rd)?\.?")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


@functools.lru_cache(maxsize=1 << 14)
def _canonical(number: str) -> str:
    """Return the digits in ASCII, without leading zeros and zeros at the end of decimals: "1 234,50" -> "12345"."""
    number = _DECIMALS.sub(r"\1", number)
    digits = "".join(_DIGITS.findall(number))
    if not digits.isascii():
        digits = "".join(str(int(digit)) for digit in digits)
    return digits.lstrip("0") or "0"


def agreement(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the agreement (n,) of the numbers of pairs, from 0 to 1, by their `number_counts` (n, 3).

    It is (shared + lone / 2) / (shared + lone + clash): a number left out is half as bad as one contradicted. It is 1
    if neither side has a number in digits.
    """
    shared, lone, _ = counts.T
    total = counts.sum(axis=1)
    return np.divide(shared + lone / 2, total, out=np.ones(len(counts)), where=total > 0)


def number_counts(src: str, tgt: str, langs: tuple[str, str] = ("", "")) -> tuple[int, int, int]:
    """Return how many numbers two texts share, how many are left on one side only, and how many pairs on both.

    Numbers are equal with any separators (1,234.5 = 1.234,5 = 1 234,5; 1.50 = 1,5), split differently (10:30 =
    10 h 30), as the last two digits of a year, by value (2 million = 2000000 = 200万, 3 pm = 15:00, ½ = 0.5), in words
    (in English, French, German, Spanish, Italian and the stated languages) or as a Roman numeral.

    langs: the languages of both texts, "" where not stated.
    """
    src, tgt = src[:_CHARACTERS], tgt[:_CHARACTERS]
    if not (_DIGIT.search(src) or _DIGIT.search(tgt)):  # most pairs
        return 0, 0, 0
    src, tgt = _readable(src), _readable(tgt)
    langs = langs[0] or _usual_language(src), langs[1] or _usual_language(tgt)
    shared, lone, clash = _counts(src, tgt, langs)
    if 0 < lone + 2 * clash <= _MANY:
        words = (set(word_values(src, langs[0])), set(word_values(tgt, langs[1])))
        common, src, tgt = without_common(src, tgt, words)
        more, other_lone, other_clash = _counts(src, tgt, langs) if common else (0, lone, clash)
        if other_lone + other_clash < lone + clash:
            return common + more, other_lone, other_clash
    elif shared and not lone + clash and (differing := min(shared, contradictions(src, tgt))):
        return shared - differing, 0, differing
    return shared, lone, clash


def _readable(text: str) -> str:
    """Return a text with one form of letters and separators, and 10:00-11:00 as two times."""
    if not text.isascii():
        text = fold_lookalikes(text).replace(_DECIMAL_MARK, ".").replace(_THOUSANDS_MARK, ",")
    return _TIMES.sub(" - ", text) if ":" in text else text


def _usual_language(text: str) -> str:
    """Return the language whose number words a text without a stated one may have: one of its script, "" if Latin."""
    return "" if text.isascii() else _languages_of_scripts().get(script_code(text, _SAMPLE), "")


@functools.cache
def _languages_of_scripts() -> dict[str, str]:
    """Return the first language of the table with number words in each script but the Latin one."""
    rows = [row for row in languages().values() if row.units]
    return {script_code("".join(row.units)): row.code for row in reversed(rows)} | {"Latn": ""}


def _counts(src: str, tgt: str, langs: tuple[str, str]) -> tuple[int, int, int]:
    numbers = [sorted(map(_canonical, NUMBER.findall(text))) for text in (src, tgt)]
    if numbers[0] == numbers[1]:  # fast
        return len(numbers[0]), 0, 0
    left, right = map(Counter, numbers)
    shared = (left & right).total()
    left, right = left - right, right - left
    if left.total() + right.total() <= _MANY:
        if left and right:
            more, left, right = _cut_up(_rest(src, left), _rest(tgt, right), left, right)
            shared += more + _paired(left, right)
        shared += _in_words(left, tgt, langs[1]) + _in_words(right, src, langs[0])
    a, b = left.total(), right.total()
    return shared, abs(a - b), min(a, b)


def _rest(text: str, unmatched: Counter[str]) -> list[str]:
    """Return the unmatched numbers of a text as written."""
    waiting = unmatched.copy()
    rest = []
    for number in NUMBER.findall(text):
        key = _canonical(number)
        if waiting[key] > 0:
            waiting[key] -= 1
            rest.append(number)
    return rest


def _cut_up(
    src: list[str], tgt: list[str], left: Counter[str], right: Counter[str]
) -> tuple[int, Counter[str], Counter[str]]:
    """Match runs of digits, if that leaves fewer numbers: "10:30" has 10 and 30, as has "10 h 30"."""
    # Zeros stay: 10,000 is not 10.0.
    a, b = (
        Counter(run.lstrip("0") or run for number in side for run in _DIGITS.findall(number))
        for side in (src, tgt)
    )
    both = a & b
    if both and max((a - both).total(), (b - both).total()) < max(left.total(), right.total()):
        return both.total(), a - both, b - both
    return 0, left, right


def _paired(left: Counter[str], right: Counter[str]) -> int:
    """Remove years that the other side has by their last two digits; return their count."""
    pairs = 0
    for a in sorted(left.elements()):
        b = next((b for b in sorted(+right) if _is_year(a, b) or _is_year(b, a)), None)
        if b is not None:
            left[a] -= 1
            right[b] -= 1
            pairs += 1
    return pairs


def _is_year(full: str, short: str) -> bool:
    return len(full) == 4 and len(short) == 2 and full[:2] in ("18", "19", "20") and full.endswith(short)


def _in_words(numbers: Counter[str], other: str, lang: str) -> int:
    """Remove numbers that the other side has in words or as Roman numerals; return their count."""
    if not numbers.total():
        return 0
    words = Counter(word_values(other, lang))
    words.update(value for value in map(roman_value, _ROMAN_WORD.findall(other)) if value)
    written = 0
    for number in sorted(numbers.elements()):
        if len(number) <= _LONGEST_IN_WORDS and words[int(number)] > 0:
            words[int(number)] -= 1
            numbers[number] -= 1
            written += 1
    return written


@functools.lru_cache(maxsize=1 << 16)
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
def _words(code: str) -> dict[str, int]:
    """Return the number words of `_LANGUAGES` and of another language, or "", by their plain spelling."""
    words: dict[str, int] = {}
    ordinals: dict[str, int] = {}
    for row in _rows(code):
        own = _own_words(row)
        words = own | words
        ordinals = {
            stem + _plain(ending): value
            for word, value in reversed(own.items())
            for stem in (word.rstrip("aeiou") if word[-1:] in "aeiou" else word, word)
            for ending in row.ordinals
        } | ordinals
    return ordinals | words


def _own_words(row: Language) -> dict[str, int]:
    """Return the number words of a language by their plain spelling, without those that end as ordinals do."""
    words: dict[str, int] = {}
    units = list(map(_plain, row.units))
    for value, word in enumerate(units):
        words.setdefault(word, value)
    smaller = [*enumerate(units), *((value, _plain(word)) for word, value in row.numbers.items())]
    for ten, word in enumerate(row.tens, start=2):
        words.setdefault(_plain(word), 10 * ten)
        for template in row.composed:
            only, _, form = template.rpartition(":")
            if only in ("", str(ten)):
                composed = form.replace("{ten}", word).replace("{ten-}", word[:-1])
                for number, unit in smaller:
                    kind = "{unit}" if 0 < number < 10 else "{teen}"
                    if kind in form and 0 < number < 20:
                        words.setdefault(_plain(composed.replace(kind, unit)), 10 * ten + number)
    for word, value in row.numbers.items():
        words.setdefault(_plain(word), value)
    return words


def _rows(code: str) -> list[Language]:
    return [languages()[lang] for lang in dict.fromkeys((code or "en", *_LANGUAGES))]


@functools.cache
def _scales(code: str) -> tuple[dict[str, int], dict[str, int], re.Pattern[str]]:
    """Return words for powers of ten in the languages of `_words`: whole ones and stems with their powers.

    The pattern splits words that hundreds and thousands are a part of (dreihunderttausend).
    """
    whole: dict[str, int] = {}
    stems: dict[str, int] = {}
    for row in _rows(code):
        for word, power in row.scales.items():
            (stems if word.endswith("*") else whole).setdefault(_plain(word.removesuffix("*")), power)
        whole.update({_plain(word): len(str(n)) - 1 for word, n in row.numbers.items() if n in (100, 1000)})
    inside = sorted(
        (word for word, power in (whole | stems).items() if power in (2, 3) and len(word) > 3), key=len
    )
    return whole, stems, re.compile(f"({'|'.join(map(re.escape, reversed(inside)))})")


@functools.lru_cache(maxsize=1 << 14)
def _power(token: str, code: str) -> int | None:
    """Return the power of ten that a word stands for, None if it does for none."""
    whole, stems, _ = _scales(code)
    if (power := whole.get(token)) is not None:
        return power
    return next(
        (
            power
            for stem, power in stems.items()
            if token.startswith(stem) and len(token) <= len(stem) + _ENDING
        ),
        None,
    )


@functools.lru_cache(maxsize=16)  # of one pair
def word_values(text: str, lang: str = "") -> tuple[int, ...]:
    """Return the numbers that a text has in words: single words, two or three in a row, and composed ones.

    "vingt et un" is 21, "three hundred thousand" 300,000.

    lang: a language whose words count besides those of `_LANGUAGES`.
    """
    row = language(lang)
    code = "" if row is None else row.code
    values = _words(code)
    tokens = [_plain(token) for token in _LETTERS.findall(text)]
    pairs = list(map(operator.add, tokens, tokens[1:]))
    longer = [word for word in (*pairs, *map(operator.add, pairs, tokens[2:])) if word in values]
    simple = [values[word] for word in (*tokens, *longer) if word in values]
    return *simple, *_composed(_joined(tokens, values) if longer else tokens, values, code)


def _composed(tokens: Iterable[str], values: dict[str, int], code: str) -> Iterator[int]:
    """Yield the numbers of two words or more that are sums of multiples of powers of ten."""
    total = section = words = 0
    skipped = False
    for part in (*itertools.chain.from_iterable(_split(token, code) for token in tokens), ""):
        power, value = _power(part, code) if part else None, values.get(part)
        if power is not None and (value is None or value == 10**power):  # others are duals
            section = max(1, section) * 10**power
            if power > 2:
                total, section = total + section, 0
            words += 1
        elif value is not None and value < 1000 and section % 10 ** len(str(value)) == 0:
            section += value
            words += 1
        elif words and not skipped and value is None and 0 < len(part) <= _CONNECTIVE:
            skipped = True
            continue
        else:
            if words > 1:
                yield total + section
            total, section, words = 0, value or 0, int(value is not None)
        skipped = False


def _joined(tokens: list[str], values: dict[str, int]) -> Iterator[str]:
    """Yield the tokens, those that make a number word together as one: lima puluh, vingt et un."""
    at = 0
    while at < len(tokens):
        size = next((n for n in (3, 2) if "".join(tokens[at : at + n]) in values), 1)
        yield "".join(tokens[at : at + size])
        at += size


@functools.lru_cache(maxsize=1 << 14)
def _split(token: str, code: str) -> list[str]:
    """Return the number words that a word consists of: drei, hundert, tausend; the word if it is none."""
    values = _words(code)
    if token in values or _power(token, code) is not None:
        return [token]
    parts = [part.removeprefix("und") for part in _scales(code)[2].split(token[:_LONGEST_WORD])]
    parts = [part for part in parts if part]
    return parts if all(part in values or _power(part, code) is not None for part in parts) else [token]


def roman_value(word: str) -> int:
    """Return the value (1 to 399) of a Roman numeral in capitals, perhaps with an ordinal ending; 0 for other words."""
    match = _ROMAN.fullmatch(word)
    if match is None:
        return 0
    values = [_ROMAN_DIGITS[digit] for digit in match[1]]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
