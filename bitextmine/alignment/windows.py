"""Vectors of windows: all runs of one, two, three ... consecutive sentences of a document.

An aligner compares runs of sentences, so it needs the vector of their joined text. For an encoder that sums pieces it
comes from running sums, at almost no cost (repeated pieces are damped within sentences only); for any other encoder the
text itself is encoded.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.documents.sentences import begins_small, ending
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.extra_columns import COLUMNS, LONGEST, length_table
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.sums import PieceSums, SumParts

Floats = NDArray[np.float32]

_BLOCK = 8192
_KEPT_ROWS, _KEPT_BLOCKS = 1024, 6
_WORD = re.compile(r"[^\W\d_]{2}")
_NAME = re.compile(r"\b(?:(?![a-zß-öø-ÿ])[^\W\d_]{4,}|\d{2,})")  # or number; without most words in lower case
_BEGINNING = 4  # letters or digits of a name that are compared: its ending may differ
_FEW = 4  # letters and digits that can be more than noise or the number of a page
_REPEATS = 0.5  # of the lines: a document of fewer different ones repeats itself
_COMMAS = tuple(",;،؛，；、")
_MOST_SMALL = 0.3  # a document of more lines in lower case has no capitals where sentences begin


class Form(NamedTuple):
    """The lines of a document by their form.

    Attributes:
        continued: (n,) bool; is within a sentence: begins in lower case, in a document where few do, or after a bracket
            that the line before leaves open.
        bare: (n,) bool; has neither a word nor an initial nor a longer number: a page number, a row of dots, dirt on a
            scan.
        ending: (n,) int8, the kind of mark at the end.
        names: the capitalised words and the numbers, as hashes of their first letters or digits.
    """

    continued: NDArray[np.bool_]
    bare: NDArray[np.bool_]
    ending: NDArray[np.int8]
    names: Pieces

    @classmethod
    def of(cls, lines: Sequence[str]) -> Form:
        """Return the form of a document's lines."""
        continued = np.fromiter(map(begins_small, lines), dtype=bool, count=len(lines))
        continued[1:] |= np.array([_goes_on(*seam) for seam in pairwise(lines)], dtype=bool)
        if continued.sum() > _MOST_SMALL * len(lines):
            continued[:] = False
        continued[1:] |= np.array([line.rfind("(") > line.rfind(")") for line in lines[:-1]], dtype=bool)
        bare = np.fromiter(map(_is_bare, lines), dtype=bool, count=len(lines))
        endings = np.fromiter(map(ending, lines), dtype=np.int8, count=len(lines))
        return cls(continued, bare, endings, Pieces.from_lists(list(map(_names, lines))))


def _goes_on(before: str, line: str) -> bool:
    """Return True if a line without cases follows a comma, as one in lower case would."""
    return before.rstrip().endswith(_COMMAS) and unicodedata.category(line.lstrip()[:1] or " ") == "Lo"


def _names(line: str) -> list[int]:
    return sorted({_name(word) for word in _NAME.findall(line) if word[0].isupper() or word[0].isdecimal()})


@lru_cache(1 << 14)
def _name(word: str) -> int:
    letters = unicodedata.normalize("NFKD", word.lower())
    beginning = "".join(c for c in letters if not unicodedata.combining(c))[:_BEGINNING]
    return zlib.crc32(beginning.encode()) >> 1


def _is_bare(line: str) -> bool:
    if _WORD.search(line):
        return False
    # An initial was cut from its name; in scripts without cases a letter may be a word.
    return not any(c.isalpha() and not c.islower() for c in line) and sum(map(str.isalnum, line)) < _FEW


class Windows:
    """A document of ``len()`` sentences, and the vectors of its windows.

    Here they are normalised sums of the sentences' vectors, (n, d) unit rows or zeros.

    Attributes:
        sizes: the sentences in the longest window.
        dim: the size of the vectors.
        characters: (n,) int64, the length of each sentence, if known.
        lines: the sentences, if known.
        form: of the sentences, if known.
        firsts: the numbers of lines that no earlier one equals, in a document that mostly repeats itself.
        times: (n, 2) float64, when each sentence of subtitles begins and ends, in seconds.
        pieces: of the sentences, if the encoder sums their vectors.
    """

    lines: Sequence[str] = ()
    form: Form | None = None
    firsts: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    pieces: Pieces | None = None

    def __init__(self, vectors: NDArray, sizes: int = 1, characters: NDArray[np.int64] | None = None) -> None:
        self._rows = np.asarray(vectors)
        self.sizes, self.dim, self.characters = sizes, self._rows.shape[1], characters

    def __len__(self) -> int:
        return len(self._rows)

    def vectors(self, size: int, start: int, stop: int) -> Floats:
        """Return vectors of windows of one size, which the caller must not write to.

        Returns:
            (stop - start, dim) float32 unit rows, row i for sentences start + i .. start + i + size - 1; zeros for a
            window without pieces. 0 <= start <= stop <= len() - size + 1, size <= sizes.
        """
        out = self._rows[start:stop].astype(np.float32)
        for i in range(1, size):
            out += self._rows[start + i : stop + i]
        return unit_rows(out) if size > 1 else out

    def halved(self) -> Windows:
        """Return the document with every two sentences as one; the last of an odd number stays alone."""
        n = len(self._rows)
        out = np.zeros(((n + 1) // 2, self.dim), dtype=np.float32)
        out += self._rows[::2]
        out[: n // 2] += self._rows[1::2]
        characters = self.characters
        if characters is not None:
            characters = np.add.reduceat(characters, np.arange(0, n, 2))
        return Windows(unit_rows(out).astype(self._rows.dtype), self.sizes, characters)


class SumWindows(Windows):
    """Windows of an encoder without layers: sums over pieces are summed over sentences.

    The order columns weigh a piece by a cosine of its place in the whole window. Within one sentence that is part of a
    longer wave, fitted (least squares) by the two weighted sums that a sentence has: of 1 and of its own cosine.
    """

    def __init__(self, parts: SumParts, sizes: int, pieces: Pieces, characters: NDArray[np.int64]) -> None:
        super().__init__(parts.sums, sizes, characters)
        self._parts, self.pieces = parts, pieces
        self.dim += COLUMNS if parts.length_share else 0
        # The vectors last used, in blocks by size and number: an aligner asks for the same ones again and again, mostly
        # in order.
        self._kept: dict[tuple[int, int], Floats] = {}

    def vectors(self, size: int, start: int, stop: int) -> Floats:
        """Return vectors, see `Windows`."""
        parts = []
        for number in range(start // _KEPT_ROWS, -(-stop // _KEPT_ROWS)):
            begin = number * _KEPT_ROWS
            block = self._kept.pop((size, number), None)
            if block is None:
                block = self._fresh(size, begin, min(begin + _KEPT_ROWS, len(self) - size + 1))
                if len(self._kept) >= _KEPT_BLOCKS * self.sizes:
                    del self._kept[next(iter(self._kept))]
            self._kept[size, number] = block  # now the last to be dropped
            parts.append(block[max(0, start - begin) : stop - begin])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.dim), dtype=np.float32)

    def _fresh(self, size: int, start: int, stop: int) -> Floats:
        parts, count = self._parts, stop - start
        columns = parts.sums.shape[1]
        plain = columns - parts.order_columns
        out = np.zeros((count, self.dim), dtype=np.float32)
        sums = out[:, :columns]
        for i in range(size):
            sums[:, :plain] += parts.sums[start + i : stop + i, :plain]
        if parts.order_columns and size == 1:
            sums[:, plain:] = parts.sums[start:stop, plain:]
        elif parts.order_columns:
            self._order(sums[:, plain:], size, start, stop)
        length = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        np.divide(sums, length, out=sums, where=length > 1e-12)
        if parts.length_share:
            characters = np.zeros(count, dtype=np.int64)
            for i in range(size):
                characters += parts.characters[start + i : stop + i]
            sums *= np.float32((1 - parts.length_share) ** 0.5)
            table = length_table() * np.float32(parts.length_share**0.5)
            out[:, columns:] = table[np.minimum(characters, LONGEST)]
        out[length[:, 0] <= 1e-12] = 0
        return out

    def _order(self, out: Floats, size: int, start: int, stop: int) -> None:
        """Add the order columns to `out`, which is zero."""
        parts = self._parts
        plain = parts.sums.shape[1] - parts.order_columns
        pieces = np.stack([parts.pieces[start + i : stop + i] for i in range(size)]).astype(np.float64)
        total = np.maximum(pieces.sum(axis=0), 1)
        begin = np.pi * (np.cumsum(pieces, axis=0) - pieces) / total
        width = np.pi * pieces / total
        # The mean of cos(begin + width u) over u from 0 to 1, and twice the mean of its product with cos(pi u).
        even = _mean_cosine(begin, width) * parts.order_weight
        wave = _mean_cosine(begin, width + np.pi) + _mean_cosine(begin, width - np.pi)
        for i in range(size):
            rows = slice(start + i, stop + i)
            out += even[i, :, None].astype(np.float32) * parts.sums[rows, : parts.order_columns]
            out += wave[i, :, None].astype(np.float32) * parts.sums[rows, plain:]


def _mean_cosine(begin: NDArray[np.float64], width: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of cos(begin + width u) over u from 0 to 1."""
    return np.cos(begin + width / 2) * np.sinc(width / (2 * np.pi))


class EncodedWindows(Windows):
    """Windows of any encoder, which encodes sentences joined by spaces; float16 (cosine error below 5e-5)."""

    def __init__(
        self, encoder: Encoder, lines: Sequence[str], sizes: int, batch_tokens: int | None = None
    ) -> None:
        self._by_size = []
        for size in range(1, sizes + 1):
            rows = np.empty((max(0, len(lines) - size + 1), encoder.dim), dtype=np.float16)
            for at in range(0, len(rows), _BLOCK):
                end = min(at + _BLOCK, len(rows))
                texts = [" ".join(lines[i : i + size]) for i in range(at, end)]
                rows[at:end] = encoder.encode(texts, batch_tokens=batch_tokens)
            self._by_size.append(rows)
        super().__init__(self._by_size[0], sizes, line_lengths(lines))

    def vectors(self, size: int, start: int, stop: int) -> Floats:
        """Return vectors, see `Windows`."""
        return self._by_size[size - 1][start:stop].astype(np.float32)


def line_lengths(lines: Sequence[str]) -> NDArray[np.int64]:
    """Return the characters of each line, (n,) int64."""
    return np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))


def unit_rows(rows: Floats) -> Floats:
    """Scale rows to length 1, in place; zeros stay."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    np.divide(rows, length, out=rows, where=length > 1e-12)
    return rows


def make_windows(
    encoder: Encoder, documents: Sequence[Sequence[str]], sizes: int, batch_tokens: int | None = None
) -> list[Windows]:
    """Return the windows of each document, of up to `sizes` sentences; documents are encoded together."""
    sides: list[Windows]
    if isinstance(encoder.network, PieceSums):
        sides = list(_sum_windows(encoder, encoder.network, documents, sizes))
    else:
        sides = [EncodedWindows(encoder, lines, sizes, batch_tokens) for lines in documents]
    for windows, lines in zip(sides, documents, strict=True):
        windows.lines, windows.form = lines, Form.of(lines)
        firsts = dict(zip(reversed(lines), range(len(lines) - 1, -1, -1), strict=True))
        if len(firsts) < _REPEATS * len(lines):
            windows.firsts = np.sort(np.fromiter(firsts.values(), dtype=np.int64))
    return sides


def _sum_windows(
    encoder: Encoder, network: PieceSums, documents: Sequence[Sequence[str]], sizes: int
) -> Iterator[SumWindows]:
    pieces, _, inverse = encoder.tokenize([line for lines in documents for line in lines])
    parts = network.parts(pieces)
    start = 0
    for lines in documents:
        rows = np.arange(start, start + len(lines))
        if inverse is not None:
            rows = inverse[rows]
        own = replace(
            parts, sums=parts.sums[rows], pieces=parts.pieces[rows], characters=parts.characters[rows]
        )
        yield SumWindows(own, sizes, pieces.take(rows), line_lengths(lines))
        start += len(lines)
