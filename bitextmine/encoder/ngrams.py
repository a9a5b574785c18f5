"""Character n-grams as further pieces of words that the vocabulary cuts up.

The pieces of a word that the vocabulary does not have as a whole say little (vot|ación, en|mi|en|da). Such a word also
gets the n-grams that reach across its cuts, each with a vector of its own (Bojanowski et al. 2017, "Enriching word
vectors with subword information").
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.errors import BitextmineError

SPACE = "\u2581"  # in a piece: the space before a word
LONGEST = 6
LENGTHS = range(4, LONGEST + 1)  # in training

# An n-gram is looked up as a number of as many digits, a digit for each of the list's letters.
MOST_LETTERS = int((2**63) ** (1 / LONGEST)) - 2


def folded(piece: str) -> str:
    """Return a piece in lower case, without accents (é as e, ü as u), with compatible forms as one (ﬁ as fi)."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", piece).casefold())
    for mark in filter(unicodedata.combining, set(plain)):
        plain = plain.replace(mark, "")
    return plain


def is_word(text: str) -> bool:
    """Return True for letters only, at least one; vowel signs count as letters."""
    return bool(text) and all(unicodedata.category(c)[0] in "LM" for c in text)


class Ngrams:
    """The n-grams of a model: g is the piece ``len(pieces) + g``; BitextmineError if one is wrong or there twice.

    ngrams: 2 to LONGEST characters each, `folded`, all of them letters but for a SPACE at the beginning; pieces: the
    vocabulary, piece i for id i, "" for the unknown piece.
    """

    def __init__(self, ngrams: Sequence[str], pieces: Sequence[str]) -> None:
        letters = sorted({letter for ngram in ngrams for letter in ngram} - {SPACE})
        if len(letters) > MOST_LETTERS:
            raise BitextmineError(f"n-grams: {len(letters)} different letters, more than {MOST_LETTERS}")
        # 0 stands for characters that no n-gram has; they end a word as a blank does.
        digits = {SPACE: 1, **{letter: i for i, letter in enumerate(letters, 2)}}
        self._base = len(digits) + 1
        fine = {letter for letter in letters if is_word(letter) and folded(letter) == letter} | {SPACE}
        for line, ngram in enumerate(ngrams, 1):
            if not (2 <= len(ngram) <= LONGEST and fine.issuperset(ngram) and ngram.rfind(SPACE) <= 0):
                raise BitextmineError(
                    f"n-grams: {line}: {ngram!r}: an n-gram has 2 to {LONGEST} characters, lower-case letters without "
                    f"accents, the first of which may be {SPACE}"
                )
        spelled = _spelled(ngrams, digits)
        numbers = np.zeros(len(ngrams), dtype=np.int64)
        self._lengths = sorted(set(map(len, ngrams)))
        for length in self._lengths:
            rows = np.flatnonzero(spelled.lengths == length)
            characters = spelled.take(rows).ids.astype(np.int64).reshape(-1, length)
            numbers[rows] = self._number(list(characters.T))
        self._known, first = np.unique(numbers, return_index=True)
        if len(first) < len(ngrams):
            twice = next(ngram for ngram, count in Counter(ngrams).items() if count > 1)
            raise BitextmineError(f"n-grams: {twice!r} is there twice")
        self._id = (first + len(pieces)).astype(np.int32)
        self._spelled = _spelled(pieces, digits)
        first, last = (
            self._spelled.ids[at] for at in (self._spelled.offsets[:-1], self._spelled.offsets[1:] - 1)
        )
        # A space alone begins a word; one after something ends it.
        self._begins, self._ends = first <= 1, (last == 0) | (last == 1) & (self._spelled.lengths > 1)

    def _number(self, digits: Sequence[np.ndarray]) -> np.ndarray:
        number = digits[0]
        for digit in digits[1:]:
            number = number * self._base + digit
        return number

    def extend(self, pieces: Pieces) -> Pieces:
        """Return the same sentences with n-grams, those with their first and last character in different pieces.

        An n-gram stands after the piece that it ends in.
        """
        ids = pieces.ids
        if not len(ids) or not len(self._known):
            return pieces
        # A piece may continue the word of the one before it.
        goes_on = np.zeros(len(ids), dtype=bool)
        goes_on[1:] = ~(self._begins[ids[1:]] | self._ends[ids[:-1]])
        starts = pieces.offsets[:-1]
        goes_on[starts[starts < len(ids)]] = False
        cut_up = goes_on.copy()
        cut_up[:-1] |= goes_on[1:]
        at = np.flatnonzero(cut_up)
        if not len(at):
            return pieces
        spelled = self._spelled.take(ids[at])
        characters = spelled.ids.astype(np.int64)
        place = np.repeat(at, spelled.lengths)
        # Other characters are words of their own; so is a space that is not a word's first character.
        begins = np.zeros(len(characters), dtype=bool)
        begins[spelled.offsets[:-1]] = ~goes_on[at]
        alone = characters == 0
        word = np.cumsum(begins | alone | (characters == 1))
        word[1:] += np.cumsum(alone[:-1])
        found, ends = [], []
        for length in self._lengths:
            n = max(0, len(characters) - length + 1)
            first, last = slice(0, n), slice(length - 1, None)
            across = (word[first] == word[last]) & (place[first] != place[last])
            where = np.flatnonzero(across)
            number = self._number([characters[where + i] for i in range(length)])
            row = np.minimum(np.searchsorted(self._known, number), len(self._known) - 1)
            hit = self._known[row] == number
            found.append(self._id[row[hit]])
            ends.append(place[where[hit] + length - 1])
        new, after = np.concatenate(found), np.concatenate(ends)
        order = np.argsort(after, kind="stable")
        times = 1 + np.bincount(after, minlength=len(ids))
        starts = offsets_of(times)
        out = np.empty(int(starts[-1]), dtype=np.int32)
        is_piece = np.zeros(len(out), dtype=bool)
        is_piece[starts[:-1]] = True
        out[is_piece] = ids
        out[~is_piece] = new[order]
        return Pieces(out, starts[pieces.offsets])


def _spelled(pieces: Sequence[str], digits: Mapping[str, int]) -> Pieces:
    """Return the `folded` pieces in digits, 0 for a character that has none; an empty piece is one 0."""
    # At once: 48,000 calls would take longer than encoding a thousand sentences.
    names = folded("\n".join(pieces)).split("\n")
    if len(names) != len(pieces):  # one with a line feed in it
        names = [folded(piece) for piece in pieces]
    names = [name or "\0" for name in names]
    table = np.zeros(sys.maxunicode + 1, dtype=np.int32)
    table[[ord(c) for c in digits]] = list(digits.values())
    letters = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return Pieces(table[letters], offsets_of(np.array([len(name) for name in names])))
