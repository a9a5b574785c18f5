"""Rules that leave out lines and pairs: junk, boilerplate, copies, text in another language.

Rules on lines, before the search, in this order; the first that matches counts:

    no_letters   no two letters together
    repeated     one character is over half of the line (of 8 or more without blanks), or one word (of 6 or more)
    boilerplate  the line occurs over 100 times, and makes up over a thousandth of its corpus
    language     the line as a whole is in another language than its corpus, or if it has under 20 letters, in that of
                 the other corpus: of two languages, a few words show which one they are in
    copy         the other corpus has the same line, up to case, and neither is in a wrong language; it stays in the
                 corpus that its words are typical of

Each word has a weight, the log ratio of its frequencies in samples of both corpora (of 1,000 lines or more). Lines that
these do not clearly attribute to their own side go to the identifier (the extra ``languages``), which takes ten times
as long, as do all lines if it finds other languages in the sample. Without the identifier, a line is left out if it is
clearly typical of the other side, or has 8 words and no side.

One rule on pairs, after the search: ``near_copy``, both sides have the same 3 words or more, or the same words and
other numbers ("Page 3" and "Page 8"), or 4 words or more with 7 in 10 the same. Markup, list marks, punctuation and
case do not count.
"""

import html
import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.encoder.tokenizer import word_table
from bitextmine.languages.codes import UNSPACED_LETTER, letters_of
from bitextmine.languages.identify import Languages, is_installed
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.sides import Side, Sides

log = logging.getLogger(__name__)

# The version of the rules, for signatures.
VERSION = "4"

RULES = ("no_letters", "repeated", "boilerplate", "language", "copy")
_NUMBER = {rule: number for number, rule in enumerate(RULES, start=1)}

_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
_TAG = re.compile(r"<[^<>]{1,300}>")
_CHARACTERS, _WORDS = 8, 6  # the shortest line that counts as repeated
_VARIED = 16  # different characters at the beginning; with more of them none is over half of a usual line
_BEGINNING = 80  # characters: as telling as the whole line, in a third of the time
_BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) not in " \n"]
_TIMES, _SHARE = 100, 1000  # boilerplate
_SAMPLE = 20_000  # lines of a side to weigh words by
_ASKED = 2_000  # lines of the sample to identify
_LINES = 1_000  # the smallest sample that weighs words
_SEEN = 5  # the fewest occurrences of a word with a weight
_HEAVIEST = 3.0
_AT_HOME = 1.0  # the lowest weight of a line that is clearly on its side
_ELSEWHERE = -3.0
_ENOUGH_WORDS = 8
_ENOUGH_LETTERS = 20  # the language of shorter lines is one of two at best
_UNLIKELY = 0.05  # Languages.share below which a line is in another language
_MANY_OTHERS = 0.02  # the share of other languages in a sample from which all lines are identified
_NEARLY_ALL = 0.9  # the share from which none is
_BLOCK = 1 << 13
_COPY_WORDS, _COPY_SHARE = 4, 0.7


def is_junk(line: str, varied: bool = False) -> str | None:
    """Return the first of the rules no_letters and repeated that a line matches, or None.

    ``varied``: more than _VARIED different characters are known to be at the beginning.
    """
    if _TWO_LETTERS.search(line) is None:
        return "no_letters"
    if not varied and len(line) >= _CHARACTERS and len(set(line[:_BEGINNING])) <= _VARIED:
        solid = "".join(line.split())
        if len(solid) >= _CHARACTERS and 2 * max(Counter(solid).values()) > len(solid):
            return "repeated"
        words = line.lower().split()
        if len(words) >= _WORDS and 2 * max(Counter(words).values()) > len(words):
            return "repeated"
    return None


def _varied(lines: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask (n,) of lines with more than _VARIED different characters at the beginning; it may lack some."""
    codes = np.array(lines, dtype=f"U{_BEGINNING}").view(np.uint32).reshape(len(lines), _BEGINNING)
    # By the codes modulo 64. The zeros after a short line count as one character more.
    seen = np.bitwise_or.reduce(np.left_shift(np.uint64(1), (codes & 63).astype(np.uint64)), axis=1)
    bits = np.unpackbits(seen.view(np.uint8).reshape(-1, 8), axis=1)
    found: NDArray[np.bool_] = bits.sum(axis=1) > _VARIED + 1
    return found


def bare_words(line: str) -> list[str]:
    """Return the words of a line without markup, list marks, numbers, punctuation and case.

    In scripts without spaces each letter counts as a word.
    """
    return letters_of(_without_markup(line).lower())


def _without_markup(line: str) -> str:
    return html.unescape(_TAG.sub(" ", line)) if "<" in line or "&" in line else line


def near_copy(src: str, tgt: str, fewest: int = 3, share: float = _COPY_SHARE) -> bool:
    """Return True if both have the same `bare_words`, or 4 or more each and a share of the longer in common.

    Fewer equal words than `fewest` may be a name, which translations keep, but only with its numbers.
    """
    one, low = bare_words(src), _without_markup(tgt).lower()
    if sum(map(low.__contains__, one)) < share * len(one):
        return False  # most pairs; splitting the target into words would take longer
    return _alike((src, tgt), one, letters_of(low), fewest, share)


def near_copies(
    pairs: ScoredPairs, sides: tuple[Side, Side], fewest: int = 3, share: float = _COPY_SHARE
) -> NDArray[np.bool_]:
    """Return a mask (p,) of the pairs whose lines are near copies of each other, see `near_copy`."""
    rows = zip(sides, (pairs.src, pairs.tgt), strict=True)
    src, tgt = (side.text.take(side.unique.rows[own]) for side, own in rows)
    copies = (near_copy(one, other, fewest, share) for one, other in zip(src, tgt, strict=True))
    return np.fromiter(copies, dtype=np.bool_, count=len(pairs))


def _alike(both: tuple[str, str], one: list[str], other: list[str], fewest: int, share: float) -> bool:
    if one == other:
        numbers = ["".join(filter(str.isdigit, _without_markup(line))) for line in both]
        if all(numbers) and numbers[0] != numbers[1]:
            return True
        # A name may have three letters or eight in Chinese and Japanese, where each counts as a word.
        return len(one) >= (3 * fewest if UNSPACED_LETTER.search(both[0]) else fewest)
    enough = share * max(len(one), len(other))
    if min(len(one), len(other)) < _COPY_WORDS or sum(map(set(other).__contains__, one)) < enough:
        return False  # most pairs; counting occurrences takes ten times as long
    return (Counter(one) & Counter(other)).total() >= enough


def cleaning_notes(*sides: Side) -> list[str]:
    """Return one note for each side that lost lines."""
    notes = []
    for side in sides:
        if total := sum(side.cleaned.values()):
            by_rule = ", ".join(f"{rule} {count:,}" for rule, count in side.cleaned.items() if count)
            notes.append(
                f"{side.text.name}: {counted(total, 'line')} left out ({by_rule}); --no-clean keeps them"
            )
    return notes


def clean_sides(sides: Sides) -> tuple[Sides, str]:
    """Return both sides without the lines that the rules leave out, and the version of the rules, for signatures.

    BitextmineError: no line is left.
    """
    langs = [side.text.lang for side in sides]
    samples = [_sample(side) for side in sides]
    identifier = Languages() if is_installed() else None
    asked = [_Asked(identifier, lang, sample) for lang, sample in zip(langs, samples, strict=True)]
    for side, lang, one in zip(sides, langs, asked, strict=True):
        if one.mistaken:
            log.warning(
                "%s: almost none of this looks like '%s', so the language filter is off; check the language code",
                side.text.name,
                lang,
            )
    if asked[0].code == asked[1].code:  # then neither can be told from the other
        asked = [_Asked(None, lang, ()) for lang in langs]
    samples = [own.of_it(sample) for own, sample in zip(asked, samples, strict=True)]
    weights = _Weights(samples) if min(map(len, samples)) >= _LINES else None
    looked = [
        _look(side, weights, number, asked[number], asked[1 - number].code)
        for number, side in enumerate(sides)
    ]
    copied = [_copies(*looked), _copies(*reversed(looked))]
    counts: list[dict[str, int]] = []
    for rows, reason, again in zip(
        (side.unique for side in sides), (found.reason for found in looked), copied, strict=True
    ):
        reason[again] = _NUMBER["copy"]
        lines = np.bincount(rows.line_to_row[rows.line_to_row >= 0], minlength=len(rows.rows))
        often = (lines > _TIMES) & (lines * _SHARE > rows.lines)
        reason[often & ((reason == 0) | (reason > _NUMBER["boilerplate"]))] = _NUMBER["boilerplate"]
        found = np.bincount(reason, weights=lines, minlength=len(RULES) + 1).astype(int).tolist()
        counts.append({rule: found[number] for rule, number in _NUMBER.items()})
    src, tgt = (
        side.without(found.reason > 0, cleaned)
        for side, found, cleaned in zip(sides, looked, counts, strict=True)
    )
    return (src, tgt), VERSION if all(one.code is None for one in asked) else f"{VERSION}-languages"


class _Asked:
    """The identifier, for lines in one language: its `code` there, None if unknown, or if nearly all are in others.

    Then the language is `mistaken`. `all`: so many others are in the sample that all lines are identified.
    """

    def __init__(self, identifier: Languages | None, lang: str, sample: Sequence[str]) -> None:
        self._identifier = identifier
        self.code = identifier.code(lang) if identifier is not None else None
        step = max(1, len(sample) // _ASKED)
        self._sampled = list(sample[::step])
        self._others = self.foreign(self._sampled) if self.code is not None else np.zeros(0, dtype=bool)
        long = sum(map(_is_long, self._sampled))
        self.mistaken = bool(long and self._others.sum() > _NEARLY_ALL * long)
        if self.mistaken:
            self.code, self._others = None, np.zeros(len(self._sampled), dtype=bool)
        self.all = bool(self._others.sum() > max(5, _MANY_OTHERS * long))

    def of_it(self, sample: Sequence[str]) -> list[str]:
        """Return the lines of a sample that may be in the language."""
        if not self.all:
            return list(sample)
        return [line for line, other in zip(self._sampled, self._others, strict=True) if not other]

    def foreign(self, lines: Sequence[str], other: str | None = None) -> NDArray[np.bool_]:
        """Return a mask (n,) of the lines in another language, short ones in ``other``, if the identifier knows it."""
        found = np.zeros(len(lines), dtype=bool)
        if self._identifier is None or self.code is None:
            return found
        long = np.fromiter(map(_is_long, lines), bool, len(lines))
        found[long] = self._identifier.share(list(itertools.compress(lines, long)), self.code) < _UNLIKELY
        if other is not None:
            short = [_without_markup(line).lower() for line in itertools.compress(lines, ~long)]
            found[~long] = self._identifier.share(short, self.code, other) < _UNLIKELY
        return found


class _Weights:
    """The weights of words, positive for the first side, which has ``samples[0]``."""

    def __init__(self, samples: Sequence[Sequence[str]]) -> None:
        self._table, self._known = word_table(), 0
        counts = []
        for sample in samples:
            number, ends = self._words([line.lower() for line in sample])
            self._known = max(self._known, int(number.max(initial=-1)) + 1)
            codes = np.sort(np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)) * self._known + number)
            once = np.append(True, codes[1:] != codes[:-1])[: len(codes)]  # in each line
            counts.append(codes[once] % max(1, self._known))
        one, other = (np.bincount(count, minlength=self._known) for count in counts)
        scale = math.log(len(samples[1]) / len(samples[0]))
        often = np.flatnonzero(one + other >= _SEEN)
        self._weight = np.zeros(self._known)
        self._weight[often] = [
            min(_HEAVIEST, max(-_HEAVIEST, math.log((some + 0.5) / (others + 0.5)) + scale))
            for some, others in zip(one[often].tolist(), other[often].tolist(), strict=True)
        ]

    def of(self, lows: Sequence[str], sign: float) -> NDArray[np.float64]:
        """Return the sum of the words' weights of each line (n,): of its beginning, or of all if that is unclear."""
        found = sign * self._sums([low[:_BEGINNING] for low in lows])
        long = np.fromiter(map(len, lows), np.int64, len(lows)) > _BEGINNING
        unclear = np.flatnonzero(long & (found < _AT_HOME))
        found[unclear] = sign * self._sums([lows[i] for i in unclear.tolist()])
        return found

    def _sums(self, lines: Sequence[str]) -> NDArray[np.float64]:
        number, ends = self._words(lines)
        weight = np.concatenate(
            [self._weight, np.zeros(max(0, int(number.max(initial=0)) + 1 - self._known))]
        )
        found, begins = np.zeros(len(lines)), np.append(0, ends[:-1])[: len(lines)]
        some = begins < ends[: len(lines)]
        if some.any():
            found[some] = np.add.reduceat(weight[number], begins[some])
        return found

    def _words(self, lines: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the number of each word, new words from ``_known`` on, and the end of each line's words (n,)."""
        text = "\n".join(lines)
        if text.count("\n") >= len(lines):  # not from a file, then
            text = "\n".join(line.replace("\n", " ") for line in lines)
        number, ends = self._table.numbers(_plain(text), max(1, len(lines)), self._known)
        return number[: ends[-1]], ends[: len(lines)]


def _plain(text: str) -> str:
    """Return a text with words between spaces and line feeds, and question marks for lone surrogates.

    Only text made in Python has such surrogates, and they have no UTF-8 form.
    """
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class _Looked:
    """Findings by row (u,): the number of the matching rule (0: none), a hash up to case, the weight of the words.

    Weights are towards the row's own side. Hashes are of 64 bits, and differ from process to process.
    """

    reason: NDArray[np.int8]
    key: NDArray[np.int64]
    weight: NDArray[np.float64]


def _look(side: Side, weights: _Weights | None, number: int, asked: _Asked, other: str | None) -> _Looked:
    """Apply the rules that look at one line by itself; ``other``: the other side's language for the identifier."""
    rows = len(side.unique.rows)
    reason, key, weight = np.zeros(rows, np.int8), np.empty(rows, np.int64), np.zeros(rows)
    row = 0
    lines = side.text.lines()
    if rows < side.unique.lines:
        wanted = np.zeros(side.unique.lines, dtype=bool)
        wanted[side.unique.rows] = True
        lines = itertools.compress(lines, wanted.tolist())
    while block := list(itertools.islice(lines, _BLOCK)):
        part = slice(row, row + len(block))
        lows = [line.strip().lower() for line in block]
        key[part] = np.fromiter(map(hash, lows), np.int64, len(block))
        if weights is not None:
            weight[part] = weights.of(lows, 1.0 if number == 0 else -1.0)
        reason[part] = [_NUMBER.get(rule or "", 0) for rule in map(is_junk, block, _varied(block).tolist())]
        # Without weights all lines are.
        doubtful = np.flatnonzero((reason[part] == 0) & ((weight[part] < _AT_HOME) | asked.all)).tolist()
        if weights is not None and asked.code is None:
            for i in doubtful:
                if weight[row + i] <= _ELSEWHERE or len(lows[i].split()) >= _ENOUGH_WORDS:
                    reason[row + i] = _NUMBER["language"]
        if asked.code is not None and doubtful:
            foreign = asked.foreign([block[i] for i in doubtful], other)
            reason[row + np.array(doubtful)[foreign]] = _NUMBER["language"]
        row += len(block)
    return _Looked(reason, key, weight)


def _copies(own: _Looked, other: _Looked) -> NDArray[np.int64]:
    """Return the rows of a side that the other side has, too, and whose words are not typical of their own side."""
    mine = np.flatnonzero((own.reason == 0) & (own.weight < _AT_HOME))
    theirs = np.flatnonzero(other.reason == 0)
    return mine[np.isin(own.key[mine], other.key[theirs])]


def _is_long(line: str) -> bool:
    return len(line) >= _ENOUGH_LETTERS and sum(map(str.isalpha, line)) >= _ENOUGH_LETTERS


def _sample(side: Side) -> list[str]:
    step = -(-max(1, len(side.unique.rows)) // _SAMPLE)
    return list(side.text.take(side.unique.rows[::step]))
