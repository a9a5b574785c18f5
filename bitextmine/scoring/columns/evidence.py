"""Signs in the two texts of a pair that one does not translate the other, whatever the encoder.

They are inputs of the networks of `quality`. Each is near 0 for a usual pair, in any script, so that languages that the
networks were not fitted on are not punished for their ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise

from bitextmine.languages.codes import language
from bitextmine.languages.scripts import UNSPACED, latin
from bitextmine.scoring.columns.numbers import number_counts

# Of each text.
NAMES = (
    *("source loops", "target loops", "both loop", "copied run", "copied words"),
    *("more sentences in the target", "fewer sentences in the target"),
    *("only the source ends", "only the target ends", "brackets", "names"),
    *("negated source", "negated target", "lone numbers", "clashing numbers"),
)

_CHARACTERS = 4_000  # of a longer text, the beginning
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_LONGEST_PERIOD = 12  # tokens that a loop repeats
_FEWEST = 4  # tokens of a text that can loop, and of a copied run
_END = re.compile(r"[.!?…।]+[\"'”’»)\]]*(?=\s|$)|[。！？]")
_LAST = re.compile(r"[.!?…।。！？:;：；][\"'”’»)\]」]*$")
_NAME = re.compile(r"(?<=[\w,;()\-–—] )[\"'“„«(]*([^\W\d_][\w’'-]{2,})")
_START = 4  # letters of a name that must agree
_SPLITS = "\u0130"  # the one letter whose lower case is not a letter: a dot follows


def tokens_of(text: str) -> list[str]:
    """Return the words of a text in lower case, or its characters if its script has no spaces between words."""
    return _tokens(text, _words_of(text))


def _words_of(text: str) -> list[str]:
    return _TOKEN.findall(text[:_CHARACTERS].lower())


def _tokens(text: str, words: list[str]) -> list[str]:
    return words if text.isascii() or _UNSPACED.search(text) is None else list("".join(words))


def looped(tokens: list[str]) -> float:
    """Return the share of a text that repeats what came directly before, from 0 to 1: machine translation gone round.

    A phrase of 2 to 12 words counts if it comes twice in a row, a word if it comes three times.
    """
    count = len(tokens)
    again = count - len(set(tokens))
    # Any loop has two tokens or more that were there before, one after the other, as hardly any right text has.
    if count < _FEWEST or again < 2 or len(set(pairwise(tokens))) == count - 1:
        return 0.0
    most = 0
    for period in range(1, min(_LONGEST_PERIOD, count // 2, again) + 1):
        run = 0
        for one, other in zip(tokens, tokens[period:], strict=False):
            run = run + 1 if one == other else 0
            if run > most and run >= period and (period > 1 or run > 1):
                most = run
    return most / count


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


def _fours(tokens: list[str]) -> set[tuple[str, ...]]:
    return set(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))


@lru_cache(maxsize=1 << 16)
def _spelled(word: str) -> str:
    return latin(word)[:_START]


def names_apart(src: str, tgt: str) -> float:
    """Return the number of names on each side that the other lacks, at most 3: a name replaced by another.

    A name is a capitalised word inside a sentence; it is there if a word of the other side begins alike, spelled in
    Latin letters.
    """
    return _names_apart((src, tgt), (_words_of(src), _words_of(tgt)))


def _names_apart(texts: tuple[str, str], words: tuple[list[str], list[str]]) -> float:
    both = []
    for text in texts:
        names = {word for word in _NAME.findall(text[:_CHARACTERS]) if word[0].isupper()}
        if not names:
            return 0.0
        both.append(names)
    fewest = 3
    for names, text, lowered in zip(both, texts[::-1], words[::-1], strict=True):
        if _SPLITS in text:
            lowered = _TOKEN.findall(text[:_CHARACTERS])
        missing = names if _SPLITS in "".join(names) else _absent(names, lowered)
        if missing:  # spelling is slow, and most names are there letter by letter
            there = set(map(_spelled, lowered))
            fewest = min(fewest, sum(_spelled(name) not in there for name in missing))
        else:
            return 0.0
    return float(fewest)


def _absent(names: set[str], words: list[str]) -> list[str]:
    there = set(words)
    return [name for name in names if name.lower() not in there]


@cache
def _negation(code: str) -> re.Pattern[str] | None:
    row = language(code)
    if row is None or not row.negation:
        return None
    plain = [word for word in row.negation if word.isalpha()]
    whole = [rf"\b(?:{'|'.join(plain)})\b"] if plain else []  # one branch, tried once at each place
    others = [
        rf"\b{re.escape(word)}"
        if word.endswith("'")
        else rf"{re.escape(word)}\b"
        if "'" in word
        else rf"\b{word}\b"
        for word in row.negation
        if not word.isalpha()
    ]
    return re.compile("|".join(whole + others))


def negations(text: str, code: str) -> int:
    """Return the number of negating words of a text in a language, 0 for a language whose words are not known."""
    pattern = _negation(code) if code else None
    return 0 if pattern is None else len(pattern.findall(_plain(text)))


def negated(text: str, code: str) -> bool:
    """Return True for a text with a negating word of a language, False if its words are not known."""
    pattern = _negation(code) if code else None
    return pattern is not None and pattern.search(_plain(text)) is not None


def _plain(text: str) -> str:
    return text[:_CHARACTERS].lower().replace("’", "'")


def evidence(src: str, tgt: str, src_lang: str = "", tgt_lang: str = "") -> Iterable[float]:
    """Return the values of NAMES for a pair; negations count only if both languages are stated."""
    words = _words_of(src), _words_of(tgt)
    a, b = _tokens(src, words[0]), _tokens(tgt, words[1])
    loops = looped(a), looped(b)
    run = copied_run(a, b)
    shorter = max(1, min(len(a), len(b)))
    ends = math.log(max(1, len(_END.findall(tgt))) / max(1, len(_END.findall(src))))
    stops = [_LAST.search(text.rstrip()[-8:]) is not None for text in (src, tgt)]
    brackets = sum(abs(src.count(mark) - tgt.count(mark)) for mark in "()[]")
    _, lone, clash = number_counts(src, tgt)
    no = [negated(src, src_lang), negated(tgt, tgt_lang)] if src_lang and tgt_lang else [False, False]
    return (
        max(0.0, loops[0] - loops[1]),
        max(0.0, loops[1] - loops[0]),
        min(loops),
        run / shorter,
        math.log1p(run),
        max(0.0, ends),
        max(0.0, -ends),
        float(stops[0] and not stops[1]),
        float(stops[1] and not stops[0]),
        float(min(brackets, 3)),
        _names_apart((src, tgt), words),
        float(no[0] and not no[1]),
        float(no[1] and not no[0]),
        float(min(lone, 3)),
        float(min(clash, 3)),
    )


def name_places(words: list[str]) -> list[int]:
    """Return the places of capitalised words inside a sentence."""
    return [
        at
        for at in range(1, len(words))
        if not words[at].islower()  # most words, told at once
        and len(word := words[at].lstrip("\"'“„«([¿¡")) > 2
        and word[0].isupper()
        and words[at - 1][-1] not in ".!?…:"
    ]


def negation_places(text: str, words: list[str], code: str) -> list[int]:
    """Return the places of the negating words of a language among the words of a text; none if they are not known."""
    if len(text) > _CHARACTERS:
        return [at for at, word in enumerate(words) if negated(word, code)]
    pattern = _negation(code) if code else None
    if pattern is None or pattern.search(plain := _plain(text)) is None:
        return []
    return [at for at, word in enumerate(plain.split()) if pattern.search(word)]
