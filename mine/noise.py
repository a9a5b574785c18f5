"""Pairs that are right, and the same spoilt by rule: two sets of rules, one to fit on and another to measure with.

A kind of noise is made the same in all languages, from the pair, other pairs of the stream and the table of languages.
The rules to measure with do the same damage in another way: elsewhere in the sentence, with other words or counts.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence

from bitextmine.languages.codes import language

Texts = tuple[str, str]
# Returns the spoilt pair, or None if this pair cannot be spoilt that way.
Rule = Callable[["Stream", int, random.Random], Texts | None]

_WORD = re.compile(r"[^\W\d_]+")
# Names to put in, of persons and places; the rules to fit on take names from other pairs.
_FOREIGN = (
    *(
        "Okafor",
        "Lindgren",
        "Marchetti",
        "Vasquez",
        "Novak",
        "Tanaka",
        "Petrov",
        "Haddad",
        "Castellano",
        "Brandt",
    ),
    *(
        "Lisbon",
        "Nairobi",
        "Toronto",
        "Marseille",
        "Zagreb",
        "Osaka",
        "Bristol",
        "Valencia",
        "Dresden",
        "Helsinki",
    ),
    *("Sorensen", "Delacroix", "Rossini", "Kowalski", "Tunis", "Chicago", "Geneva", "Krakow"),
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
    """Pairs of two languages, from which noise of any kind is made; `fit` chooses the set of rules."""

    def __init__(
        self, pairs: Sequence[Texts], langs: tuple[str, str], fit: bool, other: Sequence[str] = ()
    ) -> None:
        self.pairs, self.langs, self.fit, self.other = pairs, langs, fit, other
        inside = (re.findall(r"(?<=[\w,] )[^\W\d_]\w{3,}", src + " | " + tgt) for src, tgt in pairs)
        self.names = [word for words in inside for word in words if word[0].isupper()] or list(_FOREIGN)

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


def _one_side(pair: Texts, side: int, text: str) -> Texts:
    return (text, pair[1]) if side == 0 else (pair[0], text)


def half_untranslated(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace the beginning or end of one side by that of the other side."""
    src, tgt = (text.split() for text in s.pairs[at])
    if min(len(src), len(tgt)) < 6:
        return None
    share = rng.uniform(0.35, 0.65) if s.fit else 0.5
    a, b = round(share * len(src)), round(share * len(tgt))
    mixed = tgt[:b] + src[a:] if rng.random() < 0.5 else src[:a] + tgt[b:]
    return _one_side(s.pairs[at], rng.choice((1, 1, 0)) if s.fit else 1, " ".join(mixed))


def half_foreign(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace the end of the target by that of another sentence in the source language."""
    tgt, other = s.pairs[at][1].split(), s.another(at, rng)[0].split()
    if min(len(tgt), len(other)) < 6:
        return None
    share = rng.uniform(0.35, 0.65) if s.fit else 0.5
    return s.pairs[at][0], " ".join(tgt[: round(share * len(tgt))] + other[round(share * len(other)) :])


def looped(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Repeat a phrase of the target, as machine translation does."""
    tgt = s.pairs[at][1].split()
    if len(tgt) < 3:
        return None
    if s.fit:
        begin, size = rng.randrange(len(tgt)), rng.randint(1, 5)
        phrase = tgt[begin : begin + size]
        rest = tgt[begin + size :] if rng.random() < 0.5 else []
        return s.pairs[at][0], " ".join(tgt[:begin] + phrase * rng.randint(2, 9) + rest)
    if rng.random() < 0.3:
        phrase = tgt[: rng.randint(2, 4)]
        return s.pairs[at][0], " ".join(itertools.islice(itertools.cycle(phrase), max(8, len(tgt))))
    size = min(len(tgt), rng.randint(2, 6))
    return s.pairs[at][0], " ".join(tgt + tgt[-size:] * rng.randint(1, 4))


def truncated(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Cut one side off."""
    side = rng.randrange(2)
    words = s.pairs[at][side].split()
    if min(len(words), len(s.pairs[at][1 - side].split())) < 6:
        return None
    text = " ".join(words[: round(len(words) * (rng.uniform(0.3, 0.8) if s.fit else rng.uniform(0.4, 0.6)))])
    end = s.pairs[at][side][-1]
    return _one_side(
        s.pairs[at], side, text + end if s.fit and rng.random() < 0.3 and not end.isalnum() else text
    )


def gapped(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Leave out words inside one side."""
    side = rng.randrange(2)
    words = s.pairs[at][side].split()
    if min(len(words), len(s.pairs[at][1 - side].split())) < 6:
        return None
    begin = size = round(len(words) * 0.3)
    if s.fit:
        size = round(len(words) * rng.uniform(0.2, 0.6))
        begin = rng.randrange(len(words) - size)
    else:
        size += 1
    return _one_side(s.pairs[at], side, " ".join(words[:begin] + words[begin + size :]))


def added(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Add another sentence, or part of one, to one side."""
    side = rng.randrange(2)
    text, more = s.pairs[at][side], s.another(at, rng)[side]
    if s.fit:
        if rng.random() < 0.3:
            words = more.split()
            more = " ".join(words[: max(3, round(len(words) * rng.uniform(0.4, 0.9)))])
        return _one_side(s.pairs[at], side, f"{text} {more}" if rng.random() < 0.6 else f"{more} {text}")
    return _one_side(s.pairs[at], side, f"{text} {more[:1].upper()}{more[1:]}")


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
    # All of them: French "ne" is left out in speech, and "no ... nada" are one negation.
    found = re.sub(rf"\b(?:{'|'.join(words)})\b ", "", text) if words else text
    return None if found == text else _one_side(s.pairs[at], side, found)


def names(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Replace a name that both sides have on one of them."""
    pair = s.pairs[at]
    side = rng.randrange(2)
    there = [m for m in re.finditer(r"(?<=[\w,] )[^\W\d_]\w{3,}", pair[side]) if m.group()[0].isupper()]
    both = [m for m in there if m.group()[:4].lower() in pair[1 - side].lower()]
    if not both:
        return None
    found = rng.choice(both)
    new = rng.choice(s.names) if s.fit else rng.choice(_FOREIGN)
    if new[:4].lower() in (pair[0] + pair[1]).lower():
        return None
    return _one_side(pair, side, pair[side][: found.start()] + new + pair[side][found.end() :])


def shuffled(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take the target of another pair."""
    return s.pairs[at][0], s.another(at, rng)[1]


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
    words = s.pairs[at][0].split()
    if len(words) < 4:
        return None
    if rng.random() < 0.3:
        del words[rng.randrange(len(words))]
    text = " ".join(words)
    return s.pairs[at][0], text.lower() if rng.random() < 0.3 else text


def gibberish(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Words of the language at random, or the letters of the target shuffled."""
    tgt = s.pairs[at][1].split()
    if len(tgt) < 3:
        return None
    if rng.random() < 0.5:
        words = list(itertools.chain.from_iterable(s.another(at, rng)[1].split()[:2] for _ in tgt))
        return s.pairs[at][0], " ".join(rng.sample(words, min(len(words), len(tgt))))
    if s.fit:
        return s.pairs[at][0], " ".join(rng.sample(tgt, len(tgt)))
    return s.pairs[at][0], " ".join("".join(rng.sample(word, len(word))) for word in tgt)


def tiny(s: Stream, at: int, rng: random.Random) -> Texts | None:
    """Take a word, a letter or a few words of each of two pairs."""
    found = []
    for text in (s.pairs[at][0], s.another(at, rng)[1]):
        words = text.split()
        begin = rng.randrange(len(words))
        if s.fit:
            found.append(
                " ".join(words[begin : begin + rng.choice((1, 1, 2))])[: rng.choice((1, 2, 3, 99, 99, 99))]
            )
        else:
            found.append(rng.choice("abcdefghijklmnop") if rng.random() < 0.3 else words[begin])
    return None if found[0].lower() == found[1].lower() else (found[0], found[1])


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        *(half_untranslated, half_foreign, looped, truncated, gapped, added, numbers, negation, names),
        *(shuffled, alike, wrong_language, copied, gibberish, tiny),
    )
}


def noisy_rows(
    stream: Stream, clean: int, each: int, weights: Mapping[str, float] | None = None, seed: int = 1
) -> list[tuple[str, str, str]]:
    """Return rows in random order: (source, target, kind), `clean` of kind "good" and `each` of every kind of noise.

    `weights` are kinds of which there are so many times as many.

    Every row is made of a pair of its own; a kind has fewer rows if there are not enough pairs that can be spoilt so.
    """
    rng = random.Random(seed)
    order = list(range(len(stream.pairs)))
    rng.shuffle(order)
    rows: list[tuple[str, str, str]] = []
    used: set[int] = set()
    for kind in RULES:
        made = 0
        for at in order:
            if made >= each * (weights or {}).get(kind, 1):
                break
            if at in used or (found := stream.spoilt(kind, at, rng)) is None:
                continue
            used.add(at)
            rows.append((*found, kind))
            made += 1
    rows += [(*stream.pairs[at], "good") for at in [at for at in order if at not in used][:clean]]
    rng.shuffle(rows)
    return rows
