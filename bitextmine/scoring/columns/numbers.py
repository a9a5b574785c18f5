"""The agreement of the numbers of a pair, in digits, words or Roman numerals."""

import functools
import operator
import re
import unicodedata
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import languages

# Separators inside a number, by locale: 1,234.5  1.234,5  1 234,5 (with no-break and thin spaces)  1'234.5; times
# and dates (10:30, 2001-09-11, 11/9/2001), and separators of groups. A plain space counts only between groups of
# three digits, or "in 1992 300 people" would be one number.
_NUMBER = re.compile(
    r"\d{1,3}(?:[ \u00a0\u202f\u2009'’]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,:/\-\u2010-\u2013\u00a0\u202f\u2009'’]\d+)*"
)
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_ROMAN_WORD = re.compile(r"\b[IVXLC]+(?:e|er|ème|th|st|nd|rd)?\b")
# A decimal part; three digits after a separator are thousands, whose zeros count.
_DECIMALS = re.compile(r"[.,](?!\d{3}$)(\d*?)0*$")
# A number directly before a word for thousands or more, by the beginnings of such words in many languages.
_SCALED = re.compile(
    r"(?i)(\d+(?:[.,\u00a0\u202f]\d+)*)[\s\u00a0\u202f-]*(?:thousand|tausend|t[iu]s[aeií]|duizend|tuha|tys|ezer|bin\b|"
    r"mii\b|mi[lo]|mrd|mld|mln|bil|bn\b|trill?i|тыс|тис|хил|м[иі]л|мл[нр]|χιλ|εκατ|δισ|[km]\b)"
)
_AFTER_NOON = re.compile(r"(?i)\bp\.? ?m\b|\d ?pm\b")
_HALF_DAY = 12
_LONGEST_IN_WORDS = 4  # digits
# The beginning of a longer text counts: the search for groups of digits takes quadratic time on some inputs.
_CHARACTERS = 10_000
_MANY = 64  # unmatched numbers: a table, which is not examined further
# Languages whose composed numbers follow the rules of `_words`; of a word with two values the first language counts.
# Words only ever excuse a digit on the other side, so one that looks like a number of another language ("once", eleven
# in Spanish) punishes nobody.
_LANGUAGES = ("en", "fr", "de", "es", "it")
_LETTERS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ROMAN = re.compile(r"(?=[IVXLC])(C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?:e|er|ème|th|st|nd|rd)?\.?")
_ROMAN_UNITS = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
_ROMAN_TENS = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]


def _canonical(number: str) -> str:
    """Return the digits in ASCII, without leading zeros and zeros at the end of decimals: "1 234,50" -> "12345"."""
    number = _DECIMALS.sub(r"\1", number)
    digits = "".join(_DIGITS.findall(number))
    if not digits.isascii():
        digits = "".join(str(int(digit)) for digit in digits)
    return digits.lstrip("0") or "0"


def number_agreement(src: str, tgt: str) -> float:
    """Return the agreement of the numbers of two sentences, from 0 to 1; 1 if neither has one in digits.

    Numbers are equal with any separators (1,234.5 = 1.234,5 = 1 234,5; 1.50 = 1,5), split differently (10:30 =
    10 h 30), as the last two digits of a year, with other zeros if a word gives the scale (2 million = 2000000), by the
    other clock (3 pm = 15), in words (in English, French, German, Spanish and Italian) or as a Roman numeral. Then

        agreement = (found + lone / 2) / (found + lone + clash)

    where ``found`` counts the matched numbers, ``clash`` the pairs left on both sides, and ``lone`` those left on one
    side only: a number left out is half as bad as one contradicted.
    """
    return float(agreement(np.array([number_counts(src, tgt)]))[0])


def agreement(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the agreement (n,) of counts (n, 3) of `number_counts`."""
    found, lone, _ = counts.T
    total = counts.sum(axis=1)
    return np.divide(found + lone / 2, total, out=np.ones(len(counts)), where=total > 0)


def number_counts(src: str, tgt: str) -> tuple[int, int, int]:
    """Return the counts of `number_agreement`: found, lone and clash."""
    src, tgt = src[:_CHARACTERS], tgt[:_CHARACTERS]
    if not (_DIGIT.search(src) or _DIGIT.search(tgt)):  # most pairs
        return 0, 0, 0
    left, right = (
        Counter(map(_canonical, _NUMBER.findall(src))),
        Counter(map(_canonical, _NUMBER.findall(tgt))),
    )
    if left == right:
        return left.total(), 0, 0
    found = (left & right).total()
    left, right = left - right, right - left
    if left.total() + right.total() <= _MANY:
        if left and right:
            more, left, right = _cut_up(_rest(src, left), _rest(tgt, right), left, right)
            found += more + _paired(left, right, src, tgt)
        found += _in_words(left, tgt) + _in_words(right, src)
    a, b = left.total(), right.total()
    return found, abs(a - b), min(a, b)


def _rest(text: str, unmatched: Counter[str]) -> list[str]:
    """Return the unmatched numbers of a text as written."""
    waiting = unmatched.copy()
    rest = []
    for number in _NUMBER.findall(text):
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


def _paired(left: Counter[str], right: Counter[str], src: str, tgt: str) -> int:
    """Remove numbers that are equal in another form from both sides; return their count."""
    scaled = {
        _canonical(number): _DECIMALS.search(number) is not None
        for text in (src, tgt)
        for number in _SCALED.findall(text)
    }
    clock = bool(_AFTER_NOON.search(src)) != bool(_AFTER_NOON.search(tgt))
    found = 0
    for a in sorted(left.elements()):
        b = next((b for b in sorted(right) if _alike(a, b, scaled, clock)), None)
        if b is not None:
            left.subtract((a,))
            right.subtract((b,))
            found += 1
            right += Counter()  # drops zeros, in place
    left += Counter()
    return found


def _alike(a: str, b: str, scaled: dict[str, bool], clock: bool) -> bool:
    if len(a) < len(b):
        a, b = b, a
    if len(a) == 4 and len(b) == 2 and a[:2] in ("18", "19", "20") and a.endswith(b):  # 1990, '90
        return True
    if (a in scaled or b in scaled) and a.rstrip("0") == b.rstrip("0"):
        # 2 million is 2000000 and never 20; 8.5 billion is 8500 million.
        return (len(a) - len(b)) % 3 == 0 or scaled.get(a, False) or scaled.get(b, False)
    return clock and len(a) <= 2 and abs(int(a) - int(b)) == _HALF_DAY


def _in_words(numbers: Counter[str], other: str) -> int:
    """Remove numbers that the other side has in words or as Roman numerals; return their count."""
    if not numbers:
        return 0
    words = Counter(word_values(other))
    words.update(value for value in map(roman_value, _ROMAN_WORD.findall(other)) if value)
    found = 0
    for number in sorted(numbers.elements()):
        if len(number) <= _LONGEST_IN_WORDS and words[int(number)] > 0:
            words.subtract((int(number),))
            numbers.subtract((number,))
            found += 1
    numbers += Counter()
    return found


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
    tokens = [_plain(token) for token in _LETTERS.findall(text)]
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
