"""Signs that a name of one side has no counterpart on the other, for the network `words` of the column quality."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.codes import script_code
from bitextmine.scoring.columns import evidence
from bitextmine.scoring.columns.words import totals

# Signs of a name: the mean cosine of its pieces with the most similar ones of the other side, and the lowest; the log
# odds that it keeps its spelling; the distance from the word spelled most alike; the logarithm of the number of pieces;
# whether both sides have the same script; what the pair gains without it, and without it and a word of the other side;
# the highest cosine with one; the logarithm of the length of its vector.
_OWN = 10
_SPELLED = 3  # of these, the distance of spellings
# Signs of the text around it, by `context`: the share of capitalised words of its side, and of the other; whether the
# word before it and the word behind it are capitalised, and the name is in capitals; the logarithm of the number of
# words, of their ratio, of capitalised words of its side, and of the other; its place in the text. Then the mean cosine
# of all pieces of its side with the most similar ones, and of the other side; and what the pair gains without a run of
# words of the target and then of the source, and without a word of each.
_AROUND = 14
NAME_DIRECTIONS = 32  # of its vector
NAME_INPUTS = _OWN + _AROUND + NAME_DIRECTIONS
_SAMPLE = 100  # characters that tell the script of a text
_NOT_LATIN = re.compile("[^\0-\u024f\u2000-\u206f]")  # nor punctuation


class Names(NamedTuple):
    """Names of one side that the other may lack: the text of each, the word, and NAME_INPUTS (n, m)."""

    row: NDArray[np.int64]
    word: list[str]
    signs: NDArray[np.float64]

    @property
    def apart(self) -> NDArray[np.float64]:
        """Return the distances (n,) from the words of the other side."""
        found: NDArray[np.float64] = np.minimum(1 - self.signs[:, 0], self.signs[:, _SPELLED])
        return found


def context(
    own: evidence.Words, other: evidence.Words, rows: NDArray[np.int64], places: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Return signs (n,) of the words around names, which are words `places` of the texts `rows`, both (n,)."""
    capitals, counts, shares = [], [], []
    for words in (own, other):
        capital = (words.flags & evidence.CAPITAL > 0).astype(np.int64)
        capitals.append(capital)
        counts.append(totals(capital, words.numbers)[rows])
        shares.append(counts[-1] / np.maximum(words.numbers.lengths[rows], 1))
    lengths, others = own.numbers.lengths[rows], other.numbers.lengths[rows]
    at = own.numbers.offsets[rows] + places
    near = np.concatenate([[0], capitals[0], [0]])
    return [
        *shares,
        np.where(places > 0, near[at], 0).astype(np.float64),
        np.where(places + 1 < lengths, near[at + 2], 0).astype(np.float64),
        (own.flags[at] & evidence.UPPER > 0).astype(np.float64),
        np.log1p(lengths),
        np.log((1 + others) / (1 + lengths)),
        *map(np.log1p, counts),
        places / np.maximum(lengths, 1),
    ]


def _script(text: str) -> str:
    start = text[:_SAMPLE]
    return script_code(start) if _NOT_LATIN.search(start) else "Latn"  # fast


def spelled(
    texts: Sequence[str], others: Sequence[str], rows: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_]]:
    """Return words of some texts, the distance of each from those of the other text, and if both have one script."""
    found, apart, same = [], [], []
    last = -1
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        if row != last:  # the names of a text come one after the other
            own, other, last = texts[row], others[row], row
            words, known, alike = own.split(), evidence.spellings(other), _script(own) == _script(other)
        found.append(words[place])
        apart.append(evidence.unlike(words[place], known, sounds=True))
        same.append(alike)
    return found, np.array(apart, dtype=np.float64), np.array(same, dtype=np.bool_)
