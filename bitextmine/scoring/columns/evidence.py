"""Signs that one text of a pair does not translate the other, from the texts alone.

They are inputs of the networks of `quality`. Each is near 0 for a usual pair in any script, so that languages without
pairs to fit to are not at a disadvantage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.pieces import Pieces
from bitextmine.languages.codes import (
    CLOSING,
    MARK,
    STOPS,
    UNSPACED,
    UNSPACED_LETTER,
    WIDE_STOPS,
    language,
    letters_of,
    script,
)
from bitextmine.languages.romanize import consonants, latin
from bitextmine.scoring.columns.words import (
    Memo,
    Parts,
    StringTable,
    count_of,
    distinct,
    is_among,
    key_of,
    text_of,
    totals,
)

# Of each text.
NAMES = (
    *("source loops", "target loops", "both loop", "longer loop in the source", "longer loop in the target"),
    *("copied run", "copied words", "copied pairs of words"),
    *("more sentences in the target", "fewer sentences in the target"),
    *("only the source ends", "only the target ends", "brackets", "names"),
    *("more stops inside the source", "more stops inside the target"),
    *("only the source begins small", "only the target begins small"),
    *("negated source", "negated target", "lone numbers", "clashing numbers"),
)

_TOKEN = re.compile(rf"(?:[^\W_]|{MARK})+(?:['’-](?:[^\W_]|{MARK})+)*")
_LONGEST_PERIOD = 12  # tokens that a loop repeats
_FEWEST = 4  # tokens of a text that can loop, and of a copied run
# Each begins with a set of characters, which the search finds fast. A run of marks is one end. The semicolon is the
# Greek question mark; a colon is typed for the Armenian full stop.
_END = re.compile(
    rf"[{STOPS};:](?<![{STOPS}][{STOPS}])(?:(?<![;:])|(?<=[\u0370-\u03ff\u1f00-\u1fff];)|(?<=[\u0531-\u0587]:))"
    rf"[{STOPS}]*+(?:(?<=[{WIDE_STOPS}])|[{re.escape(CLOSING)}]*+(?=\s|$))"
)
_PLAIN_END = re.compile(r"[.!?](?<![.!?][.!?])[.!?]*+[\"')\]}]*+(?=\s|$)")  # in ASCII
_INSIDE = re.compile(r"[^\W\d_]{2}[.!?…։]\Z")  # not an initial
_LAST, _STARTING = frozenset(STOPS + ":;：；"), frozenset(STOPS + ":")
_BRACKETS = "(（", ")）", "[［", "]］"
_ANY_BRACKET = re.compile(r"[()（）［］\[\]]")
_TAIL = 8  # characters that hold the last mark, with what closes behind it
_UNMARKED = re.compile("[\u0e00-\u0eff\u1780-\u17ff]")  # Thai, Lao, Khmer: no mark ends a sentence
_NAMED = re.compile(r"(?![a-z])[\"'“„«(]*([^\W\d_][\w’'-]{2,})")
_BEFORE = re.compile(r"[\w,;()\-–—]\Z")
_START = 4  # letters of a name that must agree
_SYLLABIC = re.compile("[\u3041-\u30ff\uac00-\ud7a3]")
_SPELLING = re.compile(r"[\u30a1-\u30fa\u30fc-\u30ff]{2,}|[A-Za-z][\w'’-]*|[\uac00-\ud7a3]+")
_OPENING = "\"'“„«»‘‚([{¿¡"
_LOWER = re.compile("[a-zß-öø-ÿ\u0100-\u017fα-ώа-\u052fա-և\u1ea0-\u1ef9]+")
_SOUNDS_ALIKE = 0.85  # the most that consonants alone make two names of different scripts alike
_GLUED = re.compile(f"[{UNSPACED}\uac00-\ud7a3]")  # where negation is a part of a word; \uac00: Hangul
_MOST = 3  # of any count that is a sign
_MOST_CHARACTERS = 1 << 20  # of remembered words, which take about 30 MB
_MOST_TOKENS = 2_000  # of a text that is searched for a copied run
_ODD = np.int64(-0x61C8864680B583EB)  # mixes the bits of a hash
# Flags of a word between blanks. It has a bracket; a letter of a script without marks at the end of sentences; of one
# without spaces.
_BRACKET, _UNMARKED_LETTER, _UNSPACED_LETTER = 1, 2, 4
# It begins with a letter in lower case; it ends with a mark that ends a sentence, after two letters.
_SMALL, _STOP = 8, 16
# It is capitalised, after opening marks; it is a name to `_names_apart`; the word after it may be such a name; the word
# after it does not begin a sentence.
CAPITAL, _NAME, _BEFORE_NAME, _BEFORE_INSIDE = 32, 64, 128, 256
UPPER = 512  # its letters are all capitals
_ENDS = 10  # bits of these; above them is the number of sentence ends in the word


def _spelled(word: str) -> str:
    return latin(word)[:_START]


@lru_cache(maxsize=1 << 16)
def _letters(word: str) -> tuple[str, frozenset[str], bool, bool]:
    """Return a word in Latin letters, its pairs of letters, with the first one, and if its vowels are spelled.

    Last, True if the word itself is in Latin letters.
    """
    plain = "".join(filter(str.isalnum, latin(word)))
    return (
        plain,
        frozenset(map("".join, pairwise(f" {plain}"))),
        plain.isascii() and not _SYLLABIC.search(word),
        word.isascii() or next((script(letter) for letter in word if letter.isalpha()), "Latin") == "Latin",
    )


@lru_cache(maxsize=1 << 16)
def _sounds(plain: str) -> frozenset[str]:
    """Return the pairs of consonants of a word, with the first one."""
    return frozenset(map("".join, pairwise(f" {consonants(plain)}".replace("\0", ""))))


def _spelled_words(text: str) -> list[str]:
    """Return the words of a text that may spell a name, and the parts of those with hyphens.

    In scripts without spaces these are runs of katakana, which spell foreign names, and words of other scripts.
    """
    spaced = text.isascii() or UNSPACED_LETTER.search(text) is None
    words = text.split() if spaced else _SPELLING.findall(text)
    return (
        words + [part for word in words if "-" in word for part in word.split("-")] if "-" in text else words
    )


def spellings(text: str) -> list[str]:
    """Return the words of a text that may spell a name of another: capitalised ones, all if the script has no case."""
    words = _spelled_words(text)
    if 2 * sum(map(len, _LOWER.findall(text))) < len(text):
        return words
    # Most words are in lower case, which is found at once.
    return [word for word in words if not word.islower() and word.lstrip(_OPENING)[:1].isupper()] or words


def unlike(name: str, words: Sequence[str], *, sounds: bool = False) -> float:
    """Return how far the spelling of a name is from that of the most similar word, from 0 to 1.3.

    Of names with a hyphen the part most unlike all words counts. Consonants alone are compared if one script has no
    letters for vowels, or adds some (kana, Hangul); with `sounds`, also those of any two scripts.
    """
    if name in words:
        return 0.0
    if parts := [part for part in name.split("-") if len(part) > 2][1:]:
        return max(unlike(part, words, sounds=sounds) for part in (name.split("-", 1)[0], *parts))
    name = name.removesuffix("'s").removesuffix("’s")
    own, letters, own_vowels, is_latin = _letters(name)
    closest = 0.0
    for other, there, vowels, also_latin in map(_letters, words):
        if other == own:
            return 0.0
        if vowels != own_vowels:
            closest = max(closest, _likeness(_sounds(own), _sounds(other)))
            continue
        closest = max(closest, _likeness(letters, there))
        if sounds and is_latin != also_latin and closest < _SOUNDS_ALIKE:
            own_sounds, its_sounds = _sounds(own), _sounds(other)
            if min(len(own_sounds), len(its_sounds)) > 1:
                closest = max(closest, _SOUNDS_ALIKE * _likeness(own_sounds, its_sounds))
    return 1.3 * (1 - closest)


def _likeness(pairs: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of the pairs of letters of the shorter word that the other has, less for a longer one."""
    if pairs.isdisjoint(others):
        return 0.0
    more = abs(len(pairs) - len(others))
    return len(pairs & others) / (min(len(pairs), len(others)) + more / 4 or 1)


@cache
def _negation(code: str) -> re.Pattern[str] | None:
    """Return a pattern of the negating words of a language; None if it has none that stand between spaces."""
    row = language(code)
    if row is None or not row.negation or any(map(_GLUED.search, row.negation)):
        return None
    # To Python, a vowel sign ends a word of an Indic script.
    plain = [word for word in row.negation if word.isalpha() and not "\u0900" <= word[0] < "\u0e00"]
    whole = [rf"\b(?:{'|'.join(plain)})\b"] if plain else []  # one branch, tried once at each place
    before, after = rf"(?<!\w)(?<!{MARK})", rf"(?!\w|{MARK})"
    stems = [
        f"{before}{re.escape(word)}"
        if word.endswith("'")
        else f"{re.escape(word)}{after}"
        if "'" in word
        else f"{before}{word}{after}"
        for word in row.negation
        if word not in plain
    ]
    return re.compile("|".join(whole + stems))


def negations(words: Words, code: str) -> NDArray[np.int64] | None:
    """Return the number of negating words of each text in a language, (n,); None without a list of them."""
    of = words.vocabulary.negations(code)
    return None if of is None else totals(of(words.numbers.ids), words.numbers)


def _flags(word: str) -> int:
    """Return the flags of a word, and above them the number of sentence ends in it."""
    if word.isalpha() and word.isascii() and word.islower():  # fast
        return _SMALL | _BEFORE_NAME | _BEFORE_INSIDE
    flags = _SMALL if word[0].islower() and word[0].isalnum() else 0
    if not word.isascii():
        flags |= _UNMARKED_LETTER if _UNMARKED.search(word) else 0
        flags |= _UNSPACED_LETTER if UNSPACED_LETTER.search(word) else 0
    if not word.islower():  # fast
        inside, name = word.lstrip(_OPENING), _NAMED.match(word)
        flags |= CAPITAL if len(inside) > 2 and inside[0].isupper() else 0
        flags |= _NAME if name and name[1][0].isupper() else 0
        flags |= UPPER if word.isupper() else 0
    if word.isalnum():  # fast
        return flags | _BEFORE_NAME | _BEFORE_INSIDE
    flags |= _BEFORE_NAME if _BEFORE.search(word) else 0
    flags |= _BEFORE_INSIDE if word[-1] not in _STARTING else 0
    flags |= _BRACKET if _ANY_BRACKET.search(word) else 0
    flags |= _STOP if _INSIDE.search(word) else 0
    return flags | len((_PLAIN_END if word.isascii() else _END).findall(word)) << _ENDS


def _lower(word: str) -> str:
    """Return a word in lower case, \u0130 as i without the combining dot that Python adds, which would end a token."""
    return word.replace("\u0130", "i").lower()


def _tokens(words: Sequence[str]) -> list[Sequence[str]]:
    """Return the words in lower case that each word between blanks consists of."""
    return [
        (word,) if word.isalnum() else _TOKEN.findall(word) for word in _lower("\n".join(words)).split("\n")
    ]


def _counts(pattern: re.Pattern[str], words: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of matches in each word in lower case, (n,), of a pattern that ends at blanks."""
    text = _lower("\n".join(words)).replace("’", "'")
    ends = np.cumsum([len(word) + 1 for word in text.split("\n")])
    found = [match.start() for match in pattern.finditer(text)]
    return np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(words))


def _name(word: str) -> tuple[str, ...]:
    """Return the name that a word is, as it is and in lower case."""
    name = _NAMED.match(word)
    return () if name is None else (name[1], _lower(name[1]))


class Vocabulary:
    """What is known of the words of texts, which are the strings between blanks.

    Words and their parts are numbered separately.

    Attributes:
        flags: of words, and the number of sentence ends.
        tokens: words in lower case, without punctuation.
        letters: the parts that `letters_of` returns.
        names: the name that a word may be, as written and in lower case.
        spelled: of parts, a number for the beginning in Latin letters.
    """

    def __init__(self) -> None:
        self.words, self.parts = StringTable(), StringTable()
        self.flags = Memo(self.words, partial(map, _flags))
        self.tokens = Parts(self.words, _tokens, self.parts)
        self.letters = Parts(
            self.words, lambda words: [letters_of(word.casefold()) for word in words], self.parts
        )
        self.names = Parts(self.words, partial(map, _name), self.parts)
        starts: dict[str, int] = {}
        self.spelled = Memo(
            self.parts, lambda parts: [starts.setdefault(_spelled(part), len(starts)) for part in parts]
        )
        self._negations: dict[str, Memo] = {}

    @property
    def is_full(self) -> bool:
        """Return True if there are too many words to remember more."""
        return self.words.characters > _MOST_CHARACTERS

    def read(self, texts: Sequence[str]) -> Words:
        """Return the words of texts."""
        return Words(texts, self, self.words.read(texts))

    def negations(self, code: str) -> Memo | None:
        """Return the number of negating words of a language in each word; None if the language has no list."""
        pattern = _negation(code) if code else None
        if pattern is not None and code not in self._negations:
            self._negations[code] = Memo(self.words, partial(_counts, pattern))
        return self._negations.get(code)


@dataclass(frozen=True)
class Words:
    """The words of texts by their numbers in a vocabulary."""

    texts: Sequence[str]
    vocabulary: Vocabulary
    numbers: Pieces

    @cached_property
    def flags(self) -> NDArray[np.int64]:
        """Return the flags of each word, (m,), and the number of sentence ends in it above them."""
        return self.vocabulary.flags(self.numbers.ids)

    @cached_property
    def _any_flags(self) -> NDArray[np.int64]:
        """Return the flags that any word of each text has, (n,)."""
        found = np.zeros(len(self.texts), dtype=np.int64)
        some = self.numbers.lengths > 0
        if some.any():
            found[some] = np.bitwise_or.reduceat(self.flags, self.numbers.offsets[:-1][some])
        return found

    def has(self, flag: int) -> NDArray[np.bool_]:
        """Return True for each text, (n,), that has a word with a flag."""
        return self._any_flags & flag > 0

    @cached_property
    def tokens(self) -> Pieces:
        """Return the words of each text in lower case, without punctuation."""
        return self.vocabulary.tokens(self.numbers)

    def strings(self, row: int) -> list[str]:
        """Return `tokens` of one text."""
        begin, end = self.tokens.offsets[row : row + 2]
        return [self.vocabulary.parts.all[number] for number in self.tokens.ids[begin:end].tolist()]

    @property
    def names(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the text of each distinct name, a capitalised word inside a sentence, and the name in lower case."""
        names = self.numbers.keep(_follow(self, _NAME, _BEFORE_NAME))
        text, both = text_of(names), self.vocabulary.names(names).ids
        _, first = np.unique(key_of(text, both[::2]), return_index=True)
        return text[first], both[1::2][first]

    @cached_property
    def letters(self) -> Pieces:
        """Return the runs of letters of each text, case folded, as `letters_of` does."""
        return self.vocabulary.letters(self.numbers)

    @cached_property
    def units(self) -> Pieces:
        """Return `tokens` of each text, or its characters if its script has no spaces between words."""
        rows = np.flatnonzero(self.has(_UNSPACED_LETTER))
        if not len(rows):
            return self.tokens
        spaced = [" ".join("".join(self.strings(row))) for row in rows.tolist()]
        order = np.arange(len(self.texts))
        order[rows] = len(order) + np.arange(len(rows))
        return Pieces.join([self.tokens, self.vocabulary.parts.read(spaced)]).take(order)

    @cached_property
    def repeats(self) -> NDArray[np.int64]:
        """Return the number of `units` in a row that repeat what came directly before, (n,).

        A phrase of 2 to 12 words counts if it comes twice in a row, a word if it comes three times, or twice at the
        end.
        """
        ids, text = self.units.ids, text_of(self.units)
        lengths, offsets = self.units.lengths, self.units.offsets
        found = np.zeros(len(lengths), dtype=np.int64)
        long = np.flatnonzero(lengths >= _FEWEST)
        last = offsets[long + 1] - 1
        found[long] = ids[last] == ids[last - 1]
        for period in range(1, _LONGEST_PERIOD + 1):
            same = np.flatnonzero(ids[period:] == ids[:-period])
            same = same[text[same] == text[same + period]]
            run = np.flatnonzero(np.diff(same, prepend=-2) != 1)  # where one begins
            length, of = np.diff(run, append=len(same)), text[same[run]]
            loops = (length >= max(2, period)) & (lengths[of] >= max(_FEWEST, 2 * period))
            np.maximum.at(found, of[loops], length[loops])
        return found

    @cached_property
    def loops(self) -> NDArray[np.float64]:
        """Return the share of each text that repeats what came directly before, from 0 to 1, (n,)."""
        found: NDArray[np.float64] = self.repeats / np.maximum(1, self.units.lengths)
        return found


def evidence(
    src: Words,
    tgt: Words,
    negations: tuple[NDArray[np.int64] | None, NDArray[np.int64] | None],
    numbers: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the values (n, NAMES) of the pairs of sources and targets (n,).

    negations: how many negating words the sources and the targets have, (n,); None for a side where this is not known,
    and then neither counts. numbers: (n, 3) counts of `number_counts`.
    """
    longer = src.repeats - tgt.repeats
    fewest = np.maximum(1, np.minimum(src.units.lengths, tgt.units.lengths))
    run, pairs = _copied(src, tgt)
    sentences, ended = _punctuation(src, tgt)
    a, b = negations
    negated = 0 * longer if a is None or b is None else (a > 0).astype(np.int64) - (b > 0)
    columns = (
        *_sides(src.loops - tgt.loops),
        np.minimum(src.loops, tgt.loops),
        *_sides(np.sign(longer) * _logs(np.abs(longer))),
        run / fewest,
        _logs(run),
        np.minimum(pairs, _MOST),
        *_sides(sentences),
        *_sides(ended),
        _brackets(src, tgt),
        _names_apart(src, tgt),
        *_sides(np.clip(_stops_inside(src) - _stops_inside(tgt), -_MOST, _MOST)),
        *_sides(_begins_small(src, tgt)),
        *_sides(negated),
        *np.minimum(numbers[:, 1:], _MOST).T,
    )
    return np.stack(columns, axis=1).astype(np.float64, copy=False)


def _sides(more: NDArray) -> tuple[NDArray, NDArray]:
    """Return by how much the first side has more, and by how much the second."""
    return np.maximum(0, more), np.maximum(0, -more)


def _logs(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log(1 + count); NumPy's logarithms depend on the processor in their last bit."""
    return np.fromiter(map(math.log1p, counts.tolist()), np.float64, len(counts))


def _copied(src: Words, tgt: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lengths (n,) of the longest runs of units that both texts have, and the numbers of copied pairs.

    A copied pair is two consecutive words that stand in lower case in both texts; names are rightly copied.
    """
    run, pairs = (np.zeros(len(src.texts), dtype=np.int64) for _ in range(2))
    a, b = src.units, tgt.units
    for row in np.flatnonzero(_share_run(a, b, _FEWEST)).tolist():
        both = (side.ids[side.offsets[row] : side.offsets[row + 1]][:_MOST_TOKENS] for side in (a, b))
        run[row] = _copied_run(*(tokens.tolist() for tokens in both))
    for row in np.flatnonzero(_share_run(src.tokens, tgt.tokens, 2)).tolist():
        there = set(pairwise(src.strings(row))).intersection(pairwise(tgt.strings(row)))
        texts = src.texts[row], tgt.texts[row]
        pairs[row] = sum(
            word.isalpha() and all(f"{word} {after}" in text for text in texts) for word, after in there
        )
    return run, pairs


def _share_run(a: Pieces, b: Pieces, size: int) -> NDArray[np.bool_]:
    """Return True for each pair of texts, (n,), with a run of `size` tokens in common; by hash, so perhaps for more."""
    shift = 63 - len(a).bit_length()  # above it a key has the number of the text
    keys = []
    for side in (a, b):
        text, count = text_of(side), max(0, len(side.ids) - size + 1)
        hashed = np.zeros(count, dtype=np.int64)
        for at in range(size):
            hashed = (hashed ^ side.ids[at : at + count]) * _ODD  # wraps around
        key = (text[:count] << shift) | (hashed & ((1 << shift) - 1))
        keys.append(key[text[:count] == text[size - 1 :]])
    found = keys[0][is_among(keys[0], np.sort(keys[1]))] >> shift
    flags: NDArray[np.bool_] = np.bincount(found, minlength=len(a)) > 0
    return flags


def _copied_run(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the longest run of both texts; 0 if below four, or with fewer than three common tokens."""
    if len(set(a).intersection(b)) < _FEWEST - 1:
        return 0
    places: dict[int, list[int]] = {}
    for at, token in enumerate(b):
        places.setdefault(token, []).append(at)
    longest = 0
    ending: dict[int, int] = {}
    for token in a:
        ending = {at: ending.get(at - 1, 0) + 1 for at in places.get(token, ())}
        longest = max(longest, max(ending.values(), default=0))
    return longest if longest >= _FEWEST else 0


def _names_apart(src: Words, tgt: Words) -> NDArray[np.int64]:
    """Return the number of names on each side that the other lacks, at most 3: a name replaced by another.

    A name is a capitalised word inside a sentence; it is there if a word of the other side begins alike, spelled in
    Latin letters.
    """
    texts = len(src.texts)
    others = ((src.names, tgt), (tgt.names, src))
    missing = np.ones(texts, dtype=bool)
    for (text, name), other in others:
        missing &= (
            np.bincount(text[~is_among(key_of(text, name), distinct(other.tokens))], minlength=texts) > 0
        )
    # Spelling is slow, and most names are there letter by letter.
    rows = np.flatnonzero(missing)
    apart = np.full(texts, _MOST) * missing
    for (text, name), other in others:
        spelled, there = other.vocabulary.spelled, other.tokens.take(rows)
        some = missing[text]
        keys = key_of(text[some], spelled(name[some]))
        among = np.sort(key_of(rows[text_of(there)], spelled(there.ids)))
        apart = np.minimum(apart, count_of(keys[~is_among(keys, among)], texts))
    return apart


def _punctuation(src: Words, tgt: Words) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the logarithm of the ratio of sentence ends; 1 if only the source ends a sentence, -1 if only the target.

    Both are 0 if a side is in a script without marks at the end of sentences.
    """
    unmarked = np.zeros(len(src.texts), dtype=bool)
    for side in (src, tgt):
        for row in np.flatnonzero(side.has(_UNMARKED_LETTER)).tolist():
            unmarked[row] |= _UNMARKED.search(side.texts[row][-_TAIL:]) is not None
    ends = [np.maximum(1, totals(side.flags >> _ENDS, side.numbers)) for side in (src, tgt)]
    ratio = np.fromiter(map(math.log, (ends[1] / ends[0]).tolist()), np.float64, len(unmarked))
    a, b = (np.fromiter(map(_stops, side.texts), np.int64, len(unmarked)) for side in (src, tgt))
    return np.where(unmarked, 0, ratio), np.where(unmarked, 0, a - b)


def _brackets(src: Words, tgt: Words) -> NDArray[np.int64]:
    """Return the number of brackets that one side has more than the other, at most 3; wide ones are the same."""
    more = np.zeros(len(src.texts), dtype=np.int64)
    for row in np.flatnonzero(src.has(_BRACKET) | tgt.has(_BRACKET)).tolist():
        a, b = src.texts[row], tgt.texts[row]
        more[row] = sum(abs(sum(map(a.count, kind)) - sum(map(b.count, kind))) for kind in _BRACKETS)
    return np.minimum(more, _MOST)


def _begins_small(src: Words, tgt: Words) -> NDArray[np.int64]:
    """Return 1 if only the source begins with a letter in lower case, -1 if only the target does, else 0."""
    first = [[text[:1] for text in side.texts] for side in (src, tgt)]
    small = np.array([list(map(str.islower, side)) for side in first], dtype=bool)
    large = np.array([list(map(str.isupper, side)) for side in first], dtype=bool)
    return np.where((small | large).all(axis=0), small[0].astype(np.int64) - small[1], 0)


def _follow(words: Words, flag: int, before: int) -> NDArray[np.bool_]:
    """Return True for each word, (m,), with a flag that comes after a word of its text with the flag `before`."""
    follow = words.flags & flag > 0
    follow[1:] &= words.flags[:-1] & before > 0
    follow[words.numbers.offsets[:-1][words.numbers.lengths > 0]] = False
    return follow


def _stops_inside(words: Words) -> NDArray[np.int64]:
    """Return the number of marks that end a sentence before a word in lower case, as in a text out of order."""
    return totals(_follow(words, _SMALL, _STOP), words.numbers)


def _stops(text: str) -> bool:
    tail = text.rstrip()[-_TAIL:].rstrip(CLOSING)
    return tail[-1:] in _LAST


def marked_words(words: Words, code: str) -> NDArray[np.int64]:
    """Return the text, kind and place of words (3, m): capitalised inside a sentence (0), then negating (1).

    code: the language of the negating words; "" for none.
    """
    text, of = text_of(words.numbers), words.vocabulary.negations(code)
    names = _follow(words, CAPITAL, _BEFORE_INSIDE)
    no = np.zeros(len(text), dtype=bool) if of is None else of(words.numbers.ids) > 0
    at = np.concatenate([np.flatnonzero(names), np.flatnonzero(no)])
    return np.stack([text[at], np.arange(len(at)) >= names.sum(), at - words.numbers.offsets[text[at]]])
