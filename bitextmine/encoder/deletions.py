"""How the cosine of a pair changes when words are deleted: signs of words that the other text lacks.

The vector of a text is the sum of the vectors of its words. If a word or a run of words has no counterpart, deleting it
raises the cosine of the pair; if a word was replaced, deleting it together with its replacement does. The gain of a
deletion is log((1.02 - before) / (1.02 - after)), of the cosines before and after it, and at least -1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.compiled import library
from bitextmine.encoder.pieces import Pieces, offsets_of

Floats = NDArray[np.float64]

RUNS = ((1, 2), (3, 5), (6, 1 << 30))  # words of a run; deletions.c has the same constants
_BEST = 3
_LEAST = 1e-3  # squared length of what is left of a text
_LANES, _LONGEST = 32, 32_000
_RISE = 1e-3  # a gain beyond rounding
_MOST_WORDS = 80  # of a longer text, adjacent words count as one
# Features of each side: for each of RUNS, the gain of the best run, and the length of its vector by that of the text;
# for single words, the sum of the positive gains, the share of words with one, the highest gain, the mean of the
# highest gains, the standard deviation of all, and the mean of the highest gains together with a word of the other
# side. Of both sides: the gain of the best run of one side and then the best of the other, starting from either side;
# and the highest gain of a word of each.
SIDE_DELETIONS = 2 * len(RUNS) + 6
DELETIONS = 2 * SIDE_DELETIONS + 3


class Deletions(NamedTuple):
    """The gains of deletions in n pairs.

    Attributes:
        features: float32 (n, DELETIONS), zeros where a side has no words.
        word_of: for each side, the number of the word that each piece belongs to, (pieces,), -1 if to none.
        words: for each side, float32 (words, 4): the gain of each word, its highest gain together with a word of the
            other side, its highest cosine with one, and the length of its vector.
    """

    features: NDArray[np.float32]
    word_of: tuple[NDArray[np.int64], NDArray[np.int64]]
    words: tuple[NDArray[np.float32], NDArray[np.float32]]


class PieceTable(NamedTuple):
    """All pieces: vectors, `rows` (pieces, d) times `scale`, and flags of those that begin a word or are marks."""

    rows: NDArray[np.int8]
    scale: NDArray[np.float32]
    begins: NDArray[np.bool_]
    marks: NDArray[np.bool_]


def deletions(both: tuple[Pieces, Pieces], table: PieceTable) -> Deletions:
    """Return the gains of deleting words, without marks, from n pairs of texts."""
    words, texts, word_of = zip(*(_words(side, table) for side in both), strict=True)
    features = np.zeros((len(both[0]), DELETIONS), dtype=np.float32)
    src, tgt = (np.zeros((len(side), 4), dtype=np.float32) for side in words)
    found = Deletions(features, word_of, (src, tgt))
    rows, scale = table.rows, table.scale
    if (compiled := library("encoder")) is None:
        for pair in range(len(features)):
            some = [
                side.take(np.arange(of[pair], of[pair + 1])) for side, of in zip(words, texts, strict=True)
            ]
            if all(map(len, some)):
                features[pair], values = _compare(*_vectors(some, rows, scale))
                for side, of in enumerate(texts):
                    found.words[side][of[pair] : of[pair + 1]] = values[side]
        return found
    arrays = [
        (np.ascontiguousarray(side.ids), side.offsets, of, values)
        for side, of, values in zip(words, texts, found.words, strict=True)
    ]
    addresses = np.array([array.ctypes.data for side in arrays for array in side], dtype=np.int64)
    if compiled.delete_words(rows, scale, rows.shape[1], addresses, len(features), features):
        raise MemoryError
    return found


def _words(pieces: Pieces, table: PieceTable) -> tuple[Pieces, NDArray[np.int64], NDArray[np.int64]]:
    """Return the words of n texts, the offsets (n + 1,) of each text's words, and the number of each piece's word."""
    begins = table.begins[pieces.ids]
    begins[pieces.offsets[:-1][pieces.lengths > 0]] = True
    text, number = np.repeat(np.arange(len(pieces)), pieces.lengths), np.cumsum(begins) - 1
    kept = ~table.marks[pieces.ids]
    real = np.bincount(number, kept, int(begins.sum())) > 0  # words that are more than marks
    number = np.where(real[number], np.cumsum(real)[number] - 1, -1)
    count = np.bincount(text[begins][real], minlength=len(pieces))
    if (count > _MOST_WORDS).any():
        first = offsets_of(count)[text]
        merged = np.minimum(count, _MOST_WORDS)
        number = np.where(
            number < 0,
            -1,
            (number - first) * merged[text] // np.maximum(count, 1)[text] + offsets_of(merged)[text],
        )
        count = merged
    lengths = np.bincount(number[kept], minlength=int(count.sum()))
    return Pieces(pieces.ids[kept], offsets_of(lengths)), offsets_of(count), number


def _vectors(
    both: list[Pieces], rows: NDArray[np.int8], scale: NDArray[np.float32]
) -> tuple[list[Floats], float]:
    """Return the vectors of the words of both sides, as whole numbers of up to 32,000, and the square of their unit.

    Sums of their products are below 2^53 and exact in any order, so that runs that are the same are equally good.
    """
    sums, longest = [], np.float32(1e-9)
    for words in both:
        total = np.zeros((len(words), -(-rows.shape[1] // _LANES) * _LANES), dtype=np.float32)
        for nth in range(int(words.lengths.max())):
            more = np.flatnonzero(words.lengths > nth)
            ids = words.ids[words.offsets[more] + nth]
            total[more, : rows.shape[1]] += scale[ids, None] * rows[ids].astype(np.float32)
        lanes = np.zeros((len(words), _LANES), dtype=np.float32)
        for start in range(0, total.shape[1], _LANES):
            lanes += total[:, start : start + _LANES] ** 2
        longest = max(longest, np.cumsum(lanes, axis=1)[:, -1].max())
        sums.append(total)
    factor = np.float32(_LONGEST) / np.sqrt(longest)
    whole = [
        np.trunc(total * factor + np.copysign(np.float32(0.5), total)).astype(np.float64) for total in sums
    ]
    return whole, 1 / float(factor) ** 2


def _compare(sides: list[Floats], unit: float) -> tuple[list[Floats | float], list[Floats]]:
    """Return the features of a pair and `Deletions.words` of each side, from `_vectors`."""
    src, tgt = sides
    whole = (src.sum(axis=0), tgt.sum(axis=0))
    square = [max(float(v @ v) * unit, 1e-6) for v in whole]
    base = float(whole[0] @ whole[1]) * unit / math.sqrt(square[0] * square[1])
    cross, length = (
        np.einsum("id,jd->ij", src, tgt),
        [np.sqrt((side**2).sum(axis=1) * unit) for side in sides],
    )
    rest = [
        1 / np.sqrt(np.maximum(((v - side) ** 2).sum(axis=1) * unit, _LEAST))
        for side, v in zip(sides, whole, strict=True)
    ]
    product = whole[0] @ whole[1] - (src @ whole[1])[:, None] - (tgt @ whole[0]) + cross
    pairs = _gain(product * rest[0][:, None] * rest[1] * unit, base)
    inverse = [1 / np.maximum(each, 1e-6) for each in length]
    alike = cross * inverse[0][:, None] * inverse[1] * unit
    features: list[Floats | float] = []
    words, joint = [], []
    for number, (side, other) in enumerate(zip(sides, whole[::-1], strict=True)):
        replaced, closest = pairs.max(axis=1 - number), alike.max(axis=1 - number)
        runs, size = _runs(side, other, unit)
        factor = unit / math.sqrt(square[1 - number])
        highest = runs.max() * factor if len(side) > 1 else base
        alone = np.minimum(_gain(runs.diagonal(1) * factor, base), 1) if len(side) > 1 else np.zeros(1)
        left = whole[number]
        for fewest, most in RUNS:
            some = np.where((size >= fewest) & (size <= most), runs, -np.inf)
            begin, end = np.unravel_index(some.argmax(), some.shape)
            found, run = some[begin, end] * factor, side[begin:end].sum(axis=0)
            features += (
                [_gain(found, base), math.sqrt(run @ run * unit / square[number])]
                if found > -1
                else [0.0, 0.0]
            )
            if found == highest:
                left = whole[number] - run
        features += [alone[alone > _RISE].sum(), (alone > _RISE).mean(), alone.max(), _best(alone)]
        features += [alone.std(), _best(replaced)]
        words.append(np.stack([alone, replaced, np.maximum(closest, -1), length[number]], axis=1))
        after = _runs(sides[1 - number], left, unit)[0].max() * unit
        after /= math.sqrt(max(float(left @ left) * unit, _LEAST))
        joint.append(_gain(np.maximum(highest, after), base))
    return [*features, *joint, pairs.max()], words


def _runs(words: Floats, other: Floats, unit: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return `other` times a text without words i to j - 1, by the length of the latter, and j - i.

    -inf for runs that do not count.
    """
    n = len(words)
    until = np.concatenate([np.zeros((1, words.shape[1])), np.cumsum(words, axis=0)])
    products = np.einsum("id,jd->ij", until, until)  # BLAS would share these small products among threads
    toward = until @ other
    own, whole = products.diagonal(), products[-1]
    rest = own[-1] - 2 * (whole - whole[:, None]) + own[:, None] + own - 2 * products
    runs: Floats = (toward[-1] - toward + toward[:, None]) * (1 / np.sqrt(np.maximum(rest * unit, _LEAST)))
    size = np.arange(n + 1) - np.arange(n + 1)[:, None]
    longest = max(n * 7 // 10, 1) if n > 1 else 0
    runs[(size < 1) | (size > longest)] = -np.inf
    return runs, size


def _gain(cosine: Floats, base: float) -> Floats:
    found: Floats = np.log((1.02 - min(base, 0.999)) / (1.02 - np.minimum(cosine, 0.999)))
    return np.maximum(found, -1)


def _best(values: Floats) -> float:
    """Return the mean of the highest values, counting -1 for each that a short text lacks."""
    highest = np.sort(values)[::-1][:_BEST]
    return float((highest.sum() - (_BEST - len(highest))) / _BEST)
