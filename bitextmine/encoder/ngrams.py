"""Character n-grams as further pieces of words that the vocabulary cuts up.

The pieces of a word that the vocabulary does not have as a whole say little (vot|ación, en|mi|en|da). Such a word also
gets the n-grams that reach across its cuts, each with a vector of its own (Bojanowski et al. 2017, "Enriching word
vectors with subword information").
"""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bitextmine.encoder.pieces import Pieces, offsets_of
from bitextmine.errors import BitextmineError
from bitextmine.languages.romanize import CONSONANTS, consonants

SPACE = "\u2581"  # in a piece: the space before a word
LONGEST = 6
# An n-gram is looked up by a polynomial hash of its letters, in 64 bits: the list may have any number of letters.
FACTOR = np.uint64(0xD1342543DE82EF95)
# Lengths of n-grams in training, by script: a letter of Han is a word, and Arabic and Hebrew write consonants alone.
LENGTHS = range(4, LONGEST + 1)
SHORT, SHORTEST, BARE = range(3, 6), range(1, 4), range(3, 7)
_SHORT = re.compile("[\u0590-\u08ff\u0900-\u109f\u1780-\u17ff]")
_SHORTEST = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def folded(piece: str) -> str:
    """Return a piece in lower case, without accents (é as e, ü as u), with compatible forms as one (ﬁ as fi)."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", piece).casefold())
    marks = "".join(filter(unicodedata.combining, set(plain)))
    return re.sub(f"[{marks}]+", "", plain) if marks else plain


def skeleton(piece: str) -> str:
    """Return the consonants of a piece in capitals, which names have in common in all scripts; NUL for a non-letter."""
    return _bare(folded(piece))


def _bare(plain: str) -> str:
    return consonants(plain, f"{SPACE}\n")


def training_lengths(letter: str) -> range:
    """Return the lengths of the n-grams to train that end in a letter."""
    return SHORTEST if _SHORTEST.match(letter) else SHORT if _SHORT.match(letter) else LENGTHS


def is_word(text: str) -> bool:
    """Return True for letters only, at least one; vowel signs count as letters."""
    return bool(text) and all(unicodedata.category(c)[0] in "LM" for c in text)


class Ngrams:
    """The n-grams of a model: g is the piece ``len(pieces) + g``; BitextmineError if one is wrong or there twice.

    ngrams: 2 to LONGEST characters each, all of them letters but for a SPACE at the beginning: `folded`, or capitals of
    `skeleton`s; pieces: the vocabulary, piece i for id i, "" for the unknown piece.
    """

    def __init__(self, ngrams: Sequence[str], pieces: Sequence[str]) -> None:
        letters = {letter for ngram in ngrams for letter in ngram}
        fine = {letter for letter in letters if is_word(letter) and folded(letter) == letter} | {SPACE}
        kinds: tuple[list[int], list[int]] = ([], [])
        for row, ngram in enumerate(ngrams):
            bare = CONSONANTS.issuperset(ngram.removeprefix(SPACE))
            plain = fine.issuperset(ngram) and ngram.rfind(SPACE) <= 0
            if not (2 <= len(ngram) <= LONGEST and (bare or plain)):
                raise BitextmineError(
                    f"n-grams: {row + 1}: {ngram!r}: an n-gram has 2 to {LONGEST} characters, lower-case letters "
                    f"without accents or consonants in capitals, the first of which may be {SPACE}"
                )
            kinds[bare].append(row)
        if twice := next((ngram for ngram, count in Counter(ngrams).items() if count > 1), None):
            raise BitextmineError(f"n-grams: {twice!r} is there twice")
        names = _each(folded, pieces, pieces)
        self._tables: list[_Table] = []
        for kind, rows in enumerate(kinds):
            if kind and not rows:
                continue
            ids = np.array(rows, dtype=np.int32) + len(pieces)
            names = _each(_bare, names, pieces) if kind else names
            self._tables.append(_Table([ngrams[row] for row in rows], ids, names))
        spelled = self._tables[0].pieces
        first, last = (spelled.ids[at] for at in (spelled.offsets[:-1], spelled.offsets[1:] - 1))
        # A space alone begins a word; one after something ends it.
        self._begins, self._ends = first <= 1, (last == 0) | (last == 1) & (spelled.lengths > 1)

    def extend(self, pieces: Pieces) -> Pieces:
        """Return the same sentences with n-grams, those with their first and last character in different pieces.

        An n-gram stands after the piece that it ends in.
        """
        ids = pieces.ids
        tables = [table for table in self._tables if table.lengths]
        if not len(ids) or not tables:
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
        numbers, ends = zip(
            *(part for table in tables for part in table.across(ids, at, goes_on)), strict=True
        )
        new, after = np.concatenate(numbers), np.concatenate(ends)
        order = np.argsort(after, kind="stable")
        times = 1 + np.bincount(after, minlength=len(ids))
        starts = offsets_of(times)
        out = np.empty(int(starts[-1]), dtype=np.int32)
        is_piece = np.zeros(len(out), dtype=bool)
        is_piece[starts[:-1]] = True
        out[is_piece] = ids
        out[~is_piece] = new[order]
        return Pieces(out, starts[pieces.offsets])


class _Table:
    """N-grams of one kind by the numbers of their letters; pieces: the vocabulary in these letters' digits."""

    def __init__(self, ngrams: Sequence[str], ids: np.ndarray, pieces: Sequence[str]) -> None:
        letters = sorted({letter for ngram in ngrams for letter in ngram} - {SPACE})
        # 0 stands for characters that no n-gram has; they end a word as a blank does.
        digits = {SPACE: 1, **{letter: i for i, letter in enumerate(letters, 2)}}
        spelled = _in_digits(ngrams, digits)
        numbers = np.zeros(len(ngrams), dtype=np.uint64)
        self.lengths = sorted(set(map(len, ngrams)))
        for length in self.lengths:
            rows = np.flatnonzero(spelled.lengths == length)
            numbers[rows] = _number(list(spelled.take(rows).ids.reshape(-1, length).T))
        order = np.argsort(numbers)
        self._known, self._ids = numbers[order], ids[order]
        self.pieces = _in_digits(pieces, digits)

    def across(
        self, ids: np.ndarray, at: np.ndarray, goes_on: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each length, the n-grams across pieces and the positions in ``ids`` of the pieces they end in.

        at: positions of the pieces of cut words, increasing; goes_on: whether a piece continues the one before.
        """
        spelled = self.pieces.take(ids[at])
        characters = spelled.ids
        place = np.repeat(at, spelled.lengths)
        # Other characters are words of their own; so is a space that is not a word's first character.
        begins = np.zeros(len(characters) + 1, dtype=bool)
        begins[spelled.offsets[:-1][~goes_on[at]]] = True
        alone = characters == 0
        word = np.cumsum(begins[:-1] | alone | (characters == 1))
        word[1:] += np.cumsum(alone[:-1])
        for length in self.lengths:
            n = max(0, len(characters) - length + 1)
            first, last = slice(0, n), slice(length - 1, None)
            where = np.flatnonzero((word[first] == word[last]) & (place[first] != place[last]))
            number = _number([characters[where + i] for i in range(length)])
            row = np.minimum(np.searchsorted(self._known, number), len(self._known) - 1)
            hit = self._known[row] == number
            yield self._ids[row[hit]], place[where[hit] + length - 1]


def _number(digits: Sequence[np.ndarray]) -> np.ndarray:
    """Return a number (n,) uint64 for each n-gram, whose i-th letters are ``digits[i]`` (n,) int32."""
    number = digits[0].astype(np.uint64)
    for digit in digits[1:]:
        number = number * FACTOR + digit.astype(np.uint64)
    return number


def _each(spell: Callable[[str], str], names: Sequence[str], pieces: Sequence[str]) -> list[str]:
    """Return the names of pieces as ``spell`` writes them; NUL for the unknown piece, which is empty."""
    # At once: 48,000 calls would take longer than encoding a thousand sentences.
    spelled = spell("\n".join(names)).split("\n")
    if len(spelled) != len(names):  # one with a line feed in it
        spelled = [spell(name) for name in names]
    return [name if name or piece else "\0" for name, piece in zip(spelled, pieces, strict=True)]


def _in_digits(names: Sequence[str], digits: Mapping[str, int]) -> Pieces:
    """Return strings in digits, 0 for a character that has none."""
    table = np.zeros(sys.maxunicode + 1, dtype=np.int32)
    table[[ord(c) for c in digits]] = list(digits.values())
    letters = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return Pieces(table[letters], offsets_of(np.array([len(name) for name in names])))
