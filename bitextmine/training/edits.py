"""Copies of sentences with one thing changed, by rule: near translations that are none."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bitextmine.encoder.ngrams import SPACE
from bitextmine.encoder.pieces import Pieces
from bitextmine.languages.codes import languages

SHORTEST = 4  # letters of a word to swap: shorter ones are rarely names or content


@dataclasses.dataclass(frozen=True)
class Edits:
    """What may be changed, by piece.

    word: (V,) bool, pieces that begin a word of SHORTEST letters; digits: (V,) int64, -1 or a group of pieces with as
    many digits; groups: their pieces; negating: for each language, ids of its negating words.
    """

    begins: np.ndarray
    word: np.ndarray
    digits: np.ndarray
    groups: tuple[np.ndarray, ...]
    negating: dict[str, np.ndarray]

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Edits:
        """Return the edits of a vocabulary."""
        number = {piece: i for i, piece in enumerate(pieces)}
        plain = [piece.removeprefix(SPACE) for piece in pieces]
        begins = np.array([piece.startswith(SPACE) for piece in pieces])
        word = np.array([len(it) >= SHORTEST and it.isalpha() for it in plain]) & begins
        alike: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for i, it in enumerate(plain):
            if it.isascii() and it.isdigit():
                alike[bool(begins[i]), len(it)].append(i)
        groups = tuple(np.array(ids) for ids in alike.values() if len(ids) > 1)
        digits = np.full(len(pieces), -1)
        for i, ids in enumerate(groups):
            digits[ids] = i
        negating = {
            lang: np.array(
                [number[SPACE + it] for it in row.negation if SPACE + it in number], dtype=np.int32
            )
            for lang, row in languages().items()
        }
        return cls(begins, word, digits, groups, negating)

    def edit(self, pieces: Pieces, lang: str, rng: np.random.Generator) -> tuple[np.ndarray, Pieces]:
        """Return rows (m,) int64 and a changed copy of each: another number, another word, or the contrary.

        A sentence with a number has it changed half of the time. Of the others half have a word replaced by one of
        another sentence, and half lose their first negating word or get one.
        """
        ids = pieces.ids.copy()
        n = len(pieces)
        kind = rng.random(n)
        negating = self.negating.get(lang, np.zeros(0, np.int32))
        number = _any(pieces, self.digits[ids] >= 0, rng)
        number[kind < 0.5] = -1
        swapped = _any(pieces, self.word[ids], rng)
        swapped[(number >= 0) | (rng.random(n) < 0.5)] = -1
        others = rng.permutation(ids[swapped[swapped >= 0]])
        denied = _any(pieces, np.isin(ids, negating), rng)
        before = _any(pieces, self.begins[ids], rng)
        free = (number < 0) & (swapped < 0) & bool(len(negating))
        drop, insert = denied[free & (denied >= 0)], before[free & (denied < 0) & (before >= 0)]
        for at in number[number >= 0]:
            ids[at] = rng.choice(self.groups[self.digits[ids[at]]])
        ids[swapped[swapped >= 0]] = others
        times = np.ones(len(ids), dtype=np.int64)
        times[drop], times[insert] = 0, 2
        starts = np.concatenate([[0], np.cumsum(times)])
        edited = np.repeat(ids, times)
        if len(insert):
            edited[starts[insert]] = rng.choice(negating, len(insert))
        result = Pieces(edited, starts[pieces.offsets])
        changed = np.zeros(n, dtype=bool)
        changed[(number >= 0) | (swapped >= 0) | (free & ((denied >= 0) | (before >= 0)))] = True
        rows = np.flatnonzero(changed & (result.lengths > 0))
        return rows, result.take(rows)


def _any(pieces: Pieces, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return, for each sentence, the position in pieces.ids of one wanted piece at random, or -1."""
    found = np.full(len(pieces), -1)
    at = np.flatnonzero(wanted)
    at = at[np.argsort(rng.random(len(at)), kind="stable")]
    found[np.searchsorted(pieces.offsets, at, side="right") - 1] = at
    return found
