"""Tokenising by words: each distinct word is cut into pieces once, and then looked up."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable

import numpy as np

from bitextmine import compiled
from bitextmine.encoder.pieces import Pieces

# Words remembered before the table begins anew: about 50 MB. (200,000 sentences of parliament hold 150,000 words.)
MAX_WORDS = 1 << 19


class Words:
    """Pieces of lines by way of their words, the parts between spaces; each distinct word is cut once.

    A table numbers the words; `scan` of a text yields the number of each word, where the words of each line end, and
    the new words in the order of their numbers. `pieces` puts together the pieces of each line. A call may be
    interrupted anywhere, by Ctrl-C or for lack of memory: words and their pieces become known together, in one
    assignment, and the next scan forgets whatever else the table holds. One thread at a time works on a text.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _nothing()

    def __len__(self) -> int:
        return len(self._state[1])

    def encode(
        self, text: str, lines: int, most: int, cut: Callable[[list[str]], Pieces]
    ) -> tuple[Pieces, int]:
        """Return the first ``most`` pieces of each line of a text, and the number of lines that had more.

        text: ``lines`` lines, joined by line feeds; cut: returns the pieces of new words. Raises UnicodeEncodeError for
        a lone surrogate.
        """
        if text.count("\n") != lines - 1:
            raise ValueError(f"{lines} lines expected, found {text.count(chr(10)) + 1}")
        with self._lock:
            if len(self) > MAX_WORDS:
                self._state = _nothing()
            table, known = self._state
            number, ends, fresh = table.scan(text, lines, len(known))
            if fresh:
                new = cut(fresh)
                if len(new) != len(fresh):
                    raise ValueError(f"{len(fresh)} words were cut, but there are pieces of {len(new)}")
                # By hand: `Pieces.join` adds up all the lengths again.
                offsets = np.concatenate([known.offsets, known.offsets[-1] + new.offsets[1:]])
                known = Pieces(np.concatenate([known.ids, new.ids]), offsets)
                self._state = table, known
        return table.pieces(number, ends, known, most)


def _nothing() -> tuple[CompiledTable | PlainTable, Pieces]:
    """Return an empty table and the pieces of known words, of word i in row i."""
    library = compiled.library("encoder")
    return PlainTable() if library is None else CompiledTable(library), Pieces.from_lists([])


class CompiledTable:
    """The words of a text by number, in C; raises MemoryError as it fills."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._table = library.words_new()
        if not self._table:
            raise MemoryError("no room for a table of words")
        weakref.finalize(self, library.words_free, self._table)

    def scan(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return the number of each word, the end of each line's words, and the words from number ``known`` on."""
        raw = text.encode()
        room = raw.count(b" ") + lines
        number, ends = np.empty(room, dtype=np.int32), np.empty(lines, dtype=np.int64)
        places = np.empty(2 * room, dtype=np.int64)
        there = np.frombuffer(raw, dtype=np.uint8)
        found = self._library.words_scan(self._table, known, there, len(raw), number, ends, places)
        if found == -2:
            raise ValueError(f"{known} words cannot be known to a table of {self.count()}")
        if found < 0:
            raise MemoryError(f"no room for a table of {self.count()} words")
        at = places[: 2 * found].tolist()
        fresh = [raw[begin : begin + size].decode() for begin, size in zip(at[::2], at[1::2], strict=True)]
        return number, ends, fresh

    def count(self) -> int:
        """Return the number of words in the table."""
        return int(self._library.words_count(self._table))

    def pieces(self, number: np.ndarray, ends: np.ndarray, known: Pieces, most: int) -> tuple[Pieces, int]:
        """Return each line's pieces, ``most`` at most, and the number of lines that had more."""
        offsets = np.empty(len(ends) + 1, dtype=np.int64)
        given = (number, ends, len(ends), known.ids, known.offsets, most, offsets)
        cut = self._library.words_pieces(*given, None)
        ids = np.empty(int(offsets[-1]), dtype=np.int32)
        self._library.words_pieces(*given, ids)
        return Pieces(ids, offsets), cut


class PlainTable(dict[str, int]):
    """The same in Python: a dictionary that numbers its keys as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def scan(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return the same as `CompiledTable.scan`."""
        text.encode()  # a lone surrogate is an error there as well
        if known > len(self):
            raise ValueError(f"{known} words cannot be known to a table of {len(self)}")
        while len(self) > known:
            self.popitem()  # the last one that came
        split = [list(filter(None, line.split(" "))) for line in text.split("\n")]
        ends = np.cumsum(np.fromiter(map(len, split), dtype=np.int64, count=lines))
        words = itertools.chain.from_iterable(split)
        number = np.fromiter(map(self.__getitem__, words), dtype=np.int32, count=int(ends[-1]))
        fresh = list(itertools.islice(reversed(self), len(self) - known))
        return number, ends, fresh[::-1]

    def pieces(self, number: np.ndarray, ends: np.ndarray, known: Pieces, most: int) -> tuple[Pieces, int]:
        """Return the same as `CompiledTable.pieces`."""
        words = known.take(number)
        offsets = words.offsets[np.concatenate([np.zeros(1, dtype=np.int64), ends])]
        return Pieces(words.ids, offsets).first(most)
