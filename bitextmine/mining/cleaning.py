"""Lines and pairs that are no sentences to mine: junk, boilerplate, copies, text in another language.

Rules on lines, before the search, in this order; a line goes by the first that fits:

    no_letters   no two letters together
    repeated     one character is over half of the line (of 8 or more without blanks), or one word (of 6 or more)
    boilerplate  the line occurs over 100 times, and is over a thousandth of its corpus
    language     another language than its corpus, as a whole
    copy         the other corpus has the same line, up to case, and neither is in a wrong language; it stays where its
                 words are at home

What language a line is in is asked in two steps, because the second is ten times slower. First the words: each has a
weight, the logarithm of how much more often it stands in this corpus than in the other, both as sampled. Of a line that
these weights do not put clearly on its own side, the identifier (the extra ``languages``) is asked, and of all lines
where it finds other languages in the sample. Without it a line goes that is clearly at home on the other side, or that
has 8 words and no side. The words are used only in corpora of 1,000 lines or more.

One rule on pairs, after the search: ``near_copy``, both sides of 4 words or more and 7 in 10 of them the same.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.languages.identify import Languages, is_installed
from bitextmine.mining.bitext import PickedLines
from bitextmine.mining.candidates import BestBothWays
from bitextmine.mining.choices import Retrieval
from bitextmine.mining.dedup import Unique
from bitextmine.mining.margin import NEUTRAL
from bitextmine.mining.retrieval import ScoredPairs, retrieve
from bitextmine.mining.sides import Side
from bitextmine.mining.texts import Text

__all__ = ["Cleaning", "clean_lines", "cleaning_notes", "is_junk", "near_copies_of", "near_copy", "signed"]

log = logging.getLogger(__name__)

# Of the rules, for signatures.
VERSION = "1"

RULES = ("no_letters", "repeated", "boilerplate", "language", "copy")

_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
_CHARACTERS, _WORDS = 8, 6  # of a shorter line nothing counts as repeated
_VARIED = 16  # different characters at its beginning; with more of them none is over half of a usual line
_BEGINNING = 80  # characters, which say as much as the whole line in a third of the time
_TIMES, _SHARE = 100, 1000  # boilerplate
_SAMPLE = 20_000  # lines of a side that words are weighed by
_ASKED = 2_000  # of these, the ones whose language is asked
_LINES = 1_000  # a smaller sample weighs no words
_SEEN = 5  # a word that is rarer in the samples weighs nothing
_HEAVIEST = 3.0
_AT_HOME = 1.0  # the weight from which a line is clearly on its side
_ELSEWHERE = -3.0
_ENOUGH_WORDS = 8
_ENOUGH_LETTERS = 20  # what has fewer has no language that could be told
_UNLIKELY = 0.05  # Languages.share below which a line is in another language
_MANY_OTHERS = 0.02  # share of lines in other languages in a sample, from which all lines are asked
_NEARLY_ALL = 0.9  # and from which none is
_BLOCK = 1 << 13
_COPY_WORDS, _COPY_SHARE = 4, 0.7


@dataclass(frozen=True)
class Cleaning:
    """What the rules found. dropped: for both sides the rows that go, bool (u,). counts: for both sides how many lines
    each rule took, in the order of the rules. identified: whether the identifier was asked."""

    dropped: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    counts: tuple[dict[str, int], dict[str, int]]
    identified: bool

    def by_side(self) -> list[tuple[NDArray[np.bool_], dict[str, int]]]:
        """What goes of the source, and of the target."""
        return list(zip(self.dropped, self.counts, strict=True))


def is_junk(line: str) -> str | None:
    """Which of the rules no_letters and repeated fits a line; None for neither."""
    if _TWO_LETTERS.search(line) is None:
        return "no_letters"
    if len(line) >= _CHARACTERS and len(set(line[:_BEGINNING])) <= _VARIED:
        solid = "".join(line.split())
        if len(solid) >= _CHARACTERS and 2 * max(Counter(solid).values()) > len(solid):
            return "repeated"
        words = line.lower().split()
        if len(words) >= _WORDS and 2 * max(Counter(words).values()) > len(words):
            return "repeated"
    return None


def near_copy(src: str, tgt: str) -> bool:
    """Whether 7 in 10 words of the longer side stand on the other one, too, up to case, of 4 or more on each."""
    one, other = src.lower().split(), tgt.lower().split()
    enough = _COPY_SHARE * max(len(one), len(other))
    if min(len(one), len(other)) < _COPY_WORDS or sum(map(set(other).__contains__, one)) < enough:
        return False  # of most pairs: counting how often each word is there takes ten times as long
    return (Counter(one) & Counter(other)).total() >= enough


def near_copies_of(best: BestBothWays, sides: tuple[Side, Side], margin: str) -> ScoredPairs:
    """The pairs, one to one, that are nearly copies, among those that stand out from their neighbourhoods."""
    pairs = retrieve(best, Retrieval.MAX, margin)
    pairs = pairs.take(pairs.score > NEUTRAL[margin])
    src, tgt = sides
    s, t = src.unique.rows[pairs.src], tgt.unique.rows[pairs.tgt]
    with PickedLines(src.text.lines(), s) as src_lines, PickedLines(tgt.text.lines(), t) as tgt_lines:
        found = map(near_copy, src_lines.in_order(s), tgt_lines.in_order(t))
        return pairs.take(np.fromiter(found, dtype=bool, count=len(pairs)))


def signed(cleaning: Cleaning | None) -> str:
    """How the lines were cleaned, for the signature."""
    if cleaning is None:
        return "none"
    return f"{VERSION}-languages" if cleaning.identified else VERSION


def cleaning_notes(sides: Sequence[Side]) -> list[str]:
    """What was left out, for a person; nothing where nothing was."""
    notes = []
    for side in sides:
        if total := sum(side.cleaned.values()):
            by_rule = ", ".join(f"{rule} {count:,}" for rule, count in side.cleaned.items() if count)
            notes.append(
                f"{side.text.name}: {counted(total, 'line')} left out ({by_rule}); --no-clean keeps them"
            )
    return notes


class Rows(Protocol):
    """A text and which of its lines are mined."""

    @property
    def text(self) -> Text: ...
    @property
    def unique(self) -> Unique: ...


def clean_lines(sides: Sequence[Rows], langs: Sequence[str]) -> Cleaning:
    """The rules on lines, on both sides. langs: the codes of their languages.

    Reads each text twice.
    """
    texts, unique = [side.text for side in sides], [side.unique for side in sides]
    samples = [_sample(text, rows) for text, rows in zip(texts, unique, strict=True)]
    identifier = Languages() if is_installed() else None
    asked = [_Asked(identifier, lang, sample) for lang, sample in zip(langs, samples, strict=True)]
    for text, lang, one in zip(texts, langs, asked, strict=True):
        if one.mistaken:
            log.warning(
                "%s: nearly all of it looks like another language than '%s': no line is left out for its language; "
                "is the code right?",
                text.name,
                lang,
            )
    if asked[0].code == asked[1].code:  # then neither can be told from the other
        asked = [_Asked(None, lang, ()) for lang in langs]
    weights = _weights([own.of_it(sample) for own, sample in zip(asked, samples, strict=True)])
    looked = [
        _look(text, rows, weights, side, one)
        for side, (text, rows, one) in enumerate(zip(texts, unique, asked, strict=True))
    ]
    counts: list[dict[str, int]] = []
    dropped = []
    copied = [
        np.isin(keys, others[1][others[0] == 0])
        for (_, keys, _), others in zip(looked, reversed(looked), strict=True)
    ]
    for side, (reason, _, weight) in enumerate(looked):
        # As both sides see it: the weight of a line is towards its own side.
        reason[copied[side] & (reason == 0) & (weight < _AT_HOME)] = RULES.index("copy") + 1
        lines = np.bincount(
            unique[side].line_to_row[unique[side].line_to_row >= 0], minlength=len(unique[side].rows)
        )
        often = (lines > _TIMES) & (lines * _SHARE > unique[side].lines)
        reason[often & ((reason == 0) | (reason > RULES.index("boilerplate") + 1))] = (
            RULES.index("boilerplate") + 1
        )
        found = np.bincount(reason, weights=lines, minlength=len(RULES) + 1).astype(int).tolist()
        counts.append({rule: found[i] for i, rule in enumerate(RULES, start=1)})
        dropped.append(reason > 0)
    return Cleaning(
        (dropped[0], dropped[1]), (counts[0], counts[1]), any(one.code is not None for one in asked)
    )


class _Asked:
    """The identifier, for lines that should be in one language. code: as it knows that; None where it cannot tell.
    mistaken: it knows that language, and finds others in nearly all of the sample."""

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
        """The lines of a sample that may be in the language: all, or the asked ones, where there are many others."""
        if not self.all:
            return list(sample)
        return [line for line, other in zip(self._sampled, self._others, strict=True) if not other]

    def foreign(self, lines: Sequence[str]) -> NDArray[np.bool_]:
        """(n,) which lines are in another language."""
        long = np.fromiter(map(_is_long, lines), bool, len(lines))
        if self._identifier is None or self.code is None or not long.any():
            return np.zeros(len(lines), dtype=bool)
        long[long] = self._identifier.share(list(itertools.compress(lines, long)), self.code) < _UNLIKELY
        return long


def _look(
    text: Text, unique: Unique, weights: Mapping[str, float] | None, side: int, asked: _Asked
) -> tuple[NDArray[np.int8], NDArray[np.uint64], NDArray[np.float64]]:
    """For each row (u,): the rule that takes it by itself (its number from 1, 0 for none), a hash of the line up to
    case, and what its words weigh towards its own side."""
    sign = 1.0 if side == 0 else -1.0
    reason = np.zeros(len(unique.rows), dtype=np.int8)
    keys = bytearray()
    weight = np.zeros(len(unique.rows))
    language = RULES.index("language") + 1
    known, nothing = (weights or {}).get, itertools.repeat(0.0)
    row = 0
    for block in _blocks(_mined(text, unique)):
        doubtful = []
        for i, line in enumerate(block, start=row):
            low = line.strip().lower()
            keys += hashlib.blake2b(low.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            if (rule := is_junk(line)) is not None:
                reason[i] = RULES.index(rule) + 1
                continue
            if weights is not None:
                weight[i] = sign * sum(map(known, low[:_BEGINNING].split(), nothing))
                if weight[i] < _AT_HOME and len(low) > _BEGINNING:
                    weight[i] = sign * sum(map(known, low.split(), nothing))
                if weight[i] >= _AT_HOME and not asked.all:
                    continue
                if asked.code is None:
                    if weight[i] <= _ELSEWHERE or (
                        weight[i] < _AT_HOME and len(low.split()) >= _ENOUGH_WORDS
                    ):
                        reason[i] = language
                    continue
            doubtful.append(i)
        if asked.code is not None and doubtful:
            foreign = asked.foreign([block[i - row] for i in doubtful])
            reason[np.array(doubtful)[foreign]] = language
        row += len(block)
    return reason, np.frombuffer(bytes(keys), dtype=np.uint64), weight


def _weights(samples: Sequence[Sequence[str]]) -> dict[str, float] | None:
    """How much each word speaks for the first side and against the second; None from too few lines."""
    if min(map(len, samples)) < _LINES:
        return None
    counts = []
    for sample in samples:
        words: Counter[str] = Counter()
        for line in sample:
            words.update(set(line.lower().split()))
        counts.append(words)
    one, other = counts
    scale = math.log(len(samples[1]) / len(samples[0]))
    return {
        word: min(_HEAVIEST, max(-_HEAVIEST, math.log((one[word] + 0.5) / (other[word] + 0.5)) + scale))
        for word in one.keys() | other.keys()
        if one[word] + other[word] >= _SEEN
    }


def _is_long(line: str) -> bool:
    return len(line) >= _ENOUGH_LETTERS and sum(map(str.isalpha, line)) >= _ENOUGH_LETTERS


def _mined(text: Text, unique: Unique) -> Iterator[str]:
    """The lines of the rows, in order."""
    wanted = np.zeros(unique.lines, dtype=bool)
    wanted[unique.rows] = True
    return itertools.compress(text.lines(), wanted.tolist())


def _sample(text: Text, unique: Unique) -> list[str]:
    """Up to _SAMPLE of the rows' lines, from all over the text."""
    step = -(-max(1, len(unique.rows)) // _SAMPLE)
    return list(itertools.islice(_mined(text, unique), 0, None, step))


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    while block := list(itertools.islice(lines, _BLOCK)):
        yield block
