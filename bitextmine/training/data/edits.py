"""Copies of sentences with one thing changed, for the objective `edited`."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bitextmine.encoder.ngrams import SPACE
from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.languages.codes import languages

# Letters of a word to swap: shorter ones are rarely names or content.
SHORTEST = 4


class Edits:
    """Copies of sentences with one thing changed, by rule: near translations that are none.

    begins: (V,) bool, pieces that begin a word; word: those that begin one of SHORTEST letters; digits: (V,) int64, -1
    or a group of pieces with as many digits; groups: their pieces; negating: ids of a language's negating words.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        number = {piece: i for i, piece in enumerate(pieces)}
        plain = [piece.removeprefix(SPACE) for piece in pieces]
        self.begins = np.array([piece.startswith(SPACE) for piece in pieces])
        self.word = np.array([len(word) >= SHORTEST and word.isalpha() for word in plain]) & self.begins
        alike: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for i, word in enumerate(plain):
            if word.isascii() and word.isdigit():
                alike[bool(self.begins[i]), len(word)].append(i)
        self.groups = [np.array(ids) for ids in alike.values() if len(ids) > 1]
        self.digits = np.full(len(pieces), -1)
        for i, ids in enumerate(self.groups):
            self.digits[ids] = i
        self.negating: dict[str, np.ndarray] = {}
        for lang, row in languages().items():
            denying = [number[SPACE + word] for word in row.negation if SPACE + word in number]
            self.negating[lang] = np.array(denying, dtype=np.int32)

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
        permuted = rng.permutation(ids[swapped[swapped >= 0]])
        denied = _any(pieces, np.isin(ids, negating), rng)
        before = _any(pieces, self.begins[ids], rng)
        free = (number < 0) & (swapped < 0) & bool(len(negating))
        drop, insert = denied[free & (denied >= 0)], before[free & (denied < 0) & (before >= 0)]
        for at in number[number >= 0]:
            ids[at] = rng.choice(self.groups[self.digits[ids[at]]])
        ids[swapped[swapped >= 0]] = permuted
        times = np.ones(len(ids), dtype=np.int64)
        times[drop], times[insert] = 0, 2
        starts = offsets_of(times)
        edited = np.repeat(ids, times)
        if len(insert):
            edited[starts[insert]] = rng.choice(negating, len(insert))
        result = Pieces(edited, starts[pieces.offsets])
        changed = (number >= 0) | (swapped >= 0) | (free & ((denied >= 0) | (before >= 0)))
        rows = np.flatnonzero(changed & (result.lengths > 0))
        return rows, result.take(rows)


def _any(pieces: Pieces, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return, for each sentence, the position in pieces.ids of one wanted piece at random, or -1."""
    positions = np.full(len(pieces), -1)
    at = np.flatnonzero(wanted)
    at = at[np.argsort(rng.random(len(at)), kind="stable")]
    positions[np.searchsorted(pieces.offsets, at, side="right") - 1] = at
    return positions
