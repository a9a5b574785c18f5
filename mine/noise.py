"""Pairs that are right, and the same spoilt by rule: two sets of rules, one to fit on and another to measure with.

A kind of noise is made the same in all languages, from the pair, other pairs of the stream and the table of languages.
The rules to measure with do the same damage in another way: elsewhere in the sentence, with other words or counts.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bitextmine.languages.codes import UNSPACED, UNSPACED_LETTER, join_sentences, language, script_code
from bitextmine.scoring.columns import evidence

Texts = tuple[str, str]
# Returns the spoilt pair, or None if this pair cannot be spoilt that way.
Rule = Callable[["Stream", int, random.Random], Texts | None]

_WORD = re.compile(r"[^\W\d_]+")
# Names to put in, of persons and places; the rules to fit on take names from other pairs.
_FOREIGN = _WORD.findall(
    "Okafor Lindgren Marchetti Vasquez Novak Tanaka Petrov Haddad Castellano Brandt Lisbon Nairobi Toronto "
    "Marseille Zagreb Osaka Bristol Valencia Dresden Helsinki Sorensen Delacroix Rossini Kowalski Tunis Chicago Geneva "
    "Krakow"
)
# English: a verb and the same negated, for insertion; the reverse removes the negation.
_FLIPS = (
    (r"\b(is|are|was|were|can|could|will|would|should|must|has|have|do|does|did)\b(?! not)", r"\1 not"),
    (r"\b(is|are|was|were|could|would|should|has|have|do|does|did)n't\b", r"\1"),
    (r"\b(is|are|was|were|can|could|will|would|should|must|has|have|do|does|did|may) not\b", r"\1"),
    (r"\bnot ", ""),
    (r"\bno (?=[a-z])", "a "),
    (r"\bnever ", "always "),
)
_OTHER_FLIPS = (
    (r"\b(may|might|shall|had|be|been|being)\b(?! not)", r"\1 not"),
    (r"\b(with)\b", "without"),
    (r"\bwithout\b", "with"),
    (r"\bcannot\b", "can"),
    (r"\bnever\b", "often"),
    (r"\b(is|are|was|were|can|will|has|have)\b(?! never)", r"\1 never"),
    (r"\b(always|often)\b", "never"),
    (r"\bnot ", ""),
)


class Stream:
    """Pairs of two languages, from which noise of any kind is made; `fit` chooses the set of rules.

    `other` are texts of other languages; `near` gives, for each pair, other pairs whose target is most similar to its
    source, best first.
    """

    def __init__(
        self,
        pairs: Sequence[Texts],
        langs: tuple[str, str],
        fit: bool,
        other: Sequence[str] = (),
        near: Sequence[Sequence[int]] = (),
    ) -> None:
        self.pairs, self.langs, self.fit, self.other, self.near = pairs, langs, fit, other, near
        self.lower = [{word for pair in pairs for word in _WORD.findall(pair[side])} for side in range(2)]
        find = self.names_of_both if fit else self.names_in
        inside = [[match[0] for pair in pairs for match in find(pair, side)] for side in range(2)]
        self.names = [names or list(_FOREIGN) for names in inside]

    def spoilt(self, kind: str, at: int, rng: random.Random) -> Texts | None:
        """Return pair number `at` spoilt in one way, None if that cannot be or changes nothing."""
        found = RULES[kind](self, at, rng)
        return None if found is None or found == self.pairs[at] or not all(map(str.strip, found)) else found

    def another(self, at: int, rng: random.Random) -> Texts:
        """Return another pair."""
        while True:
            found = self.pairs[rng.randrange(len(self.pairs))]
            if found[0] != self.pairs[at][0] and found[1] != self.pairs[at][1]:
                return found

    def names_in(self, pair: Texts, side: int) -> list[re.Match[str]]:
        """Return capitalised words inside a sentence that the language never writes in lower case here."""
        matches = re.finditer(r"(?<=[\w,] )[^\W\d_]\w{3,}", pair[side])
        return [m for m in matches if m[0][0].isupper() and m[0].lower() not in self.lower[side]]

    def names_of_both(self, pair: Texts, side: int) -> list[re.Match[str]]:
        """Return those of `names_in` that the other side has, as far as their spelling shows."""
        there, other = self.names_in(pair, side), pair[1 - side].lower()
        if there and script_code(pair[0]) == script_code(pair[1]):
            return [m for m in there if m[0][:4].lower() in other]
        if there and script_code(pair[1 - side]) == "Latn":
            return [m for m in there if evidence.unlike(m[0].lower(), other.split()) < 0.6]
        return there


def words_of(text: str) -> list[str]:
    """Return the words of a text with the blank behind them; in scripts without spaces, two letters at a time."""
    if UNSPACED_LETTER.search(text):
        return re.findall(rf"[{UNSPACED}]{{1,2}}\s*|[^\s{UNSPACED}]+\s*", text)
    return [f"{word} " for word in text.split()]


def joined(words: Sequence[str]) -> str:
    """Return a text of `words_of`."""
    return "".join(words).strip()


def _one_side(pair: Texts, side: int, text: str) -> Texts:
    return (text, pair[1]) if side == 0 else (pair[0], text)


def _long(pair: Texts, words: int = 6) -> tuple[list[str], list[str]] | None:
    """Return the words of both sides if both have enough."""
    src, tgt = map(words_of, pair)
    return (src, tgt) if min(len(src), len(tgt)) >= words else None


def half_untranslated(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace the beginning or end of one side by that of the other side."""
    if (both := _long(s.pairs[at])) is None:
        return None
    src, tgt = both
    share = rng.uniform(0.35, 0.65) if s.fit else 0.5
    a, b = round(share * len(src)), round(share * len(tgt))
    mixed = tgt[:b] + src[a:] if rng.random() < 0.5 else src[:a] + tgt[b:]
    return _one_side(s.pairs[at], rng.choice((1, 1, 0)) if s.fit else 1, joined(mixed))


def half_foreign(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace the end of the target by that of another sentence in the source language."""
    if (both := _long((s.another(at, rng)[0], s.pairs[at][1]))) is None:
        return None
    other, tgt = both
    share = rng.uniform(0.35, 0.65) if s.fit else 0.5
    return s.pairs[at][0], joined(tgt[: round(share * len(tgt))] + other[round(share * len(other)) :])


def looped(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Repeat a phrase of the target, as machine translation does."""
    tgt = words_of(s.pairs[at][1])
    if len(tgt) < 3:
        return None
    if s.fit:
        begin, size = rng.randrange(len(tgt)), rng.randint(1, 5)
        phrase = tgt[begin : begin + size]
        rest = tgt[begin + size :] if rng.random() < 0.5 else []
        return s.pairs[at][0], joined(tgt[:begin] + phrase * rng.randint(2, 9) + rest)
    if rng.random() < 0.3:
        phrase = tgt[: rng.randint(2, 4)]
        return s.pairs[at][0], joined(list(itertools.islice(itertools.cycle(phrase), max(8, len(tgt)))))
    size = min(len(tgt), rng.randint(2, 6))
    return s.pairs[at][0], joined(tgt + tgt[-size:] * rng.randint(1, 4))


def truncated(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Cut one side off."""
    if (both := _long(s.pairs[at])) is None:
        return None
    side = rng.randrange(2)
    words = both[side]
    text = joined(words[: round(len(words) * (rng.uniform(0.3, 0.8) if s.fit else rng.uniform(0.4, 0.6)))])
    end = s.pairs[at][side][-1]
    return _one_side(
        s.pairs[at], side, text + end if s.fit and rng.random() < 0.3 and not end.isalnum() else text
    )


def gapped(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Leave out words inside one side: a phrase, or single words."""
    if (both := _long(s.pairs[at])) is None:
        return None
    side = rng.randrange(2)
    words = both[side]
    if rng.random() < 0.5:
        share = rng.uniform(0.2, 0.5) if s.fit else 0.35
        gone = rng.sample(range(1, len(words)), max(2, round(share * len(words))))
        return _one_side(s.pairs[at], side, joined([w for i, w in enumerate(words) if i not in gone]))
    begin = round(len(words) * 0.3)
    size = begin + 1
    if s.fit:
        size = round(len(words) * rng.uniform(0.2, 0.6))
        begin = rng.randrange(len(words) - size)
    return _one_side(s.pairs[at], side, joined(words[:begin] + words[begin + size :]))


def added(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Add another sentence, or part of one, to one side."""
    side = rng.randrange(2)
    text, more = s.pairs[at][side], s.another(at, rng)[side]
    if s.fit:
        if rng.random() < 0.3:
            words = words_of(more)
            more = joined(words[: max(3, round(len(words) * rng.uniform(0.4, 0.9)))])
        both = (text, more) if rng.random() < 0.6 else (more, text)
        return _one_side(s.pairs[at], side, join_sentences(both))
    return _one_side(s.pairs[at], side, join_sentences((text, more[:1].upper() + more[1:])))


def numbers(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Change a number on one side."""
    pair = s.pairs[at]
    if not (re.search(r"\d", pair[0]) and re.search(r"\d", pair[1])):
        return None
    side = rng.randrange(2)
    found = rng.choice(list(re.finditer(r"\d+", pair[side])))
    old = new = found.group()
    decimals = pair[side][max(0, found.start() - 2) : found.start()]
    same = old + "0" if re.fullmatch(r"\d[.,]", decimals) else old  # 2.5 is 2.50
    while new in (old, same) or (len(new) > 1 and new[0] == "0"):
        if s.fit:
            new = "".join(rng.choice("0123456789") for _ in old)
        else:
            new = rng.choice(
                [str(int(old) + 1), str(int(old) * 10), old[:-1] + rng.choice("0123456789"), old[::-1]]
            )
    return _one_side(pair, side, pair[side][: found.start()] + new + pair[side][found.end() :])


def negation(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Insert or remove a negation, on the English side or with the words of the other language."""
    side = rng.randrange(2)
    code, text = s.langs[side], s.pairs[at][side]
    if code != "en" and s.fit and rng.random() < 0.7 and "en" in s.langs:
        side = 1 - side
        code, text = s.langs[side], s.pairs[at][side]
    if code == "en":
        for pattern, new in rng.sample(_FLIPS if s.fit else _OTHER_FLIPS, 6):
            if re.search(pattern, text):
                return _one_side(s.pairs[at], side, re.sub(pattern, new, text, count=1))
        return None
    row = language(code)
    words = [word for word in (row.negation if row else ()) if "'" not in word]
    if not words:
        return None
    # All of them: French "ne" is left out in speech, and "no ... nada" are one negation. A sign of Han or Hangul is
    # part of too many other words, so that two of them are not taken for one.
    glued = UNSPACED_LETTER.match(words[0])
    pattern = "|".join(words) if glued else rf"(?<!\S)(?:{'|'.join(words)}) "
    return _one_side(s.pairs[at], side, re.sub(pattern, "", text, count=1 if glued else 0))


def names(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace a name that both sides have on one of them."""
    pair = s.pairs[at]
    sides = [side for side in range(2) if s.names_in(pair, side)]
    if not sides:
        return None
    side = rng.choice(sides)
    if not (there := s.names_of_both(pair, side)):
        return None
    found = rng.choice(there)
    foreign = not s.fit and script_code(pair[side]) == "Latn"
    new = rng.choice(_FOREIGN if foreign else s.names[side])
    if new[:4].lower() in (pair[0] + pair[1]).lower():
        return None
    return _one_side(pair, side, pair[side][: found.start()] + new + pair[side][found.end() :])


def shuffled(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Put the words of one side in random order, with some of another pair in place of their own."""
    if (both := _long(s.pairs[at])) is None:
        return None
    side = rng.randrange(2)
    words = both[side]
    others = words_of(s.another(at, rng)[side])
    for place in rng.sample(range(len(words)), round(len(words) * (rng.uniform(0, 0.6) if s.fit else 0.3))):
        words[place] = rng.choice(others)
    return _one_side(s.pairs[at], side, joined(rng.sample(words, len(words))))


def misaligned(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take the target of another pair."""
    return s.pairs[at][0], s.another(at, rng)[1]


def neighbour(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take the target of another pair that is most similar to the source, as a wrong pair of mining is."""
    near = s.near[at] if s.near else ()
    return (s.pairs[at][0], s.pairs[rng.choice(near) if s.fit else near[0]][1]) if len(near) else None


def alike(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take the target of the pair, of 300, that shares most words with this one."""
    own = {word.lower() for text in s.pairs[at] for word in _WORD.findall(text)}
    others = [s.another(at, rng)[1] for _ in range(300)]
    best = max(others, key=lambda text: len(own & (w := set(_WORD.findall(text.lower())))) / (3 + len(w)))
    return s.pairs[at][0], best


def wrong_language(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take a sentence of a third language, mostly not a translation, as the target."""
    return (s.pairs[at][0], rng.choice(s.other)) if s.other else None


def copied(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Copy the source to the target, without one of its words or in other case."""
    words = words_of(s.pairs[at][0])
    if len(words) < 4:
        return None
    if rng.random() < 0.3:
        del words[rng.randrange(len(words))]
    text = joined(words)
    return s.pairs[at][0], text.lower() if rng.random() < 0.3 else text


def gibberish(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Words of the language at random, or the letters of the target shuffled."""
    tgt = words_of(s.pairs[at][1])
    if len(tgt) < 3:
        return None
    if rng.random() < 0.5:
        words = list(itertools.chain.from_iterable(words_of(s.another(at, rng)[1])[:2] for _ in tgt))
        return s.pairs[at][0], joined(rng.sample(words, min(len(words), len(tgt))))
    if s.fit:
        return s.pairs[at][0], joined(rng.sample(tgt, len(tgt)))
    return s.pairs[at][0], " ".join("".join(rng.sample(word, len(word))) for word in map(str.strip, tgt))


def tiny(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take a word, a letter or a few words of each of two pairs."""
    found = []
    for text in (s.pairs[at][0], s.another(at, rng)[1]):
        words = words_of(text)
        begin = rng.randrange(len(words))
        if s.fit:
            found.append(
                joined(words[begin : begin + rng.choice((1, 1, 2))])[: rng.choice((1, 2, 3, 99, 99, 99))]
            )
        else:
            found.append(rng.choice("abcdefghijklmnop") if rng.random() < 0.3 else words[begin].strip())
    return None if found[0].lower() == found[1].lower() else (found[0], found[1])


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        *(truncated, gapped, shuffled, added, looped, numbers, negation, names, neighbour, alike, misaligned),
        *(half_untranslated, half_foreign, wrong_language, copied, gibberish, tiny),
    )
}


class Row(NamedTuple):
    """A pair, right or spoilt: its texts, the kind of noise ("good" for none), and the number of its pair."""

    src: str
    tgt: str
    kind: str
    at: int


def noisy_rows(
    stream: Stream, good: float = 0.5, weights: Mapping[str, float] | None = None, seed: int = 1
) -> list[Row]:
    """Return rows in random order, of each pair one: a share of `good` ones, the others of all kinds of noise.

    `weights` are kinds that there are so many times as many of. A kind has fewer rows if there are not enough pairs
    that can be spoilt so.
    """
    rng = random.Random(seed)
    order = list(range(len(stream.pairs)))
    rng.shuffle(order)
    right = round(good * len(order))
    rows = [Row(*stream.pairs[at], "good", at) for at in order[:right]]
    rest = dict.fromkeys(order[right:])
    share = len(rest) / sum((weights or {}).get(kind, 1) for kind in RULES)
    for kind in RULES:
        wanted = round(share * (weights or {}).get(kind, 1))
        made = []
        for at in rest:
            if len(made) >= wanted:
                break
            if found := stream.spoilt(kind, at, rng):
                made.append(Row(*found, kind, at))
        rows += made
        for row in made:
            del rest[row.at]
    rng.shuffle(rows)
    return rows
