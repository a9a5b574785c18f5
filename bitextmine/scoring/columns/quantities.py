"""Numbers by value: times of day, numbers with a word for a power of ten, fractions, Han and Thai numerals.

The words come from the table of languages. A word that has several values ("billion") may have any of them.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from bitextmine.languages.codes import UNSPACED, languages

# Separators inside a number, by locale: 1,234.5  1.234,5  1 234,5 (with no-break and thin spaces)  1'234.5; times
# and dates (10:30, 2001-09-11, 11/9/2001), and separators of groups. A plain space counts only between groups of
# three digits, or "in 1992 300 people" would be one number. Patterns that begin with one set of characters are fast.
NUMBER = re.compile(
    r"\d(?:\d{0,2}(?:[ \u00a0\u202f\u2009'’]\d{3})+(?!\d)(?:[.,]\d+)?"
    r"|\d*(?:[.,:/\-\u2010-\u2013\u00a0\u202f\u2009'’]\d+)*)"
)
_FRACTIONS = {c: unicodedata.normalize("NFKC", c).replace("\u2044", "/") for c in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_ANY_NUMBER = rf"(?:{NUMBER.pattern})|[{''.join(_FRACTIONS)}]"
_PART = re.compile(rf" ?([{''.join(_FRACTIONS)}])| ([1-9]/[2-9])(?![\d/])")  # behind a whole number
_SIMPLE = re.compile(r"[1-9]/[2-9]")
_DECIMAL = re.compile(r"\d+(?:[.,]\d{1,2}|[.,]\d{4,})?|\d{4,}[.,]\d{3}")
_GROUPED = re.compile(r"(\d{1,3}(?:([ .,'’\u00a0\u202f\u2009])\d{3})(?:\2\d{3})*)(?:[.,](\d+))?")
_SPACE = r"[ \u00a0\u202f]?"
_HAN_DIGITS = {c: value for value, digits in enumerate(("〇零", *"一二三四五六七八九")) for c in digits} | {
    "两": 2,
    "兩": 2,
}
_GLUED = re.compile(
    rf"[{UNSPACED}\uac00-\ud7a3]"
)  # words of these scripts are not told by spaces; \uac00: Hangul
_MOST = 64  # quantities of a text; more are a table
_LONGEST_MARK = 20  # characters of a word before an hour
_HALF_DAY = 720  # minutes
_HALF, _QUARTER, _NOON, _MIDNIGHT = 30, 15, 12, 0  # `Language.parts`

Key = tuple[str, Fraction]  # "clock" and minutes, "month" and 1 to 12, or "number" and a value


@dataclass(frozen=True)
class Quantity:
    """A quantity at a place in a text, and what it may mean, the likeliest first.

    Attributes:
        scaled: a word gives the power of ten.
        half: -1 for a time stated to be before noon, 1 for one after noon, else 0.
        exact: digits alone do not give the value: a fraction, or a time with its half of the day.
    """

    start: int
    end: int
    keys: tuple[Key, ...]
    scaled: bool = False
    half: int = 0
    exact: bool = False


def without_common(
    src: str, tgt: str, words: tuple[Collection[int], Collection[int]]
) -> tuple[int, str, str]:
    """Return the number of quantities that two texts share by value, and the texts without these.

    Nothing is shared if all of these are spelled alike. `words` are the values that each text has in words: a number
    with a word for a power of ten (300万) is shared if the other side has its value (three million), and one with a
    half or a quarter, at noon or at midnight if the other side has the word for that (15:30, half past three).
    """
    common, rest = _matched(src, tgt)
    if all(src[first.start : first.end] == tgt[second.start : second.end] for first, second in common):
        common = []
    shared = [[pair[side] for pair in common] for side in range(2)]
    for side, values in enumerate(reversed(words)):
        parts = _parts_in((tgt, src)[side])
        shared[side] += [
            q
            for q in rest[side]
            if (q.scaled and any(value in values for _, value in q.keys)) or _part_of(q.keys[0]) in parts
        ]
    return (sum(map(len, shared)) - len(common), _blanked(src, shared[0]), _blanked(tgt, shared[1]))


def contradictions(src: str, tgt: str) -> int:
    """Return the number of quantities that differ though their digits may not: 2½ and 2¼, 7 a.m. and 7 p.m."""
    if not any(pattern.search(text) for pattern in _words().exact for text in (src, tgt)):  # fast
        return 0
    _, rest = _matched(src, tgt)
    return min(sum(quantity.exact for quantity in side) for side in rest)


def _matched(src: str, tgt: str) -> tuple[list[tuple[Quantity, Quantity]], list[list[Quantity]]]:
    """Return the quantities that two texts share by value, and the others of each; none for tables."""
    sides = [list(_divided(itertools.islice(quantities(text), _MOST + 1), text)) for text in (src, tgt)]
    common: list[tuple[Quantity, Quantity]] = []
    if max(map(len, sides)) > _MOST:
        return common, [[], []]
    for certain in (True, False):
        for quantity in list(sides[0]):
            partner = next((partner for partner in sides[1] if _alike(quantity, partner, certain)), None)
            if partner is not None:
                common.append((quantity, partner))
                sides[0].remove(quantity)
                sides[1].remove(partner)
    return common, sides


def _parts_in(text: str) -> set[int]:
    """Return the values of `Language.parts` whose words a text has."""
    words = _words()
    return {words.part_values[word.rstrip(".")] for word in words.parts.findall(text.lower())}


def _part_of(key: Key) -> int | None:
    """Return the value of the word of `Language.parts` that says what a quantity has beside whole numbers."""
    kind, value = key
    if kind == "clock" and value % 60 == 0:
        return {_HALF_DAY: _NOON, 0: _MIDNIGHT, 2 * _HALF_DAY: _MIDNIGHT}.get(int(value))
    rest = value % 60 if kind == "clock" else value % 1 * 60
    return _HALF if rest == 30 else _QUARTER if rest in (15, 45) else None


def _divided(quantities: Iterable[Quantity], text: str) -> Iterator[Quantity]:
    """Yield quantities of a text; beside "half" or "quarter" a whole number may be a time: half past 3, halb 4."""
    parts = [part for part in _parts_in(text) if part in (_HALF, _QUARTER)]
    for quantity in quantities:
        keys = list(quantity.keys)
        for part, (kind, value) in itertools.product(parts, quantity.keys):
            if kind == "number" and not quantity.scaled and value.denominator == 1 and 0 < value <= 24:
                times = {(60 * value + sign * part) % (2 * _HALF_DAY) for sign in (1, -1)}
                keys += [("clock", time + half) for time in sorted(times) for half in (0, _HALF_DAY)]
        yield replace(quantity, keys=tuple(keys))


def _alike(first: Quantity, second: Quantity, certain: bool) -> bool:
    if first.half * second.half < 0:
        return False
    return first.keys[0] == second.keys[0] if certain else not set(first.keys).isdisjoint(second.keys)


def _blanked(text: str, spans: Iterable[Quantity]) -> str:
    letters = list(text)
    for span in spans:
        letters[span.start : span.end] = " " * (span.end - span.start)
    return "".join(letters)


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a text, in order; dates and numbers with several kinds of separators are none."""
    words, last, end = _words(), None, 0
    afternoon = functools.cache(lambda: words.afternoon.search(text) is not None)
    while match := words.any.search(text, end):
        if match["number"]:
            quantity = _time(text, match.start(), afternoon) or _number(text, match, afternoon)
        elif match["month"]:
            quantity = Quantity(*match.span(), (("month", Fraction(words.months[match[0]])),))
        else:
            keys = (("number", Fraction(_numeral_value(words.numeral_part.findall(match[0])))),)
            quantity = Quantity(*match.span(), keys, scaled=True)
        end = quantity.end
        if last and last.scaled and last.end == quantity.start and quantity.keys:  # 1億2000万
            sums = {("number", a + b) for _, a in last.keys for _, b in quantity.keys}
            quantity = Quantity(last.start, end, tuple(sorted(sums)), scaled=True)
        elif last and last.keys:
            yield last
        last = quantity
    if last and last.keys:
        yield last


def _time(text: str, start: int, afternoon: Callable[[], bool]) -> Quantity | None:
    """Return the time that begins with a number; None if it is no time."""
    words = _words()
    time = words.time.match(text, start)
    if time is None:
        return None
    hour, minutes = int(time["hour"]), int(time["colon"] or time["dot"] or time["minutes"] or 0)
    if hour > 24 or minutes > 59:
        return None
    before = words.before.search(text, max(0, start - _LONGEST_MARK), start)
    marks = [mark[0] for mark in (before,) if mark] + [
        mark for mark in (time["clock"], time["after"]) if mark
    ]
    if not (time["colon"] or marks):
        return None
    times, half = [60 * hour + minutes], 0
    if any(map(words.afternoon.search, marks)):
        half = 1
        if hour < 12:
            times.insert(0, times[0] + _HALF_DAY)
    elif words.morning.search(text, before.start() if before else start, time.end()):
        half = -1
        if hour == 12:
            times.insert(0, minutes)
    elif hour == 12:  # 12 a.m.
        times.append(minutes)
    elif hour < 12 and afternoon():
        times.append(times[0] + _HALF_DAY)
    keys = [("clock", Fraction(value)) for value in times]
    if not minutes:  # 7:00 is 7
        keys += [("number", Fraction(value, 60)) for value in times]
    span = before.start() if before else start, time.end()
    return Quantity(*span, tuple(keys), half=half, exact=half != 0)


def _number(text: str, match: re.Match[str], afternoon: Callable[[], bool]) -> Quantity:
    value, end = value_of(match[0]), match.end()
    if value is None:
        return Quantity(*match.span(), ())
    if value.denominator == 1 and (part := _PART.match(text, end)):
        value, end = value + Fraction(_FRACTIONS.get(part[1], part[2])), part.end()
    words, powers, scaled = _words(), {0}, False
    exact = any(c in _FRACTIONS for c in text[match.start() : end])
    while scale := words.scale.match(text, end):
        word = scale[scale.lastindex or 0].casefold()
        powers = {power + more for power in powers for more in words.powers[word]}
        end, scaled = scale.end(), True
    keys = [("number", value * 10**power) for power in sorted(powers)]
    start = match.start()
    if words.numbered.match(text, end) or words.numbering.search(text, max(0, start - _LONGEST_MARK), start):
        keys.append(("month", value))
    elif value % 100 == 0 and words.century.match(text, end):
        keys.append(("number", value / 100 + 1))
    if not scaled and value.denominator == 1 and value < 12 and afternoon():
        keys.append(("number", value + 12))
    return Quantity(match.start(), end, tuple(keys), scaled, exact=exact)


def value_of(number: str) -> Fraction | None:
    """Return the value of a number in digits; None for a date and whatever else has several separators."""
    if number in _FRACTIONS or _SIMPLE.fullmatch(number):
        return Fraction(_FRACTIONS.get(number, number))
    if _DECIMAL.fullmatch(number):
        return Fraction(number.replace(",", "."))
    grouped = _GROUPED.fullmatch(number)
    if grouped is None:
        return None
    whole, separator, decimals = grouped.groups()
    return Fraction(f"{whole.replace(separator, '')}.{decimals or 0}")


def _numeral_value(parts: list[str]) -> int:
    """Return the value of a numeral of a script without spaces: 三百二十万, 二〇二四, สองแสนล้าน."""
    words, total, section, digit, largest = _words(), 0, 0, 0, 0
    for part in parts:
        if (value := words.digits.get(part)) is not None:
            digit = 10 * digit + value
        elif (power := words.glued[part]) < 4:
            section += (digit or 1) * 10**power
            digit = 0
        else:
            if power > largest:  # 万亿, แสนล้าน: the second multiplies the first
                total = (total + section + digit or 1) * 10**power
            else:
                total += (section + digit or 1) * 10**power
            section, digit, largest = 0, 0, power
    return total + section + digit


class _Words:
    """The words of all languages beside numbers, as patterns, and their powers of ten."""

    def __init__(self) -> None:
        rows = languages().values()
        self.powers: dict[str, set[int]] = {}
        self.glued: dict[str, int] = {}
        kinds: dict[str, set[str]] = {"stem": set(), "whole": set(), "glued": set()}
        for row in rows:
            for word, power in row.scales.items():
                stem = word.removesuffix("*").casefold()
                self.powers.setdefault(stem, set()).add(power)
                if _GLUED.match(stem):
                    self.glued[stem] = power
                    kinds["glued"].add(stem)
                else:
                    kinds["stem" if word.endswith("*") else "whole"].add(stem)
        stems, wholes, inside = (_either(words) for words in kinds.values())
        afternoon = _marks(word for row in rows for word in row.afternoon)
        marks = _marks(word for row in rows for word in (*row.clock, *row.morning, *row.afternoon))
        # Behind the hour, where the script has spaces: "am 7. Mai" says nothing of the morning.
        mornings = {word for row in rows for word in row.morning}
        glued_mornings = set(filter(_GLUED.match, mornings))
        behind = rf"(?:{_SPACE}{marks})??{_SPACE}(?:{_either(mornings - glued_mornings)})(?![^\W\d_])"
        morning = rf"\d{behind}|{_either(glued_mornings)}"
        # Digits of scripts without spaces, in words; Hangul has spaces.
        self.digits = dict(_HAN_DIGITS)
        for row in rows:
            if not row.spaces:
                self.digits |= {**{word: value for value, word in enumerate(row.units)}, **row.numbers}
        self.months = {
            name: month
            for row in rows
            for month, names in enumerate(row.months if len(row.months) == 12 else (), start=1)
            for name in names.split("/")
        }
        counted = [name for row in rows if len(row.months) == 1 for name in row.months]
        part = _either({*self.digits, *(stem for stem in self.glued if stem < "\uac00")})
        self.part_values = {word.lower(): value for row in rows for word, value in row.parts.items()}
        self.time = re.compile(
            rf"(?i)(?P<hour>\d{{1,2}})(?::(?P<colon>\d\d)|\.(?P<dot>\d\d)|(?P<clock>{_SPACE}{marks}{_SPACE})"
            rf"(?P<minutes>\d\d)?[分분]?)?(?![\d:]|[.,/-]\d)(?P<after>(?:{_SPACE}{marks}){{1,2}})?"
        )
        self.before = re.compile(rf"(?i){marks}{_SPACE}\Z")
        self.morning = re.compile(f"(?i){morning}")
        fractions, first = "".join(_FRACTIONS), "".join(word[0] for word in glued_mornings)
        either = "|".join(f"(?<={word[0]}){word[1:]}" for word in sorted(glued_mornings))
        self.exact = (
            re.compile(rf"\d(?=[^\W\d_]|[' \u00a0\u202f])(?i:{behind})"),
            re.compile(rf"[{fractions}{first}](?:(?<=[{fractions}])|{either})"),
        )
        self.afternoon = re.compile(f"(?i){afternoon}")
        self.scale = re.compile(
            rf"(?i)[\s\u00a0\u202f-]*(?:({stems})\w*|({wholes})(?!\w)|{_SPACE}({inside}))"
        )
        self.numeral_part = re.compile(part)
        months = rf"\b(?:{_either(self.months)})\b"
        self.any = re.compile(f"(?P<number>{_ANY_NUMBER})|(?P<numeral>(?:{part})+)|(?P<month>{months})")
        self.numbered = re.compile(f"{_SPACE}(?:{_either(name[1:] for name in counted if name[0] == '#')})")
        self.numbering = re.compile(
            rf"(?i)\b(?:{_either(name[:-1] for name in counted if name[-1] == '#')}){_SPACE}\Z"
        )
        self.century = re.compile(_either(word for row in rows for word in row.century))
        self.parts = re.compile(_marks(self.part_values))


_words = functools.cache(_Words)


def _either(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def _marks(words: Iterable[str]) -> str:
    """Return a pattern of words, each by itself where its script has spaces between words."""
    plain: set[str] = set()
    glued: set[str] = set()
    for word in words:
        (glued if _GLUED.match(word) else plain).add(word)
    return rf"(?:(?<![^\W\d_])(?:{_either(plain)})(?![^\W\d_])\.?|{_either(glued)})"
