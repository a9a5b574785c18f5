"""Tokenising by words: each distinct word is cut into pieces once, and looked up from then on."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable

import numpy as np

from bitextmine.encoder import native
from bitextmine.encoder.pieces import Pieces

__all__ = ["MAX_WORDS", "Words"]

# Words remembered before all are forgotten and the table begins anew: about 50 MB. (200,000 sentences of
# parliament hold 150,000 words, words with a comma at their end counted apart.)
MAX_WORDS = 1 << 19


class Words:
    """Pieces of lines by way of their words, which are what stands between spaces.

    For each line the result is the pieces of its words, one after another; whether that is how the tokeniser would
    have cut the whole line, the caller knows. Not for two threads at a time.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._finder: _Compiled | _Plain = _Plain() if native.library() is None else _Compiled()
        self._pieces = np.zeros(0, dtype=np.int32)
        self._first = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._first) - 1

    def encode(
        self, text: str, lines: int, most: int, cut: Callable[[list[str]], Pieces]
    ) -> tuple[Pieces, int]:
        """Pieces of each line of ``text`` (``lines`` of them, joined by line feeds), the first ``most`` of them,
        and how many lines had more; ``cut`` gives the pieces of words that are new. Raises UnicodeEncodeError for
        a lone surrogate."""
        if text.count("\n") != lines - 1:
            raise ValueError(f"{lines} lines expected, found {text.count(chr(10)) + 1}")
        if len(self) > MAX_WORDS:
            self._forget()
        number, ends, fresh = self._finder.scan(text, lines)
        if fresh:
            try:
                new = cut(fresh)
            except BaseException:
                self._forget()  # words in the table that have no pieces
                raise
            self._pieces = np.concatenate([self._pieces, new.ids])
            self._first = np.concatenate([self._first, self._first[-1] + new.offsets[1:]])
        return self._finder.pieces(number, ends, self._pieces, self._first, most)


class _Compiled:
    """The words of a text by number, in C."""

    def __init__(self) -> None:
        library = native.library()
        assert library is not None
        self._library = library
        self._table = library.words_new()
        if not self._table:
            raise MemoryError("no room for a table of words")
        weakref.finalize(self, library.words_free, self._table)

    def scan(self, text: str, lines: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """The number of each word, (words,) int32; where the words of each line end, (lines,) int64; the words
        that were not there before, in the order of their numbers."""
        raw = text.encode()
        room = raw.count(b" ") + lines
        number, ends = np.empty(room, dtype=np.int32), np.empty(lines, dtype=np.int64)
        places = np.empty(2 * room, dtype=np.int64)
        found = self._library.words_scan(
            self._table,
            raw,
            len(raw),
            native.address(number, np.int32),
            native.address(ends, np.int64),
            native.address(places, np.int64),
        )
        if found < 0:
            raise MemoryError(f"no room for a table of {self._library.words_count(self._table)} words")
        at = places[: 2 * found].tolist()
        fresh = [raw[begin : begin + size].decode() for begin, size in zip(at[::2], at[1::2], strict=True)]
        return number, ends, fresh

    def pieces(
        self, number: np.ndarray, ends: np.ndarray, pieces: np.ndarray, first: np.ndarray, most: int
    ) -> tuple[Pieces, int]:
        """Each line's pieces, ``most`` at most, and how many lines had more."""
        offsets = np.empty(len(ends) + 1, dtype=np.int64)
        given = (
            native.address(number, np.int32),
            native.address(ends, np.int64),
            len(ends),
            native.address(pieces, np.int32),
            native.address(first, np.int64),
            most,
            native.address(offsets, np.int64),
        )
        cut = self._library.words_pieces(*given, None)
        ids = np.empty(int(offsets[-1]), dtype=np.int32)
        self._library.words_pieces(*given, native.address(ids, np.int32))
        return Pieces(ids, offsets), int(cut)


class _Plain(dict[str, int]):
    """The same in Python: a dictionary that numbers its keys as they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._fresh: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self._fresh.append(word)
        return number

    def scan(self, text: str, lines: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        text.encode()  # as the compiled one would: a lone surrogate is an error
        split = [list(filter(None, line.split(" "))) for line in text.split("\n")]
        ends = np.cumsum(np.fromiter(map(len, split), dtype=np.int64, count=lines))
        words = itertools.chain.from_iterable(split)
        number = np.fromiter(map(self.__getitem__, words), dtype=np.int32, count=int(ends[-1]))
        fresh, self._fresh = self._fresh, []
        return number, ends, fresh

    def pieces(
        self, number: np.ndarray, ends: np.ndarray, pieces: np.ndarray, first: np.ndarray, most: int
    ) -> tuple[Pieces, int]:
        words = Pieces(pieces, first).take(number)
        offsets = words.offsets[np.concatenate([np.zeros(1, dtype=np.int64), ends])]
        whole = Pieces(words.ids, offsets)
        cut = int((whole.lengths > most).sum())
        return (whole.take(np.arange(len(whole)), most) if cut else whole), cut
