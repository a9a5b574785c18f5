"""Words of texts as numbers: what is known of a word is computed once, however many texts contain it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.encoder.tokenizer import word_table

Ints = NDArray[np.int64]

_SURROGATE = re.compile("[\ud800-\udfff]")  # a lone one has no UTF-8
_HIGH = 32  # bits of a key below the number of a text


class StringTable:
    """Distinct strings without blanks, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._table = word_table()
        self.all: list[str] = []
        self.characters = 0

    def read(self, lines: Sequence[str]) -> Pieces:
        """Return the numbers of the words of each line, the parts between blanks."""
        lines = [line if line.isprintable() else " ".join(line.split()) for line in lines]
        try:
            numbers, ends, fresh = self._table.scan("\n".join(lines), len(lines), len(self.all))
        except UnicodeEncodeError:
            return self.read([_SURROGATE.sub("\ufffd", line) for line in lines])
        self.all += fresh
        self.characters += sum(map(len, fresh))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        return Pieces(numbers[: offsets[-1]], offsets)

    def numbers(self, strings: Iterable[str]) -> NDArray[np.int32]:
        """Return the numbers (n,) of strings without blanks."""
        found: NDArray[np.int32] = self.read([" ".join(strings)]).ids
        return found


class Memo:
    """An integer for each string of a table, computed when it is first asked for."""

    def __init__(self, strings: StringTable, values: Callable[[list[str]], Iterable[int]]) -> None:
        self._strings, self._values = strings, values
        self._found = np.zeros(0, dtype=np.int64)
        self._is_known = np.zeros(0, dtype=bool)

    def __call__(self, numbers: NDArray[np.int32]) -> Ints:
        """Return the integers (n,) of the strings with these numbers."""
        more = len(self._strings.all) - len(self._found)
        self._found, self._is_known = (np.pad(each, (0, more)) for each in (self._found, self._is_known))
        asked = np.zeros(len(self._found), dtype=bool)
        asked[numbers] = True
        new = np.flatnonzero(asked & ~self._is_known)
        if len(new):
            self._found[new] = list(self._values([self._strings.all[number] for number in new.tolist()]))
            self._is_known[new] = True
        found: Ints = self._found[numbers]
        return found


class Parts:
    """The parts of each string of a table; they are strings of a table as well."""

    def __init__(
        self, strings: StringTable, cut: Callable[[list[str]], Iterable[Sequence[str]]], parts: StringTable
    ) -> None:
        self._strings, self._cut, self._parts = strings, cut, parts
        self._known = Pieces.from_lists([])

    def __call__(self, texts: Pieces) -> Pieces:
        """Return the numbers of the parts of the strings of each text."""
        if fresh := self._strings.all[len(self._known) :]:
            cut = list(self._cut(fresh))
            lengths = np.fromiter(map(len, cut), np.int64, len(cut))
            self._known = Pieces.join(
                [self._known, Pieces(self._parts.numbers(chain.from_iterable(cut)), offsets_of(lengths))]
            )
        each = self._known.take(texts.ids)
        return Pieces(each.ids, each.offsets[texts.offsets])


# --- of each text ---


def text_of(tokens: Pieces) -> Ints:
    """Return the text (m,) that each token is in."""
    return np.repeat(np.arange(len(tokens)), tokens.lengths)


def totals(values: Ints | NDArray[np.bool_], tokens: Pieces) -> Ints:
    """Return the sum (n,) of the values (m,) of the tokens of each text."""
    found: Ints = np.diff(offsets_of(values)[tokens.offsets])
    return found


def key_of(text: Ints, token: Ints | NDArray[np.int32]) -> Ints:
    """Return a number for a token in a text, from which `text_of_key` tells the text."""
    return (text << _HIGH) | token


def distinct(tokens: Pieces) -> Ints:
    """Return `key_of` of the distinct tokens of each text, increasing."""
    keys = np.sort(key_of(text_of(tokens), tokens.ids))
    found: Ints = keys[np.diff(keys, prepend=-1) != 0]
    return found


def is_among(keys: Ints, sorted_keys: Ints) -> NDArray[np.bool_]:
    """Return flags (m,) of the keys that are among others, which increase."""
    return np.append(sorted_keys, -1)[np.searchsorted(sorted_keys, keys)] == keys


def count_of(keys: Ints, texts: int) -> Ints:
    """Return how many of some keys each text has, (texts,)."""
    found: Ints = np.bincount(keys >> _HIGH, minlength=texts)
    return found


def common(a: Ints, b: Ints, texts: int) -> Ints:
    """Return the number of keys of each text that are in both of two arrays of `distinct`, (texts,)."""
    return count_of(a[is_among(a, b)], texts)
