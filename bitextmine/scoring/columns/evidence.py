"""Signs in the two texts of a pair that one does not translate the other, whatever the encoder.

They are inputs of the networks of `quality`. Each is near 0 for a usual pair, in any script, so that languages that the
networks were not fitted on are not punished for their ways.
"""

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import (
    CLOSING,
    MARK,
    STOPS,
    UNSPACED,
    UNSPACED_LETTER,
    WIDE_STOPS,
    language,
    script,
)
from bitextmine.languages.romanize import consonants, latin

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

_CHARACTERS = 4_000  # of a longer text, the beginning
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MARK = re.compile(MARK)
_MARKED_TOKEN = re.compile(rf"(?:[^\W_]|{MARK})+(?:['’-](?:[^\W_]|{MARK})+)*")
_LONGEST_PERIOD = 12  # tokens that a loop repeats
_FEWEST = 4  # tokens of a text that can loop, and of a copied run
# Each begins with a set of characters, which the search finds fast. A run of marks is one end. The semicolon is the
# Greek question mark; a colon is typed for the Armenian full stop.
_END = re.compile(
    rf"[{STOPS};:](?<![{STOPS}][{STOPS}])(?:(?<![;:])|(?<=[\u0370-\u03ff\u1f00-\u1fff];)|(?<=[\u0531-\u0587]:))"
    rf"[{STOPS}]*+(?:(?<=[{WIDE_STOPS}])|[{re.escape(CLOSING)}]*+(?=\s|$))"
)
_PLAIN_END = re.compile(r"[.!?](?<![.!?][.!?])[.!?]*+[\"')\]}]*+(?=\s|$)")  # in ASCII
_INSIDE = re.compile(r"[.!?…։](?<=[^\W\d_]{2}.) +([^\W\d_])")  # (?<= ): not an initial
_LAST, _BEFORE_START = frozenset(STOPS + ":;：；"), frozenset(STOPS + ":")
_BRACKETS = "(（", ")）", "[［", "]］"
_BRACKET = re.compile(r"[()（）［］\[\]]")
_TAIL = 8  # characters that hold the last mark, with what closes behind it
_UNMARKED = re.compile("[\u0e00-\u0eff\u1780-\u17ff]")  # Thai, Lao, Khmer: no mark ends a sentence
# The search goes from space to space, and leaves out most words by their first letter.
_NAME = re.compile(r" (?![a-z])(?<=[\w,;()\-–—] )[\"'“„«(]*([^\W\d_][\w’'-]{2,})")
_START = 4  # letters of a name that must agree
_SYLLABIC = re.compile("[\u3041-\u30ff\uac00-\ud7a3]")
_SPELLING = re.compile(r"[\u30a1-\u30fa\u30fc-\u30ff]{2,}|[A-Za-z][\w'’-]*|[\uac00-\ud7a3]+")
_OPENING = "\"'“„«»‘‚([{¿¡"
_LOWER = re.compile("[a-zß-öø-ÿ\u0100-\u017fα-ώа-\u052fա-և\u1ea0-\u1ef9]+")
_SOUNDS_ALIKE = 0.85  # the most that consonants alone make two names of different scripts alike
_GLUED = re.compile(f"[{UNSPACED}\uac00-\ud7a3]")  # where negation is a part of a word; \uac00: Hangul
_SPLITS = "\u0130"  # the one letter whose lower case is not a letter: a dot follows
_MOST = 3  # of any count that is a sign


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    pattern = _TOKEN if text.isascii() or _MARK.search(text) is None else _MARKED_TOKEN
    low = text[:_CHARACTERS].lower()
    # Most words stand between blanks as they are.
    return [word for part in low.split() for word in ((part,) if part.isalnum() else pattern.findall(part))]


def tokens_of(text: str, words: list[str]) -> list[str]:
    """Return the words of a text, or its characters if its script has no spaces between words."""
    return words if text.isascii() or UNSPACED_LETTER.search(text) is None else list("".join(words))


def looped(tokens: list[str]) -> float:
    """Return the share of a text that repeats what came directly before, from 0 to 1."""
    return repeated(tokens) / max(1, len(tokens))


def repeated(tokens: list[str]) -> int:
    """Return the number of tokens in a row that repeat what came directly before.

    A phrase of 2 to 12 words counts if it comes twice in a row, a word if it comes three times, or twice at the end.
    """
    count = len(tokens)
    again = count - len(set(tokens))
    if count < _FEWEST or not again:
        return 0
    most = int(tokens[-1] == tokens[-2])
    # A longer loop has two tokens or more that were there before, one after the other, as hardly any right text has.
    if again < 2 or len(set(pairwise(tokens))) == count - 1:
        return most
    places: dict[tuple[str, str], list[int]] = {}
    periods: set[int] = set()
    for at, both in enumerate(pairwise(tokens)):
        if both in places:
            periods.update(at - place for place in places[both][-_LONGEST_PERIOD:])
            places[both].append(at)
        else:
            places[both] = [at]
    for period in sorted(periods):
        if period > min(_LONGEST_PERIOD, count // 2):
            break
        run = 0
        for token, later in zip(tokens, tokens[period:], strict=False):
            run = run + 1 if token == later else 0
            if run > most and run >= period and (period > 1 or run > 1):
                most = run
    return most


def copied_run(a: list[str], b: list[str]) -> int:
    """Return the number of consecutive tokens that both texts have; 0 for fewer than four, or three different ones."""
    if len(set(a).intersection(b)) < _FEWEST - 1 or _fours(a).isdisjoint(_fours(b)):
        return 0
    places: dict[str, list[int]] = {}
    for at, token in enumerate(b):
        places.setdefault(token, []).append(at)
    longest = 0
    ending: dict[int, int] = {}
    for token in a:
        ending = {at: ending.get(at - 1, 0) + 1 for at in places.get(token, ())}
        longest = max(longest, max(ending.values(), default=0))
    return longest if longest >= _FEWEST else 0


def copied_pairs(src: str, tgt: str, a: list[str], b: list[str]) -> int:
    """Return the number of pairs of consecutive words in lower case that both texts have: a part not translated."""
    if len(set(a).intersection(b)) < 2:
        return 0
    both = set(pairwise(a)).intersection(pairwise(b))
    # Names are rightly copied.
    return sum(word.isalpha() and (pair := f"{word} {after}") in src and pair in tgt for word, after in both)


def _fours(tokens: list[str]) -> set[tuple[str, ...]]:
    return set(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))


@lru_cache(maxsize=1 << 16)
def _spelled(word: str) -> str:
    return latin(word)[:_START]


def names_apart(src: str, tgt: str, src_words: list[str], tgt_words: list[str]) -> int:
    """Return the number of names on each side that the other lacks, at most 3: a name replaced by another.

    A name is a capitalised word inside a sentence; it is there if a word of the other side begins alike, spelled in
    Latin letters.
    """
    both = []
    for text in (src, tgt):
        if text[1:].islower():  # fast
            return 0
        names = {word for word in _NAME.findall(text[:_CHARACTERS]) if word[0].isupper()}
        if not names:
            return 0
        both.append(names)
    fewest = _MOST
    for names, text, lowered in ((both[0], tgt, tgt_words), (both[1], src, src_words)):
        if _SPLITS in text:
            lowered = _TOKEN.findall(text[:_CHARACTERS])
        there = set(lowered)
        missing = [name for name in names if name.lower() not in there or _SPLITS in name]
        if not missing:
            return 0
        # Spelling is slow, and most names are there letter by letter.
        spelled = set(map(_spelled, lowered))
        fewest = min(fewest, sum(_spelled(name) not in spelled for name in missing))
    return fewest


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


def spelled_words(text: str) -> list[str]:
    """Return the words of a text that may spell a name, and the parts of those with hyphens.

    In scripts without spaces these are runs of katakana, which spell foreign names, and words of other scripts.
    """
    words = text.split() if UNSPACED_LETTER.search(text) is None else _SPELLING.findall(text)
    return (
        words + [part for word in words if "-" in word for part in word.split("-")] if "-" in text else words
    )


def spellings(text: str) -> list[str]:
    """Return the words of a text that may spell a name of another: capitalised ones, all if the script has no case."""
    words = spelled_words(text)
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


def negations(texts: Sequence[str], code: str) -> NDArray[np.int64] | None:
    """Return the number of negating words of each text in a language, (n,); None if its words are not known."""
    pattern = _negation(code) if code else None
    if pattern is None:
        return None
    return np.fromiter((len(pattern.findall(_plain(text))) for text in texts), np.int64, len(texts))


def _plain(text: str) -> str:
    return text[:_CHARACTERS].lower().replace("’", "'")


def _signs(src: str, tgt: str) -> tuple[float, ...]:
    """Return counts of one pair, in the order that `evidence` takes them apart."""
    src_words, tgt_words = words_of(src), words_of(tgt)
    a, b = tokens_of(src, src_words), tokens_of(tgt, tgt_words)
    common = len(set(a).intersection(b))
    run = copied_run(a, b) if common >= _FEWEST - 1 else 0
    words = common if a is src_words and b is tgt_words else _MOST
    return (
        repeated(a),
        repeated(b),
        run,
        # NumPy's logarithms depend on the processor in their last bit.
        math.log1p(run),
        copied_pairs(src, tgt, src_words, tgt_words) if words > 1 else 0,
        *_punctuation(src, tgt),
        _brackets(src, tgt) if _BRACKET.search(src + tgt) else 0,
        names_apart(src, tgt, src_words, tgt_words),
        _stops_inside(src) - _stops_inside(tgt),
        src[:1].islower() - tgt[:1].islower() if _is_cased(src) and _is_cased(tgt) else 0,
        max(1, min(len(a), len(b))),
        max(1, len(a)),
        max(1, len(b)),
    )


def evidence(
    src: Sequence[str], tgt: Sequence[str], no: NDArray[np.bool_], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the values (n, NAMES) of the pairs of sources and targets (n,).

    no: (2, n) flags of the negated sources and targets, all False unless both languages are stated; numbers: (n, 3)
    counts of `number_counts`.
    """
    # Row by row: lists of the words of all rows would keep the garbage collector busy.
    rows = np.array(list(map(_signs, src, tgt)), dtype=np.float64).reshape(len(src), 15)
    first, second, run, log_run, pairs, ends, a, b, brackets, names, inside, small, shorter, x, y = rows.T
    longer = second - first
    loops = first / x, second / y
    log = list(map(math.log1p, np.abs(longer).tolist()))
    columns = (
        np.maximum(0, loops[0] - loops[1]),
        np.maximum(0, loops[1] - loops[0]),
        np.minimum(*loops),
        np.where(longer < 0, log, 0),
        np.where(longer > 0, log, 0),
        run / shorter,
        log_run,
        np.minimum(pairs, _MOST),
        np.maximum(0, ends),
        np.maximum(0, -ends),
        np.maximum(0, a - b),
        np.maximum(0, b - a),
        np.minimum(brackets, _MOST),
        names,
        np.clip(inside, 0, _MOST),
        np.clip(-inside, 0, _MOST),
        np.maximum(0, small),
        np.maximum(0, -small),
        no[0] & ~no[1],
        no[1] & ~no[0],
        *np.minimum(numbers[:, 1:], _MOST).T,
    )
    return np.stack(columns, axis=1)


def _punctuation(src: str, tgt: str) -> tuple[float, bool, bool]:
    """Return the logarithm of the ratio of sentence ends, and if each side ends a sentence."""
    if any(not text.isascii() and _UNMARKED.search(text[-_TAIL:]) for text in (src, tgt)):
        return 0.0, False, False
    return math.log(_ends(tgt) / _ends(src)), _stops(src), _stops(tgt)


def _ends(text: str) -> int:
    """Return the number of sentence ends, at least 1."""
    return max(1, len((_PLAIN_END if text.isascii() else _END).findall(text)))


def _brackets(src: str, tgt: str) -> int:
    """Return the number of brackets that one side has more than the other; wide ones are the same."""
    return sum(abs(sum(map(src.count, kind)) - sum(map(tgt.count, kind))) for kind in _BRACKETS)


def _stops_inside(text: str) -> int:
    """Return the number of marks that end a sentence before a word in lower case, as in a text out of order."""
    return sum(map(str.islower, _INSIDE.findall(text[:_CHARACTERS])))


def _is_cased(text: str) -> bool:
    return text[:1].islower() or text[:1].isupper()


def _stops(text: str) -> bool:
    tail = text.rstrip()[-_TAIL:].rstrip(CLOSING)
    return tail[-1:] in _LAST


def name_places(words: list[str]) -> list[int]:
    """Return the places of capitalised words inside a sentence."""
    return [
        at
        for at in range(1, len(words))
        if not words[at].islower()  # most words, told at once
        and len(word := words[at].lstrip(_OPENING)) > 2
        and word[0].isupper()
        and words[at - 1][-1] not in _BEFORE_START
    ]


def negation_places(text: str, words: list[str], code: str) -> list[int]:
    """Return the places of the negating words of a language among the words of a text; none if they are not known."""
    if not code or _negation(code) is None:
        return []
    plain = map(_plain, words) if len(text) > _CHARACTERS else _plain(text).split()
    return [at for at, word in enumerate(plain) if _negates(word, code)]


@lru_cache(maxsize=1 << 16)
def _negates(word: str, code: str) -> bool:
    pattern = _negation(code)
    return pattern is not None and pattern.search(word) is not None
