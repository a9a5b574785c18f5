"""Fixed points of an alignment: lines that both documents share by a key, as a verse number, a URL or `key=`.

The longest chain of keys that occur once on both sides is fixed; between two of its points keys that occur once there
are looked for again, as patience diff does, and where both sides have as many paragraphs, or as many headings of a
level, these correspond in order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Space = tuple[Pair, Pair]  # the first line of each side, and the line after its last one

_DEEPEST = 8  # rounds, each between the points of the one before
_AGREE = 0.2  # of the points lie on the path that was found without them, or they are no guide
_LONGEST = 80  # characters of a line that are looked at for a number or a key
_URL = re.compile(r"https?://[^\s<>\"]++|\b[\w.+-]{1,64}+@[\w-]++\.[\w.-]++")
# "1:1 In the ...", "(2.3) ...", "§ 5", "12."; "Chapter 3", "Kapitel III:", "第 3 章".
_NUMBER = re.compile(r"[\W_]{0,3}(\d{1,4}(?:[.:]\d{1,4}){0,5}(?=[.:)\]\s]|\Z)(?![.:]\d)|[a-z](?=[.)]\s))")
_HEADING = re.compile(
    r"[\W_]{0,3}[^\W\d_]{1,20}\.?\s?(\d{1,4}|[IVXLC]{1,7})\s?[章回節节編篇部巻卷장]?(?:[.:–—-]|\s*\Z)"
)
_KEY = re.compile(r"\s*[\"']?((?!https?:)[A-Za-z_][\w.\-/\[\]]{0,60})[\"']?\s?(?:=|:(?!//)|\t)")
_LEVEL = re.compile(r"(#{1,6}|={2,6}) ")


class _Marks(NamedTuple):
    """What a document has to be aligned by.

    Attributes:
        keys: of each line, those that may be unique.
        kinds: of each line, the kinds of place that it begins: "" a paragraph, "#" and so on a heading.
    """

    keys: list[list[Hashable]]
    kinds: list[list[str]]

    @classmethod
    def of(cls, lines: Sequence[str], paragraphs: Sequence[bool]) -> _Marks:
        kinds = [
            [*([""] if begins else []), *([level[1]] if (level := _LEVEL.match(line)) else [])]
            for line, begins in zip(lines, paragraphs, strict=True)
        ]
        return cls([_keys(line) for line in lines], kinds)


def _keys(line: str) -> list[Hashable]:
    text = line.strip()
    keys: list[Hashable] = [("url", url.rstrip(".,;:!?)")) for url in _URL.findall(text)]
    if any(map(str.isalnum, text)):
        keys.append(("line", text.casefold()))
    for name, pattern in (("number", _NUMBER), ("heading", _HEADING), ("key", _KEY)):
        if match := pattern.match(text[:_LONGEST]):
            keys.append((name, match[1]))
    return keys


Text = tuple[Sequence[str], Sequence[bool]]  # lines, and True for the first one of each paragraph


def fixed_points(source: Text, target: Text) -> NDArray[np.int64]:
    """Return the fixed points (k, 3) of two documents: a line of each, both rising, and 1 if these lines correspond.

    Otherwise what is before them corresponds, and what begins with them: paragraphs.
    """
    src, tgt = _Marks.of(*source), _Marks.of(*target)
    whole = (0, len(src.keys)), (0, len(tgt.keys))
    keyed = sorted(_keyed(src, tgt, whole, _DEEPEST))
    places = [place for space in _between(whole, keyed) for place in _in_order(src.kinds, tgt.kinds, space)]
    points = longest_chain([*keyed, *places])
    lines = {*keyed}
    return np.array([(*point, point in lines) for point in points], dtype=np.int64).reshape(-1, 3)


def _keyed(src: _Marks, tgt: _Marks, space: Space, rounds: int) -> Iterator[Pair]:
    """Yield the pairs of lines of a chain of unique keys, and of the chains between its points."""
    chain = longest_chain(_unique(src.keys, tgt.keys, space))
    yield from chain
    if chain and rounds > 1:
        for part in _between(space, chain):
            yield from _keyed(src, tgt, part, rounds - 1)


def trusted(points: NDArray[np.int64], x: NDArray[np.int64], y: NDArray[np.int64]) -> bool:
    """Return True if a path without fixed points, of nodes (x, y), leads through enough of their lines.

    Numbers that are shifted, as in editions that count otherwise, lie beside it everywhere.
    """
    nodes = {*zip(x.tolist(), y.tolist(), strict=True)}
    on_path = [(i, j) in nodes for i, j, is_line in points.tolist() if is_line]
    return sum(on_path) >= _AGREE * len(on_path)


def through(centre: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the centre of a band that leads through fixed points: between two of them it stays in their rectangle."""
    m = int(centre[-1])
    n = len(centre) - 1 - m
    x, y = np.concatenate([[(0, 0)], points[:, :2], [(n, m)]]).T
    place = np.arange(n + m + 1)
    part = np.clip(np.searchsorted(x + y, place, side="right") - 1, 0, len(x) - 2)
    low = np.maximum(y[part], place - x[part + 1])
    return np.clip(centre, low, np.minimum(y[part + 1], place - x[part]))


def _unique(src: Sequence[Iterable[Hashable]], tgt: Sequence[Iterable[Hashable]], space: Space) -> list[Pair]:
    """Return the pairs of lines with a key that occurs once on each side of a space."""
    sides = []
    for keys, (first, last) in zip((src, tgt), space, strict=True):
        counts = Counter(key for i in range(first, last) for key in keys[i])
        sides.append({key: i for i in range(first, last) for key in keys[i] if counts[key] == 1})
    return list({(i, sides[1][key]) for key, i in sides[0].items() if key in sides[1]})


def _in_order(src: Sequence[Iterable[str]], tgt: Sequence[Iterable[str]], space: Space) -> list[Pair]:
    """Return the pairs of places of a kind of which both sides of a space have as many."""
    sides: list[dict[str, list[int]]] = []
    for kinds, (first, last) in zip((src, tgt), space, strict=True):
        places: dict[str, list[int]] = {}
        for i in range(first, last):
            for kind in kinds[i]:
                places.setdefault(kind, []).append(i)
        sides.append(places)
    return [
        pair
        for kind, places in sides[0].items()
        if len(places) == len(sides[1].get(kind, ()))
        for pair in zip(places, sides[1][kind], strict=True)
    ]


def _between(space: Space, chain: Sequence[Pair]) -> list[Space]:
    """Return the spaces before, between and after the points of a chain, without these."""
    begins = [(space[0][0], space[1][0]), *((i + 1, j + 1) for i, j in chain)]
    ends = [*chain, (space[0][1], space[1][1])]
    return [((a, b), (c, d)) for (a, c), (b, d) in zip(begins, ends, strict=True) if a < b and c < d]


def longest_chain(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the longest chain of pairs in which both numbers rise."""
    # Of pairs with the same first number at most one fits: by falling second ones, none follows another.
    order = sorted(pairs, key=lambda pair: (pair[0], -pair[1]))
    ends: list[int] = []  # the least last number of a chain of each length
    at: list[int] = []  # its place in the order
    before: list[int] = []
    for place, (_, j) in enumerate(order):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            at.append(place)
        else:
            ends[length], at[length] = j, place
    chain = []
    place = at[-1] if at else -1
    while place >= 0:
        chain.append(order[place])
        place = before[place]
    return chain[::-1]
